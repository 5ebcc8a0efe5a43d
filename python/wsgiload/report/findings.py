"""The text of the report: the verdict, the validity of the measurement, and a sentence per chart.
Pure.

Events at the same time "coincided"; a sweep has no interventions, so it cannot show causes. Servers
are described, not ranked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from wsgiload.analysis.ranking import SUSTAINED_GOODPUT, SUSTAINED_RATIO
from wsgiload.documents.cell_result import AppliedLimits
from wsgiload.documents.load_report import GeneratorUsage
from wsgiload.report import words
from wsgiload.report.cells import (
    Cell,
    Sweep,
    finite_median,
    median_of,
    median_upper_ns,
    quantile_ns,
)
from wsgiload.report.run_files import LoadDigest
from wsgiload.report.strip import Strip

NOTABLE_THROTTLING = 0.01
NOTABLE_GROWTH = 1.05
# Read back from the cgroup; not positive without a quota.
_CPU_QUOTA = "cpu_quota_us"


def sustained_meaning(sweep: Sweep) -> str:
    """The definition of "sustained"."""
    share = f"{SUSTAINED_RATIO * 100:g} % correct responses"
    excluded = "Invalid runs are excluded."
    if not sweep.open_loop:
        return f"A number of connections is sustained if every run has at least {share}. {excluded}"
    goodput = f"a goodput of at least {SUSTAINED_GOODPUT * 100:g} % of the offered rate"
    return f"A rate is sustained if every run has at least {share} and {goodput}. {excluded}"


def _ranges(sweep: Sweep, values: list[tuple[float, str]], subject: str) -> str:
    """A sentence with the range for each app, because servers of different apps are not
    compared."""
    by_app: dict[str | None, list[tuple[float, str]]] = {}
    for value, label in values:
        by_app.setdefault(sweep.app_of(label), []).append((value, label))
    if len(by_app) == 1:
        return _range(values, subject)
    return " ".join(_range(group, f"{subject} with {app}") for app, group in by_app.items())


def _range(values: list[tuple[float, str]], subject: str) -> str:
    if not values:
        return ""
    (least, lowest), (most, highest) = min(values), max(values)
    if len(values) == 1 or lowest == highest:
        return f"{subject} was {words.format_duration_ns(least)}."
    ends = (
        f"{words.format_duration_ns(least)} ({lowest}) to {words.format_duration_ns(most)} "
        f"({highest})"
    )
    return f"{subject} ranged from {ends}."


def all_sustained(cells: tuple[Cell, ...]) -> bool:
    """Whether every run that is not invalid sustained the load; False without such a run."""
    valid = [cell for cell in cells if cell.status != "invalid"]
    return bool(valid) and all(cell.sustained() for cell in valid)


def server_sentence(sweep: Sweep, label: str) -> str:
    """The highest load level that a server sustained, and the result at the first that it did not
    sustain."""
    sustained = 0
    while sustained < len(sweep.loads) and all_sustained(sweep.at(label, sweep.loads[sustained])):
        sustained += 1
    parts = []
    if sustained:
        load = sweep.loads[sustained - 1]
        cells = sweep.at(label, load)
        p99 = words.format_duration_ns(median_upper_ns(cells, 0.99))
        cores = median_of(cells, _mean_cores)
        used = f", {words.format_cores(cores)} CPU cores" if cores is not None else ""
        every = "every rate" if sweep.open_loop else "every number of connections"
        reach = f"{every}, up to " if sustained == len(sweep.loads) > 1 else ""
        parts.append(f"sustained {reach}{sweep.load_words(load)} (p99 {p99}{used})")
    if sustained < len(sweep.loads):
        load = sweep.loads[sustained]
        parts.append(f"at {sweep.load_words(load)}, {_shortfall(sweep.at(label, load))}")
    return "; ".join(parts) + "."


def _shortfall(cells: tuple[Cell, ...]) -> str:
    """The first run at this load level that did not sustain it, in words."""
    if not cells:
        return "not measured"
    behind = sorted(
        (cell for cell in cells if not cell.sustained()), key=lambda cell: cell.status == "invalid"
    )
    cell = behind[0]
    if cell.status == "failed":
        return cell.verdict_words()
    if cell.status == "invalid":
        return f"the trial was {cell.verdict_words()}"
    goodput = words.format_measured_per_s(cell.goodput_per_s)
    text = (
        f"{words.format_ratio(cell.ok_ratio)} of requests got a correct response "
        f"(goodput {goodput}), p99 {cell.quantile_words(0.99)}"
    )
    throttled = cell.used.throttled_period_ratio
    if throttled is not None and throttled > NOTABLE_THROTTLING:
        text += (
            f"; this coincided with CPU throttling in {words.format_ratio(throttled)} of the "
            "periods"
        )
    return text


def status_counts(sweep: Sweep) -> str:
    """ "20 valid, 2 warn, 1 invalid, 1 failed"."""
    statuses = [cell.status for cell in sweep.cells]
    counts = [
        f"{statuses.count(name)} {name}"
        for name in ("valid", "warn", "invalid", "failed")
        if name in statuses
    ]
    return f"{words.plural(len(sweep.cells), 'trial')}: {', '.join(counts)}"


def _mean_cores(cell: Cell) -> float | None:
    return cell.used.cpu_cores_mean


def _throttled(cell: Cell) -> float | None:
    return cell.used.throttled_period_ratio


def _goodput_per_s(cell: Cell) -> float | None:
    return cell.goodput_per_s


def generator_facts(sweep: Sweep, loads: Mapping[str, LoadDigest]) -> list[str]:
    """How the load generator performed."""
    clients = [load.client for load in loads.values() if load.client is not None]
    return [
        _worst_send_lag(sweep),
        _never_sent(sweep),
        *_worst_costs(clients),
        *_stalls(clients),
    ]


def _worst_send_lag(sweep: Sweep) -> str:
    lags = [
        (lag, cell)
        for cell in sweep.cells
        if (lag := quantile_ns(cell.result.send_lag_ns, 0.99)) is not None
    ]
    if not lags:
        return f"Send lag: {words.NOT_MEASURED}."
    lag, cell = max(lags, key=lambda entry: entry[0])
    where = f"{cell.label} at {sweep.load_words(cell.load)}"
    return f"Highest p99 send lag: {words.format_duration_ns(lag)} ({where})."


def _never_sent(sweep: Sweep) -> str:
    outcomes = [cell.outcomes for cell in sweep.cells if cell.outcomes is not None]
    dropped = sum(one.dropped for one in outcomes)
    errors = sum(one.client_error for one in outcomes)
    return (
        f"Scheduled but never sent: {words.plural(dropped, 'request')}. "
        f"Failed in the generator: {words.plural(errors, 'request')}."
    )


def _worst_costs(clients: Sequence[GeneratorUsage]) -> list[str]:
    """The generator's highest costs over all cells, as far as known."""
    facts = []
    wait_ns = _worst(clients, lambda client: client.run_queue_wait_ns)
    if wait_ns is not None:
        wait = words.format_duration_ns(wait_ns)
        facts.append(f"Generator run-queue wait: at most {wait} per trial.")

    busy = _worst(clients, lambda client: client.busy_share)
    if busy is not None:
        share = words.format_ratio(busy)
        facts.append(f"Generator CPU utilization: at most {share} (busiest thread).")

    cost_ns = _worst(clients, lambda client: client.cpu_per_request_ns)
    if cost_ns is not None:
        cost = words.format_duration_ns(cost_ns)
        facts.append(f"Generator CPU time per response: at most {cost}.")
    return facts


