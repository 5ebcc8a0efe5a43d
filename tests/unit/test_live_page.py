"""The server of the live page: its readers and its responses."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from wsgiload.cli import _live_page
from wsgiload.cli._live import LiveView
from wsgiload.cli._live_frame import Stage
from wsgiload.cli._live_page import MAX_CLIENTS, LivePage
from wsgiload.documents.page_data import LiveFrame

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J\u202e"
FRAME = LiveFrame(
    rows=(("now", "a@100#1: measuring"),),
    trial="a@100#1",
    at_s=1.0,
    offered_per_s=1.0,
    achieved_per_s=None,
    p50_ns=None,
    p99_ns=None,
    cpu_cores=None,
    cpu_limit=None,
)


@pytest.fixture
def page() -> Iterator[LivePage]:
    page = LivePage(0, "sweep")
    page.start()
    try:
        yield page
    finally:
        page.close()


class Reader:
    """Reads events like a browser."""

    def __init__(self, page: LivePage) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
        self._connection.request("GET", "/events")
        self._response = self._connection.getresponse()
        self.status = self._response.status

    def next(self) -> tuple[str, Any]:
        """The next event; an empty name at the end."""
        name, data = "", None
        for line in self._response:
            field, _, value = line.decode().rstrip("\n").partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data = json.loads(value)
                return name, data
        return name, data

    def leave(self) -> None:
        self._response.close()
        self._connection.close()


def get(page: LivePage, path: str = "/", host: str | None = None) -> tuple[int, str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{page.port}"})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text, response.headers


def becomes_true(condition: Any) -> bool:
    """Waits until the condition holds, for 30 s at most."""
    end_s = time.monotonic() + 30
    while not condition() and time.monotonic() < end_s:
        time.sleep(0.02)
    return bool(condition())


def test_the_page_may_connect_only_to_its_server(page: LivePage) -> None:
    status, text, headers = get(page)
    assert status == 200

    (policy,) = [line for line in text.splitlines() if "Content-Security-Policy" in line]
    assert "default-src &#39;none&#39;" in policy
    assert "connect-src &#39;self&#39;" in policy and policy.count("-src") == 5
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] == "wsgiload"


@pytest.mark.parametrize("path", ["/", "/events", "/report"])
def test_other_host_names_are_rejected(page: LivePage, path: str) -> None:
    assert get(page, path, "attacker.example")[0] == 403
    assert get(page, path, f"attacker.example:{page.port}")[0] == 403
    assert get(page, host=f"localhost:{page.port}")[0] == 200


@pytest.mark.parametrize("path", ["/report", "/../../etc/passwd", "//etc/passwd", "/events/x"])
def test_other_paths_are_not_found(page: LivePage, path: str) -> None:
    assert get(page, path)[0] == 404


def test_only_the_loopback_address_accepts_connections(page: LivePage) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", page.port), 5)


def test_a_reader_gets_earlier_and_later_lines(page: LivePage) -> None:
    page.print_line("first")
    page.show(FRAME)
    reader = Reader(page)

    assert reader.next() == ("line", "first")

    name, (frame,) = reader.next()
    assert name == "frames" and frame["rows"] == [["now", "a@100#1: measuring"]]
    assert frame["achieved_per_s"] is None, "an unknown value is not 0"

    page.print_line("second")
    assert reader.next() == ("line", "second")

    reader.leave()


def test_a_page_opened_late_gets_the_history_of_the_trial(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live_page, "MAX_FRAMES", 3)
    page.show(FRAME)
    for second in range(5):
        page.show(replace(FRAME, trial="b@100#1", at_s=float(second)))
    reader = Reader(page)

    name, frames = reader.next()
    assert (name, [frame["at_s"] for frame in frames]) == ("frames", [2.0, 3.0, 4.0])
    page.show(replace(FRAME, at_s=9.0))
    assert [frame["trial"] for frame in reader.next()[1]] == ["a@100#1"]
    reader.leave()


def test_foreign_text_is_escaped(page: LivePage) -> None:
    page.print_line(HOSTILE)
    reader = Reader(page)
    name, text = reader.next()
    assert (name, text) == ("line", "</script><img src=x onerror=alert(1)>\\x1b[2J\\u202e")
    reader.leave()


def test_the_number_of_clients_is_limited(page: LivePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live_page, "SILENCE_S", 0.05)
    readers = [Reader(page) for _ in range(MAX_CLIENTS)]
    assert {reader.status for reader in readers} == {200}
    assert becomes_true(lambda: len(page.threads) == 1 + MAX_CLIENTS)
    assert get(page)[0] == 503

    readers[0].leave()
    assert becomes_true(lambda: len(page.threads) == MAX_CLIENTS), (
        "a closed connection is noticed without new events"
    )
    assert get(page)[0] == 200
    for reader in readers[1:]:
        reader.leave()


@pytest.mark.parametrize("slow_count", [50, 2 * MAX_CLIENTS])
def test_slow_clients_do_not_delay_a_fast_one(page: LivePage, slow_count: int) -> None:
    slow = [socket.create_connection(("127.0.0.1", page.port), 5) for _ in range(slow_count)]
    for client in slow:
        client.send(b"G")
    page.print_line("first")
    started_s = time.monotonic()
    reader = Reader(page)
    assert get(page)[0] == 200
    assert reader.next() == ("line", "first")
    assert time.monotonic() - started_s < 2, "the fast client waits for the slow ones"
    reader.leave()
    for client in slow:
        client.close()


def test_a_client_that_takes_too_long_is_disconnected(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live_page, "REQUEST_TIMEOUT_S", 0.3)
    reader = Reader(page)
    with socket.create_connection(("127.0.0.1", page.port), 5) as slow:
        started_s = time.monotonic()
        with pytest.raises(OSError):  # each byte comes in time, the request does not
            while time.monotonic() < started_s + 10:
                slow.send(b"G")
                time.sleep(0.05)
    page.print_line("still here")
    assert reader.next() == ("line", "still here"), "a reader may stay"
    reader.leave()


def test_the_page_becomes_the_report_for_all_readers(page: LivePage, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    report.write_text("<h1>the report</h1>")
    page.print_line("started")
    readers = [Reader(page), Reader(page)]
    assert [reader.next()[1] for reader in readers] == ["started"] * 2
    thread = threading.Thread(target=page.end, args=(report,))
    thread.start()

    assert [reader.next() for reader in readers] == [("report", None)] * 2
    assert get(page, "/report")[1] == "<h1>the report</h1>"
    assert thread.is_alive(), "the second reader has not loaded the report yet"
    get(page, "/report")
    thread.join(4)
    assert not thread.is_alive()


def test_without_a_report_the_page_shows_the_result_as_text(page: LivePage) -> None:
    reader = Reader(page)
    assert becomes_true(lambda: page.has_readers)
    page.end(None, f"p99 {HOSTILE}")
    name, text = reader.next()
    assert name == "ended" and text.startswith("p99 </script>") and "\x1b" not in text
    assert reader.next() == ("", None)


def test_without_readers_the_end_does_not_wait(page: LivePage, tmp_path: Path) -> None:
    start_s = time.monotonic()
    page.end(tmp_path / "report.html")
    assert time.monotonic() - start_s < 1


def test_only_the_last_lines_are_kept(page: LivePage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_live_page, "MAX_LINES", 3)
    for number in range(5):
        page.print_line(str(number))
    reader = Reader(page)
    assert [reader.next()[1] for _ in range(3)] == ["2", "3", "4"]
    page.print_line("5")
    assert reader.next()[1] == "5"
    reader.leave()


def test_without_a_terminal_a_view_draws_for_the_page_and_prints_plain_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = LivePage(0, "sweep")
    view = LiveView(None, other)
    view.begin()
    try:
        reader = Reader(other)
        view.print_line("one line")
        view.show(Stage("[1/2] a@100#1", "b@100#1"))
        assert reader.next() == ("line", "one line")
        name, (frame,) = reader.next()
        assert name == "frames"
        assert frame["rows"] == [["now", "[1/2] a@100#1: starting"], ["next", "b@100#1"]]
        assert other.threads
        view.end(text="the end")
        assert reader.next() == ("ended", "the end")
    finally:
        view.stop()
        other.close()

    assert capsys.readouterr().err == "one line\n"
