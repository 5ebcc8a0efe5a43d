"""Dependency audit: an unreachable database is reported as not checked."""

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
UNKNOWN = {"name": "internal", "skip_reason": "Dependency not found on PyPI"}
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
    ("dependencies", "outcome", "message"),
    [
        ([SAFE], "passed", ""),
        ([SAFE, UNKNOWN], "passed", "1 of 2 packages are not in the database: internal"),
        ([UNKNOWN], "not checked", "1 of 1 packages"),
        ([SAFE, UNKNOWN, VULNERABLE], "failed", "jinja2 2.0 has PYSEC-1; fixed in 3.1"),
    ],
)
def test_unknown_packages_do_not_pass_as_safe(
    tool: ModuleType,
    dependencies: list[dict[str, Any]],
    outcome: str,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tool.outcome_of_audit(dependencies) == outcome
    assert message in capsys.readouterr().out


@pytest.mark.parametrize(
    ("failing", "code", "message"),
    [
        ((), 0, "vulnerabilities of crates: passed"),
        (("fetch",), 0, "vulnerabilities of crates: not checked"),
        (("advisories",), 1, "vulnerabilities of crates: failed"),
        (("licenses",), 1, "licenses, sources and bans of crates: failed"),
        (("pip-audit",), 0, "vulnerabilities of Python packages: not checked"),
    ],
)
def test_only_vulnerabilities_and_license_violations_fail(
    tool: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failing: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        fails = any(argument in failing for argument in arguments)
        if "--output" in arguments and not fails:
            Path(arguments[-1]).write_text('{"dependencies": [{"name": "a", "version": "1"}]}')
        return subprocess.CompletedProcess(arguments, int(fails), "", "error details")

    monkeypatch.setattr(tool, "run", run)

    assert tool.main() == code
    output = capsys.readouterr().out
    assert message in output.splitlines()
    assert ("error details" in output) is bool(failing)