def _worst(
    clients: Sequence[GeneratorUsage], figure: Callable[[GeneratorUsage], float | None]
) -> float | None:
    known = [value for client in clients if (value := figure(client)) is not None]
    return max(known, default=None)


def _stalls(clients: Sequence[GeneratorUsage]) -> list[str]:
    if not clients:
        return []
    count = sum(client.stalls.count for client in clients)
    if not count:
        return ["The generator had no event-loop stalls."]
    stalls = words.plural(count, "event-loop stall")
    longest = words.format_duration_ns(max(client.stalls.longest_ns for client in clients))
    return [f"The generator had {stalls} across all trials, the longest {longest}."]


def limit_facts(sweep: Sweep) -> list[str]:
    """Which limits were enforced, and which requested ones were not."""
    applied = [cell.result.limits for cell in sweep.cells if cell.result.limits is not None]
    missing = sorted({name for limits in applied for name in limits.not_enforced})
    if not missing and not any(_has_limit(limits) for limits in applied):
        return ["No limits were set." if applied else "Limits: not measured."]

    backends = sorted({limits.backend for limits in applied})
    enforced = (
        f"Not enforced: {words.join_words(missing)}." if missing else "All limits were enforced."
    )
    return [f"Limit backend: {words.join_words(backends)}.", enforced]


