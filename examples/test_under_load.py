"""Run a load in a test, with asyncio.

    pytest test_under_load.py

The app runs in this process and shares cores with the generator, so the test checks outcomes
instead of times.
"""

import asyncio
import threading
from collections.abc import Iterator
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

import wsgiload


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\n"]


@pytest.fixture
def url() -> Iterator[str]:
    with make_server("127.0.0.1", 0, application, handler_class=QuietHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_every_request_succeeds_under_load(url: str) -> None:
    report = asyncio.run(wsgiload.aload(url, rate=100, duration=2))

    assert report.outcomes["ok"] == report.outcomes["scheduled"] > 0
