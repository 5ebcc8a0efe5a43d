"""``--interface asgi``: a plain callable and a Starlette app on every server that supports ASGI."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from .command import Command
from .test_user_apps import BRIEFLY, make_project, require_all_ok, sweep_unchanged

pytestmark = [pytest.mark.servers, pytest.mark.limits]

SERVERS = ("granian-asgi", "hypercorn-asgi", "uvicorn-asgi")
PLAIN = """
    async def app(scope, receive, send):
        assert scope["type"] == "http"
        body = scope["path"].encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


    def wsgi(environ, start_response):
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""
STARLETTE = """
    import contextlib

    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    STARTED = []


    @contextlib.asynccontextmanager
    async def lifespan(app):
        STARTED.append(True)
        yield


    def create_app(name):
        async def item(request):
            return JSONResponse({"name": name, "started": len(STARTED)})

        return Starlette(routes=[Route("/item", item)], lifespan=lifespan)
"""


@pytest.fixture
def main(command: Command) -> Path:
    """A module with an ASGI and a WSGI callable in the folder of the command."""
    file = command.folder / "main.py"
    file.write_text(textwrap.dedent(PLAIN))
    return file


def test_a_plain_callable_is_measured_on_every_server(command: Command, main: Path) -> None:
    args = ("--path", "/item/7", "--expect-length", len("/item/7"), *BRIEFLY)
    result = command.run("sweep", "main:app", "--interface", "asgi", *args)
    require_all_ok(result, [f"{server}@50#1" for server in SERVERS])
    assert result.summary["experiment"]["interface"] == "asgi"
    for cell in result.cells.values():
        assert cell["settings"]["threads"] is None


def test_the_bundled_app_hello_counts_its_requests_on_every_server(command: Command) -> None:
    result = command.run("sweep", "--interface", "asgi", "--workers", 2, "--cpus", 2, *BRIEFLY)
    require_all_ok(result, [f"{server}-w2@50#1" for server in SERVERS])
    for cell in result.cells.values():
        requests_seen = cell["external_counts"]["requests_seen"]
        assert requests_seen == cell["outcomes"]["scheduled"], cell["id"]


def test_the_wrong_interface_for_an_app_is_an_error_with_a_fix(
    command: Command, main: Path
) -> None:
    result = command.run("sweep", "main:app", *BRIEFLY)
    assert result.code == 2
    assert "main:app is an ASGI app; add --interface asgi" in result.err

    result = command.run("sweep", "main:wsgi", "--interface", "asgi", *BRIEFLY)
    assert result.code == 2
    assert "main:wsgi is a WSGI app; omit --interface asgi" in result.err


def test_the_lifespan_of_a_starlette_app_runs_once(
    command: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = make_project(tmp_path_factory.mktemp("asgi") / "shop", "starlette")
    (project / "main.py").write_text(textwrap.dedent(STARLETTE))

    app = ("main:create_app('shop')", "--interface", "asgi", "--path", "/item")
    expected = ("--expect-regex", '"started":1')
    result = sweep_unchanged(command, project, *app, *expected, *BRIEFLY)
    require_all_ok(result, [f"{server}@50#1" for server in SERVERS])