def why_not_throttled(cells: Sequence[Cell]) -> str:
    """Why the share of throttled periods is unknown. Without a quota, the kernel counts no
    periods."""
    applied = [cell.result.limits for cell in cells if cell.result.limits is not None]
    is_unpinned = any(limits.server_cpus is None for limits in applied)
    if not applied or is_unpinned or any(_has_cpu_quota(limits) for limits in applied):
        return words.NOT_MEASURED
    if all(limits.cpus is None for limits in applied):
        return "no CPU quota (CPU time was not limited)"
    if any("cpus" in limits.not_enforced for limits in applied):
        return "no CPU quota (the CPU limit was not enforced)"

    where = {words.format_cpu_list(limits.server_cpus) for limits in applied}
    only = where.pop() if len(where) == 1 else None
    cpus = "whole CPUs" if only is None else f"CPU{'' if only.isdigit() else 's'} {only}"
    return f"no CPU quota (the CPU limit is enforced by pinning to {cpus})"


def _has_cpu_quota(limits: AppliedLimits) -> bool:
    quota_us = limits.read_back.get(_CPU_QUOTA)
    return isinstance(quota_us, int | float) and quota_us > 0


def _has_limit(limits: AppliedLimits) -> bool:
    """Whether anything was limited. Servers without limits have a cgroup, too."""
    return any(limit is not None for limit in (limits.cpus, limits.memory_bytes, limits.pids))


def response_time_caption(sweep: Sweep) -> str:
    """The caption of the response-time chart: the result at the highest load level."""
    if not sweep.loads:
        return "Nothing was measured."
    load = sweep.loads[-1]
    medians = [(median_upper_ns(sweep.at(label, load), 0.99), label) for label in sweep.labels]
    finite = [(value, label) for value, label in medians if value is not None]
    missing = [label for value, label in medians if value is None]
    unmeasured = [label for label in missing if not _any_usable(sweep.at(label, load))]
    text = _ranges(sweep, finite, f"At {sweep.load_words(load)}, p99 response time")
    absent = _absent(sweep, load, [label for label in missing if label not in unmeasured])
    return " ".join(
        part for part in (text, absent, _unmeasured(unmeasured), _growth(sweep)) if part
    )


def _absent(sweep: Sweep, load: float, labels: Sequence[str]) -> str:
    """Why p99 of these servers has no value: ``p99 unknown: a and b (too few requests).``"""
    by_reason: dict[str, list[str]] = {}
    for label in labels:
        by_reason.setdefault(why_absent(sweep.at(label, load), 0.99), []).append(label)
    parts = [f"{words.join_words(named)} ({reason})" for reason, named in by_reason.items()]
    return f"p99 unknown: {words.join_words(parts)}." if parts else ""


