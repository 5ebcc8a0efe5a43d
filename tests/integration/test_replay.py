"""An access log is replayed as it was recorded: its requests in their order, with its gaps."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import pytest

from .command import SCRIPT, Command
from .reference import inconclusive

LINES = 100_000
# Of the log. No requests are in its pause.
SECONDS = 1_000
PAUSE = range(400, 420)
SPEED = 40
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
COMBINED = (
    '192.0.2.{client} - - [25/Nov/2026:10:{minute:02}:{second:02} +0000] "GET {path} HTTP/1.1" '
    '{status} 512 "https://shop.example/" "Mozilla/5.0 (X11; Linux x86_64)"\n'
)
ANY_STATUS = (200, 200, 206, 304, 500)


class NotingServer:
    """Notes when each request arrives and what it asks for."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.settimeout(0.05)
        self._is_closing = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def start(self) -> None:
        """Accept connections."""
        self._threads[0].start()

    def close(self) -> None:
        """Close the listener; connections end with their clients."""
        self._is_closing = True
        for thread in self._threads:
            thread.join(timeout=10)
        self._listener.close()

    def _accept(self) -> None:
        while not self._is_closing:
            with suppress(TimeoutError):
                connection, _ = self._listener.accept()
                connection.settimeout(None)
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        unread = b""
        with connection, suppress(ConnectionError):
            while received := connection.recv(65536):
                now_ns = time.monotonic_ns()
                *heads, unread = (unread + received).split(b"\r\n\r\n")
                for head in heads:
                    method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
                    self.seen.append((now_ns, f"{method} {path}"))
                    connection.sendall(RESPONSE)


@pytest.fixture
def server() -> Iterator[NotingServer]:
    server = NotingServer()
    server.start()
    yield server
    server.close()


def _recorded(count: int) -> list[tuple[int, str]]:
    """The second and the path of each request, in their order."""
    choose = random.Random(29)
    open_seconds = [second for second in range(SECONDS) if second not in PAUSE]
    # Seconds differ by a factor of nine, as traffic does.
    busy = [choose.uniform(0.2, 1.8) for _ in open_seconds]
    seconds = sorted(choose.choices(open_seconds, busy, k=count))
    return [(second, f"/items/{choose.randrange(5_000)}?page=1") for second in seconds]


def _write_log(path: Path, requests: list[tuple[int, str]]) -> None:
    """As a server writes it: now and then a slow request is logged after those of the next
    second."""
    choose = random.Random(30)
    lines = [
        (
            second + 2 * (choose.random() < 0.001),
            COMBINED.format(
                client=choose.randrange(255),
                minute=second // 60,
                second=second % 60,
                path=request,
                status=choose.choice(ANY_STATUS),
            ),
        )
        for second, request in requests
    ]
    lines.sort(key=lambda line: line[0])
    path.write_text("".join(line for _, line in lines))


def _in_log_order(path: Path) -> list[tuple[int, str]]:
    """The second and the path of each line, sorted by time; nothing of the product reads it."""
    words = [line.split(" ") for line in path.read_text().splitlines()]
    clocks = [word[3].removeprefix("[25/Nov/2026:10:") for word in words]
    seconds = [int(clock[:2]) * 60 + int(clock[3:]) for clock in clocks]
    paths = [word[6] for word in words]
    return sorted(zip(seconds, paths, strict=True), key=lambda request: request[0])


def _due_s(seconds: list[int]) -> list[float]:
    """When each request is due, from the first: those of one second are spread evenly over it."""
    due = []
    for second, group in groupby(seconds):
        count = len(list(group))
        due += [second + place / count for place in range(count)]
    return [(at - due[0]) / SPEED for at in due]


