"""Servers that the user defines: measured with their own settings, like catalogue servers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from .command import SCRIPT, Command, CommandResult, read_json, until
from .test_user_apps import fingerprint, make_project

pytestmark = [pytest.mark.servers, pytest.mark.limits]

APPS = Path(__file__).parent / "apps"
PROD = "prod=.venv/bin/gunicorn -c gunicorn.conf.py app:application --bind {address}"
BRIEFLY = ("--rates", "50,100", "--warmup", "200ms", "--cooldown", "0s", "--quiet")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An app that works only after the post_fork hook of its gunicorn.conf.py has run."""
    folder = make_project(tmp_path_factory.mktemp("own") / "shop", "gunicorn==23.0.0")
    shutil.copytree(APPS / "gunicorn_conf", folder, dirs_exist_ok=True)
    return folder


def activated(project: Path) -> list[str]:
    """wsgiload, as run in a shell with the project's virtual environment activated."""
    folder = project / ".venv"
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return ["env", f"VIRTUAL_ENV={folder}", f"PATH={path}", str(SCRIPT)]


def cells_of(result: CommandResult, server: str) -> list[dict[str, Any]]:
    """The cells of one server."""
    return [cell for name, cell in result.cells.items() if name.startswith(f"{server}@")]


def test_a_custom_command_serves_an_app_that_catalogue_servers_cannot_serve(
    command: Command, project: Path
) -> None:
    """Its workers are recycled during the load; the catalogue's servers do not use its hook."""
    before = fingerprint(project)

    prod = "prod=gunicorn -c gunicorn.conf.py app:application --bind {address}"
    words = ("app:application", "--command", prod, "--servers", "gunicorn-gthread,granian")
    words += (*BRIEFLY, "--duration", "10s")
    result = command.run("sweep", *words, cwd=project, program=activated(project))

    assert result.code == 97
    for cell in cells_of(result, "prod"):
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] > 0.95 * cell["outcomes"]["scheduled"] > 0
        assert (cell["version"], cell["app"], cell["profile"]) == (
            "23.0.0",
            "app:application",
            None,
        )
        settings = cell["settings"]
        assert settings["user_command"] == prod.removeprefix("prod=")
        assert settings["command"][:3] == ["gunicorn", "-c", "gunicorn.conf.py"]
        assert settings["versions"]["packages"]["gunicorn"] == "23.0.0"
        assert cell["limits"]["not_enforced"] == []
        assert cell["resources"]["memory_peak_bytes"] > 0
        assert cell["keepalive_honoured"] is True
    log = (result.run_dir / "server" / "prod@100#1.log").read_text()
    assert "Autorestarting worker" in log

    for server in ("gunicorn-gthread", "granian"):
        for cell in cells_of(result, server):
            assert cell["failure"]["step"] == "readiness"
            assert "GET / returned status 500" in cell["failure"]["message"]
            message = cell["failure"]["message"]
            assert "gunicorn.conf.py in the app's directory is not used" in message
            assert ("add --server-config gunicorn=" in message) == (server == "gunicorn-gthread")
            assert (cell["settings"]["workers"], cell["settings"]["threads"]) == (1, 4)

    page = (result.run_dir / "report.html").read_text()
    for line in (
        "settings of prod: gunicorn -c gunicorn.conf.py app:application --bind 127.0.0.1:8000",
        "settings of gunicorn-gthread: gunicorn --bind 127.0.0.1:8000",
        "settings of granian: granian --interface wsgi",
    ):
        assert line in result.out
        server, _, command_line = line.removeprefix("settings of ").partition(": ")
        assert f"<dt>{server}</dt><dd><code>{command_line}" in page

    after = fingerprint(project)
    assert {name: after[name] for name in before} == before


def test_two_commands_are_compared_without_an_app_argument(command: Command, project: Path) -> None:
    new = "new=.venv/bin/gunicorn -c gunicorn.conf.py -w {workers} app:application -b {address}"
    words = ("--command", PROD, "--command", new, "--workers", 2, "--no-verbose")
    result = command.run("sweep", *words, *BRIEFLY, "--duration", "2s", cwd=project)

    assert set(result.cells) == {
        f"{name}@{rate}#1" for name in ("prod", "new-w2") for rate in (50, 100)
    }
    assert all(cell["failure"] is None for cell in result.cells.values())
    assert "Which of 2 servers" in result.out
    assert "gunicorn -c gunicorn.conf.py" in result.out
    (workers,) = {tuple(cell["settings"]["command"][3:5]) for cell in cells_of(result, "new-w2")}
    assert workers == ("-w", "2")
    assert result.summary["experiment"]["app"] is None


