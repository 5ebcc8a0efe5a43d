"""The revision of an app is the commit that git has checked out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wsgiload.host.facts import CHANGED, revision_of


def git(repository: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    process = subprocess.run(
        ["git", *identity, *arguments], cwd=repository, capture_output=True, text=True, check=True
    )
    return process.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A work tree of one commit."""
    (tmp_path / "app.py").write_text("before\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "before")
    return tmp_path


def test_the_revision_is_the_commit_until_a_tracked_file_changes(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    (repository / "notes.txt").touch()
    assert revision_of(repository) == commit
    (repository / "app.py").write_text("after\n")
    assert revision_of(repository) == commit + CHANGED


def test_variables_of_another_repository_are_ignored(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", "/")
    assert revision_of(repository) is not None


def test_a_directory_without_a_repository_has_no_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert revision_of(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert revision_of(tmp_path) is None
