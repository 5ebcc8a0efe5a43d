"""Every decision record has a date, and the index lists them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DECISIONS = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = sorted(DECISIONS.glob("0*.md"))
HEAD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\n"
    r"Date: (?P<date>\d{4}-\d\d-\d\d)(?:, changed \d{4}-\d\d-\d\d)?\n\n"
)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_each_record_has_a_date_and_is_listed(path: Path) -> None:
    head = HEAD.match(path.read_text())
    assert head is not None
    assert path.name.startswith(f"{int(head['number']):04}-")
    row = f"| {head['number']} | [{head['title']}]({path.name}) |"
    assert row in (DECISIONS / "README.md").read_text().splitlines()


def test_the_index_has_no_other_entries() -> None:
    rows = re.findall(r"^\| \d+ \|", (DECISIONS / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == len(RECORDS) > 10