def test_an_interrupted_sweep_of_a_command_is_resumed(command: Command, project: Path) -> None:
    words = ("--command", PROD, "--runs", 2, "--settle", "0s", "--reruns", 0, "--name", "again")
    load = ("--rates", "50,60", "--duration", "2s", "--warmup", "0s", "--cooldown", "0s")

    running = command.start("sweep", *words, *load, cwd=project)
    until(lambda: "[2/4]" in running.err, "the second trial")
    running.press_ctrl_c()
    interrupted = running.end()
    assert interrupted.code == 130
    assert len(interrupted.cells) < 4

    resumed = command.run("sweep", "--resume", interrupted.run_dir, cwd=project)
    assert sorted(resumed.cells) == sorted(
        f"prod@{rate}#{run}" for rate in (50, 60) for run in (1, 2)
    )
    assert all(cell["failure"] is None for cell in resumed.cells.values())


def test_a_catalogue_server_serves_the_app_with_its_configuration_file(
    command: Command, project: Path
) -> None:
    """Its hook runs, the profile sets workers and threads, and secrets are redacted."""
    gunicorn_options = ("--server-config", "gunicorn=gunicorn.conf.py")
    gunicorn_options += ("--server-args", "gunicorn=--max-requests 150 --log-level info")
    variables = ("--env", "API_KEY=hush", "--env", "LOG_LEVEL=blue")
    words = ("app:application", "--servers", "gunicorn-gthread", *gunicorn_options, *variables)
    result = command.run("sweep", *words, *BRIEFLY, "--duration", "5s", cwd=project)

    for cell in result.cells.values():
        assert cell["failure"] is None
        settings = cell["settings"]
        assert settings["config_file"] == str(project / "gunicorn.conf.py")
        assert settings["added_arguments"] == ["--max-requests", "150", "--log-level", "info"]
        assert set(settings["environment"]) == {"API_KEY", "LOG_LEVEL"}
        assert settings["environment"]["API_KEY"].startswith("(redacted-")
        assert settings["environment"]["LOG_LEVEL"] == "blue"
        assert (settings["workers"], settings["threads"]) == (1, 4)

    log = (result.run_dir / "server" / "gunicorn-gthread@100#1.log").read_text()
    assert "Autorestarting worker" in log
    assert "gunicorn-gthread runs with gunicorn.conf.py; its command line takes" in result.out
    stored = [path.read_bytes() for path in result.run_dir.rglob("*") if path.is_file()]
    assert not any(b"hush" in content for content in stored)


SERVER_TABLE = """
[servers.prod]
command = ".venv/bin/gunicorn -c gunicorn.conf.py app:application --bind {{address}}"
env = {{ API_KEY = "hush", LOG_LEVEL = "blue" }}
setup = "sh -c 'echo migrated; echo set up $LOG_LEVEL >> {events}; exit {code}'"
teardown = "sh -c 'echo torn down >> {events}'"
ready_path = "/?ready"
stop_signal = "SIGINT"
keepalive = false
"""


def test_a_server_table_sets_hooks_environment_and_load_options(
    command: Command, project: Path, tmp_path: Path
) -> None:
    """Setup and teardown run around each start, and the load uses the table's settings."""
    events, config = tmp_path / "events", tmp_path / "wsgiload.toml"
    config.write_text(SERVER_TABLE.format(events=events, code=0))

    result = command.run("sweep", "--config", config, *BRIEFLY, "--duration", "2s", cwd=project)

    assert sorted(result.cells) == ["prod@100#1", "prod@50#1"]
    assert events.read_text() == "set up blue\ntorn down\n" * 2
    for cell in result.cells.values():
        assert cell["failure"] is None
        assert (cell["server_exit"]["clean"], cell["keepalive_honoured"]) == (True, True)
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
        settings = cell["settings"]
        assert settings["setup"][0].startswith("sh -c 'echo migrated")
        assert (settings["ready_path"], settings["stop_signal"]) == ("/?ready", "SIGINT")
        assert settings["environment"]["API_KEY"].startswith("(redacted-")
        assert settings["environment"]["LOG_LEVEL"] == "blue"
        assert any("keepalive = off of [servers.prod]" in note for note in cell["notes"])
        load = read_json(result.run_dir / "load" / f"{cell['id']}.json")
        assert load["connections"]["requests_per_connection"]["max"] == 1

    log = (result.run_dir / "server" / "prod@100#1.log").read_text()
    assert log.index("\nmigrated\n") < log.index("Listening at")
    stored = [path.read_bytes() for path in result.run_dir.rglob("*") if path.is_file()]
    assert not any(b"hush" in content for content in stored)


def test_a_failed_setup_command_is_the_failure_of_the_cell(
    command: Command, project: Path, tmp_path: Path
) -> None:
    events, config = tmp_path / "events", tmp_path / "wsgiload.toml"
    config.write_text(SERVER_TABLE.format(events=events, code=3))
    words = ("--config", config, "--rates", "50", "--duration", "1s", "--quiet")
    result = command.run("sweep", *words, cwd=project)

    assert result.code == 97
    (cell,) = result.cells.values()
    assert cell["failure"]["step"] == "setup"
    assert "of prod exited with code 3: migrated; run it in" in cell["failure"]["message"]
    assert cell["failure"]["log_tail"] == "migrated"
    assert (cell["resources"], cell["rate_result"]) == (None, None)
    assert events.read_text() == "set up blue\ntorn down\n"
