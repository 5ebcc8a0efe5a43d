"""A dry run shows how each server would be started, and starts nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from wsgiload.catalogue.names import load_catalogue
from wsgiload.cli import run
from wsgiload.sweeps.planned_settings import locked_version

Settings = dict[str, dict[str, Any]]


@pytest.fixture
def settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    monkeypatch.chdir(tmp_path)

    def settings_of(*words: str) -> Settings:
        assert run(["sweep", "--rates", "100", *words, "--dry-run", "--json", "-"]) == 0, (
            capsys.readouterr().err
        )
        plan = json.loads(capsys.readouterr().out)
        assert list(plan["settings"]) == plan["servers"]
        assert list(tmp_path.iterdir()) == []
        return plan["settings"]

    return settings_of


def test_the_command_line_has_the_requested_workers_and_threads(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSGILOAD_SERVER_THREADS", "3")
    [shown] = settings("--servers", "gunicorn-gthread", "--workers", "2").values()
    words = shlex.split(shown["command_line"])

    assert words[0] == "gunicorn"
    assert (shown["workers"], shown["threads"]) == (2, 3)
    assert words[words.index("--workers") + 1] == "2"
    assert words[words.index("--threads") + 1] == "3"
    assert any(word.endswith(":8000") for word in words)
    assert int(words[words.index("--backlog") + 1]) == shown["backlog"]
    assert shown["keepalive"] == "on"


def test_keep_alive_is_off_for_a_server_without_it(settings: Any) -> None:
    shown = settings("--servers", "gunicorn-sync,waitress")
    assert [one["keepalive"] for one in shown.values()] == ["off", "on"]


def test_the_version_is_the_locked_or_the_requested_one(settings: Any) -> None:
    server = next(one for one in load_catalogue().servers if one.name == "gunicorn")
    locked = locked_version(server)
    assert locked is not None
    assert f"gunicorn=={locked}" in server.lock_path.read_text(encoding="utf-8")
    shown = settings("--servers", "gunicorn,gunicorn==23.0.0,wsgiref")
    assert [one["version"] for one in shown.values()] == [locked, "23.0.0", None]


def test_every_server_of_the_catalogue_has_a_command(settings: Any) -> None:
    shown = settings("--servers", "all", "--keepalive", "off")
    assert len(shown) > 20
    assert all(one["command_line"] for one in shown.values())
    assert {one["keepalive"] for one in shown.values()} == {"off"}


def test_variables_are_shown_and_secrets_are_not(settings: Any) -> None:
    words = ("--servers", "waitress", "--env", "LOG_LEVEL=fast", "--env", "SECRET_KEY=hunter2")
    shown = settings(*words)["waitress"]
    assert shown["environment"]["LOG_LEVEL"] == "fast"
    assert "LOG_LEVEL=fast" in shown["command_line"]
    assert 'SECRET_KEY="${SECRET_KEY:?}"' in shown["command_line"]
    assert "hunter2" not in json.dumps(shown)


def test_a_user_command_is_shown_with_its_placeholders_filled_in(settings: Any) -> None:
    command = "python -m http.server {port} --bind {host}"
    shown = settings("--command", f"mine={command}")["mine"]
    assert shown["command_line"] == "python -m http.server 8000 --bind 127.0.0.1"
    unknown = ("workers", "threads", "version", "keepalive")
    assert {shown[name] for name in unknown} == {None}
