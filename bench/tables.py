"""Markdown tables from the raw results. Pure; a figure that is missing is a dash, and its reason
stands below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bench import pairs
from bench.pairs import (
    Record,
    Spread,
    arrival,
    clock_late_us,
    error_us,
    own_lag_us,
    paired_ratio,
    server_late_us,
    spread,
)

DASH = "–"
_MIB = 1024 * 1024
_FEWEST_CALLS = 0.005
_HOST_HEADER = ("clock late p99 / p99.9", "server late p99 / p99.9")


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
    """A figure, or the median of a spread."""
    value = value.median if isinstance(value, Spread) else value
    return DASH if value is None else f"{value:,.{digits}f}"


def ranged(value: Spread | None, digits: int = 2) -> str:
    """The median with the least and the greatest."""
    if value is None:
        return DASH
    return f"{value.median:,.{digits}f} [{value.least:,.{digits}f}–{value.most:,.{digits}f}]"


def groups(runs: Sequence[Record], *keys: str) -> dict[tuple[Any, ...], list[Record]]:
    """Runs that agree in all keys, in the order in which they were first seen."""
    found: dict[tuple[Any, ...], list[Record]] = {}
    for run in runs:
        found.setdefault(tuple(run[key] for key in keys), []).append(run)
    return found


def _of(runs: Sequence[Record], section: str) -> list[Record]:
    return [run for run in runs if run["section"] == section]


def _label(run: Record) -> str:
    return f"{run['generator']}, spin {run['spin']}" if run["spin"] else str(run["generator"])


def _labelled(runs: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for run in runs:
        found.setdefault(_label(run), []).append(run)
    return found


def _median(runs: Sequence[Record], figure: Callable[[Record], float | None]) -> Spread | None:
    return spread(figure(run) for run in runs)


def _head(results: Mapping[str, Any], runs: Sequence[Record]) -> str:
    host, versions = results["host"], results["versions"]
    facts = [
        f"- {host['cpu_model']}, {host['cores']} "
        f"cores{', virtual' if host['hypervisor'] else ''}, {host['memory']}",
        f"- {host['os']}, Linux {host['kernel']}, TCP congestion control "
        f"{host['tcp_congestion_control']}, "
        f"CPU governor {host['cpu_governor'] or 'unknown'}, clock {host['clocksource']}",
        f"- Scheduling: {results['priority']}; "
        f"{'idle cores kept awake; ' if results.get('awake') else ''}load average at the start "
        f"{host['load_average']}; "
        f"{_stolen(runs)}{_made_again(results['runs'])}",
        f"- Client on core {results['client_core']}, server on core {results['server_core']}",
        "- Versions: "
        + ", ".join(f"{name} {version or 'unknown'}" for name, version in versions.items()),
        *(f"- Skipped: {reason}" for reason in results["left_out"]),
    ]
    if results["quick"]:
        facts.append("- **A smoke test, not for publication.**")
    return f"# Benchmark of {results['date']}\n\n" + "\n".join(facts)


def _stolen(runs: Sequence[Record]) -> str:
    stolen = spread(run.get("steal_share") for run in runs)
    if stolen is None:
        return "steal time unknown"
    return f"steal time {stolen.median:.1%} (median run), {stolen.most:.1%} (worst run)"


def _made_again(runs: Sequence[Record]) -> str:
    superseded = sum(bool(run.get("superseded")) for run in runs)
    return f"; {superseded} runs with more steal time were repeated" if superseded else ""


def _closed(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    parts = [
        "## Closed loop\n\nCPU time of the client per request, one thread; ratios are "
        "within rounds."
    ]
    header = ("", "CPU µs", "user", "system", "to wrk", "loadgen / other", "requests/s")
    for (server, connections), group in groups(runs, "server", "connections").items():
        named = _labelled(group)
        ours, wrk = named.get("loadgen", []), named.get("wrk", [])
        rows = [
            (
                name,
                number(_median(own, pairs.cpu_us)),
                number(_median(own, pairs.user_us)),
                number(_median(own, pairs.system_us)),
                ranged(paired_ratio(own, wrk, pairs.cpu_us)),
                ranged(paired_ratio(ours, own, pairs.cpu_us)),
                number(_median(own, pairs.requests_per_s), 0),
            )
            for name, own in named.items()
        ]
        title = (
            f"### {server}: {connections} connection{'s' if connections > 1 else ''}, "
            f"{_sizes(group)}"
        )
        parts.append(f"{title}\n\n{table(header, rows)}")
    return parts


def _syscalls(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    parts = [
        "## System calls per request\n\nOne run each under `strace -c -f`, 64 connections, "
        "including startup."
    ]
    for (server,), group in groups(runs, "server").items():
        rows = [
            (_label(run), number(pairs.calls_per_request(run)), _most_called(run)) for run in group
        ]
        parts.append(f"### {server}\n\n{table(('', 'calls', 'of which'), rows)}")
    return parts


def _most_called(run: Record) -> str:
    calls, requests = run.get("calls"), run.get("requests")
    if not calls or not requests:
        return DASH
    ordered = sorted(calls.items(), key=lambda item: -item[1])
    return ", ".join(
        f"{name} {count / requests:.2f}"
        for name, count in ordered
        if count / requests >= _FEWEST_CALLS
    )


def _memory(runs: Sequence[Record]) -> list[str]:
    parts = []
    closed = [run for run in runs if run["rate_per_s"] is None]
    if closed:
        parts.append(
            "## Memory\n\nPeak resident memory of the client, closed loop, "
            f"nginx.\n\n{_held(closed)}"
        )
    paced = [run for run in runs if run["rate_per_s"] is not None]
    if paced:
        first = paced[0]
        text = (
            f"### Open loop at {first['rate_per_s']:,}/s, each response delayed so long that "
            "most connections are busy"
        )
        header = (
            "",
            "peak MiB",
            "MiB after a third",
            "MiB at the end",
            "connections",
            "responses",
            "failed",
        )
        parts.append(f"{text}\n\n{table(header, [_driven(run) for run in paced])}")
    return parts


def _held(runs: Sequence[Record]) -> str:
    sizes = [run["connections"] for run in runs]
    few, many = min(sizes), max(sizes)
    header = (
        "",
        f"{few} connections, MiB",
        f"{many:,} connections, MiB",
        "KiB per connection",
        "peak open",
    )
    rows = []
    for name, own in _labelled(runs).items():
        peaks = {run["connections"]: run.get("peak_rss_bytes") for run in own}
        opened = {run["connections"]: run.get("most_connections") for run in own}
        low, high = peaks.get(few), peaks.get(many)
        each = (high - low) / (many - few) / 1024 if low and high and many > few else None
        rows.append(
            (name, _mebibytes(low), _mebibytes(high), number(each), number(opened.get(many), 0))
        )
    return table(header, rows)


def _driven(run: Record) -> tuple[str, ...]:
    samples = run.get("memory") or []
    third = samples[len(samples) // 3]["rss_bytes"] if samples else None
    # The last samples can be of a program that gives its memory back.
    end = samples[-2]["rss_bytes"] if len(samples) > 1 else None
    peak = _mebibytes(run.get("peak_rss_bytes"))
    counts = (number(run.get(name), 0) for name in ("most_connections", "requests", "failed"))
    return (_label(run), peak, _mebibytes(third), _mebibytes(end), *counts)


def _mebibytes(count: float | None) -> str:
    return DASH if count is None else f"{count / _MIB:,.1f}"


def _open(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    text = (
        "## Open loop: arrivals at the server\n\n"
        f"{_whose_arrivals(runs)} "
        "64 connections, medians over rounds, µs. *Gap error*: difference between an inter-arrival "
        "time and 1/rate. "
        "*Late*: delay of an arrival relative to an evenly spaced schedule. *Send lag*: as "
        "reported by the generator. "
        "*Clock late*: lateness of a loop that only reads the clock, on the client's core, "
        "directly after the run. "
        "*Server late*: lateness of the server's responses."
    )
    parts = [text]
    for (rate, arrivals), group in groups(runs, "rate_per_s", "arrivals").items():
        make = _even if arrivals == "constant" else _random
        parts.append(f"### {rate:,}/s, {arrivals}, {_sizes(group)}\n\n{make(group)}")
    return parts


def _whose_arrivals(runs: Sequence[Record]) -> str:
    """Whose timestamps arrivals have, and so which lateness the generator does not cause."""
    logs = [run["server_log"] for run in runs if run.get("server_log")]
    read = sum(1 for log in logs if not log.get("stamped_by_kernel"))
    if logs and not read:
        return (
            "Arrivals are the kernel's timestamps at the server; lateness up to *clock late* is "
            "not caused by the generator."
        )
    others = f" in {read} of {len(logs)} runs, otherwise the kernel's timestamp"
    return (
        f"An arrival is the time at which the server read the request"
        f"{'' if read == len(logs) else others}; lateness up to *clock late* and *server late* is "
        "not caused by the generator."
    )


def _even(runs: Sequence[Record]) -> str:
    header = (
        "",
        "gap error p50 / p99 / p99.9",
        "late p50 / p99 / p99.9",
        "send lag p50 / p99 / p99.9",
    )
    rows = []
    named = _labelled(runs)
    for name, own in named.items():
        gaps = _quantiles(
            own, arrival, ("gap_error_p50_us", "gap_error_p99_us", "gap_error_p99_9_us")
        )
        late = _quantiles(own, arrival, ("late_p50_us", "late_p99_us", "late_p99_9_us"))
        rows.append((name, gaps, late, _own_lag(own), *_pace_and_cost(own, named)))
    return table((*header, *_pace_and_cost_header(named)), rows)


def _random(runs: Sequence[Record]) -> str:
    named = _labelled(runs)
    rows = []
    for name, own in named.items():
        distance = number(_median(own, lambda run: arrival(run, "ks_distance")), 4)
        dispersion = number(_median(own, lambda run: arrival(run, "dispersion")))
        rows.append((name, distance, dispersion, _own_lag(own), *_pace_and_cost(own, named)))
    header = (
        "",
        "distance of the gaps from the exponential distribution",
        "dispersion",
        "send lag p50 / p99 / p99.9",
    )
    return table((*header, *_pace_and_cost_header(named)), rows)


def _pace_and_cost_header(named: Mapping[str, Sequence[Record]]) -> tuple[str, ...]:
    return (
        *_HOST_HEADER,
        "arrivals/s",
        "CPU µs per request",
        *(f"to {one}" for one in _anchors(named)),
    )


def _pace_and_cost(own: Sequence[Record], named: Mapping[str, Sequence[Record]]) -> tuple[str, ...]:
    pace = number(_median(own, lambda run: arrival(run, "rate_per_s")), 0)
    ratios = [
        ranged(paired_ratio(own, named.get(anchor, []), pairs.cpu_us)) for anchor in _anchors(named)
    ]
    return *_host_late(own), pace, number(_median(own, pairs.cpu_us), 1), *ratios


def _anchors(named: Mapping[str, Sequence[Record]]) -> list[str]:
    """Whose cost precision is weighed against: oha's, and that of a generator that waits by
    millisecond timers."""
    return ["oha", *(["wrk2"] if "wrk2" in named else [])]


def _host_late(runs: Sequence[Record]) -> tuple[str, str]:
    """What is late without any generator's doing."""
    clock = _quantiles(runs, clock_late_us, ("0.99", "0.999"))
    return clock, _quantiles(runs, server_late_us, ("server_late_p99_us", "server_late_p99_9_us"))


