"""Sessions that send values captured from earlier responses, against a server that issues a token
for each login and requires it for all other requests."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from .command import Command, CommandResult
from .target import CountingServer

SESSIONS = Path(__file__).parent / "traffic" / "me.sessions"


class _LoginServer(CountingServer):
    def __init__(self) -> None:
        super().__init__(_Handler)
        self.tokens: set[str] = set()
        self.accepted: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _LoginServer

    def do_POST(self) -> None:
        """Issue a token."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = secrets.token_hex(8)
        self.server.tokens.add(token)
        self._respond(200, json.dumps({"token": token}))

    def do_GET(self) -> None:
        """Accept only tokens issued by this server."""
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        is_valid = bearer in self.server.tokens
        self.server.accepted += [bearer] if is_valid else []
        self._respond(200 if is_valid else 401, "me")

    def _respond(self, status: int, text: str) -> None:
        fields = {name.lower(): value for name, value in self.headers.items()}
        self.server.record((self.command, self.path, fields, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Do not log."""


@pytest.fixture
def server() -> Iterator[_LoginServer]:
    with _LoginServer() as server:
        yield server


def _load(
    command: Command, server: _LoginServer, sessions: str
) -> tuple[CommandResult, dict[str, Any]]:
    (command.folder / "me.sessions").write_text(sessions)
    args = ("load", server.url, "--rate", "50", "--duration", "1s", "--sessions", "me.sessions")
    result = command.run(*args, "--json", "out.json")
    return result, json.loads((command.folder / "out.json").read_text())


def test_each_session_sends_its_own_token(command: Command, server: _LoginServer) -> None:
    _, report = _load(command, server, SESSIONS.read_text())
    login, me = report["targets"]
    assert (login["failed"], me["failed"]) == (0, 0)
    assert me["ok"] == len(server.accepted) > 20
    assert len(set(server.accepted)) == len(server.accepted), "a token was sent twice"
    assert report["sessions"]["failed"] == 0


def test_a_missing_captured_value_is_a_failure_with_its_reason(
    command: Command, server: _LoginServer
) -> None:
    misspelled = SESSIONS.read_text().replace(".token", ".tokn")
    result, report = _load(command, server, misspelled)
    reason = "no value for {{token}}: the body is not JSON or has no .tokn"
    (wrong,) = report["wrong_responses"]

    assert (wrong["outcome"], wrong["status"], wrong["reason"]) == ("bad_body", 200, reason)
    assert wrong["body"].startswith('{"token": "'), "the example is not the response"

    login, me = report["targets"]
    assert (login["ok"], me["scheduled"]) == (0, 0), "later steps were sent"
    assert report["sessions"]["failed"] == report["sessions"]["started"] > 20
    assert not any(method == "GET" for method, *_ in server.requests)
    assert reason in result.out + result.err


def test_a_value_that_no_step_captures_is_rejected_before_anything_is_sent(
    command: Command, server: _LoginServer
) -> None:
    text = SESSIONS.read_text().replace("--capture token=json:.token\n", "")
    (command.folder / "me.sessions").write_text(text)
    result = command.run("load", server.url, "--rate", "50", "--sessions", "me.sessions")
    assert result.code == 2
    (message,) = result.messages
    assert "user[2] GET /me" in message
    assert "--capture token=json:.token" in message
    assert server.response_count == 0