def test_a_log_of_100_000_lines_is_replayed_in_order_with_its_gaps(
    command: Command, server: NotingServer
) -> None:
    log = command.folder / "access.log"
    _write_log(log, _recorded(LINES))
    expected = _in_log_order(log)

    done = command.run(
        "load", server.url, "--replay", log.name, "--replay-speed", str(SPEED), "-c", "1",
        "--json", "load.json", cwd=command.folder,
    )  # fmt: skip

    assert done.code in (0, 98), done.err
    report = json.loads((command.folder / "load.json").read_text())
    assert report["outcomes"]["ok"] == report["outcomes"]["scheduled"] == LINES
    assert len(report["plan"]["targets"]) == len({path for _, path in expected})
    assert len(server.seen) == LINES
    assert [request for _, request in server.seen] == [f"GET {path}" for _, path in expected]
    assert "requests within the same second are spread evenly" in done.err
    _require_gaps([at_ns / 1e9 for at_ns, _ in server.seen], [second for second, _ in expected])


def _require_gaps(seen_s: list[float], seconds: list[int]) -> None:
    due_s = _due_s(seconds)
    start_s = min(seen - due for seen, due in zip(seen_s, due_s, strict=True))
    late_s = sorted(seen - due - start_s for seen, due in zip(seen_s, due_s, strict=True))
    pause_at = next(place for place, second in enumerate(seconds) if second >= PAUSE.stop)

    shown = f"half within {late_s[LINES // 2]:.4f} s, 99 % within {late_s[LINES * 99 // 100]:.4f} s"
    if late_s[LINES // 2] > 0.02:
        inconclusive(f"server or generator waited for a core: {shown}")
    assert late_s[LINES // 4] < 0.005, shown
    assert seen_s[pause_at] - seen_s[pause_at - 1] > len(PAUSE) / SPEED * 0.9, "the pause"
    assert seen_s[-1] - seen_s[0] == pytest.approx(due_s[-1], abs=0.5)


def test_several_connections_send_every_line_once(command: Command, server: NotingServer) -> None:
    log = command.folder / "access.log"
    _write_log(log, _recorded(3_000))
    words = " ".join(("load", server.url, "--replay", "-", "--replay-speed", "1000", "-c", "8"))
    done = command.run(program=["/bin/sh", "-c", f"exec {SCRIPT} {words} < {log}"])
    expected = Counter(f"GET {path}" for _, path in _in_log_order(log))
    assert done.code in (0, 98), done.err
    assert Counter(request for _, request in server.seen) == expected


def test_what_a_log_does_not_have_is_said(command: Command, server: NotingServer) -> None:
    (command.folder / "log").write_text(
        '{"time": "2026-11-25T10:00:00.1Z", "method": "GET", "uri": "/a", "status": 200}\n'
        '{"time": "2026-11-25T10:00:00.2Z", "method": "POST", "uri": "/b", "status": 200}\n'
        '{"time": "2026-11-25T10:00:00.3Z", "method": "OPTIONS", "uri": "*", "status": 400}\n'
    )
    done = command.run("load", server.url, "--replay", "log", cwd=command.folder)
    assert done.code in (0, 98), done.err
    assert [request for _, request in server.seen] == ["GET /a", "POST /b"]
    assert done.messages[:2] == [
        "wsgiload: skipped 1 of 3 lines without a request that can be sent",
        "wsgiload: 1 of 2 requests (POST, PUT or PATCH) are sent without a body, because logs "
        "do not contain bodies",
    ]


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        ('h - - [now] "GET / HTTP/1.1" 200 5\n', (), "log: line 1: not a line of an access log"),
        (
            '{"time": "2026-11-25T10:00:00Z", "uri": "/"}\n',
            ("--targets", "log"),
            "an access log has its own requests; omit --targets, --sessions and --body",
        ),
    ],
)
def test_a_log_that_cannot_be_replayed_is_refused_with_the_fix(
    command: Command, server: NotingServer, text: str, words: tuple[str, ...], says: str
) -> None:
    (command.folder / "log").write_text(text)
    done = command.run("load", server.url, "--replay", "log", *words, cwd=command.folder)
    assert done.code == 2
    assert says in done.err
    assert not server.seen
