"""The tool that audits dependencies: a database that cannot be reached is neither a pass nor a
failure."""

from __future__ import annotations

import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "audit-dependencies"
SAFE = {"name": "click", "version": "8.2.1", "vulns": []}
UNKNOWN = {"name": "ours", "skip_reason": "Dependency not found on PyPI"}
VULNERABLE = {
    "name": "jinja2",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1"], "aliases": []}],
}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader = SourceFileLoader("audit_dependencies", str(TOOL))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("dependencies", "outcome", "says"),
    [
        ([SAFE], "passed", ""),
        ([SAFE, UNKNOWN], "passed", "1 of 2 packages are not in the database: ours"),
        ([UNKNOWN], "not checked", "1 of 1 packages"),
        ([SAFE, UNKNOWN, VULNERABLE], "failed", "jinja2 2.0 has PYSEC-1; fixed in 3.1"),
    ],
)
def test_a_package_that_is_not_known_is_not_safe(
    tool: ModuleType,
    dependencies: list[dict[str, Any]],
    outcome: str,
    says: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tool.judged(dependencies) == outcome
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    ("failing", "code", "says"),
    [
        ((), 0, "vulnerabilities of crates: passed"),
        (("fetch",), 0, "vulnerabilities of crates: not checked"),
        (("advisories",), 1, "vulnerabilities of crates: failed"),
        (("licenses",), 1, "licenses, sources and bans of crates: failed"),
        (("pip-audit",), 0, "vulnerabilities of Python packages: not checked"),
    ],
)
def test_only_a_finding_is_a_failure(
    tool: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failing: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        fails = any(word in failing for word in words)
        if "--output" in words and not fails:
            Path(words[-1]).write_text('{"dependencies": [{"name": "a", "version": "1"}]}')
        return subprocess.CompletedProcess(words, int(fails), "", "it says why")

    monkeypatch.setattr(tool, "run", run)
    assert tool.main() == code
    shown = capsys.readouterr().out
    assert says in shown.splitlines()
    assert ("it says why" in shown) is bool(failing)
