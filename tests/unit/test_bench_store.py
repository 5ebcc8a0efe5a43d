"""Results of the benchmark are never written over others."""

from __future__ import annotations

from pathlib import Path

from bench.store import new_path, write


def test_results_are_named_by_their_code_and_kept(tmp_path: Path) -> None:
    parts = ["2026-11-22", "some-processor", "closed"]
    names = []
    for commit in ("1234567", "1234567", "1234567 with changes", None):
        path = new_path(tmp_path, parts, commit)
        write(path, {"runs": [{"round": 0}]}, "the page\n")
        names.append(path.name.removeprefix("2026-11-22-some-processor-closed"))
    assert names == ["-1234567.json", "-1234567-2.json", "-1234567-with-changes.json", ".json"]
    assert len(list(tmp_path.glob("*.md"))) == 4
