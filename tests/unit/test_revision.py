"""The revision that is measured is what git has checked out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wsgiload.host.revision import CHANGED, revision_of


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A work tree of one commit."""
    (tmp_path / "app.py").write_text("before\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "before")
    return tmp_path


def test_it_is_the_commit_until_a_tracked_file_is_changed(folder: Path) -> None:
    commit = git(folder, "rev-parse", "HEAD")
    (folder / "notes.txt").touch()
    assert revision_of(folder) == commit
    (folder / "app.py").write_text("after\n")
    assert revision_of(folder) == commit + CHANGED


def test_variables_of_another_repository_are_ignored(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_WORK_TREE", "/")
    assert revision_of(folder) is not None


def test_no_repository_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert revision_of(tmp_path) is None
    monkeypatch.setenv("PATH", "")
    assert revision_of(tmp_path) is None
