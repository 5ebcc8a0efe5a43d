"""The reference server as a target, and the outcome of a test on a host that was too disturbed."""

from __future__ import annotations

import shlex
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
    *args: object, longest: str = "20min"
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a reference server with these options; yields the process and its URL. The server exits
    after ``longest`` even if the test is killed."""
    argv = [str(BUILT), *shlex.split("--listen 127.0.0.1:0 --no-stamps --for"), longest]
    argv += map(str, args)
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip().removeprefix("listening on ")
        yield process, f"http://{address}/"
    finally:
        process.terminate()
        process.communicate(timeout=10)


@contextmanager
def reference(*args: object, longest: str = "20min") -> Iterator[str]:
    """Run a reference server with these options; yields its URL."""
    with reference_process(*args, longest=longest) as (_, url):
        yield url


def inconclusive(why: object) -> NoReturn:
    """Skip the rest of the test: the host was too disturbed to pass or fail it."""
    pytest.skip(f"INCONCLUSIVE(host): {why}")
