"""Large heads of requests, as browsers send them: every kind of server takes them."""

from __future__ import annotations

import pytest

from .command import Command
from .test_finding_apps import BRIEFLY, copied, require_ok

pytestmark = [pytest.mark.servers, pytest.mark.limits]


@pytest.mark.parametrize("length", [5_000, 30_000])
def test_servers_take_large_cookies(command: Command, length: int) -> None:
    folder = copied(command, "headers")
    cookie = ("-H", f"Cookie: s={'a' * length}")
    words = ("app:app", "--servers", "gunicorn-gthread,uwsgi,waitress,granian", *cookie)
    require_ok(command.run("sweep", *words, *BRIEFLY, cwd=folder), 4)
