"""Large heads: requests with large cookies, responses with many or long fields."""

from __future__ import annotations

import pytest

from .command import Command
from .test_finding_apps import BRIEFLY, copied, require_ok

pytestmark = [pytest.mark.servers, pytest.mark.limits]

SERVERS = ("app:app", "--servers", "gunicorn-gthread,uwsgi,waitress,granian")


@pytest.mark.parametrize("length", [5_000, 30_000])
def test_servers_accept_large_cookies(command: Command, length: int) -> None:
    folder = copied(command, "headers")
    cookie = ("-H", f"Cookie: s={'a' * length}")
    require_ok(command.run("sweep", *SERVERS, *cookie, *BRIEFLY, cwd=folder), 4)


@pytest.mark.parametrize("path", ["/many", "/wide"])
def test_large_response_heads_are_read(command: Command, path: str) -> None:
    folder = copied(command, "headers")
    require_ok(command.run("sweep", *SERVERS, "--path", path, *BRIEFLY, cwd=folder), 4)
