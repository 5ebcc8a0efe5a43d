"""Replay of access logs: the requests are sent in the order of the log, at its times."""

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

LINE_COUNT = 100_000
# The log's duration, and a pause without requests.
LOG_SECONDS = 1_000
PAUSE_SECONDS = range(400, 420)
SPEED = 40
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
COMBINED = (
    '192.0.2.{client} - - [25/Nov/2026:10:{minute:02}:{second:02} +0000] "GET {path} HTTP/1.1" '
    '{status} 512 "https://shop.example/" "Mozilla/5.0 (X11; Linux x86_64)"\n'
)
ANY_STATUS = (200, 200, 206, 304, 500)


class ArrivalRecorder:
    """Records the arrival time, method and path of each request."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._listener.settimeout(0.05)
        self._is_closing = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def url(self) -> str:
        """The server's URL."""
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
def server() -> Iterator[ArrivalRecorder]:
    server = ArrivalRecorder()
    server.start()
    yield server
    server.close()


def _random_requests(count: int) -> list[tuple[int, str]]:
    """Second and path of each request, in order."""
    random_source = random.Random(29)
    open_seconds = [second for second in range(LOG_SECONDS) if second not in PAUSE_SECONDS]
    # The rates of seconds differ by a factor of up to nine, as in real traffic.
    weights = [random_source.uniform(0.2, 1.8) for _ in open_seconds]
    seconds = sorted(random_source.choices(open_seconds, weights, k=count))
    return [(second, f"/items/{random_source.randrange(5_000)}?page=1") for second in seconds]


def _write_log(path: Path, requests: list[tuple[int, str]]) -> None:
    """Write the log as a server does: some slow requests are logged after requests of the next
    second."""
    random_source = random.Random(30)

    lines = [
        (
            second + 2 * (random_source.random() < 0.001),
            COMBINED.format(
                client=random_source.randrange(255),
                minute=second // 60,
                second=second % 60,
                path=request,
                status=random_source.choice(ANY_STATUS),
            ),
        )
        for second, request in requests
    ]

    lines.sort(key=lambda line: line[0])
    path.write_text("".join(line for _, line in lines))


def _in_log_order(path: Path) -> list[tuple[int, str]]:
    """Second and path of each line, sorted by time; independent of wsgiload's own parser."""
    words = [line.split(" ") for line in path.read_text().splitlines()]
    clocks = [word[3].removeprefix("[25/Nov/2026:10:") for word in words]
    seconds = [int(clock[:2]) * 60 + int(clock[3:]) for clock in clocks]
    paths = [word[6] for word in words]
    return sorted(zip(seconds, paths, strict=True), key=lambda request: request[0])


def _due_s(seconds: list[int]) -> list[float]:
    """Scheduled send times relative to the first: requests of one second are evenly spaced."""
    due = []
    for second, group in groupby(seconds):
        count = len(list(group))
        due += [second + index / count for index in range(count)]
    return [(time_s - due[0]) / SPEED for time_s in due]


def test_a_log_of_100_000_lines_is_replayed_in_order_and_at_its_times(
    command: Command, server: ArrivalRecorder
) -> None:
    log = command.folder / "access.log"
    _write_log(log, _random_requests(LINE_COUNT))
    expected = _in_log_order(log)

    result = command.run(
        "load", server.url, "--replay", log.name, "--replay-speed", str(SPEED), "-c", "1",
        "--json", "load.json", cwd=command.folder,
    )  # fmt: skip

    assert result.code in (0, 98), result.err
    report = json.loads((command.folder / "load.json").read_text())
    assert report["outcomes"]["ok"] == report["outcomes"]["scheduled"] == LINE_COUNT
    assert len(report["plan"]["targets"]) == len({path for _, path in expected})
    assert len(server.seen) == LINE_COUNT
    assert [request for _, request in server.seen] == [f"GET {path}" for _, path in expected]
    assert "requests within the same second are spread evenly" in result.err
    _require_times([at_ns / 1e9 for at_ns, _ in server.seen], [second for second, _ in expected])


def _require_times(seen_s: list[float], seconds: list[int]) -> None:
    """The arrivals follow the log's times; skips the test if the host delayed half of them."""
    due_s = _due_s(seconds)
    start_s = min(seen - due for seen, due in zip(seen_s, due_s, strict=True))
    late_s = sorted(seen - due - start_s for seen, due in zip(seen_s, due_s, strict=True))
    first_after_pause = next(
        index for index, second in enumerate(seconds) if second >= PAUSE_SECONDS.stop
    )

    p50_s, p99_s = late_s[LINE_COUNT // 2], late_s[LINE_COUNT * 99 // 100]
    delays = f"half within {p50_s:.4f} s, 99 % within {p99_s:.4f} s"
    if p50_s > 0.02:
        inconclusive(f"server or generator waited for a core: {delays}")
    assert late_s[LINE_COUNT // 4] < 0.005, delays
    pause_s = seen_s[first_after_pause] - seen_s[first_after_pause - 1]
    assert pause_s > len(PAUSE_SECONDS) / SPEED * 0.9, "the pause is replayed"
    assert seen_s[-1] - seen_s[0] == pytest.approx(due_s[-1], abs=0.5)


def test_several_connections_send_every_line_once(
    command: Command, server: ArrivalRecorder
) -> None:
    log = command.folder / "access.log"
    _write_log(log, _random_requests(3_000))

    words = " ".join(("load", server.url, "--replay", "-", "--replay-speed", "1000", "-c", "8"))
    result = command.run(program=["/bin/sh", "-c", f"exec {SCRIPT} {words} < {log}"])

    expected = Counter(f"GET {path}" for _, path in _in_log_order(log))
    assert result.code in (0, 98), result.err
    assert Counter(request for _, request in server.seen) == expected


def test_skipped_lines_and_missing_bodies_are_reported(
    command: Command, server: ArrivalRecorder
) -> None:
    (command.folder / "log").write_text(
        '{"time": "2026-11-25T10:00:00.1Z", "method": "GET", "uri": "/a", "status": 200}\n'
        '{"time": "2026-11-25T10:00:00.2Z", "method": "POST", "uri": "/b", "status": 200}\n'
        '{"time": "2026-11-25T10:00:00.3Z", "method": "OPTIONS", "uri": "*", "status": 400}\n'
    )

    result = command.run("load", server.url, "--replay", "log", cwd=command.folder)
    assert result.code in (0, 98), result.err
    assert [request for _, request in server.seen] == ["GET /a", "POST /b"]
    assert result.messages[:2] == [
        "wsgiload: skipped 1 of 3 lines: no request that can be sent",
        "wsgiload: 1 of 2 requests (POST, PUT or PATCH) are sent without a body, because logs "
        "do not contain bodies",
    ]


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (
            'h - - [now] "GET / HTTP/1.1" 200 5\n',
            (),
            "log: no line is from an access log or a trace",
        ),
        (
            '{"time": "2026-11-25T10:00:00Z", "uri": "/"}\n',
            ("--targets", "log"),
            "an access log has its own requests; omit --targets, --sessions and --body",
        ),
    ],
)
def test_a_log_that_cannot_be_replayed_is_refused(
    command: Command, server: ArrivalRecorder, text: str, words: tuple[str, ...], message: str
) -> None:
    (command.folder / "log").write_text(text)
    result = command.run("load", server.url, "--replay", "log", *words, cwd=command.folder)

    assert result.code == 2
    assert message in result.err
    assert not server.seen
