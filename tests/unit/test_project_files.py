"""Project metadata agrees with the code: version, URLs and required checks."""

from __future__ import annotations

import base64
import hashlib
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]


def release_check() -> ModuleType:
    """The program tools/release-check."""
    name = "release_check"
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools/release-check"))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


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


def test_a_release_builds_and_tests_every_target() -> None:
    jobs = (ROOT / ".github/workflows/release.yml").read_text()
    targets = release_check().TARGETS
    assert f"target: [{', '.join(targets)}]" in jobs
    for python in release_check().PYTHONS:
        assert f"{python}-manylinux" in jobs
    assert {target.split("-")[0] for target in targets} == {"x86_64", "aarch64"}


def test_the_list_of_the_page_script_names_the_bundled_version() -> None:
    listed = json.loads((ROOT / "frontend/page.cyclonedx.json").read_text())["components"]
    bundled = json.loads((ROOT / "frontend/package.json").read_text())["dependencies"]
    assert {part["name"]: part["version"] for part in listed} == bundled


def test_a_wheel_does_not_contain_the_folder_of_its_build(tmp_path: Path) -> None:
    info, source = "w-1.dist-info", tmp_path / "source"
    files = {
        "w/__init__.py": b"1",
        f"{info}/sboms/w.json": f'{{"at": "file://{source}/Cargo.toml"}}'.encode(),
    }
    record = "".join(f"{name},sha256=old,9\n" for name in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(tmp_path / "w.whl", "w") as wheel:
        for name, data in (*files.items(), (f"{info}/RECORD", record.encode())):
            wheel.writestr(name, data)

    release_check().hide_folder(tmp_path / "w.whl", source)

    with zipfile.ZipFile(tmp_path / "w.whl") as wheel:
        sbom = wheel.read(f"{info}/sboms/w.json")
        first, second, last = wheel.read(f"{info}/RECORD").decode().splitlines()
    assert json.loads(sbom) == {"at": "file:///wsgiload/Cargo.toml"}
    assert (first, last) == ("w/__init__.py,sha256=old,9", f"{info}/RECORD,,")
    hashed = base64.urlsafe_b64encode(hashlib.sha256(sbom).digest()).decode().rstrip("=")
    assert second == f"{info}/sboms/w.json,sha256={hashed},{len(sbom)}"


def test_the_source_is_unpacked_without_touching_unchanged_files(tmp_path: Path) -> None:
    program = release_check()
    program.WORK = tmp_path

    def pack(**files: str) -> Path:
        with tarfile.open(tmp_path / "w-1.tar.gz", "w:gz") as archive:
            for name, text in files.items():
                member = tarfile.TarInfo(f"w-1/{name}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        return tmp_path / "w-1.tar.gz"

    source = program.unpack(pack(same="1", changed="1", removed="1"), tmp_path / "a")
    os.utime(source / "same", (7, 7))
    program.unpack(pack(same="1", changed="2"), tmp_path / "a")

    assert sorted(path.name for path in source.iterdir()) == ["changed", "same"]
    assert (source / "changed").read_text() == "2"
    assert (source / "same").stat().st_mtime == 7


def test_other_systems_are_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "maturin.py").write_text("")
    script = "import sys; sys.platform = 'darwin'; import build_backend"
    path = os.pathsep.join((str(tmp_path), str(ROOT / "tools")))
    refused = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "wsgiload needs Linux 5.11 or newer: use a Linux container, virtual machine or host"
    ]
