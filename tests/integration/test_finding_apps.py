"""Apps as users name them: factories, odd module names and paths, on every kind of server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .command import Command, Done

pytestmark = [pytest.mark.servers, pytest.mark.limits]

APPS = Path(__file__).with_name("apps")
BRIEFLY = ("--rates", 20, "--duration", "500ms", "--warmup", "0s", "--cooldown", "0s", "--quiet")
# One for each way in which a server is given an app: its own command line, a runner, a file of
# settings.
SERVERS = "gunicorn-gthread,granian,waitress,uvicorn,hypercorn,wsgiref"


def copied(command: Command, name: str) -> Path:
    """A fresh copy of one of the apps."""
    folder = command.folder / name
    shutil.copytree(APPS / name, folder)
    return folder


def require_ok(done: Done, servers: int) -> None:
    assert len(done.cells) == servers, done.err
    for cell in done.cells.values():
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0


def test_a_factory_is_called_by_every_kind_of_server(command: Command) -> None:
    folder = copied(command, "factory")
    words = ("shop:create_app('a greeting')", "--servers", SERVERS)
    done = command.run("sweep", *words, "--expect-regex", "^a greeting$", *BRIEFLY, cwd=folder)
    require_ok(done, 6)


@pytest.mark.parametrize("app", ["my-app:app", "nested:site.server"])
def test_odd_names_are_served(command: Command, app: str) -> None:
    folder = copied(command, "module_name")
    done = command.run("sweep", app, "--servers", "waitress,granian", *BRIEFLY, cwd=folder)
    require_ok(done, 2)


@pytest.mark.parametrize(
    ("name", "app", "fix"),
    [
        ("factory", "shop:create_app", "call it: 'shop:create_app()'"),
        ("factory", "shop:app", "did you mean 'shop:create_app()'?"),
        ("module_name", "api/main.py:app", "write it as `--chdir api main:app`"),
        ("module_name", "{folder}/api/main:app", "write it as `--chdir api main:app`"),
    ],
)
def test_what_cannot_be_served_gets_a_fix_to_paste(
    command: Command, name: str, app: str, fix: str
) -> None:
    folder = copied(command, name)
    done = command.run("sweep", app.format(folder=folder), *BRIEFLY, cwd=folder)
    assert done.code == 2
    assert done.complaints == done.err.splitlines()
    assert done.complaints[0].endswith(fix)


def test_helpers_named_like_the_standard_library_act_as_under_the_plain_server(
    command: Command,
) -> None:
    folder = copied(command, "factory")
    (folder / "json.py").write_text("raise ValueError('not the json that servers import')\n")
    words = ("sweep", "shop:create_app()", *BRIEFLY, "--servers")
    require_ok(command.run(*words, "granian,waitress", cwd=folder), 2)

    # gunicorn puts the app's folder first before it imports its worker.
    done = command.run(*words, "gunicorn-gthread", cwd=folder)
    assert done.code == 97
    (cell,) = done.cells.values()
    assert "not the json that servers import" in cell["failure"]["log_tail"]


def test_an_import_may_take_as_long_as_the_start(command: Command) -> None:
    folder = copied(command, "factory")
    (folder / "slow.py").write_text("import shop, time\ntime.sleep(3)\napp = shop.create_app()\n")
    words = ("slow:app", "--servers", "waitress", *BRIEFLY)
    require_ok(command.run("sweep", *words, cwd=folder), 1)
    done = command.run("sweep", *words, "--ready-timeout", "1s", cwd=folder)
    assert done.code == 97
    assert "importing slow did not end within 1 s; raise --ready-timeout" in done.out


def test_an_import_that_eats_memory_is_ended_and_named(command: Command) -> None:
    folder = copied(command, "factory")
    (folder / "greedy.py").write_text("eaten = b'x' * (2 << 30)\n")
    done = command.run("sweep", "greedy:app", "--servers", "waitress", *BRIEFLY, cwd=folder)
    assert done.code == 97
    assert "importing greedy needs more than the memory limit of 1,024 MiB" in done.out
