"""The report names the settings of each server."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from wsgiload.documents.cell_result import ServerSettings, Versions
from wsgiload.report.cells import read_sweep
from wsgiload.report.command_line import settings_of
from wsgiload.report.table import print_sweep

from .filled import filled_summary
from .invented_cells import cell
from .test_answer import failed


def settings(*command: str, **changes: Any) -> ServerSettings:
    plain: dict[str, Any] = {
        "command": command,
        "workers": None,
        "threads": None,
        "backlog": None,
        "keepalive": None,
        "environment": {},
        "versions": Versions(server=None, python=None, packages={}),
    }
    return ServerSettings(**plain | changes)


def test_each_server_has_one_line_with_its_command_and_setup() -> None:
    user_settings = settings(
        "gunicorn",
        "shop.wsgi",
        user_command="gunicorn shop.wsgi",
        environment={"POOL_SIZE": "2"},
        setup=("python manage.py migrate", "python manage.py loaddata shop"),
    )
    catalogue_settings = settings(
        "/cache/bin/python", "-m", "waitress", "--listen", "127.0.0.1:41234", "a:b"
    )
    cells = [
        cell("prod", run=1, settings=user_settings),
        cell("prod", run=2, settings=user_settings),
        cell("waitress", settings=catalogue_settings),
        failed("granian"),
    ]
    summary = filled_summary({"servers": ("prod", "waitress", "granian"), "runs": 2}, cells)

    assert settings_of(read_sweep(summary)) == [
        (
            "prod",
            "env POOL_SIZE=2 gunicorn shop.wsgi (setup: python manage.py migrate; "
            "python manage.py loaddata shop)",
        ),
        ("waitress", "waitress-serve --listen 127.0.0.1:8000 a:b"),
    ]

    stream = io.StringIO()
    print_sweep(summary, Console(file=stream, width=200))
    assert "settings of waitress: waitress-serve --listen" in stream.getvalue()
