"""A sweep that still runs cannot be resumed, and its results stay whole."""

from __future__ import annotations

import shlex
import sys
from collections import Counter

from .command import Command, until

SERVER = f"mine={shlex.quote(sys.executable)} -m http.server --bind {{host}} {{port}}"


def test_resuming_a_sweep_that_runs_is_refused(command: Command) -> None:
    options = shlex.split("--rates 20 --runs 3 -d 2s --warmup 0s --settle 0s --limits none")
    sweep = command.start("sweep", *options, "--command", SERVER)
    runs = command.folder / ".wsgiload" / "runs"
    until(lambda: any(runs.glob("*/summary.json")), "the run directory")
    (run,) = runs.iterdir()

    refused = command.start("sweep", "--resume", run).end()
    done = sweep.end()

    assert refused.code == 2
    assert f"is being written by process {sweep.pid}" in refused.err
    assert done.summary["status"] == "complete"
    ids = [cell["id"] for cell in done.summary["cells"]]
    assert [*Counter(ids).values()] == [1, 1, 1]
    assert command.run("report", run).code in (0, 98)
