"""Which uv builds the servers' environments."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from uv import find_uv_bin

from wsgiload.environments.locks import uv_program
from wsgiload.errors import ProvisionError


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    uv_program.cache_clear()
    yield
    uv_program.cache_clear()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> str:
    """Put a program called uv on PATH that prints ``output``."""
    program = folder / "uv"
    program.write_text(f"#!/bin/sh\necho {output}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return str(program)


@pytest.mark.parametrize(
    ("output", "is_used"),
    [
        ("uv 0.8.0", True),
        ("uv 0.13.8 \\(x86_64\\)", True),
        ("uv 1.0.0", True),
        ("uv 0.7.22", False),
        ("ultraviolet 1.0", False),
    ],
)
def test_uv_on_the_path_is_used_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str, is_used: bool
) -> None:
    program = install(tmp_path, monkeypatch, output)
    assert uv_program() == (program if is_used else find_uv_bin())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can own files as someone else")
def test_root_does_not_run_the_uv_of_someone_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = install(tmp_path, monkeypatch, "uv 9.9")
    os.chown(program, 12345, 12345)
    assert uv_program() == find_uv_bin()


def test_without_any_uv_the_fix_is_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "uv", None)
    with pytest.raises(ProvisionError, match="uv is missing; python -m pip install uv"):
        uv_program()
