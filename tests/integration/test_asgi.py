"""``--interface asgi``: plain callables and Starlette on every server that runs them natively."""

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
    """A module with a plain ASGI callable in the folder of the command."""
    file = command.folder / "main.py"
    file.write_text(textwrap.dedent(PLAIN))
    return file


def test_a_plain_callable_is_measured_on_every_server(command: Command, main: Path) -> None:
    words = ("--path", "/item/7", "--expect-length", len("/item/7"), *BRIEFLY)
    done = command.run("sweep", "main:app", "--interface", "asgi", *words)
    require_all_ok(done, [f"{server}@50#1" for server in SERVERS])
    assert done.summary["experiment"]["interface"] == "asgi"
    for cell in done.cells.values():
        assert cell["settings"]["threads"] is None


def test_the_bundled_hello_counts_its_requests_on_every_server(command: Command) -> None:
    done = command.run("sweep", "--interface", "asgi", "--workers", 2, "--cpus", 2, *BRIEFLY)
    require_all_ok(done, [f"{server}-w2@50#1" for server in SERVERS])
    for cell in done.cells.values():
        seen = cell["external_counts"]["requests_seen"]
        assert seen == cell["outcomes"]["scheduled"], cell["id"]


def test_each_kind_of_app_names_the_option_that_fits(command: Command, main: Path) -> None:
    done = command.run("sweep", "main:app", *BRIEFLY)
    assert done.code == 2
    assert "main:app is an ASGI app; add --interface asgi" in done.err
    done = command.run("sweep", "main:wsgi", "--interface", "asgi", *BRIEFLY)
    assert done.code == 2
    assert "main:wsgi is a WSGI app; omit --interface asgi" in done.err


def test_starlette_runs_with_its_lifespan(
    command: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = make_project(tmp_path_factory.mktemp("asgi") / "shop", "starlette")
    (project / "main.py").write_text(textwrap.dedent(STARLETTE))
    app = ("main:create_app('shop')", "--interface", "asgi", "--path", "/item")
    expected = ("--expect-regex", '"started":1')
    done = sweep_unchanged(command, project, *app, *expected, *BRIEFLY)
    require_all_ok(done, [f"{server}@50#1" for server in SERVERS])