def _own_lag(runs: Sequence[Record]) -> str:
    return _quantiles(runs, own_lag_us, ("0.5", "0.99", "0.999"))


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
        "Reported quantile minus the quantile in the server's log, µs; medians over rounds with "
        "their range. "
        "The difference includes the time in the kernel's network stack, which the log does not."
    )
    parts = [text]
    header = (
        "",
        "error p50",
        "error p99",
        "p50 error / oha's",
        "p99 error / oha's",
        *_HOST_HEADER,
        "requests",
    )
    for (rate, server), group in groups(runs, "rate_per_s", "server").items():
        named = _labelled(group)
        rows = []
        for name, own in named.items():
            errors = [ranged(_median(own, _error(share)), 0) for share in ("0.5", "0.99")]
            ratios = [
                ranged(paired_ratio(own, named.get("oha", []), _error(share)))
                for share in ("0.5", "0.99")
            ]
            rows.append(
                (
                    name,
                    *errors,
                    *ratios,
                    *_host_late(own),
                    number(_median(own, lambda run: run.get("requests")), 0),
                )
            )
        parts.append(
            f"### {rate:,}/s, constant, {_sizes(group)}, {server}\n\n{table(header, rows)}"
        )
    return parts


def _error(share: str) -> Callable[[Record], float | None]:
    return lambda run: error_us(run, share)


