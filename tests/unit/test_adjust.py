"""User settings of catalogue servers and their precedence."""

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


def command_of(variant: ServerVariant) -> list[str]:
    context = LaunchContext(
        python=Path("/env/bin/python"),
        bin=Path("/env/bin"),
        host="127.0.0.1",
        port=8000,
        app="shop:app",
        app_dir=Path("/shop"),
        scratch_dir=Path("/scratch"),
    )
    return adjusted_command(variant.server.command(variant.variant, context), context.app, variant)


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
def test_arguments_precede_only_the_app(name: str, app: str) -> None:
    server = name.partition("-")[0]
    (variant,) = adjusted(CATALOGUE.select([name]), [Adjustment(server, "--one 1 --two 'a b'")])
    assert command_of(variant)[-5:] == ["--one", "1", "--two", "a b", app]


def test_arguments_come_last_if_the_app_is_not_the_last_argument() -> None:
    (variant,) = adjusted(CATALOGUE.select(["uwsgi"]), [Adjustment("uwsgi", "--harakiri 5")])
    assert command_of(variant)[-2:] == ["--harakiri", "5"]


def test_a_config_file_replaces_the_empty_config_of_gunicorn() -> None:
    (variant,) = adjusted(CATALOGUE.select(["gunicorn"]), [Adjustment("gunicorn", config=CONFIG)])
    command = command_of(variant)
    assert command.count("--config") == 1
    assert command[command.index("--config") + 1] == str(CONFIG)


def test_a_config_file_is_added_for_hypercorn() -> None:
    file = Path("/shop/hypercorn.toml")
    (variant,) = adjusted(CATALOGUE.select(["hypercorn"]), [Adjustment("hypercorn", config=file)])
    assert command_of(variant)[-3:] == ["--config", str(file), "wsgi:shop:app"]


def test_adjustments_apply_only_to_the_named_servers() -> None:
    variants = CATALOGUE.select(["gunicorn-sync", "gunicorn-gthread", "again=gunicorn-gthread"])
    adjustments = [Adjustment("gunicorn", "-a"), Adjustment("gunicorn-gthread", "-b")]

    results = adjusted(variants, [*adjustments, Adjustment("again", "-c")])
    assert [variant.arguments for variant in results] == [("-a",), ("-a", "-b"), ("-a", "-b", "-c")]


@pytest.mark.parametrize(
    ("adjustment", "message"),
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
def test_an_adjustment_without_effect_is_rejected(adjustment: Adjustment, message: str) -> None:
    variants = CATALOGUE.select(["gunicorn", "waitress", "bjoern", "prod"])
    with pytest.raises(UsageError, match=re.escape(message)):
        adjusted(variants, [adjustment])


def test_notes_state_which_setting_takes_precedence() -> None:
    adjustments = [
        Adjustment("gunicorn", config=CONFIG),
        Adjustment("gunicorn", "--max-requests 9"),
    ]
    (variant,) = adjusted(CATALOGUE.select(["gunicorn"]), adjustments)

    assert settings_notes(variant) == [
        "gunicorn-gthread runs with gunicorn.conf.py; its command line takes precedence",
        "gunicorn-gthread runs with --max-requests 9, which takes precedence over the profile",
    ]
    assert settings_notes(CATALOGUE.select(["waitress"])[0]) == []
    assert settings_notes(CATALOGUE.select(["prod"])[0]) == [
        "prod is your own command: serve {port}"
    ]


def test_adjustments_from_the_command_line_are_planned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["sweep", "--servers", "gunicorn", "--server-args", "gunicorn=--max-requests 9"]
    arguments += ["--server-config", "gunicorn=gunicorn.conf.py", "--dry-run", "--json", "-"]

    assert run(arguments) == EXIT_USAGE
    assert (
        "--server-config gunicorn: file gunicorn.conf.py does not exist" in capsys.readouterr().err
    )

    (tmp_path / "gunicorn.conf.py").write_text("")
    assert run(arguments) == EXIT_OK

    plan = json.loads(capsys.readouterr().out)
    assert plan["adjustments"] == [
        {"server": "gunicorn", "arguments": "", "config": str(tmp_path / "gunicorn.conf.py")},
        {"server": "gunicorn", "arguments": "--max-requests 9", "config": None},
    ]


def test_environment_variables_are_set_for_every_server() -> None:
    server = ServerOptions(env={"A": "1"}, command={"prod": "env {port}"})
    spec = SweepSpec(app="shop:app", servers=["waitress"], server=server)
    servers = resolve_servers(experiment_of(spec))
    assert [server.variables for server in servers.values()] == [(("A", "1"),)] * 2


def test_pythonpath_is_not_an_environment_variable_of_servers() -> None:
    spec = SweepSpec(app="shop:app", server=ServerOptions(env={"PYTHONPATH": "/x"}))
    with pytest.raises(UsageError, match="name the directory with --chdir"):
        experiment_of(spec)
