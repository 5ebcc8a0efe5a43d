"""An experiment file, measured: its title, notes and tables are where the results are."""

from __future__ import annotations

import pytest

from .command import Command

pytestmark = [pytest.mark.limits, pytest.mark.servers]

FILE = """
title = "Two levels"
source = "a wiki"
notes = ["The first note."]
tables = "ab"
app-name = "ok"
servers = ["waitress"]
connections = [2, 4]
duration = "400ms"
warmup = "200ms"
cooldown = "0s"

[scale.one]
connections = 2
"""


def test_an_experiment_file_is_measured_and_shown_as_published(command: Command) -> None:
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

    tables = (done.run_dir / "tables.md").read_text()
    assert tables.splitlines()[0] == "# Two levels"
    assert tables in done.out
    (row,) = [line for line in tables.splitlines() if line.startswith("| 2 |")]
    requests = float(row.split("|")[2])
    assert requests == done.cells["waitress@c2#1"]["outcomes"]["ok"] > 0


def test_a_study_is_reproduced_at_a_size_of_ones_own(command: Command) -> None:
    words = ("--connections", 4, "--duration", "500ms", "--servers", "gunicorn-gthread,gevent")
    words += ("--runs", 1)
    done = command.run("reproduce", "dyedov-2012-fair", *words)
    assert sorted(done.cells) == ["gevent-pywsgi@c4#1", "gunicorn-gthread-t64@c4#1"]
    for cell in done.cells.values():
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] > 0
        assert cell["services"][0]["name"] == "upstream"
    assert (done.run_dir / "tables.md").read_text().count("Requests per second") == 2
    assert "scale quick: " in done.err


def test_the_claims_of_an_original_are_judged(command: Command) -> None:
    words = ("--servers", "cherrypy", "--rates", 100, "--duration", "500ms", "--runs", 1)
    done = command.run("reproduce", "slides-2013", *words, "--warmup-requests", 20)
    (cell,) = done.cells.values()
    assert (cell["server"], cell["failure"], cell["profile"]) == ("cherrypy", None, "stock")
    rows = [line for line in done.out.splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == [
        "ranking",
        "pypy-needs-warm-up",
        "cherrypy-saturates",
    ]
    assert rows[2].endswith("| – | **undecided**: needs a valid run of cherrypy at 3,000/s |")
    assert rows[2] in (done.run_dir / "tables.md").read_text()
