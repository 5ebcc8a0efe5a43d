"""ARCHITECTURE.md is true: layers, paths, and the invariants that can be read off the imports."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "wsgiload"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
# Programs of their own, each started by wsgiload.
PROGRAMS = {"__main__.py", "loads/_driver.py", "environments/import_program.py"}


def layers() -> list[str]:
    """The package names in the page's list, from top to bottom."""
    (text,) = re.findall(r"^```\n(cli .+?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return [name for line in text.splitlines() for name in re.split(r"  +", line)[0].split(", ")]


def uses(path: Path) -> set[str]:
    """The modules that a file imports, and the functions that it calls."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        elif isinstance(node, ast.Call):
            names.add(ast.unparse(node.func))
    return names


@cache
def used_by_module() -> dict[str, set[str]]:
    """What each module of the package uses, without the catalogue."""
    paths = [path for path in PACKAGE.rglob("*.py") if "_servers" not in path.parts]
    return {path.relative_to(PACKAGE).as_posix(): uses(path) for path in paths}


def users_of(*names: str) -> set[str]:
    return {module for module, used in used_by_module().items() if used & set(names)}


def test_the_page_lists_the_enforced_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {one["id"]: one for one in settings["tool"]["importlinter"]["contracts"]}
    assert layers() == contracts["layers"]["layers"]


def test_the_page_fits_two_screens() -> None:
    assert len(PAGE.splitlines()) <= 110


def test_every_named_file_exists() -> None:
    folders = [ROOT, PACKAGE, ROOT / "crates/loadgen", ROOT / "crates/loadgen/src"]
    names = set(re.findall(r"`([\w./-]+/(?:[\w.]+)?)`", PAGE))
    missing = [name for name in names if not any((folder / name).exists() for folder in folders)]
    assert missing == ["servers/NAME.py"]
    assert len(names) > 40


def test_each_invariant_names_a_test() -> None:
    invariants = re.findall(r"^\d+\. (.+)$", PAGE.partition("## Invariants")[2], re.MULTILINE)
    assert len(invariants) >= 13
    assert all(re.search(r"`(crates/loadgen/)?tests/", text) for text in invariants)


def test_only_the_command_line_and_the_report_print() -> None:
    printers = users_of("print", "rich.console", "rich.table", "rich.live")
    assert {module.partition("/")[0] for module in printers} == {"cli", "report"}


def test_only_the_command_line_exits() -> None:
    exits = users_of("sys.exit", "exit", "SystemExit", "os._exit")
    assert {module for module in exits if not module.startswith("cli/")} == PROGRAMS


def test_results_and_report_start_nothing() -> None:
    starters = users_of("subprocess", "multiprocessing", "os.fork", "os.execv")
    assert starters
    assert not [module for module in starters if module.startswith(("results/", "report/"))]


def test_a_server_file_imports_no_other() -> None:
    used = {path.name: uses(path) for path in (ROOT / "servers").glob("*.py")}
    assert len(used) > 10
    for name, modules in used.items():
        assert not [
            module for module in modules if module.startswith(("servers", "wsgiload._servers"))
        ], name
