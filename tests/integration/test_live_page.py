"""``--live``: a browser follows a sweep, a load's page shows its result, and a port in use is an
error."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from .command import Command, RunningCommand, until
from .target import CountingServer

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "target" / "page"
SERVERS = ("--servers", "wsgiref,waitress")
SWEEP = ("sweep", *SERVERS, "--rates", "400", "--runs", "2", "--settle", "0s")
BRIEFLY = ("--duration", "12s", "--warmup", "1s", "--cooldown", "0s", "--limits", "best-effort")


def address_of(running: RunningCommand) -> str:
    """The URL of the live page, as the command prints it."""

    def printed_address() -> str | None:
        match = re.search(r"^live view: (http://127\.0\.0\.1:\d+/)$", running.err, re.MULTILINE)
        return match[1] if match else None

    until(
        lambda: printed_address() is not None or running.process.poll() is not None, "the address"
    )
    address = printed_address()
    assert address is not None, running.err
    return address


def events_of(address: str) -> Iterator[tuple[str, Any]]:
    """Name and data of each event of the page, until the stream ends."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("GET", "/events")

    name = ""
    for line in connection.getresponse():
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


@pytest.mark.servers
@pytest.mark.timeout(400)
def test_a_browser_follows_a_sweep(command: Command) -> None:
    if shutil.which("chromium") is None and "CI" not in os.environ:
        pytest.skip("needs Debian's chromium: apt-get install chromium")
    subprocess.run(["node", "build.mjs", "--tests"], cwd=ROOT / "frontend", check=True)

    running = command.start(*SWEEP, *BRIEFLY, "--live", 0)
    browser = subprocess.run(
        ["npm", "--prefix", str(ROOT / "frontend"), "run", "--silent", "browser-live"],
        env=os.environ
        | {"WSGILOAD_LIVE_URL": address_of(running), "WSGILOAD_PICTURES": str(SCREENSHOTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    if browser.returncode:
        running.process.terminate()
        running.end()
    assert browser.returncode == 0, browser.stdout

    result = running.end()
    assert result.code in (0, 98), result.err
    results = [line for line in result.err.splitlines() if re.match(r"\[[1-4]/4\] .* … p", line)]
    assert len(results) == 4, "the result lines of a sweep without --live"


def test_the_page_of_a_load_shows_its_result(command: Command, target: CountingServer) -> None:
    running = command.start("load", target.url, "-R", 100, "-d", "3s", "--quiet", "--live", 0)
    events = list(events_of(address_of(running)))
    result = running.end()

    assert result.code in (0, 98)
    frames = [frame for name, data in events if name == "frames" for frame in data]
    assert all(frame["trial"] == f"sending load to {target.url}" for frame in frames)
    rates = [dict(frame["rows"])["rate"] for frame in frames]

    # Poisson arrivals: 100/s over the first seconds may as well read 85/s or 115/s.
    offered_per_s = [float(re.findall(r"offered ([0-9.]+)/s", rate)[0]) for rate in rates[2:]]
    assert any(60 <= value <= 140 for value in offered_per_s), rates

    name, text = events[-1]
    assert name == "ended"
    for line in ("p50", "p99"):
        assert line in text and line in result.out
    assert result.err.startswith("live view: ") and len(result.err.splitlines()) == 1


def test_a_port_in_use_is_an_error_before_the_load(
    command: Command, target: CountingServer
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = command.start("load", target.url, "-R", "50", "--live", port).end()

    assert result.code == 2
    assert result.err == (
        f"wsgiload: --live cannot listen on 127.0.0.1:{port}: Address already in use; "
        "use --live 0 for any free port\n"
    )
    assert target.response_count == 0
