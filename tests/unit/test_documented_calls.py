"""The calls in the documentation of the Python API work as documented."""

from __future__ import annotations

import asyncio
import pickle
import socketserver
import sys
import threading
from collections.abc import Iterator

import pytest

import wsgiload
from wsgiload.documents.codec import to_plain
from wsgiload.experiment.plan import Experiment
from wsgiload.loads.options import Level


class HelloHandler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while self.rfile.readline():
            while self.rfile.readline() not in (b"\r\n", b""):
                pass
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    block_on_close = False


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a server that responds with ``hello``."""
    with Server(("127.0.0.1", 0), HelloHandler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_a_load_reports_quantiles_outcomes_and_verdict(url: str) -> None:
    report = wsgiload.load(url, rate=200, duration=0.5)
    assert report.verdict.status in ("valid", "warn", "invalid")
    assert report.outcomes["ok"] == report.outcomes["scheduled"] > 0
    assert report.to_dict() == to_plain(report.document)

    times = report.response_time
    assert times is not None
    assert times.min <= times.quantile(0.99) <= times.max
    assert times.count == report.outcomes["ok"]
    assert times.min <= times.mean <= times.max
    assert (times + times).count == 2 * times.count
    assert wsgiload.Histogram.from_hdr_v2(times.to_hdr_v2()) == times
    assert pickle.loads(pickle.dumps(times)) == times


def test_a_started_load_can_be_stopped(url: str) -> None:
    handle = wsgiload.start(url, rate=200, duration=60)
    handle.stop()
    report = handle.result()
    assert handle.done()
    assert "interrupted" in {reason.check for reason in report.verdict.reasons}


def test_a_load_can_be_awaited(url: str) -> None:
    report = asyncio.run(wsgiload.aload(url, connections=2, duration=0.2))
    assert report.outcomes["ok"] > 0


def test_a_sweep_takes_an_app_rates_and_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[Experiment] = []
    monkeypatch.setattr(
        sys.modules["wsgiload.api"],
        "run_sweep",
        lambda experiment, events: planned.append(experiment),
    )
    wsgiload.sweep(app="myapp:app", rates=[1000, 2000, 3000], servers=["gunicorn", "waitress"])
    (experiment,) = planned

    assert (experiment.app, experiment.bundled) == ("myapp:app", False)
    assert experiment.servers == ("gunicorn", "waitress")
    assert experiment.levels == tuple(Level(rate_per_s=rate) for rate in (1000, 2000, 3000))
