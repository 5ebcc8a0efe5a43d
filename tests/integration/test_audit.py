"""``wsgiload audit`` reports each finding for real output of other tools if its cause is present,
and only then."""

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
    """Audits an output: returns the message and arithmetic of each finding by name, and checks the
    exit code."""

    def run_audit(output: str, *options: str) -> dict[str, str]:
        path = tmp_path / "output.txt"
        path.write_text(output)

        code = run(["audit", str(path), "--json", *options])
        audit_output = capsys.readouterr()
        assert audit_output.err == "", audit_output.err + output
        (file,) = json.loads(audit_output.out)["files"]
        findings = {
            alarm["alarm"]: f"{alarm['message']} | {alarm['arithmetic']}"
            for alarm in file["alarms"]
        }
        assert code == (98 if findings else 0)
        return findings

    return run_audit


def target_of(url: str) -> str:
    return f"GET {url}\n"


def httperf_args(url: str, *args: str) -> list[str]:
    host, _, port = url.removeprefix("http://").rstrip("/").partition(":")
    return [f"--server={host}", f"--port={port}", "--uri=/", "--hog", *args]


def closed_loop(tool: str, case: str, url: str, connections: int, seconds: int) -> str:
    """The output of a tool that runs a closed loop."""
    args = {
        "wrk": ["-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url],
        "hey": ["-z", f"{seconds}s", "-c", str(connections), url],
        "oha": ["-z", f"{seconds}s", "-c", str(connections), *OHA, url],
    }
    return output_of(tool, case, args[tool])


def vegeta(case: str, url: str, *args: str, **options: Any) -> str:
    call = ["attack", *args]
    report = ["report", "-type", "json"]
    return output_of("vegeta", case, call, stdin=target_of(url), then=report, **options)


def limit_files(files: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def options_for(tool: str, connections: int, rate: str = "") -> list[str]:
    """The options for facts that the output of the tool does not contain."""
    args = ["--connections", str(connections)] if tool in ("hey", "oha") else []
    return [*args, "--rate", rate] if rate else args


# --- healthy results


@needs_reference
@pytest.mark.parametrize("tool", ALL)
def test_a_healthy_result_has_no_findings(tool: str, audit: Audit) -> None:
    with reference(*HOLD) as url:
        match tool:
            case "ab":
                output = output_of(tool, "healthy", ["-c", "10", "-n", "1500", url])
            case "httperf":
                args = httperf_args(url, "--rate=150", "--num-conns=450")
                output = output_of(tool, "healthy", args)
            case "vegeta":
                output = vegeta("healthy", url, "-rate", "500", "-duration", "3s")
            case _:
                output = closed_loop(tool, "healthy", url, 10, 3)
    findings = audit(output, *options_for(tool, 10, "500" if tool == "vegeta" else ""))
    if set(findings) == {"saturated-client"}:
        inconclusive(findings)

    assert findings == {}


@needs_reference
def test_a_healthy_text_report_of_vegeta_has_no_findings(audit: Audit) -> None:
    with reference(*HOLD) as url:
        args = ["attack", "-rate", "500", "-duration", "3s"]
        output = output_of("vegeta", "healthy-text", args, stdin=target_of(url), then=["report"])
    assert audit(output, "--rate", "500") == {}


# --- connections


@pytest.mark.parametrize("tool", ["wrk", "ab", "oha"])
def test_starved_connections_violate_littles_law(tool: str, audit: Audit) -> None:
    with serving_few_connections(2) as url:
        if tool == "ab":
            output = output_of(tool, "starved", ["-k", "-c", "20", "-t", "3", "-n", "100000", url])
        else:
            output = closed_loop(tool, "starved", url, 20, 3)

    findings = audit(output, *options_for(tool, 20))
    assert "of 20 connections had a request in flight" in findings["littles-law"]

    in_flight = float(findings["littles-law"].split("only ")[1].split(" of")[0])
    assert 1.5 <= in_flight <= 2.5


@needs_reference
def test_unannounced_closes_are_found_in_wrk_output(audit: Audit) -> None:
    with reference("--hold", "5ms", "--requests-per-connection", "1", "--no-announce-close") as url:
        output = closed_loop("wrk", "closes", url, 10, 2)
    findings = audit(output)
    assert "without announcing it" in findings["no-keepalive"]
    assert "failures-left-out" not in findings, "no request failed"


def test_one_request_per_connection_is_found_in_wrk_output(audit: Audit) -> None:
    with serving_one_request_each() as url:
        output = closed_loop("wrk", "one-each", url, 50, 2)
    assert "each connection carried a single request" in audit(output)["no-keepalive"]


@needs_reference
def test_missing_keepalive_is_found_in_ab_output(audit: Audit) -> None:
    with reference(*HOLD, "--requests-per-connection", "1") as url:
        output = output_of("ab", "closes", ["-k", "-c", "10", "-n", "1000", url])
    assert "0 of 1,000 responses" in audit(output)["no-keepalive"]


@needs_reference
def test_missing_keepalive_is_found_in_httperf_output(audit: Audit) -> None:
    with reference("--hold", "5ms", "--requests-per-connection", "1") as url:
        args = httperf_args(url, "--rate=100", "--num-conns=200", "--num-calls=5")
        output = output_of("httperf", "closes", args)
    assert "0 of 200 responses" in audit(output)["no-keepalive"]


def test_refused_connections_are_found_in_wrk_output(audit: Audit) -> None:
    """wrk counts a refused connection as a write error and retries immediately."""
    with refusing_after(6) as url:
        output = closed_loop("wrk", "refused", url, 20, 2)
    findings = audit(output)
    assert " read, " in findings["failures-left-out"]
    assert "of 20 connections had a request in flight" in findings["littles-law"]


def test_connections_that_failed_in_the_client_are_found_in_wrk_output(audit: Audit) -> None:
    with reference(*HOLD) as url:
        args = ["-t1", "-c20", "-d1s", "--latency", url]
        output = output_of("wrk", "few-files", args, preexec=lambda: limit_files(12))
    findings = audit(output)["failed-connections"]
    assert "connections failed and stayed unused: the load was lower" in findings
    assert "failed / 20 connections = " in findings


def test_failure_of_all_connections_is_found_in_wrk_output(audit: Audit) -> None:
    """wrk ran out of local ports and then sent no more requests."""
    findings = audit(stored_output("wrk", "ports"))
    assert set(findings) == {"failed-connections", "too-few-requests"}
    assert "all connections had failed before the end" in findings["failed-connections"]


@pytest.mark.parametrize("tool", ["httperf", "hey", "oha", "vegeta"])
def test_a_closed_port_is_reported_as_failed_connections(tool: str, audit: Audit) -> None:
    url = f"http://127.0.0.1:{unused_port()}/"
    match tool:
        case "httperf":
            args = httperf_args(url, "--rate=100", "--num-conns=50")
            output = output_of(tool, "refused", args)
        case "hey":
            output = output_of(tool, "refused", ["-n", "50", "-c", "5", url])
        case "oha":
            output = output_of(tool, "refused", ["-n", "50", "-c", "5", *OHA, url])
        case _:
            output = vegeta("refused", url, "-rate", "50", "-duration", "1s")

    findings = audit(output)
    assert "0 responses, 50 failures (50 connect)" in findings["failed-connections"]


@pytest.mark.parametrize("tool", ["httperf", "hey", "vegeta"])
def test_a_client_out_of_file_descriptors_is_reported(tool: str, audit: Audit) -> None:
    with CountingServer() as server:
        never = f"{server.url}never"
        match tool:
            case "httperf":
                args = httperf_args(server.url, "--rate=300", "--num-conns=150", "--timeout=1")
                args[2] = "--uri=/never"
                output = output_of(tool, "few-files", args, preexec=lambda: limit_files(40))
            case "hey":
                args = ["-n", "100", "-c", "100", "-t", "1", never]
                output = output_of(tool, "few-files", args, preexec=lambda: limit_files(40))
            case _:
                options = ("-rate", "150", "-duration", "1s", "-timeout", "1s")
                output = vegeta("few-files", never, *options, preexec=lambda: limit_files(40))

    assert "file descriptors or ports" in audit(output)["network-resources"]


# --- rates


@needs_reference
@pytest.mark.parametrize("tool", ["httperf", "hey", "oha"])
def test_a_rate_that_was_not_reached_is_reported(tool: str, audit: Audit) -> None:
    with reference("--hold", "10ms", "--servers", "1") as url:
        match tool:
            case "httperf":
                args = httperf_args(url, "--rate=300", "--num-conns=600")
                output = output_of(tool, "too-fast", args)
            case "hey":
                output = output_of(tool, "too-fast", ["-z", "2s", "-c", "5", "-q", "60", url])
            case _:
                args = ["-z", "2s", "-c", "5", "-q", "300", *OHA, url]
                output = output_of(tool, "too-fast", args)

    findings = audit(output, *options_for(tool, 5, "" if tool == "httperf" else "300"))
    assert "of the requested 300/s was achieved" in findings["rate-not-reached"]


@needs_reference
def test_vegeta_without_enough_workers_is_a_saturated_client(audit: Audit) -> None:
    with reference(*HOLD) as url:
        args = ("-rate", "200", "-duration", "2s", "-workers", "1", "-max-workers", "1")
        output = vegeta("one-worker", url, *args)
    findings = audit(output, "--rate", "200")
    assert "vegeta sent fewer requests than requested" in findings["saturated-client"]


@needs_reference
def test_httperf_that_was_paused_is_a_saturated_client(audit: Audit) -> None:
    def pause(process: subprocess.Popen[bytes]) -> None:
        time.sleep(0.7)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        process.send_signal(signal.SIGCONT)

    with reference("--hold", "5ms") as url:
        args = httperf_args(url, "--rate=400", "--num-conns=1200")
        output = output_of("httperf", "stopped", args, meanwhile=pause)
    assert "fell behind its schedule" in audit(output)["saturated-client"]


# --- times


@pytest.mark.parametrize("tool", ["wrk", "hey", "oha", "vegeta"])
def test_delayed_acknowledgements_are_reported(tool: str, audit: Audit) -> None:
    with CountingServer(TwoWrites) as server:
        if tool == "vegeta":
            args = ("-rate", "50", "-duration", "3s", "-workers", "4", "-max-workers", "4")
            output = vegeta("nagle", server.url, *args)
        else:
            output = closed_loop(tool, "nagle", server.url, 4, 3)
    assert "delayed ACK" in audit(output, *options_for(tool, 4))["nagle-delay"]


@needs_reference
@pytest.mark.parametrize("tool", ALL)
def test_a_hold_of_43_ms_is_not_reported_as_delayed_acknowledgements(
    tool: str, audit: Audit
) -> None:
    with reference("--hold", "43ms") as url:
        match tool:
            case "ab":
                output = output_of(tool, "slow", ["-c", "30", "-n", "1500", url])
            case "httperf":
                args = httperf_args(url, "--rate=400", "--num-conns=1000")
                output = output_of(tool, "slow", args)
            case "vegeta":
                output = vegeta("slow", url, "-rate", "500", "-duration", "3s")
            case _:
                output = closed_loop(tool, "slow", url, 30, 3)

    assert "nagle-delay" not in audit(output, *options_for(tool, 30))


@needs_reference
@pytest.mark.parametrize("tool", ["ab", "httperf", "hey"])
def test_coarse_resolution_is_reported(tool: str, audit: Audit) -> None:
    with reference() as url:
        match tool:
            case "ab":
                output = output_of(tool, "fast", ["-c", "1", "-n", "1500", url])
            case "httperf":
                args = httperf_args(url, "--rate=100", "--num-conns=200")
                output = output_of(tool, "fast", args)
            case _:
                output = output_of(tool, "fast", ["-n", "1500", "-c", "1", url])

    step = "100 µs" if tool == "hey" else "1.00 ms"
    assert f"{tool} reports times in steps of {step}" in audit(output)["coarse-resolution"]


@needs_reference
@pytest.mark.parametrize("tool", ["wrk", "ab", "hey", "oha", "vegeta"])
def test_quantiles_of_too_few_requests_are_reported(tool: str, audit: Audit) -> None:
    with reference(*HOLD) as url:
        match tool:
            case "ab":
                output = output_of(tool, "few", ["-c", "5", "-n", "200", url])
            case "hey":
                output = output_of(tool, "few", ["-c", "5", "-n", "200", url])
            case "oha":
                output = output_of(tool, "few", ["-c", "5", "-n", "200", *OHA, url])
            case "vegeta":
                output = vegeta("few", url, "-rate", "100", "-duration", "2s")
            case _:
                output = closed_loop(tool, "few", url, 4, 1)

    findings = audit(output)
    assert "beyond p99 (at least 10)" in findings["too-few-requests"]

    if tool != "wrk":
        assert "200 requests × 0.01 = 2 beyond p99" in findings["too-few-requests"]


@needs_reference
@pytest.mark.parametrize("tool", ALL)
def test_errors_counted_as_responses_are_reported(tool: str, audit: Audit) -> None:
    with reference("--hold", "5ms", "--fault", "503@every:5") as url:
        match tool:
            case "ab":
                output = output_of(tool, "errors", ["-l", "-c", "5", "-n", "500", url])
            case "httperf":
                args = httperf_args(url, "--rate=200", "--num-conns=500")
                output = output_of(tool, "errors", args)
            case "vegeta":
                output = vegeta("errors", url, "-rate", "250", "-duration", "2s")
            case "hey" | "oha":
                args = ["-n", "500", "-c", "5", *(OHA if tool == "oha" else ()), url]
                output = output_of(tool, "errors", args)
            case _:
                output = closed_loop(tool, "errors", url, 5, 1)
    findings = audit(output)["errors-as-responses"]
    if tool == "wrk":
        assert float(findings.split("requests = ")[1].split(" %")[0]) == pytest.approx(20, abs=0.5)
    else:
        assert "100 failed (100 error status) / 500 requests = 20.0 %" in findings


@needs_reference
@pytest.mark.parametrize("tool", ["httperf", "hey", "oha"])
def test_failures_excluded_from_the_times_are_reported(tool: str, audit: Audit) -> None:
    with reference("--hold", "5ms", "--fault", "reset@every:10") as url:
        match tool:
            case "httperf":
                args = httperf_args(url, "--rate=200", "--num-conns=500")
                output = output_of(tool, "resets", args)
            case _:
                # With keep-alive, the clients would retry requests on broken connections.
                off = "-disable-keepalive" if tool == "hey" else "--disable-keepalive"
                args = ["-n", "500", "-c", "5", off, *(OHA if tool == "oha" else ()), url]
                output = output_of(tool, "resets", args)

    findings = audit(output)["failures-left-out"]
    assert "50 failed" in findings
    assert "500 requests = 10.0 %" in findings


@needs_reference
@pytest.mark.parametrize("tool", ["ab", "hey", "oha"])
def test_stalls_hidden_by_a_closed_loop_are_reported(tool: str, audit: Audit) -> None:
    with reference("--hold", "2ms", "--stall", "400ms/2s") as url:
        if tool == "ab":
            output = output_of(tool, "stalls", ["-c", "1", "-n", "1500", url])
        else:
            output = closed_loop(tool, "stalls", url, 1, 5)

    findings = audit(output, *options_for(tool, 1))["closed-loop-stalls"]
    assert "hides stalls of up to 4" in findings

    share = float(findings.split("stalls take up to ")[1].split(" %")[0])
    assert 5 < share < 30, "expected between one stall of 400 ms and one every 2 s"


# --- several results


@needs_reference
def test_constant_throughput_is_reported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with reference("--hold", "8ms", "--servers", "2") as url:
        for connections in (4, 8, 16):
            output = closed_loop("wrk", f"flat-{connections}", url, connections, 2)
            (tmp_path / f"wrk-{connections}.txt").write_text(output)

    assert run(["audit", str(tmp_path)]) == 98
    out = capsys.readouterr().out
    assert "flat-throughput: throughput stays the same from 4 to 16 connections" in out
    assert out.count("flat-throughput") == 1


@needs_reference
def test_growing_throughput_is_not_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with reference("--hold", "10ms") as url:
        for connections in (2, 4, 8):
            output = closed_loop("wrk", f"grows-{connections}", url, connections, 1)
            (tmp_path / f"wrk-{connections}.txt").write_text(output)

    run(["audit", str(tmp_path)])
    assert "flat-throughput" not in capsys.readouterr().out


@needs_reference
def test_an_empty_file_is_named_and_is_no_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with reference(*HOLD) as url:
        (tmp_path / "wrk-1.txt").write_text(closed_loop("wrk", "healthy", url, 10, 3))
    url = f"http://127.0.0.1:{unused_port()}/"
    (tmp_path / "wrk-2.txt").write_text(closed_loop("wrk", "no-server", url, 10, 1))

    assert run(["audit", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert "wrk-2.txt: empty, so not a result; repeat the run" in output.err
    assert "no findings in 1 result" in output.out


# --- stored output

# Options for facts that the output of the tool does not contain.
OPTIONS = {
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
    "wrk-one-each": {"littles-law", "no-keepalive", "too-few-requests"},
    "wrk-ports": {"failed-connections", "too-few-requests"},
    "wrk-refused": {"failures-left-out", "littles-law"},
    "wrk-slow": set(),
    "wrk-starved": {"littles-law"},
}


@pytest.mark.parametrize("name", [path.stem for path in sorted(STORED.glob("*-*.txt"))])
def test_stored_output_has_exactly_these_findings(name: str, audit: Audit) -> None:
    """Stored output makes this test independent of the load on this host."""
    output = (STORED / f"{name}.txt").read_text()
    assert set(audit(output, *OPTIONS.get(name, []))) == EXPECTED[name]
