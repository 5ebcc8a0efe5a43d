"""Every decision record has a date and a status, and the index lists them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("0*.md"))
HEAD = re.compile(
    r"# (?P<number>\d+)\. (?P<title>.+)\n\n"
    r"Date: (?P<date>\d{4}-\d\d-\d\d)(?:, changed \d{4}-\d\d-\d\d)?  \n"
    r"Status: (?P<status>accepted|superseded by \d+)\n\n"
)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_record_is_dated_and_listed(path: Path) -> None:
    head = HEAD.match(path.read_text())
    assert head is not None
    assert path.name.startswith(f"{int(head['number']):04}-")
    row = (
        f"| {head['number']} | [{head['title']}]({path.name}) | {head['date']} | {head['status']} |"
    )
    assert row in (FOLDER / "README.md").read_text().splitlines()


def test_index_lists_nothing_else() -> None:
    rows = re.findall(r"^\| \d+ \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == len(RECORDS) > 10
