"""The bundled apps send correct responses on servers with threads and with greenlets."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from wsgiload.catalogue.bundled import BUNDLED

from .command import Command

pytestmark = [pytest.mark.limits, pytest.mark.servers]

BRIEFLY = ("--duration", "500ms", "--warmup", "200ms", "--cooldown", "0s")


@pytest.mark.timeout(400)
def test_every_app_gets_only_correct_responses(command: Command) -> None:
    args = ("--connections", 4, "--servers", "waitress,gunicorn-gevent", *BRIEFLY)
    result = command.run("sweep", "--grid", f"app={','.join(BUNDLED)}", *args)

    assert len(result.cells) == 2 * len(BUNDLED)

    for name, cell in result.cells.items():
        assert cell["failure"] is None, name
        outcomes = cell["outcomes"]
        # Requests that were in flight at the end are unfinished.
        assert outcomes["ok"] > 0, name
        assert outcomes["scheduled"] - outcomes["ok"] == outcomes["unfinished"], name

    (service,) = {cell["services"][0]["name"] for cell in result.cells.values()}
    assert service == "upstream"
    assert result.err.count("starting upstream on CPU") == 1


def test_the_apps_of_the_circus_comparison_run_on_its_servers(command: Command) -> None:
    args = ("--connections", 2, "--servers", "circus-meinheld,circus-gevent", *BRIEFLY)
    # circus creates Unix sockets in the temporary directory, whose paths must be short.
    with tempfile.TemporaryDirectory() as short_path:
        command.temporary = Path(short_path)
        result = command.run("sweep", "--grid", "app=files,database", *args)

    assert len(result.cells) == 4
    for name, cell in result.cells.items():
        assert cell["failure"] is None, name
        assert cell["outcomes"]["ok"] > 0, name


def test_the_app_echo_returns_the_body_given_by_the_user(command: Command) -> None:
    (command.folder / "body").write_bytes(bytes(range(256)) * 400)
    args = ("--app-name", "echo", "--body-file", "body", "--rates", 50, "--servers", "waitress")
    result = command.run("sweep", *args, *BRIEFLY)
    outcomes = result.cells["waitress@50#1"]["outcomes"]
    assert outcomes["ok"] == outcomes["scheduled"] > 0
    assert result.summary["experiment"]["method"] == "POST"
