"""Every public function may be used first by several threads, tasks or forked children at once.

Each case needs a new interpreter. ``WSGILOAD_TEST_PYTHONS`` names further ones, separated by
colons, that can import wsgiload.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wsgiload

from . import first_use
from .target import CountingServer

PROGRAM = Path(first_use.__file__)
PYTHONS = [sys.executable, *filter(None, os.environ.get("WSGILOAD_TEST_PYTHONS", "").split(":"))]
REPETITIONS = 20 if "WSGILOAD_LONG_TESTS" in os.environ else 3
# Eight sweeps at once start eight servers and eight generators.
SWEEP_REPETITIONS = 20 if "WSGILOAD_LONG_TESTS" in os.environ else 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sweeps, with a complete one."""
    folder = tmp_path_factory.mktemp("first-use")
    first_use.sweep_in(folder / "complete")
    return folder


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("python", PYTHONS, ids=lambda python: Path(python).name)
@pytest.mark.parametrize("place", ["threads", "tasks", "children"])
@pytest.mark.parametrize("name", first_use.USES)
def test_first_use_at_once(
    name: str, place: str, python: str, folder: Path, target: CountingServer
) -> None:
    for _ in range(SWEEP_REPETITIONS if name == "sweep" else REPETITIONS):
        done = subprocess.run(
            [python, PROGRAM, place, name, target.url, folder],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_program_uses_every_public_name() -> None:
    tree = ast.parse(PROGRAM.read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "wsgiload"
    }
    functions = {name for name in wsgiload.__all__ if not isinstance(getattr(wsgiload, name), type)}
    assert functions <= used
    methods = {name for name in vars(wsgiload.Histogram) if not name.startswith("_")}
    assert methods <= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