def _sampler(runs: Sequence[Record]) -> list[str]:
    if not runs:
        return []
    text = (
        f"## Sampling a server under load, {_sizes(runs)}\n\n"
        "The whole sampling process, on the client's core; parsing happens after the load. "
        "The client's p50 is "
        "compared within rounds."
    )
    header = (
        "sampled every",
        "% of a core",
        "late p50, µs",
        "client p50, µs",
        "p50 / p50 without sampling",
    )
    of_interval = {
        interval_ms: group for (interval_ms,), group in groups(runs, "interval_ms").items()
    }
    without = of_interval.get(0, [])
    rows = []
    for interval_ms in sorted(of_interval, key=lambda value: value or float("inf"), reverse=True):
        own = of_interval[interval_ms]
        ratio = paired_ratio(own, without, lambda run: run["p50_us"]) if interval_ms else None
        rows.append(
            (
                f"{interval_ms} ms" if interval_ms else "not at all",
                ranged(_median(own, _scaled("core_share", 100)), 3),
                ranged(_median(own, _scaled("late_p50_ns", 1e-3)), 0),
                ranged(_median(own, lambda run: run["p50_us"]), 1),
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
                f"{run['section']}, {_label(run)}, {run['server']}, {run['connections']} "
                f"connections: {run['failure']}"
            )
            seen[line] = seen.get(line, 0) + 1
    if not seen:
        return ""
    return "## Runs without a result\n\n" + "\n".join(
        f"- {line} (×{count})" for line, count in seen.items()
    )
