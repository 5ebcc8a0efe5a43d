"""The bundled apps, served: every response is the one that they promise, with threads and with
greenlets."""

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
    words = ("--connections", 4, "--servers", "waitress,gunicorn-gevent", *BRIEFLY)
    done = command.run("sweep", "--grid", f"app={','.join(BUNDLED)}", *words)
    assert len(done.cells) == 2 * len(BUNDLED)
    for name, cell in done.cells.items():
        assert cell["failure"] is None, name
        outcomes = cell["outcomes"]
        # Those of the last moment are unfinished.
        assert outcomes["ok"] > 0, name
        assert outcomes["scheduled"] - outcomes["ok"] == outcomes["unfinished"], name
    (source,) = {cell["services"][0]["name"] for cell in done.cells.values()}
    assert source == "upstream"
    assert done.err.count("starting upstream on CPU") == 1


def test_the_apps_of_the_circus_comparison_run_on_its_servers(command: Command) -> None:
    words = ("--connections", 2, "--servers", "circus-meinheld,circus-gevent", *BRIEFLY)
    # circus has Unix sockets in it, whose paths must be short.
    with tempfile.TemporaryDirectory() as short:
        command.temporary = Path(short)
        done = command.run("sweep", "--grid", "app=files,database", *words)
    assert len(done.cells) == 4
    for name, cell in done.cells.items():
        assert cell["failure"] is None, name
        assert cell["outcomes"]["ok"] > 0, name


def test_a_body_of_the_users_comes_back(command: Command) -> None:
    (command.folder / "body").write_bytes(bytes(range(256)) * 400)
    words = ("--app-name", "echo", "--body-file", "body", "--rates", 50, "--servers", "waitress")
    done = command.run("sweep", *words, *BRIEFLY)
    outcomes = done.cells["waitress@50#1"]["outcomes"]
    assert outcomes["ok"] == outcomes["scheduled"] > 0
    assert done.summary["experiment"]["method"] == "POST"
