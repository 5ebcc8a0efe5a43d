"""Parsers for the output of each generator. Pure: text in, ``Output`` out; ``OutputError`` if the
text contains no number of requests."""

from __future__ import annotations

import json
import re
from typing import Any

from bench.load import Output, OutputError

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_QUANTILES = {"50": "0.5", "99": "0.99"}


def parse_loadgen(text: str) -> Output:
    """The JSON report of ``loadgen``."""
    report = _json("loadgen", text)
    outcomes = report["outcomes"]
    lag = report.get("send_lag_ns", {}).get("quantiles", {})
    remarks = {
        "verdict": report.get("verdict", {}).get("status"),
        "checks": [reason.get("check") for reason in report.get("verdict", {}).get("reasons", [])],
        "send_lag_us": {name: value / 1e3 for name, value in lag.items() if value is not None},
        "scheduled": outcomes.get("scheduled"),
        "unfinished": outcomes.get("unfinished"),
        "peak_connections": report.get("connections", {}).get("peak"),
        "spin": report.get("client", {}).get("spin"),
    }
    quantiles = report["response_time_ns"]["quantiles"]
    return Output(
        requests=outcomes["ok"],
        failed=outcomes["scheduled"] - outcomes["ok"] - outcomes.get("unfinished", 0),
        elapsed_s=report["measured_ns"] / 1e9,
        quantiles_us={
            name: quantiles[name] / 1e3
            for name in ("0.5", "0.99")
            if quantiles.get(name) is not None
        },
        remarks={name: value for name, value in remarks.items() if value is not None},
    )


def parse_floor(text: str) -> Output:
    """``floor``, which stops at the first response that differs from the others."""
    report = _json("floor", text)
    return Output(report["requests"], 0, report["elapsed_s"])


def parse_wrk(text: str) -> Output:
    """``wrk --latency`` and ``wrk2``, which have the same format."""
    done = _search("wrk", r"(\d+) requests in ([\d.]+)(us|ms|s|m),", text)
    errors = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text
    )
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    failed = sum(int(count) for count in errors.groups()) if errors else 0
    rows = re.findall(r"^\s*(50|99)(?:\.0+)?%\s+([\d.]+)(us|ms|s|m)\s*$", text, re.MULTILINE)
    quantiles = {
        _QUANTILES[percent]: float(value) * _SECONDS[unit] * 1e6 for percent, value, unit in rows
    }
    bad = int(refused[1]) if refused else 0
    return Output(int(done[1]) - bad, failed + bad, float(done[2]) * _SECONDS[done[3]], quantiles)


