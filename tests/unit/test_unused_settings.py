"""Unused deployment files in the app's directory are named with the option that uses them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from wsgiload import ServerOptions
from wsgiload.catalogue.user_server import UserServer, parse_command, require_runnable
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.settings import resolve_servers
from wsgiload.experiment.unused_settings import unused_settings

PYTHON = sys.executable


def sentence(
    directory: Path, *servers: str, app: str | None = "shop:app", **options: object
) -> str:
    server = ServerOptions(chdir=directory, **options)  # type: ignore[arg-type]
    experiment = experiment_of(SweepSpec(app=app, servers=servers, server=server))
    return unused_settings(experiment, resolve_servers(experiment)) or ""


def suggested(text: str) -> str:
    """The command that a sentence suggests, which must be runnable."""
    words = shlex.split(text.partition("--command")[2])
    assert len(words) == 1
    name, command = parse_command(words[0])
    require_runnable(UserServer(name, command, Path()), None)
    return command


def test_an_unused_gunicorn_configuration_is_named(tmp_path: Path) -> None:
    assert sentence(tmp_path, "granian") == ""
    (tmp_path / "gunicorn.conf.py").write_text("")
    for servers in (("granian",), ("granian", "gunicorn-sync")):
        text = sentence(tmp_path, *servers)
        assert text.startswith("gunicorn.conf.py in the app's directory is not used; ")
        assert ("add --server-config gunicorn=gunicorn.conf.py" in text) == (len(servers) == 2)
        expected = "gunicorn -c gunicorn.conf.py shop:app --bind {address}"
        assert suggested(text) == expected


def test_a_used_configuration_is_not_mentioned(tmp_path: Path) -> None:
    file = tmp_path / "gunicorn.conf.py"
    file.write_text("")
    assert sentence(tmp_path, "gunicorn", server_config={"gunicorn": file}) == ""
    assert sentence(tmp_path, "gunicorn", command={"prod": f"{PYTHON} {{port}}"}) == ""
    assert sentence(tmp_path, "gunicorn", app=None) == ""


def test_an_unused_uwsgi_configuration_is_named(tmp_path: Path) -> None:
    (tmp_path / "uwsgi.ini").write_text("[uwsgi]\n")
    text = sentence(tmp_path, "uwsgi")
    assert "uwsgi.ini in the app's directory is not used" in text
    assert suggested(text) == "uwsgi --ini uwsgi.ini --http-socket {address}"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("web: gunicorn shop.wsgi", "gunicorn shop.wsgi --bind {address}"),
        ("web: waitress-serve --port=$PORT shop:app", "waitress-serve --port={port} shop:app"),
        ("web: serve -p ${PORT:-8000}", "serve -p {port}"),
        ("worker: work", None),
    ],
)
def test_the_web_process_of_a_procfile_is_suggested(
    tmp_path: Path, line: str, command: str | None
) -> None:
    (tmp_path / "Procfile").write_text(f"release: migrate\n{line}\n")
    text = sentence(tmp_path, "granian")
    assert (suggested(text) if text else None) == command
