"""The external counters of the kernel and the app, and the checks that use them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import astuple
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wsgiload.catalogue.apps.counted import FOLDER_VARIABLE, counted
from wsgiload.catalogue.bundled import APPS_FOLDER, BUNDLED
from wsgiload.documents.load_report import LoadReport, NotChecked
from wsgiload.findings.external_counts import (
    check_external_counts,
    connections_dropped,
    requests_seen,
    retransmissions,
)
from wsgiload.findings.finding import Fired
from wsgiload.loads.thresholds import ORCHESTRATOR_THRESHOLDS
from wsgiload.sampling.external_counters import (
    ExternalCounters,
    ExternalReading,
    TcpCounts,
    external_counters,
    read_request_count,
    read_tcp_counts,
)

from .canned_load import canned_load
from .filled import distribution, outcomes

SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm MaxConn RetransSegs InErrs
Tcp: 1 -1 {retransmitted} 0
"""
NETSTAT = """\
TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPReqQFullDrop
TcpExt: 0 {overflows} {drops} {full}
IpExt: InNoRoutes
IpExt: 0
"""


def write_counters(root: Path, **changes: int) -> Path:
    (root / "proc/net").mkdir(parents=True, exist_ok=True)
    counters = {"retransmitted": 0, "overflows": 0, "drops": 0, "full": 0} | changes
    (root / "proc/net/snmp").write_text(SNMP.format(**counters))
    (root / "proc/net/netstat").write_text(NETSTAT.format(**counters))
    return root


# --- the kernel's counters


def test_the_kernels_counters_are_read_by_their_names(tmp_path: Path) -> None:
    write_counters(tmp_path, retransmitted=7, overflows=3, drops=4, full=1)
    assert read_tcp_counts(tmp_path) == TcpCounts(7, 3, 4, 1)


def test_a_counter_that_the_kernel_does_not_have_is_unknown(tmp_path: Path) -> None:
    write_counters(tmp_path)
    (tmp_path / "proc/net/netstat").write_text("TcpExt: ListenDrops\nTcpExt: 4\n")
    assert read_tcp_counts(tmp_path) == TcpCounts(0, None, 4, None)
    (tmp_path / "proc/net/snmp").unlink()
    assert read_tcp_counts(tmp_path).retransmitted_segments is None


def test_this_kernel_has_all_counters() -> None:
    assert None not in astuple(read_tcp_counts())


def test_earlier_counts_are_subtracted(tmp_path: Path) -> None:
    counters = ExternalCounters(root=write_counters(tmp_path, retransmitted=7, drops=4))
    before = counters.read()
    write_counters(tmp_path, retransmitted=9, drops=2)
    grown = counters.read().since(before)
    assert grown == ExternalReading(None, TcpCounts(2, 0, None, 0)), (
        "a counter that decreased was reset"
    )


# --- the app's counter


def call(app: Any, times: int) -> None:
    for _ in range(times):
        assert app({}, lambda status, headers: None) == [b"ok"]