def why_absent(cells: Sequence[Cell], probability: float) -> str:
    """The most frequent reason why these runs have no such quantile."""
    usable = [cell for cell in cells if cell.usable]
    kinds = [one.kind for cell in usable if (one := cell.absence(probability)) is not None]
    if not kinds:
        return "the server failed in a run" if usable else "no valid result"
    return words.ABSENT[max(kinds, key=kinds.count)]


def _any_usable(cells: tuple[Cell, ...]) -> bool:
    return any(cell.usable for cell in cells)


def _unmeasured(labels: list[str]) -> str:
    return f"No valid result at this load: {words.join_words(labels)}." if labels else ""


def _growth(sweep: Sweep) -> str:
    first, last = sweep.loads[0], sweep.loads[-1]
    factors = []
    for label in sweep.labels:
        low, high = (median_upper_ns(sweep.at(label, load), 0.99) for load in (first, last))
        if low and high:
            factors.append((high / low, label))
    if not factors or first == last:
        return ""
    factor, label = max(factors)
    span = f"Between {sweep.load_words(first)} and {sweep.load_words(last)}, p99"
    alone = len(factors) == 1
    if factor < NOTABLE_GROWTH:
        return f"{span} did not increase" + (
            f" for {label}." if alone else " for any server measured at both."
        )
    most = f"{label} ({words.format_factor(factor)}×)"
    return f"{span} increased for {most}." if alone else f"{span} increased most for {most}."


RESPONSE_TIME_READING = (
    "Response times cover all scheduled requests and start at the scheduled send time. Dots are "
    "runs, lines connect the medians over runs, and bands span the runs' 95 % confidence "
    "intervals. Hollow markers are invalid trials, and ringed ones disturbed trials. Points in the "
    "shaded strip at the top have no finite value. A cross means that the server failed; any other "
    "marker means that too many requests failed or timed out. If only a lower bound of the "
    "quantile is known, a dotted line ends at this bound. A number beside a point in the strip is "
    "the number of runs that it "
    "represents."
)


GOODPUT_READING = "Goodput counts only correct responses (expected status and body)."


def goodput_caption(sweep: Sweep) -> str:
    """Which servers sustained the highest load level, and the highest goodput of the others."""
    if not sweep.loads:
        return "Nothing was measured."
    load = sweep.loads[-1]
    sustaining = [label for label in sweep.labels if all_sustained(sweep.at(label, load))]
    text = f"{len(sustaining)} of {len(sweep.labels)} servers sustained {sweep.load_words(load)}."
    unmeasured = [label for label in sweep.labels if not _any_usable(sweep.at(label, load))]
    peaks = []
    for label in (label for label in sweep.labels if label not in unmeasured):
        medians = [median_of(sweep.at(label, other), _goodput_per_s) for other in sweep.loads]
        known = [value for value in medians if value is not None]
        if label not in sustaining and known:
            peaks.append((max(known), label))
    if peaks:
        most = ", ".join(
            f"{label} {words.format_measured_per_s(peak)}" for peak, label in sorted(peaks)
        )
        text += f" Highest goodput of the other servers: {most}."
    return f"{text} {_unmeasured(unmeasured)}".strip()


RESOURCE_READING = (
    "CPU and memory are read from the server's cgroup. CPU periods throttled: the share of periods "
    "in which the CPU limit stopped the server. Memory is what the server cannot give back; page "
    "cache is not part of it."
)


def resource_caption(sweep: Sweep) -> str:
    """CPU and memory use at the highest load level, and throttling that coincided with it."""
    if not sweep.loads:
        return "Nothing was measured."
    used = _cores_used(sweep)
    if used is None:
        return f"CPU and memory: {words.NOT_MEASURED}."
    return " ".join(part for part in (used, _throttled_servers(sweep), _oom_kills(sweep)) if part)


