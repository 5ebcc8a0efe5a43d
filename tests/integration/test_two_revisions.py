"""Two revisions of an app are measured, stored with their commits, and compared."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from .command import Command

pytestmark = [pytest.mark.servers, pytest.mark.limits]

MAKE = Path(__file__).parent / "apps" / "revisions" / "make.sh"
WORDS = ("app:application", "--servers", "waitress", "--rates", 20, "--duration", "2s", "--quiet")
BRIEFLY = ("--warmup", "200ms", "--cooldown", "0s", "--settle", "0s")


@pytest.fixture
def revisions(tmp_path: Path) -> tuple[Path, Path]:
    """Work trees of a first revision that takes 2 ms per request, and a second that takes 10 ms."""
    subprocess.run([MAKE], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    return tmp_path / "base", tmp_path / "repo"


def commit_of(folder: Path) -> str:
    """The commit of a work tree."""
    words = ["git", "rev-parse", "HEAD"]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("runs", [1, 4])
def test_a_slower_revision_is_reported_with_its_factor(
    command: Command, revisions: tuple[Path, Path], runs: int
) -> None:
    """One run gives the factor and a hint to repeat it; four runs also give the interval."""
    run_dirs = []
    for folder in revisions:
        result = command.run("sweep", *WORDS, *BRIEFLY, "--runs", runs, cwd=folder)
        assert result.summary["experiment"]["app_revision"] == commit_of(folder)
        run_dirs.append(result.run_dir)

    compared = command.run("compare", *run_dirs, "--json", "change.json")
    assert compared.code == 0
    (entry,) = json.loads((command.folder / "change.json").read_text())["comparisons"]
    assert entry["figure"] == "p50"
    # 4 to 5 on a quiet host; a busy host slows down both revisions.
    assert 1.3 < entry["factor"] < 6
    assert (entry["interval_95"] is not None) == (runs > 1)
    before, after = (commit_of(folder)[:12] for folder in revisions)
    assert f"The app changed from revision {before} to {after}." in compared.out
    hint = "Repeat both with --runs 4 or more"
    assert (hint in compared.out) == (runs == 1)
    assert re.search(r"waitress at 20/s: p50 is [1-5]\.\d\d× .*the first run's", compared.out)
