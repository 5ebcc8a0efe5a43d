"""An experiment file, measured: its title and notes are where the results are."""

from __future__ import annotations

import pytest

from .command import Command

pytestmark = [pytest.mark.limits, pytest.mark.servers]

FILE = """
title = "Two levels"
source = "a wiki"
notes = ["The first note."]
app-name = "ok"
servers = ["waitress"]
connections = [2, 4]
duration = "400ms"
warmup = "200ms"
cooldown = "0s"

[scale.one]
connections = 2
"""


def test_an_experiment_file_is_measured(command: Command) -> None:
    (command.folder / "mine.toml").write_text(FILE)
    done = command.run("run", "mine.toml", "--scale", "one")
    says = "scale one: connections 2 instead of 2,4"
    assert f"wsgiload: {says}" in done.err.splitlines()
    assert list(done.cells) == ["waitress@c2#1"]
    assert done.run_dir.name.split("-")[1] == "mine"

    experiment = done.summary["experiment"]
    assert (experiment["title"], experiment["source"]) == ("Two levels", "a wiki")
    assert experiment["notes"] == ["The first note.", says]
    page = (done.run_dir / "report.html").read_text()
    assert all(text in page for text in ("Two levels", "Source: a wiki", "The first note.", says))
    assert "Two levels" in done.out.splitlines()
