"""Project metadata agrees with the code: version, URLs and required checks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def package() -> dict[str, Any]:
    """The package table of the workspace."""
    facts: dict[str, Any] = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    return facts


def test_citation_names_the_version_and_the_repository() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {package()['version']}\n" in citation
    assert f'\nrepository-code: "{package()["repository"]}"\n' in citation
    licences = re.findall(r"^  - (MIT|Apache-2.0)$", citation, re.MULTILINE)
    assert " OR ".join(licences) == package()["license"]


def test_urls_are_those_of_the_repository() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Repository"] == package()["repository"]
    assert all(url.startswith(package()["repository"]) for url in urls.values())
    assert package()["repository"] in (ROOT / "SECURITY.md").read_text()


def test_the_workflow_runs_the_required_checks() -> None:
    required = re.findall(r"^ *make ([a-z-]+)", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    jobs = (ROOT / ".github/workflows/ci.yml").read_text()
    lists = re.findall(r"target: \[(.+)\]", jobs)
    run = {"fuzz-decoder", *re.findall(r"make ([a-z-]+)$", jobs, re.MULTILINE)}  # part of `fuzz`
    run |= {target for names in lists for target in names.split(", ")}
    assert set(required) <= run
    assert {"test", "test-all", "servers"} <= set(required)


def test_actions_are_pinned_by_commit() -> None:
    workflows = (ROOT / ".github/workflows").glob("*.yml")
    actions = [
        action
        for workflow in workflows
        for action in re.findall(r"\buses: *(.+)", workflow.read_text())
    ]
    assert actions
    for action in actions:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_hooks_are_local() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (.+)", hooks) == ["local"]
    assert "cargo fmt" in hooks
    assert ".venv/bin/ruff" in hooks


def test_the_changelog_starts_with_the_next_version() -> None:
    titles = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[0] in (package()["version"], f"Unreleased ({package()['version']})")
