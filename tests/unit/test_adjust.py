"""What a user changes of a server of the catalogue, and which setting wins."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wsgiload import ServerOptions
from wsgiload.catalogue.adjust import Adjustment, adjusted, adjusted_command, settings_notes
from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import ServerVariant, load_catalogue
from wsgiload.catalogue.user_server import UserServer
from wsgiload.cli import run
from wsgiload.errors import EXIT_OK, EXIT_USAGE, UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.settings import resolve_servers

CATALOGUE = load_catalogue().with_user_servers([UserServer("prod", "serve {port}", Path("/shop"))])
CONFIG = Path("/shop/gunicorn.conf.py")


def command_of(found: ServerVariant) -> list[str]:
    context = LaunchContext(
        python=Path("/env/bin/python"),
        bin=Path("/env/bin"),
        host="127.0.0.1",
        port=8000,
        app="shop:app",
        app_dir=Path("/shop"),
        scratch_dir=Path("/scratch"),
    )
    return adjusted_command(found.server.command(found.variant, context), context.app, found)


@pytest.mark.parametrize(
    ("name", "app"),
    [
        ("gunicorn-gthread", "shop:app"),
        ("gunicorn-nginx", "shop:app"),
        ("granian", "shop:app"),
        ("waitress", "shop:app"),
        ("hypercorn", "wsgi:shop:app"),
    ],
)
def test_arguments_come_last_but_for_the_app(name: str, app: str) -> None:
    server = name.partition("-")[0]
    (found,) = adjusted(CATALOGUE.select([name]), [Adjustment(server, "--one 1 --two 'a b'")])
    assert command_of(found)[-5:] == ["--one", "1", "--two", "a b", app]


def test_arguments_of_a_server_with_its_app_elsewhere_come_last() -> None:
    (found,) = adjusted(CATALOGUE.select(["uwsgi"]), [Adjustment("uwsgi", "--harakiri 5")])
    assert command_of(found)[-2:] == ["--harakiri", "5"]


def test_a_file_replaces_the_empty_one_of_gunicorn() -> None:
    (found,) = adjusted(CATALOGUE.select(["gunicorn"]), [Adjustment("gunicorn", config=CONFIG)])
    words = command_of(found)
    assert words.count("--config") == 1
    assert words[words.index("--config") + 1] == str(CONFIG)


def test_a_file_of_hypercorn_is_added() -> None:
    file = Path("/shop/hypercorn.toml")
    (found,) = adjusted(CATALOGUE.select(["hypercorn"]), [Adjustment("hypercorn", config=file)])
    assert command_of(found)[-3:] == ["--config", str(file), "wsgi:shop:app"]


def test_only_the_servers_that_are_meant_are_changed() -> None:
    chosen = CATALOGUE.select(["gunicorn-sync", "gunicorn-gthread", "again=gunicorn-gthread"])
    changes = [Adjustment("gunicorn", "-a"), Adjustment("gunicorn-gthread", "-b")]
    found = adjusted(chosen, [*changes, Adjustment("again", "-c")])
    assert [one.arguments for one in found] == [("-a",), ("-a", "-b"), ("-a", "-b", "-c")]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            Adjustment("granian", "-x"),
            "--server-args granian: not a measured server; choose one of",
        ),
        (Adjustment("prod", "-x"), "--server-args prod: your own command; add it to its --command"),
        (Adjustment("bjoern", "-x"), "bjoern is started by a script of wsgiload; start bjoern"),
        (
            Adjustment("waitress", config=Path("/w.ini")),
            "--server-config waitress: waitress does not support a configuration file here; start waitress "
            "with w.ini with your own command: --command my-waitress=",
        ),
        (Adjustment("waitress", "'x"), "--server-args waitress: No closing quotation"),
    ],
)
def test_a_change_that_has_no_effect_is_refused(change: Adjustment, says: str) -> None:
    chosen = CATALOGUE.select(["gunicorn", "waitress", "bjoern", "prod"])
    with pytest.raises(UsageError, match=re.escape(says)):
        adjusted(chosen, [change])


def test_notes_name_what_takes_precedence() -> None:
    changes = [Adjustment("gunicorn", config=CONFIG), Adjustment("gunicorn", "--max-requests 9")]
    (found,) = adjusted(CATALOGUE.select(["gunicorn"]), changes)
    assert settings_notes(found) == [
        "gunicorn-gthread runs with gunicorn.conf.py; its command line takes precedence",
        "gunicorn-gthread runs with --max-requests 9, which takes precedence over the profile",
    ]
    assert settings_notes(CATALOGUE.select(["waitress"])[0]) == []
    assert settings_notes(CATALOGUE.select(["prod"])[0]) == [
        "prod is your own command: serve {port}"
    ]


def test_the_command_line_plans_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "--servers", "gunicorn", "--server-args", "gunicorn=--max-requests 9"]
    words += ["--server-config", "gunicorn=gunicorn.conf.py", "--dry-run"]
    assert run(words) == EXIT_USAGE
    assert (
        "--server-config gunicorn: file gunicorn.conf.py does not exist" in capsys.readouterr().err
    )
    (tmp_path / "gunicorn.conf.py").write_text("")
    assert run(words) == EXIT_OK
    plan = json.loads(capsys.readouterr().out)
    assert plan["adjustments"] == [
        {"server": "gunicorn", "arguments": "", "config": str(tmp_path / "gunicorn.conf.py")},
        {"server": "gunicorn", "arguments": "--max-requests 9", "config": None},
    ]


def test_variables_reach_every_server() -> None:
    server = ServerOptions(env={"A": "1"}, command={"prod": "env {port}"})
    spec = SweepSpec(app="shop:app", servers=["waitress"], server=server)
    found = resolve_servers(experiment_of(spec))
    assert [one.variables for one in found.values()] == [(("A", "1"),)] * 2


def test_the_path_of_modules_is_that_of_the_app() -> None:
    spec = SweepSpec(app="shop:app", server=ServerOptions(env={"PYTHONPATH": "/x"}))
    with pytest.raises(UsageError, match="name the directory with --chdir"):
        experiment_of(spec)
