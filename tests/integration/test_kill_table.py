"""Kills every subset of a sweep's processes at every step of a cell. After five seconds, or after
the next command if the janitor and the orchestrator were killed, nothing is left, and all finished
cells are readable.

``make test`` runs a different part of the table every day, ``make test-long`` the whole table.
"""

from __future__ import annotations

import os
import random
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.selection import IS_LONG, SEED
from wsgiload.limits import v1

from .command import Command
from .kill_table import Place, Row, make_template, record_steps, rows_at, run_rows, separate_place

pytestmark = [pytest.mark.servers, pytest.mark.limits]

ROWS = 15
# Only cgroup v1 allows child groups with limits in a group that contains processes.
IS_V1 = "cpu" in v1.find_own(Path("/"))
JOBS = int(os.environ.get("KILL_TABLE_JOBS", "4" if IS_LONG and IS_V1 else "1"))


def chosen_rows(rows: list[Row]) -> list[Row]:
    """Every n-th row; the seed chooses the first."""
    spacing = max(1, len(rows) // ROWS)
    return rows[SEED % spacing :: spacing]


@pytest.mark.timeout(4 * 3600)
def test_killed_processes_leave_nothing_behind(command: Command, tmp_path: Path) -> None:
    template = make_template(command)
    with separate_place(99) if IS_V1 else nullcontext(Place()) as place:
        steps = record_steps(template, tmp_path / "steps", place)
    table = [row for step, living in steps for row in rows_at(step, living)]
    random.Random(len(table)).shuffle(table)  # so that every part covers the whole table
    rows = table if IS_LONG else chosen_rows(table)

    outcomes = run_rows(rows, template, tmp_path, JOBS)

    carried_out = [outcome for outcome in outcomes if outcome is not None]
    slowest = max(outcome.seconds for outcome in carried_out)
    sys.stdout.write(
        f"{len(steps)} steps, {len(table)} rows, {len(carried_out)} of {len(rows)} carried out, "
        f"nothing left after at most {slowest:.2f} s\n"
    )
    failed = [
        f"{outcome.row}: {'; '.join(outcome.problems)}"
        for outcome in carried_out
        if outcome.problems
    ]
    assert failed == [], "\n".join(failed)
    assert len(carried_out) >= 0.9 * len(rows), (
        "too many rows whose processes were not running at their step"
    )
