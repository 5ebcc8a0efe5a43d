"""Markdown tables from the raw results. Pure. A missing figure is a dash; the page ends with the
reasons."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench import pairs
from bench.pairs import (
    Record,
    Spread,
    arrival,
    clock_late_us,
    error_us,
    paired_ratio,
    send_lag_us,
    server_late_us,
    spread,
)

DASH = "–"
_MIB = 1024 * 1024
_MIN_CALLS_PER_REQUEST = 0.005
_HOST_HEADER = ("clock lateness p99 / p99.9", "server lateness p99 / p99.9")
_TIMES = re.compile(r"(\d)(ns|us|ms|s)\b")


def render(results: Mapping[str, Any]) -> str:
    """The whole page."""
    runs = [run for run in results["runs"] if not run.get("superseded")]
    parts = [
        _head(results, runs),
        *_closed(_of(runs, "closed")),
        *_syscalls(_of(runs, "syscalls")),
        *_memory(_of(runs, "memory")),
        *_open(_of(runs, "open")),
        *_accuracy(_of(runs, "accuracy")),
        *_sampler(_of(runs, "sampler")),
        _failures(runs),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """One table; the first column is a name, the others are figures."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: Spread | float | None, digits: int = 2) -> str:
    """A figure, or the median of a spread, with three significant digits if it is below 1,000."""
    value = value.median if isinstance(value, Spread) else value
    return DASH if value is None else f"{value:,.{_decimals(value, digits)}f}"


def ranged(value: Spread | None, digits: int = 2) -> str:
    """The median and the range."""
    if value is None:
        return DASH
    return (
        f"{number(value.median, digits)} [{number(value.low, digits)}–{number(value.high, digits)}]"
    )


def _decimals(value: float, max_digits: int) -> int:
    whole = len(f"{abs(value):.0f}")
    return max_digits if abs(value) < 1 else max(min(max_digits, 3 - whole), 0)


def groups(runs: Sequence[Record], *keys: str) -> dict[tuple[Any, ...], list[Record]]:
    """The runs, grouped by these keys, in the order of their first occurrence."""
    grouped: dict[tuple[Any, ...], list[Record]] = {}
    for run in runs:
        grouped.setdefault(tuple(run[key] for key in keys), []).append(run)
    return grouped


def _of(runs: Sequence[Record], section: str) -> list[Record]:
    return [run for run in runs if run["section"] == section]


def _label(run: Record) -> str:
    if not run["spin"]:
        return readable_generator(run["generator"])
    window = "no spin window" if run["spin"] == "0s" else f"spin window {_times(run['spin'])}"
    return f"{run['generator']}, {window}"


def readable_generator(name: str) -> str:
    """The name of a generator in the tables; the program `floor` is the syscall baseline."""
    return "syscall baseline" if name == "floor" else name


def readable_commit(versions: Mapping[str, str | None]) -> str:
    """The commit under test; old results have a shorter note about uncommitted changes."""
    commit = versions.get("wsgiload commit") or "unknown"
    return commit.replace(" with changes", " with uncommitted changes")


def _commit(versions: Mapping[str, str | None]) -> dict[str, str]:
    name = "wsgiload commit"
    return {name: readable_commit(versions)} if name in versions else {}


def _times(text: str) -> str:
    """The text with a space before each unit of time, and with µs."""
    return _TIMES.sub(r"\1 \2", text).replace(" us", " µs")


def _labelled(runs: Sequence[Record]) -> dict[str, list[Record]]:
    labelled: dict[str, list[Record]] = {}
    for run in runs:
        labelled.setdefault(_label(run), []).append(run)
    return labelled


def _median(runs: Sequence[Record], figure: Callable[[Record], float | None]) -> Spread | None:
    return spread(figure(run) for run in runs)


def _head(results: Mapping[str, Any], runs: Sequence[Record]) -> str:
    host, versions = results["host"], results["versions"]
    facts = [
        f"- {host['cpu_model']}, {host['cores']} {'virtual ' if host['hypervisor'] else ''}cores, "
        f"{_memory_size(host['memory'])}",
        f"- {host['os']}, Linux {host['kernel']}, TCP congestion control "
        f"{host['tcp_congestion_control']}, "
        f"CPU governor {host['cpu_governor'] or 'unknown'}, clock source {host['clocksource']}",
        f"- Scheduling: {_scheduling(results['priority'])}; "
        f"{'idle cores kept awake; ' if results.get('awake') else ''}load average at the start: "
        f"{host['load_average']}; "
        f"{_steal_time(runs)}{_repeated(results['runs'])}",
        f"- Client on core {results['client_core']}, server on core {results['server_core']}",
        "- Versions: "
        + ", ".join(
            f"{readable_generator(name)} {version or 'unknown'}"
            for name, version in {**versions, **_commit(versions)}.items()
        ),
        *(f"- Skipped: {reason}" for reason in results["left_out"]),
    ]
    if results["quick"]:
        facts.append("- **A smoke test, not for publication.**")
    return f"# Benchmark of {results['date']}\n\n" + "\n".join(facts)


