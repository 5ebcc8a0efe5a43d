"""Unix sockets, source addresses, TLS and HTTP/2 from the command line and from Python."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import wsgiload
from wsgiload import LoadOptions, TransportOptions
from wsgiload.cli import run
from wsgiload.cli._load import print_allowed_streams
from wsgiload.documents.load_report import ConnectionCounts

from .canned_load import canned_load

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


def dry_run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["load", URL, *words, "--dry-run", "--json", "-"]) == 0, capsys.readouterr().err
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
    files = ["--unix-socket", str(unix_socket), "--json", str(result)]
    run(["load", URL, "-R", "50", "-d", "200ms", *files, "--quiet"])
    assert json.loads(result.read_text())["outcomes"]["ok"] > 0


def test_a_missing_socket_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["load", URL, "--unix-socket", "/nowhere/server.sock"]) == EXIT_USAGE
    message = capsys.readouterr().err
    assert "/nowhere/server.sock" in message and "start the server" in message
    with pytest.raises(wsgiload.UsageError, match="start the server"):
        wsgiload.load(URL, transport=TransportOptions(unix_socket="/nowhere/server.sock"))


def test_the_options_reach_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    plain = dry_run(capsys)
    assert (plain["unix_socket"], plain["source_addresses"], plain["http_version"]) == (
        None,
        [],
        "http1",
    )
    no_files = {"ca_file": None, "client_cert": None, "client_key": None}
    assert plain["tls"] == {"insecure": False, **no_files}

    words = "--http2 --streams 8 -k --ca-file authority.pem --client-cert client.pem"
    more = "--client-key client.key --unix-socket server.sock"
    sources = ("--source-addresses", "127.0.0.2, 127.0.1.0/24")
    plan = dry_run(capsys, *sources, *words.split(), *more.split())
    assert plan["source_addresses"] == ["127.0.0.2", "127.0.1.0/24"]
    files = {"ca_file": "authority.pem", "client_cert": "client.pem", "client_key": "client.key"}
    assert plan["tls"] == {"insecure": True, **files}
    assert (plan["http_version"], plan["unix_socket"]) == ("http2", "server.sock")
    assert plain["connect_to"] is None
    assert dry_run(capsys, "--connect-to", "127.0.0.1:81")["connect_to"] == "127.0.0.1:81"
    assert (plain["streams"], plan["streams"]) == (1, 8)
    assert dry_run(capsys, "--http1.0")["http_version"] == "http1_0"
    assert run(["load", URL, "--http1.0", "--http2", "--dry-run", "--json", "-"]) == EXIT_USAGE
    assert "--http2 and --http1.0 are mutually exclusive" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["--streams", "8"], "add --http2, or omit --streams"),
        (["--http2", "--streams", "0"], "between 1 and 250"),
        (["--http2", "--streams", "251"], "between 1 and 250"),
        (["--http2", "--streams", "8", "--keepalive", "off"], "omit --keepalive or --streams"),
    ],
)
def test_invalid_stream_options_are_one_line_errors(
    words: list[str], fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["load", URL, "--dry-run", "--json", "-", *words]) == EXIT_USAGE
    error = capsys.readouterr().err
    assert fix in error
    assert len(error.splitlines()) == 1


def test_fewer_streams_than_requested_are_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    load = canned_load(connections=connection_counts(allowed_streams=3))
    load = msgspec.structs.replace(load, plan=msgspec.structs.replace(load.plan, streams=8))
    print_allowed_streams(load)
    error = capsys.readouterr().err
    assert error.count("allows 3 concurrent streams per connection, fewer than --streams 8") == 1
    print_allowed_streams(canned_load(connections=connection_counts(allowed_streams=None)))
    assert capsys.readouterr().err == ""


def connection_counts(allowed_streams: int | None) -> ConnectionCounts:
    return ConnectionCounts(
        opened=1,
        reused=9,
        closed_by_server=0,
        peak=1,
        max_connections=1,
        requests_per_connection=None,
        allowed_streams=allowed_streams,
        failures={},
        local_ports=None,
        tracked=None,
    )


def test_streams_reach_the_plan_from_python() -> None:
    with pytest.raises(wsgiload.UsageError, match="between 1 and 250"):
        wsgiload.load(URL, transport=TransportOptions(http2=True, streams=251))


def test_an_invalid_source_address_is_refused() -> None:
    with pytest.raises(wsgiload.UsageError, match=r"127\.0\.0\.2-127\.0\.0\.50"):
        wsgiload.load(
            "http://127.0.0.1:9/", transport=TransportOptions(source_addresses="localhost")
        )
