"""Whichever of a sweep's processes are killed, at whichever step of a cell: nothing is left after
five seconds, or after the next command where nobody was left to clean up, and what was finished can
be read.

``make test`` runs another part of the table every day, ``make test-long`` all of it.
"""

from __future__ import annotations

import datetime
import os
import random
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from wsgiload.limits import v1

from .command import Command
from .kill_table import (
    Place,
    Row,
    make_template,
    record_steps,
    rows_at,
    run_rows,
    separate_place,
)

pytestmark = [pytest.mark.servers, pytest.mark.limits]

ROWS_OF_A_DAY = 40
# Only v1 lets a group with processes have groups with limits below it.
IS_V1 = "cpu" in v1.find_own(Path("/"))
IS_WHOLE = "WSGILOAD_LONG_TESTS" in os.environ
JOBS = int(os.environ.get("KILL_TABLE_JOBS", "4" if IS_WHOLE and IS_V1 else "1"))


def part_of_today(rows: list[Row]) -> list[Row]:
    """Rows from all over the table."""
    spacing = max(1, len(rows) // ROWS_OF_A_DAY)
    return rows[datetime.date.today().toordinal() % spacing :: spacing]


@pytest.mark.timeout(4 * 3600)
def test_whoever_is_killed_at_whichever_step(command: Command, tmp_path: Path) -> None:
    template = make_template(command)
    with separate_place(99) if IS_V1 else nullcontext(Place()) as place:
        steps = record_steps(template, tmp_path / "steps", place)
    table = [row for step, living in steps for row in rows_at(step, living)]
    random.Random(len(table)).shuffle(table)  # so that a part tells of all of it
    rows = table if IS_WHOLE else part_of_today(table)

    outcomes = run_rows(rows, template, tmp_path, JOBS)

    made = [outcome for outcome in outcomes if outcome is not None]
    slowest = max(outcome.seconds for outcome in made)
    sys.stdout.write(
        f"{len(steps)} steps, {len(table)} rows, {len(made)} of {len(rows)} carried out, "
        f"nothing left after at most {slowest:.2f} s\n"
    )
    failed = [f"{one.row}: {'; '.join(one.problems)}" for one in made if one.problems]
    assert failed == [], "\n".join(failed)
    assert len(made) >= 0.9 * len(rows), "the others did not live at their step this time"