def ok(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [b"ok"]


def test_calls_of_all_threads_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    app = counted(ok)
    assert read_request_count(tmp_path) is None, "nothing has been counted yet"

    threads = [threading.Thread(target=call, args=(app, 500)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert read_request_count(tmp_path) == 2_000


def test_an_app_that_cannot_write_its_count_still_responds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "missing"))
    call(counted(ok), 3)
    assert read_request_count(tmp_path / "missing") is None


class EmptyHandler(BaseHTTPRequestHandler):
    """Responds with an empty body."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def upstream() -> Iterator[str]:
    """Host and port of the server that the app ``upstream`` calls."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EmptyHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_app_counts_its_calls_in_each_process(name: str, upstream: str) -> None:
    program = f"import {name}; [{name}.app({{}}, lambda *_: None) for _ in range(3)]"
    with external_counters(app_counts=True, owner=None) as counters:
        for _ in range(2):
            variables = {
                "PYTHONPATH": str(APPS_FOLDER),
                "PYTHONDONTWRITEBYTECODE": "1",
                "WSGILOAD_UPSTREAM": upstream,
                **counters.variables,
            }
            subprocess.run([sys.executable, "-c", program], env=variables, check=True)
        assert counters.read().requests_seen == 6
        directory = counters.folder

    assert directory is not None
    assert not directory.exists()


def test_the_calls_of_a_users_app_are_not_counted() -> None:
    with external_counters(app_counts=False, owner=None) as counters:
        assert counters.variables == {}
        assert counters.read().requests_seen is None


# --- app-calls


def load(responses: int = 1_000, reused: int = 996, opened: int = 4, **others: int) -> LoadReport:
    cpu_ns = 123_456_789
    canned = canned_load()
    assert canned.client is not None
    assert canned.connections is not None
    return canned_load(
        outcomes=outcomes(responses, **others),
        client=msgspec.structs.replace(
            canned.client,
            cpu_seconds=cpu_ns / 1e9,
            cpu_per_request_ns=cpu_ns / responses if responses else None,
        ),
        connections=msgspec.structs.replace(canned.connections, opened=opened, reused=reused),
    )


@pytest.mark.parametrize("responses", [1, 3, 1_000, 999_999, 43_217_891])
def test_app_calls_detects_a_difference_of_one_call(responses: int) -> None:
    report = load(responses, reused=responses - 1, opened=1)
    assert requests_seen(report, responses, ORCHESTRATOR_THRESHOLDS["app-calls"]) is None
    assert isinstance(
        requests_seen(report, responses + 1, ORCHESTRATOR_THRESHOLDS["app-calls"]), Fired
    )
    assert isinstance(
        requests_seen(report, responses - 1, ORCHESTRATOR_THRESHOLDS["app-calls"]), Fired
    )


@pytest.mark.parametrize("seen", [900, 950, 1_000])
def test_app_calls_allows_calls_whose_response_was_not_received(seen: int) -> None:
    assert requests_seen(load(responses=900), seen, ORCHESTRATOR_THRESHOLDS["app-calls"]) is None


@pytest.mark.parametrize(
    ("seen", "limits", "level"),
    [
        (1_001, {"warn": 0.0, "invalid": 0.01}, "warn"),
        (1_001, ORCHESTRATOR_THRESHOLDS["app-calls"], "invalid"),
        (999, ORCHESTRATOR_THRESHOLDS["app-calls"], "invalid"),
        (1_002, {"warn": 0.002, "invalid": 0.01}, None),
    ],
)
def test_app_calls_blames_the_client(
    seen: int, limits: Mapping[str, float], level: str | None
) -> None:
    finding = requests_seen(load(), seen, limits)
    if level is None:
        assert finding is None
        return

    assert isinstance(finding, Fired)
    assert (finding.check, finding.blame, finding.level) == ("app-calls", "client", level)
    assert f"the app counted {seen:,} calls" in finding.message

    reason = finding.reason()
    assert (reason.check, reason.limit) == ("app-calls", limits[level])


@pytest.mark.parametrize(
    ("report", "seen", "reason"),
    [
        (load(), None, "the app did not count"),
        (load(responses=0), 5, "no request got a response"),
        (load(http_status=1), 999, "an unexpected status"),
    ],
)
def test_app_calls_reports_why_it_was_not_checked(
    report: LoadReport, seen: int | None, reason: str
) -> None:
    result = requests_seen(report, seen, ORCHESTRATOR_THRESHOLDS["app-calls"])
    assert isinstance(result, NotChecked)
    assert reason in result.reason


# --- kernel-drops


def test_kernel_drops_reports_dropped_connections() -> None:
    assert (
        connections_dropped(TcpCounts(3, 0, 0, None), ORCHESTRATOR_THRESHOLDS["kernel-drops"])
        is None
    )

    finding = connections_dropped(TcpCounts(3, 5, 6, 0), ORCHESTRATOR_THRESHOLDS["kernel-drops"])
    assert isinstance(finding, Fired)
    assert (finding.check, finding.blame, finding.level, finding.value) == (
        "kernel-drops",
        "server",
        "warn",
        6,
    )
    assert (
        "5 accept queue overflows, 6 connections dropped by listening sockets), so SYN retransmissions add"
        in finding.message
    )
    assert "1, 3 or 7 s" in finding.message


def test_kernel_drops_has_a_threshold_and_requires_the_kernel_counters() -> None:
    assert connections_dropped(TcpCounts(0, 3, 3, 0), {"warn": 3.0}) is None
    assert isinstance(
        connections_dropped(
            TcpCounts(9, None, None, None), ORCHESTRATOR_THRESHOLDS["kernel-drops"]
        ),
        NotChecked,
    )


def test_kernel_drops_only_notes_retransmissions_of_the_whole_host() -> None:
    assert retransmissions(TcpCounts(0, 9, 9, 9)) is None
    assert retransmissions(TcpCounts(None, 0, 0, 0)) is None
    note = retransmissions(TcpCounts(1, 0, 0, 0))
    assert note is not None
    assert "retransmitted TCP segments" in note
    assert note == retransmissions(TcpCounts(1_200, 0, 0, 0)), "one line for all cells"


def test_a_load_without_external_counters_is_not_judged() -> None:
    assert check_external_counts(load(), None, ORCHESTRATOR_THRESHOLDS) == []
    assert (
        check_external_counts(
            load(), ExternalReading(1_000, TcpCounts(0, 0, 0, 0)), ORCHESTRATOR_THRESHOLDS
        )
        == []
    )


@pytest.mark.parametrize(
    ("changes", "is_named"),
    [
        ({"connect_time_ns": None}, False),
        ({"connect_time_ns": distribution(max=30_000_000)}, False),
        ({"connect_time_ns": distribution(max=1_010_000_000)}, True),
        ({"outcomes": outcomes(1_000, 999, connect_timeout=1)}, True),
    ],
)
def test_drops_of_other_connections_of_the_host_are_not_named(
    changes: dict[str, Any], is_named: bool
) -> None:
    counts = ExternalReading(None, TcpCounts(0, 5, 5, 0))
    report = msgspec.structs.replace(load(), **changes)
    found = check_external_counts(report, counts, ORCHESTRATOR_THRESHOLDS)
    assert any(isinstance(one, Fired) for one in found) == is_named
