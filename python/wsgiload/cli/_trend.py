"""``wsgiload report --trend``: shows changes over several stored runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from wsgiload.analysis.run_trend import MIN_STORED_RUNS, StoredRun, trend_of
from wsgiload.cli._output import complain
from wsgiload.cli._stored_runs import read_session, read_summary, reporting_damage
from wsgiload.documents.codec import read
from wsgiload.documents.run_info import RunInfo
from wsgiload.errors import EXIT_OK, UsageError
from wsgiload.foreign_files import require_plain
from wsgiload.program import command_line
from wsgiload.report import is_capacity_run, print_trend, terminal
from wsgiload.results.integrity import damages

# The default name of a run directory begins with its start time.
_STAMPED = re.compile(r"\d{8}T\d{6}Z-")


def report_trend(folders: Sequence[Path], *, verbose: bool) -> int:
    """Print the trend over these run directories; unusable ones are reported and skipped."""
    runs: dict[Path, StoredRun] = {}
    code = EXIT_OK
    for folder in {folder.resolve(): folder for folder in folders}.values():
        try:
            runs[folder] = _read(folder)
        except UsageError as error:
            complain(str(error))
            code = error.exit_code
    if len(runs) < MIN_STORED_RUNS:
        raise UsageError(
            f"--trend needs at least {MIN_STORED_RUNS} stored sweeps, not {len(runs)}",
            "name more run directories, such as .wsgiload/runs/*",
        )

    with reporting_damage(*runs):
        names = _names(runs)
        trend = trend_of([replace(run, name=names[folder]) for folder, run in runs.items()])
        if not trend.cells:
            raise UsageError(
                "these runs have no server and load level in common",
                "`wsgiload report RUN` shows the servers and load levels of a run",
            )
        print_trend(trend, terminal(), verbose=verbose)
    return code


def _read(folder: Path) -> StoredRun:
    """Read the sweep in this directory. Raises UsageError if it is unusable."""
    require_plain(folder)
    if is_capacity_run(folder):
        raise UsageError(
            f"{folder} is a capacity search, but --trend needs sweeps",
            f"`{command_line('report', folder)}` shows its result",
        )
    summary = read_summary(folder)
    for damage in damages(folder):
        complain(damage)

    info = read(RunInfo, folder / "run.json")
    try:
        started = datetime.fromisoformat(info.started_utc)
    except ValueError:
        cause = f"{folder / 'run.json'}: {info.started_utc!r} is not a start time"
        raise UsageError(cause, "restore it, or omit this run") from None
    run = StoredRun(
        folder.name,
        started.replace(tzinfo=started.tzinfo or UTC),
        summary,
        info.host,
        read_session(folder, summary),
    )
    with reporting_damage(folder):
        trend_of([run])  # so that the message names only this run
    return run


def _names(runs: Mapping[Path, StoredRun]) -> Mapping[Path, str]:
    """The start time of a run with a default name, otherwise the name of its directory; or whole
    paths, if these names do not differ."""
    folders = {folder: folder.name for folder in runs}
    short = {
        folder: f"{run.started.astimezone(UTC):%Y-%m-%d %H:%M}"
        if _STAMPED.match(folder.name)
        else folder.name
        for folder, run in runs.items()
    }
    for names in (short, folders):
        if len(set(names.values())) == len(runs):
            return names
    return {folder: str(folder) for folder in runs}
