"""Unix sockets, source addresses, TLS and HTTP/2 from the command line and from Python."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wsgiload
from wsgiload import LoadOptions, TransportOptions
from wsgiload.cli import run

URL = "http://any.example/"
EXIT_USAGE = 2


class Hello(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while head := self.rfile.readline():
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            if head.startswith(b"GET / HTTP/1.1"):
                self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@pytest.fixture
def unix_socket(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "server.sock"
    with Server(str(path), Hello) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def dry(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["load", URL, *words, "--dry-run"]) == 0, capsys.readouterr().err
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    return plan


def test_a_unix_socket_is_driven_from_python(unix_socket: Path) -> None:
    report = wsgiload.load(
        URL,
        rate=100,
        duration=0.3,
        options=LoadOptions(arrivals="constant"),
        transport=TransportOptions(unix_socket=unix_socket),
    )
    assert (report.outcomes["scheduled"], report.outcomes["ok"]) == (30, 30)
    assert report.to_dict()["plan"]["unix_socket"] == str(unix_socket)
    assert report.to_dict()["connections"]["local_ports"] is None


def test_a_unix_socket_is_driven_from_the_command_line(unix_socket: Path, tmp_path: Path) -> None:
    result = tmp_path / "load.json"
    words = [
        "-R",
        "50",
        "-d",
        "200ms",
        "--unix-socket",
        str(unix_socket),
        "--json",
        str(result),
        "--quiet",
    ]
    run(["load", URL, *words])
    assert json.loads(result.read_text())["outcomes"]["ok"] > 0


def test_a_socket_that_is_not_there_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["load", URL, "--unix-socket", "/nowhere/server.sock"]) == EXIT_USAGE
    message = capsys.readouterr().err
    assert "/nowhere/server.sock" in message and "start the server" in message
    with pytest.raises(wsgiload.UsageError, match="start the server"):
        wsgiload.load(URL, transport=TransportOptions(unix_socket="/nowhere/server.sock"))


def test_the_options_reach_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    plain = dry(capsys)
    assert (plain["unix_socket"], plain["source_addresses"], plain["http_version"]) == (
        None,
        [],
        "http1",
    )
    assert plain["tls"] == {"insecure": False, "ca_file": None}
    words = [
        "--source-addresses",
        "127.0.0.2, 127.0.1.0/24",
        "--http2",
        "-k",
        "--ca-file",
        "authority.pem",
    ]
    plan = dry(capsys, *words, "--unix-socket", "server.sock")
    assert plan["source_addresses"] == ["127.0.0.2", "127.0.1.0/24"]
    assert plan["tls"] == {"insecure": True, "ca_file": "authority.pem"}
    assert (plan["http_version"], plan["unix_socket"]) == ("http2", "server.sock")
    assert plain["connect_to"] is None
    assert dry(capsys, "--connect-to", "127.0.0.1:81")["connect_to"] == "127.0.0.1:81"


def test_what_is_no_source_address_is_refused() -> None:
    with pytest.raises(wsgiload.UsageError, match=r"127\.0\.0\.2-127\.0\.0\.50"):
        wsgiload.load(
            "http://127.0.0.1:9/", transport=TransportOptions(source_addresses="localhost")
        )