def _memory_size(text: str | None) -> str:
    """``24684084 kB`` of /proc/meminfo in GiB."""
    count = re.fullmatch(r"(\d+) kB", text or "")
    return f"{int(count[1]) / _MIB:.1f} GiB of memory" if count else "memory unknown"


def _scheduling(priority: str) -> str:
    """The stored words, with the kernel's names for the policies."""
    return priority.replace("real-time (SCHED_RR)", "SCHED_RR").replace("ordinary", "SCHED_OTHER")


def _steal_time(runs: Sequence[Record]) -> str:
    steal = spread(run.get("steal_share") for run in runs)
    if steal is None:
        return "steal time unknown"
    return (
        f"steal time {steal.median * 100:.1f} % (median run), {steal.high * 100:.1f} % (worst run)"
    )


def _repeated(runs: Sequence[Record]) -> str:
    superseded = sum(bool(run.get("superseded")) for run in runs)
    if not superseded:
        return ""
    return f"; {superseded} run{'s' if superseded > 1 else ''} with more steal time repeated"


def _closed(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    parts = [
        "## Closed loop\n\nCPU time of the client per request, with one client thread. Ratios are "
        "calculated within rounds."
    ]
    header = (
        "",
        "CPU time, µs",
        "user, µs",
        "system, µs",
        "relative to wrk",
        "loadgen / this generator",
        "requests/s",
    )
    for (server, connections), group in groups(runs, "server", "connections").items():
        named = _labelled(group)
        ours, wrk = named.get("loadgen", []), named.get("wrk", [])
        rows = [
            (
                name,
                number(_median(records, pairs.cpu_us)),
                number(_median(records, pairs.user_us)),
                number(_median(records, pairs.system_us)),
                ranged(paired_ratio(records, wrk, pairs.cpu_us)),
                ranged(paired_ratio(ours, records, pairs.cpu_us)),
                number(_median(records, pairs.requests_per_s), 0),
            )
            for name, records in named.items()
        ]
        title = (
            f"### {server}: {connections:,} connection{'s' if connections > 1 else ''}, "
            f"{_sizes(group)}"
        )
        parts.append(f"{title}\n\n{table(header, rows)}")
    return parts


def _syscalls(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    parts = [
        "## System calls per request\n\nOne run per generator under `strace -c -f`, with 64 "
        "connections; startup is included."
    ]
    for (server,), group in groups(runs, "server").items():
        rows = [
            (_label(run), number(pairs.calls_per_request(run)), _most_called(run)) for run in group
        ]
        parts.append(f"### {server}\n\n{table(('', 'system calls', 'by name'), rows)}")
    return parts


def _most_called(run: Record) -> str:
    calls, requests = run.get("calls"), run.get("requests")
    if not calls or not requests:
        return DASH
    ordered = sorted(calls.items(), key=lambda item: -item[1])
    return ", ".join(
        f"{name} {count / requests:.2f}"
        for name, count in ordered
        if count / requests >= _MIN_CALLS_PER_REQUEST
    )


def _memory(runs: Sequence[Record]) -> list[str]:
    parts = []
    closed = [run for run in runs if run["rate_per_s"] is None]
    if closed:
        parts.append(
            "## Memory\n\nPeak resident memory of the client in a closed loop against "
            f"nginx.\n\n{_by_connections(closed)}"
        )
    paced = [run for run in runs if run["rate_per_s"] is not None]
    if paced:
        first = paced[0]
        text = (
            f"### Open loop at {first['rate_per_s']:,}/s, with delayed responses that keep most "
            "connections busy"
        )
        header = (
            "",
            "peak, MiB",
            "after a third of the run, MiB",
            "at the end, MiB",
            "peak connections",
            "responses",
            "failed requests",
        )
        parts.append(f"{text}\n\n{table(header, [_driven(run) for run in paced])}")
    return parts


def _by_connections(runs: Sequence[Record]) -> str:
    sizes = [run["connections"] for run in runs]
    few, many = min(sizes), max(sizes)
    header = (
        "",
        f"{few} connections, MiB",
        f"{many:,} connections, MiB",
        "KiB per connection",
        "peak connections",
    )
    rows = []
    for name, records in _labelled(runs).items():
        peaks = {run["connections"]: run.get("peak_rss_bytes") for run in records}
        opened = {run["connections"]: run.get("most_connections") for run in records}
        low, high = peaks.get(few), peaks.get(many)
        each = (high - low) / (many - few) / 1024 if low and high and many > few else None
        rows.append(
            (name, _mebibytes(low), _mebibytes(high), number(each), number(opened.get(many), 0))
        )
    return table(header, rows)


def _driven(run: Record) -> tuple[str, ...]:
    samples = run.get("memory") or []
    third = samples[len(samples) // 3]["rss_bytes"] if samples else None
    # The last sample can be from a program that is freeing its memory.
    end = samples[-2]["rss_bytes"] if len(samples) > 1 else None
    peak = _mebibytes(run.get("peak_rss_bytes"))
    counts = (number(run.get(name), 0) for name in ("most_connections", "requests", "failed"))
    return (_label(run), peak, _mebibytes(third), _mebibytes(end), *counts)


def _mebibytes(count: float | None) -> str:
    return number(None if count is None else count / _MIB, 1)


def _open(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    text = (
        "## Open loop: arrivals at the server\n\n"
        f"{_timestamp_source(runs)} "
        "Times are in µs, as medians over rounds, with 64 connections. "
        "*Inter-arrival error*: difference between an inter-arrival time and 1/rate. "
        "*Lateness*: delay of an arrival relative to an evenly spaced schedule. *Send lag*: as "
        "reported by the generator. "
        "*Clock lateness*: lateness of a loop that only reads the clock, on the client's core, "
        "directly after the run. "
        "*Server lateness*: lateness of the server's responses."
    )
    parts = [text]
    for (rate, arrivals), group in groups(runs, "rate_per_s", "arrivals").items():
        make = _constant if arrivals == "constant" else _poisson
        title = (
            f"### {rate:,}/s, {arrivals.replace('poisson', 'Poisson')} arrivals, {_sizes(group)}"
        )
        parts.append(f"{title}\n\n{make(group)}")
    return parts


def _timestamp_source(runs: Sequence[Record]) -> str:
    """The source of the timestamps, and the lateness that the generator does not cause."""
    logs = [run["server_log"] for run in runs if run.get("server_log")]
    read = sum(1 for log in logs if not log.get("stamped_by_kernel"))
    if logs and not read:
        return (
            "Arrivals are the kernel's timestamps at the server. Lateness up to *clock lateness* "
            "is not caused by the generator."
        )
    others = f" in {read} of {len(logs)} runs, otherwise the kernel's timestamp"
    return (
        f"An arrival is the time at which the server read the request"
        f"{'' if read == len(logs) else others}. Lateness up to *clock lateness* or *server "
        "lateness* is not caused by the generator."
    )


def _constant(runs: Sequence[Record]) -> str:
    header = (
        "",
        "inter-arrival error p50 / p99 / p99.9",
        "lateness p50 / p99 / p99.9",
        "send lag p50 / p99 / p99.9",
    )
    rows = []
    named = _labelled(runs)
    for name, records in named.items():
        gaps = _quantiles(
            records, arrival, ("gap_error_p50_us", "gap_error_p99_us", "gap_error_p99_9_us")
        )
        late = _quantiles(records, arrival, ("late_p50_us", "late_p99_us", "late_p99_9_us"))
        rows.append((name, gaps, late, _send_lag(records), *_rate_and_cost(records, named)))
    return table((*header, *_rate_and_cost_header(named)), rows)


def _poisson(runs: Sequence[Record]) -> str:
    named = _labelled(runs)
    rows = []
    for name, records in named.items():
        distance = number(_median(records, lambda run: arrival(run, "ks_distance")), 4)
        dispersion = number(_median(records, lambda run: arrival(run, "dispersion")))
        rows.append(
            (name, distance, dispersion, _send_lag(records), *_rate_and_cost(records, named))
        )
    header = (
        "",
        "distance from the exponential distribution",
        "dispersion",
        "send lag p50 / p99 / p99.9",
    )
    return table((*header, *_rate_and_cost_header(named)), rows)


def _rate_and_cost_header(named: Mapping[str, Sequence[Record]]) -> tuple[str, ...]:
    return (
        *_HOST_HEADER,
        "arrivals/s",
        "CPU time per request, µs",
        *(f"relative to {one}" for one in _anchors(named)),
    )


def _rate_and_cost(
    records: Sequence[Record], named: Mapping[str, Sequence[Record]]
) -> tuple[str, ...]:
    rate = number(_median(records, lambda run: arrival(run, "rate_per_s")), 0)
    ratios = [
        ranged(paired_ratio(records, named.get(anchor, []), pairs.cpu_us))
        for anchor in _anchors(named)
    ]
    return *_host_late(records), rate, number(_median(records, pairs.cpu_us), 1), *ratios


def _anchors(named: Mapping[str, Sequence[Record]]) -> list[str]:
    """The generators whose CPU time is the reference: oha, and wrk2 with its millisecond timers."""
    return ["oha", *(["wrk2"] if "wrk2" in named else [])]


def _host_late(runs: Sequence[Record]) -> tuple[str, str]:
    """Lateness that no generator causes."""
    clock = _quantiles(runs, clock_late_us, ("0.99", "0.999"))
    return clock, _quantiles(runs, server_late_us, ("server_late_p99_us", "server_late_p99_9_us"))


def _send_lag(runs: Sequence[Record]) -> str:
    return _quantiles(runs, send_lag_us, ("0.5", "0.99", "0.999"))


def _quantiles(
    runs: Sequence[Record], figure: Callable[[Record, str], float | None], names: Sequence[str]
) -> str:
    medians = [spread(figure(run, name) for run in runs) for name in names]
    return DASH if not any(medians) else " / ".join(number(median, 1) for median in medians)


def _accuracy(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    text = (
        "## Accuracy against a server that delays each response by 2 ms\n\n"
        "*Error*: reported quantile minus the quantile in the server's log, in µs, as median and "
        "range over rounds. "
        "The error includes the time in the kernel's network stack, which the log does not contain."
    )
    parts = [text]
    header = (
        "",
        "error of p50",
        "error of p99",
        "error of p50 relative to oha",
        "error of p99 relative to oha",
        *_HOST_HEADER,
        "requests",
    )
    for (rate, server), group in groups(runs, "rate_per_s", "server").items():
        named = _labelled(group)
        rows = []
        for name, records in named.items():
            errors = [ranged(_median(records, _error(share)), 0) for share in ("0.5", "0.99")]
            ratios = [
                ranged(paired_ratio(records, named.get("oha", []), _error(share)))
                for share in ("0.5", "0.99")
            ]
            rows.append(
                (
                    name,
                    *errors,
                    *ratios,
                    *_host_late(records),
                    number(_median(records, lambda run: run.get("requests")), 0),
                )
            )
        parts.append(
            f"### {rate:,}/s, constant arrivals, {_sizes(group)}, {_times(server)}\n\n"
            f"{table(header, rows)}"
        )
    return parts


def _error(share: str) -> Callable[[Record], float | None]:
    return lambda run: error_us(run, share)


def _sampler(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    text = (
        f"## Sampling a server under load, {_sizes(runs)}\n\n"
        "The sampling process runs on the client's core. Its CPU time excludes parsing, which "
        "happens after the load. The client's p50 is compared within rounds."
    )
    header = (
        "sampling interval",
        "CPU time, % of a core",
        "lateness of samples at p50, µs",
        "client's p50, µs",
        "relative to p50 without sampling",
    )
    of_interval = {
        interval_ms: group for (interval_ms,), group in groups(runs, "interval_ms").items()
    }
    without = of_interval.get(0, [])
    rows = []
    for interval_ms in sorted(of_interval, key=lambda value: value or float("inf"), reverse=True):
        records = of_interval[interval_ms]
        ratio = paired_ratio(records, without, lambda run: run["p50_us"]) if interval_ms else None
        rows.append(
            (
                f"{interval_ms} ms" if interval_ms else "no sampling",
                ranged(_median(records, _scaled("core_share", 100)), 3),
                ranged(_median(records, _scaled("late_p50_ns", 1e-3)), 0),
                ranged(_median(records, lambda run: run["p50_us"]), 1),
                ranged(ratio),
            )
        )
    return [f"{text}\n\n{table(header, rows)}"]


def _scaled(name: str, factor: float) -> Callable[[Record], float | None]:
    return lambda run: None if run[name] is None else float(run[name] * factor)


def _sizes(runs: Sequence[Record]) -> str:
    rounds = len({run["round"] for run in runs})
    return f"{rounds} round{'s' if rounds > 1 else ''} of {min(run['seconds'] for run in runs)} s"


def _failures(runs: Sequence[Record]) -> str:
    seen: dict[str, int] = {}
    for run in runs:
        if "failure" in run:
            line = (
                f"{run['section']}, {_label(run)}, {run['server']}, {run['connections']:,} "
                f"connections: {run['failure']}"
            )
            seen[line] = seen.get(line, 0) + 1
    if not seen:
        return ""
    return "## Runs without a result\n\n" + "\n".join(
        f"- {line} (×{count})" for line, count in seen.items()
    )
