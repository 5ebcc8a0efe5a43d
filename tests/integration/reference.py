"""The reference server as a target, and what a test says when the host was too disturbed to
tell."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from wsgiload.loads.reference_server import BUILT

needs_reference = pytest.mark.skipif(
    not BUILT.exists(), reason="target/release/refsrv is not built"
)


@contextmanager
def reference_process(
    *words: object, longest: str = "20min"
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A reference server that was started with these words, and its URL; it ends by itself if the
    test cannot end it."""
    argv = [
        str(BUILT),
        "--listen",
        "127.0.0.1:0",
        "--no-stamps",
        "--for",
        longest,
        *map(str, words),
    ]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        listening = process.stdout.readline().strip().removeprefix("listening on ")
        yield process, f"http://{listening}/"
    finally:
        process.terminate()
        process.communicate(timeout=10)


@contextmanager
def reference(*words: object, longest: str = "20min") -> Iterator[str]:
    """The URL of such a server."""
    with reference_process(*words, longest=longest) as (_, url):
        yield url


def inconclusive(why: object) -> NoReturn:
    """Neither pass nor failure: this machine was disturbed."""
    pytest.skip(f"INCONCLUSIVE(host): {why}")
