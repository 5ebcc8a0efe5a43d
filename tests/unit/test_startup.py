"""Commands and public names are imported on first use, to keep the start-up fast."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import wsgiload
from wsgiload.cli import LazyCommand, LazyCommands

HEAVY = {"asyncio", "jinja2", "rich", "wsgiload.api", "wsgiload.sweeps", "wsgiload.report"}


def modules_after(statement: str) -> set[str]:
    """The modules that a new interpreter has loaded after this statement."""
    script = "import contextlib, io, sys\nwith contextlib.redirect_stdout(io.StringIO()):\n"
    script += f"    {statement}\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "statement", ["import wsgiload", "import wsgiload.cli; wsgiload.cli.run(['--help'])"]
)
def test_starting_imports_no_heavy_modules(statement: str) -> None:
    assert modules_after(statement) & HEAVY == set()


def test_a_public_name_is_imported_at_its_first_use() -> None:
    assert "wsgiload.api" in modules_after("import wsgiload; wsgiload.sweep")


def test_lazy_imports_match_the_imports_for_type_checkers() -> None:
    tree = ast.parse(Path(wsgiload.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    declared = {alias.name: node.module for node in imports for alias in node.names}
    assert declared == wsgiload._MODULES
    assert sorted(declared) == wsgiload.__all__
    for name, module in wsgiload._MODULES.items():
        assert getattr(wsgiload, name) is getattr(import_module(module), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'lod'"):
        wsgiload.lod  # type: ignore[attr-defined]  # noqa: B018


def test_a_command_that_cannot_be_imported_is_not_reported_as_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands = LazyCommands([LazyCommand("load", "_load", "load", "loads")])
    assert commands.get("lode") is None

    def fail(name: str) -> None:
        raise KeyError("cooldown")

    monkeypatch.setattr("wsgiload.cli.import_module", fail)
    with pytest.raises(KeyError, match="cooldown"):
        commands.get("load")
