"""Each finding of ``wsgiload audit``, in what the tools really print when its cause is there; and
none when it is not."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsgiload.cli import run

from .foreign import STORED, output_of, stored_output
from .odd_servers import refusing_after, serving_few_connections, serving_one_request_each
from .reference import inconclusive, needs_reference, reference
from .target import CountingServer, TwoWrites, unused_port

ALL = ("wrk", "ab", "httperf", "hey", "oha", "vegeta")
OHA = ("--no-tui", "--output-format", "json")
HOLD = ("--hold", "20ms")
Audit = Callable[..., dict[str, str]]


@pytest.fixture
def audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Audit:
    """The findings about an output, by name, each with its sentence and its arithmetic; the exit
    code must fit."""

    def findings(printed: str, *options: str) -> dict[str, str]:
        path = tmp_path / "output.txt"
        path.write_text(printed)
        code = run(["audit", str(path), "--json", *options])
        shown = capsys.readouterr()
        assert shown.err == "", shown.err + printed
        (audited,) = json.loads(shown.out)["files"]
        found = {
            one["alarm"]: f"{one['message']} | {one['arithmetic']}" for one in audited["alarms"]
        }
        assert code == (98 if found else 0)
        return found

    return findings


def target_of(url: str) -> str:
    return f"GET {url}\n"


def httperf_words(url: str, *words: str) -> list[str]:
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    return [f"--server={host}", f"--port={port}", "--uri=/", "--hog", *words]


def closed_loop(tool: str, case: str, url: str, connections: int, seconds: int) -> str:
    """The output of a tool that keeps so many requests in flight for so long."""
    words = {
        "wrk": ["-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url],
        "hey": ["-z", f"{seconds}s", "-c", str(connections), url],
        "oha": ["-z", f"{seconds}s", "-c", str(connections), *OHA, url],
    }
    return output_of(tool, case, words[tool])


def vegeta(case: str, url: str, *words: str, **options: Any) -> str:
    call = ["attack", *words]
    report = ["report", "-type", "json"]
    return output_of("vegeta", case, call, stdin=target_of(url), then=report, **options)


def limit_files(files: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def stated(tool: str, connections: int, rate: str = "") -> list[str]:
    """What the user must say because the tool does not."""
    words = ["--connections", str(connections)] if tool in ("hey", "oha") else []
    return [*words, "--rate", rate] if rate else words


# --- undisturbed results


@needs_reference
@pytest.mark.parametrize("tool", ALL)
def test_a_correct_result_has_no_finding(tool: str, audit: Audit) -> None:
    with reference(*HOLD) as url:
        match tool:
            case "ab":
                printed = output_of(tool, "healthy", ["-c", "10", "-n", "1500", url])
            case "httperf":
                words = httperf_words(url, "--rate=150", "--num-conns=450")
                printed = output_of(tool, "healthy", words)
            case "vegeta":
                printed = vegeta("healthy", url, "-rate", "500", "-duration", "3s")
            case _:
                printed = closed_loop(tool, "healthy", url, 10, 3)
    found = audit(printed, *stated(tool, 10, "500" if tool == "vegeta" else ""))
    if set(found) == {"saturated-client"}:
        inconclusive(found)
    assert found == {}


@needs_reference
def test_vegeta_as_text_says_the_same(audit: Audit) -> None:
    with reference(*HOLD) as url:
        words = ["attack", "-rate", "500", "-duration", "3s"]
        printed = output_of("vegeta", "healthy-text", words, stdin=target_of(url), then=["report"])
    assert audit(printed, "--rate", "500") == {}


# --- connections


@pytest.mark.parametrize("tool", ["wrk", "ab", "oha"])
def test_starved_connections_break_littles_law(tool: str, audit: Audit) -> None:
    with serving_few_connections(2) as url:
        if tool == "ab":
            printed = output_of(tool, "starved", ["-k", "-c", "20", "-t", "3", "-n", "100000", url])
        else:
            printed = closed_loop(tool, "starved", url, 20, 3)
    found = audit(printed, *stated(tool, 20))
    assert "of 20 connections had a request in flight" in found["littles-law"]
    in_flight = float(found["littles-law"].split("only ")[1].split(" of")[0])
    assert 1.5 <= in_flight <= 2.5


@needs_reference
def test_wrk_against_a_server_that_closes_without_saying_so(audit: Audit) -> None:
    with reference("--hold", "5ms", "--requests-per-connection", "1", "--no-announce-close") as url:
        printed = closed_loop("wrk", "closes", url, 10, 2)
    found = audit(printed)
    assert "without announcing it" in found["no-keepalive"]
    assert "failures-left-out" not in found, "no request was lost"


def test_wrk_against_a_server_that_serves_each_connection_once(audit: Audit) -> None:
    with serving_one_request_each() as url:
        printed = closed_loop("wrk", "one-each", url, 50, 2)
    assert "each connection carried a single request" in audit(printed)["no-keepalive"]


@needs_reference
def test_ab_with_k_against_a_server_without_keepalive(audit: Audit) -> None:
    with reference(*HOLD, "--requests-per-connection", "1") as url:
        printed = output_of("ab", "closes", ["-k", "-c", "10", "-n", "1000", url])
    assert "0 of 1,000 responses" in audit(printed)["no-keepalive"]


@needs_reference
def test_httperf_with_several_calls_against_a_server_that_closes(audit: Audit) -> None:
    with reference("--hold", "5ms", "--requests-per-connection", "1") as url:
        words = httperf_words(url, "--rate=100", "--num-conns=200", "--num-calls=5")
        printed = output_of("httperf", "closes", words)
    assert "0 of 200 responses" in audit(printed)["no-keepalive"]


def test_wrk_that_is_refused_connections(audit: Audit) -> None:
    """It counts a refused connection as a write error, and tries again at once."""
    with refusing_after(6) as url:
        printed = closed_loop("wrk", "refused", url, 20, 2)
    found = audit(printed)
    assert " read, " in found["failures-left-out"]
    assert "of 20 connections had a request in flight" in found["littles-law"]


def test_wrk_whose_connections_fail_in_the_client(audit: Audit) -> None:
    with reference(*HOLD) as url:
        words = ["-t1", "-c20", "-d1s", "--latency", url]
        printed = output_of("wrk", "few-files", words, preexec=lambda: limit_files(12))
    found = audit(printed)["failed-connections"]
    assert "connections failed and stayed unused: the load was lower" in found
    assert "failed / 20 connections = " in found


def test_wrk_all_of_whose_connections_fail(audit: Audit) -> None:
    """It ran out of local ports: from then on it sent nothing."""
    found = audit(stored_output("wrk", "ports"))
    assert set(found) == {"failed-connections", "too-few-requests"}
    assert "all connections had failed before the end" in found["failed-connections"]


@pytest.mark.parametrize("tool", ["httperf", "hey", "oha", "vegeta"])
def test_a_closed_port(tool: str, audit: Audit) -> None:
    url = f"http://127.0.0.1:{unused_port()}/"
    match tool:
        case "httperf":
            words = httperf_words(url, "--rate=100", "--num-conns=50")
            printed = output_of(tool, "refused", words)
        case "hey":
            printed = output_of(tool, "refused", ["-n", "50", "-c", "5", url])
        case "oha":
            printed = output_of(tool, "refused", ["-n", "50", "-c", "5", *OHA, url])
        case _:
            printed = vegeta("refused", url, "-rate", "50", "-duration", "1s")
    found = audit(printed)
    assert "0 responses, 50 failures (50 connect)" in found["failed-connections"]


@pytest.mark.parametrize("tool", ["httperf", "hey", "vegeta"])
def test_a_client_out_of_file_descriptors(tool: str, audit: Audit) -> None:
    with CountingServer() as server:
        never = f"{server.url}never"
        match tool:
            case "httperf":
                words = httperf_words(server.url, "--rate=300", "--num-conns=150", "--timeout=1")
                words[2] = "--uri=/never"
                printed = output_of(tool, "few-files", words, preexec=lambda: limit_files(40))
            case "hey":
                words = ["-n", "100", "-c", "100", "-t", "1", never]
                printed = output_of(tool, "few-files", words, preexec=lambda: limit_files(40))
            case _:
                options = ("-rate", "150", "-duration", "1s", "-timeout", "1s")
                printed = vegeta("few-files", never, *options, preexec=lambda: limit_files(40))
    assert "file descriptors or ports" in audit(printed)["network-resources"]


# --- rates


@needs_reference
@pytest.mark.parametrize("tool", ["httperf", "hey", "oha"])
def test_a_rate_that_is_not_reached(tool: str, audit: Audit) -> None:
    with reference("--hold", "10ms", "--servers", "1") as url:
        match tool:
            case "httperf":
                words = httperf_words(url, "--rate=300", "--num-conns=600")
                printed = output_of(tool, "too-fast", words)
            case "hey":
                printed = output_of(tool, "too-fast", ["-z", "2s", "-c", "5", "-q", "60", url])
            case _:
                words = ["-z", "2s", "-c", "5", "-q", "300", *OHA, url]
                printed = output_of(tool, "too-fast", words)
    found = audit(printed, *stated(tool, 5, "" if tool == "httperf" else "300"))
    assert "of the requested 300/s was achieved" in found["rate-not-reached"]


@needs_reference
def test_vegeta_without_enough_workers_is_a_saturated_client(audit: Audit) -> None:
    with reference(*HOLD) as url:
        words = ("-rate", "200", "-duration", "2s", "-workers", "1", "-max-workers", "1")
        printed = vegeta("one-worker", url, *words)
    found = audit(printed, "--rate", "200")
    assert "vegeta sent fewer requests than requested" in found["saturated-client"]


@needs_reference
def test_httperf_that_was_stopped_for_a_while_is_a_saturated_client(audit: Audit) -> None:
    def stop_for_a_while(process: subprocess.Popen[bytes]) -> None:
        time.sleep(0.7)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        process.send_signal(signal.SIGCONT)

    with reference("--hold", "5ms") as url:
        words = httperf_words(url, "--rate=400", "--num-conns=1200")
        printed = output_of("httperf", "stopped", words, meanwhile=stop_for_a_while)
    assert "fell behind its schedule" in audit(printed)["saturated-client"]


# --- times


@pytest.mark.parametrize("tool", ["wrk", "hey", "oha", "vegeta"])
def test_delayed_acknowledgements(tool: str, audit: Audit) -> None:
    with CountingServer(TwoWrites) as server:
        if tool == "vegeta":
            words = ("-rate", "50", "-duration", "3s", "-workers", "4", "-max-workers", "4")
            printed = vegeta("nagle", server.url, *words)
        else:
            printed = closed_loop(tool, "nagle", server.url, 4, 3)
    assert "delayed ACK" in audit(printed, *stated(tool, 4))["nagle-delay"]


@needs_reference
@pytest.mark.parametrize("tool", ALL)
def test_a_server_that_takes_43_ms_is_no_delayed_acknowledgement(tool: str, audit: Audit) -> None:
    with reference("--hold", "43ms") as url:
        match tool:
            case "ab":
                printed = output_of(tool, "slow", ["-c", "30", "-n", "1500", url])
            case "httperf":
                words = httperf_words(url, "--rate=400", "--num-conns=1000")
                printed = output_of(tool, "slow", words)
            case "vegeta":
                printed = vegeta("slow", url, "-rate", "500", "-duration", "3s")
            case _:
                printed = closed_loop(tool, "slow", url, 30, 3)
    assert "nagle-delay" not in audit(printed, *stated(tool, 30))


@needs_reference
@pytest.mark.parametrize("tool", ["ab", "httperf", "hey"])
def test_times_below_the_resolution(tool: str, audit: Audit) -> None:
    with reference() as url:
        match tool:
            case "ab":
                printed = output_of(tool, "fast", ["-c", "1", "-n", "1500", url])
            case "httperf":
                words = httperf_words(url, "--rate=100", "--num-conns=200")
                printed = output_of(tool, "fast", words)
            case _:
                printed = output_of(tool, "fast", ["-n", "1500", "-c", "1", url])
    step = "100 µs" if tool == "hey" else "1.00 ms"
    assert f"{tool} reports times in steps of {step}" in audit(printed)["coarse-resolution"]


@needs_reference
@pytest.mark.parametrize("tool", ["wrk", "ab", "hey", "oha", "vegeta"])
def test_quantiles_of_few_requests(tool: str, audit: Audit) -> None:
    with reference(*HOLD) as url:
        match tool:
            case "ab":
                printed = output_of(tool, "few", ["-c", "5", "-n", "200", url])
            case "hey":
                printed = output_of(tool, "few", ["-c", "5", "-n", "200", url])
            case "oha":
                printed = output_of(tool, "few", ["-c", "5", "-n", "200", *OHA, url])
            case "vegeta":
                printed = vegeta("few", url, "-rate", "100", "-duration", "2s")
            case _:
                printed = closed_loop(tool, "few", url, 4, 1)
    found = audit(printed)
    assert "beyond p99 (at least 10)" in found["too-few-requests"]
    if tool != "wrk":
        assert "200 requests × 0.01 = 2 beyond p99" in found["too-few-requests"]


@needs_reference
@pytest.mark.parametrize("tool", ALL)
def test_errors_among_the_responses(tool: str, audit: Audit) -> None:
    with reference("--hold", "5ms", "--fault", "503@every:5") as url:
        match tool:
            case "ab":
                printed = output_of(tool, "errors", ["-l", "-c", "5", "-n", "500", url])
            case "httperf":
                words = httperf_words(url, "--rate=200", "--num-conns=500")
                printed = output_of(tool, "errors", words)
            case "vegeta":
                printed = vegeta("errors", url, "-rate", "250", "-duration", "2s")
            case "hey" | "oha":
                words = ["-n", "500", "-c", "5", *(OHA if tool == "oha" else ()), url]
                printed = output_of(tool, "errors", words)
            case _:
                printed = closed_loop(tool, "errors", url, 5, 1)
    found = audit(printed)["errors-as-responses"]
    if tool == "wrk":
        assert float(found.split("requests = ")[1].split(" %")[0]) == pytest.approx(20, abs=0.5)
    else:
        assert "100 failed (100 error status) / 500 requests = 20.0 %" in found


@needs_reference
@pytest.mark.parametrize("tool", ["httperf", "hey", "oha"])
def test_failures_that_the_times_leave_out(tool: str, audit: Audit) -> None:
    with reference("--hold", "5ms", "--fault", "reset@every:10") as url:
        match tool:
            case "httperf":
                words = httperf_words(url, "--rate=200", "--num-conns=500")
                printed = output_of(tool, "resets", words)
            case _:
                # A client repeats a request whose kept connection broke.
                off = "-disable-keepalive" if tool == "hey" else "--disable-keepalive"
                words = ["-n", "500", "-c", "5", off, *(OHA if tool == "oha" else ()), url]
                printed = output_of(tool, "resets", words)
    found = audit(printed)["failures-left-out"]
    assert "50 failed" in found
    assert "500 requests = 10.0 %" in found


@needs_reference
@pytest.mark.parametrize("tool", ["ab", "hey", "oha"])
def test_a_closed_loop_that_hides_stalls(tool: str, audit: Audit) -> None:
    with reference("--hold", "2ms", "--stall", "400ms/2s") as url:
        if tool == "ab":
            printed = output_of(tool, "stalls", ["-c", "1", "-n", "1500", url])
        else:
            printed = closed_loop(tool, "stalls", url, 1, 5)
    found = audit(printed, *stated(tool, 1))["closed-loop-stalls"]
    assert "hides stalls of up to 4" in found
    share = float(found.split("stalls take up to ")[1].split(" %")[0])
    assert 5 < share < 30, "at least one stall of 400 ms, at most one in 2 s"


# --- several results


@needs_reference
def test_throughput_that_does_not_grow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with reference("--hold", "8ms", "--servers", "2") as url:
        for connections in (4, 8, 16):
            printed = closed_loop("wrk", f"flat-{connections}", url, connections, 2)
            (tmp_path / f"wrk-{connections}.txt").write_text(printed)
    assert run(["audit", str(tmp_path)]) == 98
    shown = capsys.readouterr().out
    assert "flat-throughput: throughput stays the same from 4 to 16 connections" in shown
    assert shown.count("flat-throughput") == 1


@needs_reference
def test_throughput_that_grows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with reference("--hold", "10ms") as url:
        for connections in (2, 4, 8):
            printed = closed_loop("wrk", f"grows-{connections}", url, connections, 1)
            (tmp_path / f"wrk-{connections}.txt").write_text(printed)
    run(["audit", str(tmp_path)])
    assert "flat-throughput" not in capsys.readouterr().out


@needs_reference
def test_a_run_that_left_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with reference(*HOLD) as url:
        (tmp_path / "wrk-1.txt").write_text(closed_loop("wrk", "healthy", url, 10, 3))
    url = f"http://127.0.0.1:{unused_port()}/"
    (tmp_path / "wrk-2.txt").write_text(closed_loop("wrk", "no-server", url, 10, 1))
    assert run(["audit", str(tmp_path)]) == 98
    shown = capsys.readouterr().out
    assert "missing-run: this run has no result" in shown
    assert "1 finding in 1 of 2 results" in shown


# --- stored output

# What the user states about the runs whose tools do not say it.
STATED = {
    "hey-healthy": ["--connections", "10"],
    "hey-nagle": ["--connections", "4"],
    "hey-slow": ["--connections", "30"],
    "hey-stalls": ["--connections", "1"],
    "hey-too-fast": ["--connections", "5", "--rate", "300"],
    "oha-healthy": ["--connections", "10"],
    "oha-nagle": ["--connections", "4"],
    "oha-slow": ["--connections", "30"],
    "oha-stalls": ["--connections", "1"],
    "oha-starved": ["--connections", "20"],
    "oha-too-fast": ["--connections", "5", "--rate", "300"],
    "vegeta-healthy": ["--rate", "500"],
    "vegeta-healthy-text": ["--rate", "500"],
    "vegeta-one-worker": ["--rate", "200"],
}
EXPECTED: dict[str, set[str]] = {
    "ab-closes": {"no-keepalive"},
    "ab-errors": {"errors-as-responses", "too-few-requests"},
    "ab-fast": {"closed-loop-stalls", "coarse-resolution"},
    "ab-few": {"too-few-requests"},
    "ab-healthy": set(),
    "ab-slow": set(),
    "ab-stalls": {"closed-loop-stalls", "coarse-resolution"},
    "ab-starved": {"littles-law", "too-few-requests"},
    "hey-errors": {"errors-as-responses", "too-few-requests"},
    "hey-fast": {"coarse-resolution"},
    "hey-few-files": {"failed-connections", "network-resources"},
    "hey-few": {"too-few-requests"},
    "hey-healthy": set(),
    "hey-nagle": {"nagle-delay", "too-few-requests"},
    "hey-refused": {"failed-connections"},
    "hey-resets": {"failures-left-out", "too-few-requests"},
    "hey-slow": set(),
    "hey-stalls": {"closed-loop-stalls"},
    "hey-too-fast": {"rate-not-reached", "too-few-requests"},
    "httperf-closes": {"no-keepalive", "rate-not-reached"},
    "httperf-errors": {"errors-as-responses", "saturated-client"},
    "httperf-fast": {"coarse-resolution"},
    "httperf-few-files": {"failed-connections", "network-resources"},
    "httperf-healthy": set(),
    "httperf-refused": {"failed-connections"},
    "httperf-resets": {"failures-left-out"},
    "httperf-slow": set(),
    "httperf-stopped": {"saturated-client"},
    "httperf-too-fast": {"rate-not-reached"},
    "oha-errors": {"errors-as-responses", "too-few-requests"},
    "oha-few": {"too-few-requests"},
    "oha-healthy": set(),
    "oha-nagle": {"nagle-delay", "too-few-requests"},
    "oha-refused": {"failed-connections"},
    "oha-resets": {"failures-left-out", "too-few-requests"},
    "oha-slow": set(),
    "oha-stalls": {"closed-loop-stalls"},
    "oha-starved": {"littles-law"},
    "oha-too-fast": {"rate-not-reached", "too-few-requests"},
    "vegeta-errors": {"errors-as-responses", "too-few-requests"},
    "vegeta-few-files": {"failed-connections", "network-resources"},
    "vegeta-few": {"too-few-requests"},
    "vegeta-healthy-text": set(),
    "vegeta-healthy": set(),
    "vegeta-nagle": {"nagle-delay", "too-few-requests"},
    "vegeta-one-worker": {"saturated-client", "too-few-requests"},
    "vegeta-refused": {"failed-connections"},
    "vegeta-slow": set(),
    "wrk-closes": {"littles-law", "no-keepalive"},
    "wrk-errors": {"errors-as-responses"},
    "wrk-few-files": {"failed-connections", "too-few-requests"},
    "wrk-few": {"too-few-requests"},
    "wrk-flat-16": {"too-few-requests"},
    "wrk-flat-4": {"too-few-requests"},
    "wrk-flat-8": {"too-few-requests"},
    "wrk-grows-2": {"too-few-requests"},
    "wrk-grows-4": {"too-few-requests"},
    "wrk-grows-8": {"too-few-requests"},
    "wrk-healthy": set(),
    "wrk-nagle": {"nagle-delay", "too-few-requests"},
    "wrk-nagle-jitter": {"nagle-delay", "too-few-requests"},
    "wrk-no-server": {"missing-run"},
    "wrk-one-each": {"littles-law", "no-keepalive", "too-few-requests"},
    "wrk-ports": {"failed-connections", "too-few-requests"},
    "wrk-refused": {"failures-left-out", "littles-law"},
    "wrk-slow": set(),
    "wrk-starved": {"littles-law"},
}


@pytest.mark.parametrize("name", [path.stem for path in sorted(STORED.glob("*-*.txt"))])
def test_stored_output_has_exactly_these_findings(name: str, audit: Audit) -> None:
    """However disturbed this host is: the output was recorded."""
    printed = (STORED / f"{name}.txt").read_text()
    assert set(audit(printed, *STATED.get(name, []))) == EXPECTED[name]