def _cores_used(sweep: Sweep) -> str | None:
    load = sweep.loads[-1]
    cores_of = {
        label: value
        for label in sweep.labels
        if (value := median_of(sweep.at(label, load), _mean_cores)) is not None
    }
    cores = cores_of.values()
    if not cores:
        return None

    of_limit = f" of {sweep.cpu_limit:g}" if sweep.cpu_limit is not None else ""
    unit = "CPU core" if sweep.cpu_limit == 1 else "CPU cores"
    least, most = f"{min(cores):.2f}", f"{max(cores):.2f}"
    used = f"between {least} and {most}" if least != most else least
    who = "the servers" if len(cores) > 1 else next(iter(cores_of))
    each = " each" if len(cores) > 1 and least == most else ""
    return f"At {sweep.load_words(load)}, {who} used {used}{of_limit} {unit}{each}."


def _throttled_servers(sweep: Sweep) -> str:
    throttled = []
    for label in sweep.labels:
        ratio = median_of(sweep.at(label, sweep.loads[-1]), _throttled)
        if ratio is not None and ratio > NOTABLE_THROTTLING:
            throttled.append(f"{label} ({words.format_ratio(ratio)} of periods)")
    if not throttled:
        return ""
    return f"This load coincided with CPU throttling for {words.join_words(throttled)}."


def _oom_kills(sweep: Sweep) -> str:
    kills = sum(cell.used.oom_kills or 0 for cell in sweep.cells)
    if not kills:
        return ""
    return f"{kills} processes were OOM-killed." if kills > 1 else "1 process was OOM-killed."


def spectrum_caption(sweep: Sweep, loads: Sequence[float]) -> str:
    """The servers with the longest and shortest tail relative to the median, at the highest load
    level for which it is known."""
    for load in reversed(loads):
        ratios = []
        for label in sweep.labels:
            middle, tail = (
                median_upper_ns(sweep.at(label, load), quantile) for quantile in (0.5, 0.99)
            )
            if middle and tail:
                ratios.append((tail / middle, label))
        if ratios:
            (least, shortest), (most, longest) = min(ratios), max(ratios)
            text = f"At {sweep.load_words(load)}, p99 was {words.format_factor(most)}× p50"
            text += f" for {longest}"
            return text + (
                f" and {words.format_factor(least)}× for {shortest}."
                if longest != shortest
                else "."
            )
    return f"The ratio of p99 to p50 is unknown ({why_absent(sweep.cells, 0.99)})."


SPECTRUM_READING = (
    "Medians over runs; the quantiles cover all scheduled requests. A line ends where fewer than "
    "ten requests lie beyond the quantile, or where the quantile has no finite value."
)


def strip_caption(strip: Strip) -> str:
    """The slowest interval of the cell, and how much throttling coincided with it."""
    known = [(value, index) for index, value in enumerate(strip.p99_ns) if value is not None]
    if not known:
        return "This trial has no correct response."
    slowest, index = max(known)
    middle = finite_median([float(value) for value, _ in known]) or 0.0
    time = strip.middles_s[index]
    text = (
        f"p99 per interval: median {words.format_duration_ns(middle)}, maximum "
        f"{words.format_duration_ns(slowest)} (at t = {time:.1f} s)."
    )
    return f"{text} {_throttling_around(strip, index)}"


def _throttling_around(strip: Strip, place: int) -> str:
    near = [
        sample.throttled_ratio
        for sample in strip.busy_around(place)
        if sample.throttled_ratio is not None
    ]
    overall = [
        sample.throttled_ratio for sample in strip.busy if sample.throttled_ratio is not None
    ]
    if not near or not overall:
        return f"CPU throttling: {why_not_throttled([strip.cell])}."
    share, usual = math.fsum(near) / len(near), math.fsum(overall) / len(overall)
    return (
        f"CPU periods throttled: {words.format_ratio(share)} at that time, "
        f"{words.format_ratio(usual)} in the whole measurement."
    )
