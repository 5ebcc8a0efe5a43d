"""Commands that a production system would start otherwise: what wsgiload says about them."""

from __future__ import annotations

import re

import pytest

from tests.integration.command import Command, CommandResult

from .programs import programs_of

pytestmark = [pytest.mark.servers, pytest.mark.limits]

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""
# Without die-on-term, uWSGI reloads on SIGTERM.
UWSGI = """
[uwsgi]
module = app:app
master = true
processes = 1
threads = 2
enable-threads = true
disable-logging = true
"""
LOAD = ("--rates", "20", "--duration", "2s", "--warmup", "500ms", "--cooldown", "0s")


def sweep(command: Command, started: str, *words: str) -> CommandResult:
    (command.folder / "app.py").write_text(APP)
    (command.folder / "uwsgi.ini").write_text(UWSGI)
    return command.run("sweep", "--command", started, *LOAD, *words, "--no-verbose")


def test_a_server_that_ignores_its_stop_signal_is_named_once_with_the_signal_that_works(
    command: Command,
) -> None:
    uwsgi = f"{programs_of('uwsgi')}/uwsgi --ini uwsgi.ini --http-socket {{address}}"
    result = sweep(command, uwsgi)
    assert result.code == 0
    words = re.sub(r"\s+", " ", result.out)
    assert words.count("did not exit on SIGTERM") == 1, result.out
    assert (
        'SIGINT ends it (stop-signal). Set stop_signal = "SIGINT" in its table [servers.' in words
    )
    assert "or start uWSGI with --die-on-term" in words
    (cell,) = result.cells.values()
    assert cell["server_exit"]["stopped_by"] == "SIGINT"

    stopped = sweep(command, f"{uwsgi} --die-on-term")
    assert "did not exit on" not in stopped.out


def test_a_command_that_puts_itself_into_the_background_is_named(command: Command) -> None:
    gunicorn = f"{programs_of('gunicorn-gthread')}/gunicorn --daemon -b {{address}} app:app"
    result = sweep(command, gunicorn)
    assert result.code == 97
    (cell,) = result.cells.values()
    assert "put itself into the background" in cell["failure"]["message"]
    assert "without --daemon" in cell["failure"]["message"]
