"""A process that leaves its control group is ended, and the result says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .command import Command

pytestmark = [
    pytest.mark.servers,
    pytest.mark.limits,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can leave a control group"),
]

APPS = Path(__file__).with_name("apps") / "escapes"
SWEEP = ("sweep", "--chdir", APPS, "app:app", "--servers", "wsgiref", "--rates", 20, "--runs", 1)
BRIEFLY = ("--duration", "500ms", "--warmup", "0s", "--cooldown", "0s", "--quiet")
WORDS = "control group, where they are neither limited nor measured: "


@pytest.mark.parametrize("limits", ["strict", "none"])
def test_a_process_that_the_app_starts(command: Command, limits: str) -> None:
    swept = command.run(*SWEEP, *BRIEFLY, "--limits", limits)
    (cell,) = swept.cells.values()
    assert cell["failure"] is None
    notes = [note for note in cell["notes"] if WORDS in note]
    # Without limits, the process is measured like all others that the server started.
    assert len(notes) == (limits == "strict"), cell["notes"]
    assert all("(sleep); they were ended" in note for note in notes)


def test_a_process_that_the_import_starts(command: Command) -> None:
    swept = command.run(*SWEEP, *BRIEFLY, "--env", "ESCAPE_AT_IMPORT=1")
    (cell,) = swept.cells.values()
    message = cell["failure"]["message"]
    assert f"importing app moves processes out of their {WORDS}" in message
