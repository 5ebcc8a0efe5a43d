"""SECURITY.md names the tests of its promises."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_promise_names_existing_tests() -> None:
    rows = re.findall(
        r"^\| (?!from elsewhere|---)(.+) \|$", (ROOT / "SECURITY.md").read_text(), re.M
    )
    assert len(rows) >= 10
    for row in rows:
        folder = ROOT
        named = re.findall(r"`((?:tests|crates)/[^`]+|test_\w+\.py)`", row.split(" | ")[-1])
        assert named, row
        for name in named:
            path = folder / name if name.startswith("test_") else ROOT / name
            assert path.exists(), name
            folder = path.parent
