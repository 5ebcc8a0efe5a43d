"""Experiment files and studies: their title and notes are stored with the results."""

from __future__ import annotations

import shlex

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


def test_the_report_of_an_experiment_file_has_its_title_and_notes(command: Command) -> None:
    (command.folder / "mine.toml").write_text(FILE)
    result = command.run("run", "mine.toml", "--scale", "one")

    scale_note = "scale one: connections 2 instead of 2,4"
    assert f"wsgiload: {scale_note}" in result.err.splitlines()
    assert list(result.cells) == ["waitress@c2#1"]
    assert result.run_dir.name.split("-")[1] == "mine"

    experiment = result.summary["experiment"]
    assert (experiment["title"], experiment["source"]) == ("Two levels", "a wiki")
    assert experiment["notes"] == ["The first note.", scale_note]
    page = (result.run_dir / "report.html").read_text()
    assert all(
        text in page for text in ("Two levels", "Source: a wiki", "The first note.", scale_note)
    )
    assert "Two levels" in result.out.splitlines()


def test_options_change_the_scale_of_a_reproduced_study(command: Command) -> None:
    args = shlex.split(
        "--connections 4 --duration 500ms --servers gunicorn-gthread,gevent --runs 1"
    )
    result = command.run("reproduce", "dyedov-2012-fair", *args)

    assert sorted(result.cells) == ["gevent-pywsgi@c4#1", "gunicorn-gthread-t64@c4#1"]
    for cell in result.cells.values():
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] > 0
        assert cell["services"][0]["name"] == "upstream"
    assert "scale quick: " in result.err
