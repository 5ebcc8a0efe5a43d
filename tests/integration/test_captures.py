"""Sessions that send what an earlier response gave them: a server that gives each login a token of
its own and accepts no other request without one."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from .command import Command, Done
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
        """A new token."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        token = secrets.token_hex(8)
        self.server.tokens.add(token)
        self._answer(200, json.dumps({"token": token}))

    def do_GET(self) -> None:
        """Whether the token is one of ours."""
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        is_known = bearer in self.server.tokens
        self.server.accepted += [bearer] if is_known else []
        self._answer(200 if is_known else 401, "me")

    def _answer(self, status: int, text: str) -> None:
        fields = {name.lower(): value for name, value in self.headers.items()}
        self.server.count((self.command, self.path, fields, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Drop the line."""


@pytest.fixture
def server() -> Iterator[_LoginServer]:
    with _LoginServer() as server:
        yield server


def _load(command: Command, server: _LoginServer, sessions: str) -> tuple[Done, dict[str, Any]]:
    (command.folder / "me.sessions").write_text(sessions)
    words = ("load", server.url, "--rate", "50", "--duration", "1s", "--sessions", "me.sessions")
    done = command.run(*words, "--json", "out.json")
    return done, json.loads((command.folder / "out.json").read_text())


def test_each_session_sends_the_token_that_it_was_given(
    command: Command, server: _LoginServer
) -> None:
    _, told = _load(command, server, SESSIONS.read_text())
    login, me = told["targets"]
    assert (login["failed"], me["failed"]) == (0, 0)
    assert me["ok"] == len(server.accepted) > 20
    assert len(set(server.accepted)) == len(server.accepted), "no token is sent twice"
    assert told["sessions"]["failed"] == 0


def test_a_missing_value_is_a_failure_with_its_reason(
    command: Command, server: _LoginServer
) -> None:
    misspelled = SESSIONS.read_text().replace(".token", ".tokn")
    done, told = _load(command, server, misspelled)
    reason = "no value for {{token}}: the body is not JSON or has no .tokn"
    (wrong,) = told["wrong_responses"]
    assert (wrong["outcome"], wrong["status"], wrong["reason"]) == ("bad_body", 200, reason)
    assert wrong["body"].startswith('{"token": "'), "the response itself is the example"
    login, me = told["targets"]
    assert (login["ok"], me["scheduled"]) == (0, 0), "later steps are not sent"
    assert told["sessions"]["failed"] == told["sessions"]["started"] > 20
    assert not any(method == "GET" for method, *_ in server.seen)
    assert reason in done.out + done.err


def test_a_value_that_no_step_captures_is_refused_before_anything_is_sent(
    command: Command, server: _LoginServer
) -> None:
    text = SESSIONS.read_text().replace("--capture token=json:.token\n", "")
    (command.folder / "me.sessions").write_text(text)
    done = command.run("load", server.url, "--rate", "50", "--sessions", "me.sessions")
    assert done.code == 2
    (line,) = done.complaints
    assert "user[2] GET /me" in line
    assert "--capture token=json:.token" in line
    assert server.answered == 0