def parse_h2load(text: str) -> Output:
    """``h2load``; it prints no quantiles."""
    finished = _search("h2load", r"finished in ([\d.]+)(us|ms|s|m),", text)
    counts = _search("h2load", r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", text)
    # Failures include errors, and errors include timeouts.
    return Output(int(counts[1]), int(counts[2]), float(finished[1]) * _SECONDS[finished[2]])


def parse_ab(text: str) -> Output:
    """``ab``, without its quantiles: whole milliseconds are too coarse for a comparison."""
    complete = int(_search("ab", r"Complete requests:\s+(\d+)", text)[1])
    failed = int(_search("ab", r"Failed requests:\s+(\d+)", text)[1])
    elapsed = _search("ab", r"Time taken for tests:\s+([\d.]+) seconds", text)
    return Output(complete - failed, failed, float(elapsed[1]))


def parse_oha(text: str) -> Output:
    """``oha --output-format json``. Requests aborted at the end of the load are not failures."""
    report = _json("oha", text)
    statuses: dict[str, int] = report["statusCodeDistribution"]
    good = sum(count for status, count in statuses.items() if status.startswith("2"))
    errors: dict[str, int] = report.get("errorDistribution", {})
    broken = sum(count for cause, count in errors.items() if "deadline" not in cause)
    percentiles = report["latencyPercentiles"]
    quantiles = {"0.5": percentiles["p50"], "0.99": percentiles["p99"]}
    return Output(
        requests=good,
        failed=sum(statuses.values()) - good + broken,
        elapsed_s=report["summary"]["total"],
        quantiles_us={name: value * 1e6 for name, value in quantiles.items() if value is not None},
    )


def parse_hey(text: str) -> Output:
    """``hey``; its quantiles have a resolution of 100 µs."""
    statuses = re.findall(r"^\s*\[(\d+)\]\s+(\d+) responses", text, re.MULTILINE)
    total = _search("hey", r"Total:\s+([\d.]+) secs", text)
    good = sum(int(count) for status, count in statuses if status.startswith("2"))
    errors = text.partition("Error distribution:")[2]
    broken = sum(int(count) for count in re.findall(r"^\s*\[(\d+)\]", errors, re.MULTILINE))
    failed = sum(int(count) for _, count in statuses) - good + broken
    rows = re.findall(r"^\s*(50|99)%+ in ([\d.]+) secs", text, re.MULTILINE)
    return Output(
        good,
        failed,
        float(total[1]),
        {_QUANTILES[percent]: float(value) * 1e6 for percent, value in rows},
    )


def parse_fortio(text: str) -> Output:
    """``fortio load -json -``."""
    report = _json("fortio", text)
    codes: dict[str, int] = report["RetCodes"]
    good = sum(count for code, count in codes.items() if code.startswith("2"))
    percentiles = report["DurationHistogram"].get("Percentiles") or []
    quantiles = {f"{entry['Percentile']:g}": entry["Value"] * 1e6 for entry in percentiles}
    return Output(
        requests=good,
        failed=sum(codes.values()) - good,
        elapsed_s=report["ActualDuration"] / 1e9,
        quantiles_us={
            ours: quantiles[theirs] for theirs, ours in _QUANTILES.items() if theirs in quantiles
        },
    )


def parse_vegeta(text: str) -> Output:
    """``vegeta report -type json``; the elapsed time includes the wait for the last responses."""
    report = _json("vegeta", text)
    codes: dict[str, int] = report["status_codes"]
    good = sum(count for code, count in codes.items() if code.startswith("2"))
    latencies = report["latencies"]
    return Output(
        requests=good,
        failed=report["requests"] - good,
        elapsed_s=(report["duration"] + report["wait"]) / 1e9,
        quantiles_us={"0.5": latencies["50th"] / 1e3, "0.99": latencies["99th"] / 1e3},
    )


def parse_zrk(text: str) -> Output:
    """``zrk --format json``."""
    report = _json("zrk", text)
    good = report["status_codes"]["2xx"]
    latency_us = report["latency_us"]
    return Output(
        requests=good,
        failed=report["requests"] - good,
        elapsed_s=report["duration_s"],
        quantiles_us={"0.5": latency_us["p50"], "0.99": latency_us["p99"]},
        remarks={"max_schedule_lag_us": report.get("max_schedule_lag_us")},
    )


def parse_strace(text: str) -> dict[str, int]:
    """Calls by name, from the table of ``strace -c``."""
    calls: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        # % time, seconds, usecs/call, calls, [errors,] name
        if (
            len(words) in (5, 6)
            and words[3].isdigit()
            and words[-1] != "total"
            and not words[-1].startswith("-")
        ):
            calls[words[-1]] = int(words[3])
    if not calls:
        raise OutputError("strace printed no table of system calls")
    return calls


def _json(name: str, text: str) -> dict[str, Any]:
    try:
        report = json.loads(text)
    except ValueError:
        raise OutputError(f"{name} did not print JSON: {_shortened(text)}") from None
    if not isinstance(report, dict):
        raise OutputError(f"{name} did not print a JSON object: {_shortened(text)}")
    return report


def _search(name: str, pattern: str, text: str) -> re.Match[str]:
    match = re.search(pattern, text)
    if match is None:
        raise OutputError(f"{name} did not print a number of requests: {_shortened(text)}")
    return match


def _shortened(text: str) -> str:
    return " ".join(text.split())[:200] or "no output"
