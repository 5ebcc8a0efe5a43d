"""A server that floods its log costs neither its own memory nor the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import Command, CommandResult

pytestmark = [pytest.mark.servers, pytest.mark.limits]

APPS = Path(__file__).with_name("apps") / "log_flood"
SWEEP = (
    "sweep",
    "--servers",
    "gunicorn-gthread",
    "--rates",
    40,
    "--duration",
    "4s",
    "--runs",
    1,
    "--quiet",
)
MAX_DIFFERENCE_BYTES = 8 << 20


def sweep(command: Command, app: str) -> CommandResult:
    swept = command.run(*SWEEP, "--chdir", APPS, f"app:{app}", "--out", app)
    (cell,) = swept.cells.values()
    assert cell["failure"] is None
    return swept


def memory_peak_bytes(swept: CommandResult) -> int:
    (cell,) = swept.cells.values()
    peak: int = cell["resources"]["memory_peak_bytes"]
    return peak


def test_the_log_is_bounded_and_not_charged_to_the_server(command: Command) -> None:
    loud, quiet = sweep(command, "app"), sweep(command, "quiet")
    peaks = memory_peak_bytes(loud), memory_peak_bytes(quiet)
    assert peaks[0] - peaks[1] < MAX_DIFFERENCE_BYTES, peaks

    (log,) = (loud.run_dir / "server").glob("*.log")
    assert log.stat().st_size < 6 << 20
    assert log.read_text().count("bytes left out") == 1
