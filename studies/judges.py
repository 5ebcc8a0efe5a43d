"""Judges of claims about servers: each function makes a judge for one kind of claim. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from studies.judgement import (
    HARDLY_ANY,
    MORE_RUNS,
    SERVED,
    ClaimJudgement,
    Judge,
    about_one,
    above,
    absent,
    all_above,
    higher_load,
    lowest,
    needs_runs,
)
from studies.runs import (
    Estimate,
    Results,
    Runs,
    as_count,
    as_hundredths,
    as_tenths,
    cores,
    failed_share,
    goodput,
    max_ms,
    mean_ms,
    mean_of,
    median_of,
    memory_mb,
    ratio_of,
    share_of,
)
from wsgiload.statistics.effect import MIN_RUNS

# One core, plus the overshoot of a sampled peak.
ONE_CORE = 1.1

# --- throughput


def ahead(first: str, rivals: tuple[str, ...], *, app: str | None = None) -> Judge:
    """It has a higher throughput than each of its rivals at the highest load."""

    def judge(results: Results) -> ClaimJudgement:
        load = results.highest((first, *rivals), app)
        if load is None:
            return absent(results, (first, *rivals), app)
        leader_runs = results.runs(first, load, app)
        ratios = {
            name: ratio_of(leader_runs, results.runs(name, load, app), goodput) for name in rivals
        }
        nearest = min(ratios, key=lambda name: lowest(ratios[name]))
        ours = f"{ratios[nearest].text} the throughput of {nearest} {results.at(load)}"

        found = all_above(ours, list(ratios.values()), 1.0)
        if found.status != "undecided":
            return found
        pairs = {(first, name): ratio for name, ratio in ratios.items()}
        return _undecided(ours, results, load, pairs, 1.0, app)

    return judge


def _slowest(runs: Runs) -> str:
    known = [ms for cell in runs.values() if (ms := max_ms(cell)) is not None]
    return f"{as_count(max(known))} ms" if known else "unknown"


def quickest_at_worst(first: str, rival: str, *, app: str) -> Judge:
    """Its slowest request is faster than that of its rival at the highest load."""

    def judge(results: Results) -> ClaimJudgement:
        load = results.highest((first, rival), app)
        if load is None:
            return absent(results, (first, rival), app)
        runs, other = results.runs(first, load, app), results.runs(rival, load, app)
        ratio = ratio_of(other, runs, max_ms)
        ours = (
            f"slowest request of all runs: {_slowest(runs)}, of {rival} {_slowest(other)}; in a "
            f"run, the latter is {ratio.text} the former {results.at(load)}"
        )
        return above(ours, ratio.bounds, 1.0)

    return judge


def as_fast(first: str, second: str, *, within: float) -> Judge:
    """Their throughputs differ by less than this share at the highest load."""

    def judge(results: Results) -> ClaimJudgement:
        load = results.highest((first, second))
        if load is None:
            return absent(results, (first, second))
        ratio = ratio_of(results.runs(first, load), results.runs(second, load), goodput)
        ours = f"{ratio.text} the throughput of {second} {results.at(load)}"
        return about_one(ours, ratio.bounds, within)

    return judge


def in_order(servers: tuple[str, ...]) -> Judge:
    """Each has at least the throughput of the next at the highest load."""

    def judge(results: Results) -> ClaimJudgement:
        load = results.highest(servers)
        if load is None:
            return absent(results, servers)
        runs = {name: results.runs(name, load) for name in servers}
        middles = {name: median_of(runs[name], goodput) or 0.0 for name in servers}
        ranked = sorted(servers, key=lambda name: -middles[name])
        ratios = {
            pair: ratio_of(runs[pair[0]], runs[pair[1]], goodput) for pair in pairwise(servers)
        }
        one, other = min(ratios, key=lambda pair: ratios[pair].middle)
        rates = ", ".join(f"{name} {as_count(middles[name])}/s" for name in ranked)
        ours = (
            f"{results.at(load)}: {rates}; "
            f"{one} has {ratios[one, other].text} the throughput of {other}"
        )

        bounds = [ratio.bounds for ratio in ratios.values() if ratio.bounds is not None]
        if any(high < SERVED for _, high in bounds):
            return ClaimJudgement("refuted", ours)
        # A server that serves every request is not slower than another that does.
        if len(bounds) == len(ratios) and all(low > SERVED for low, _ in bounds):
            return ClaimJudgement("confirmed", ours)
        return _undecided(ours, results, load, ratios, SERVED)

    return judge


def erratic(server: str, peer: str) -> Judge:
    """Its throughput varies more from second to second than that of its peer at the highest
    load."""

    def judge(results: Results) -> ClaimJudgement:
        load = results.highest((server, peer))
        if load is None:
            return absent(results, (server, peer))
        runs = {name: results.runs(name, load) for name in (server, peer)}
        middles = {name: median_of(one, results.variation) for name, one in runs.items()}
        if None in middles.values():
            return ClaimJudgement("undecided", because="longer runs, such as --duration 10s")
        if not all(middles.values()):
            steady = " and ".join(name for name, one in middles.items() if not one)
            ours = f"{steady} had a constant throughput {results.at(load)}"
            return ClaimJudgement("undecided", ours, higher_load(results, load))
        ratio = ratio_of(runs[server], runs[peer], results.variation)
        ours = (
            f"standard deviation of the throughput: {ratio.text} that of {peer} {results.at(load)}"
        )
        return above(ours, ratio.bounds, 1.0)

    return judge


def saturates(server: str, *, load: float) -> Judge:
    """It cannot serve this rate."""

    def judge(results: Results) -> ClaimJudgement:
        runs = results.runs(server, load)
        served = share_of([(goodput(cell) or 0.0) / load for cell in runs.values()])
        if served is None:
            return ClaimJudgement("undecided", because=f"a valid run of {server} at {load:,g}/s")
        if served.bounds is None:
            return needs_runs(f"{as_count(served.middle * load)} of {load:,g} requests/s")
        low, high = served.bounds
        per_s = Estimate(served.middle * load, (low * load, high * load), as_count)
        ours = f"{per_s.text} of {load:,g} requests/s"
        if high < SERVED:
            return ClaimJudgement("confirmed", ours)
        return ClaimJudgement("refuted", ours) if low >= SERVED else needs_runs(ours)

    return judge


def slow_until_warm(cold: str, warm: str, peer: str) -> Judge:
    """After a warm-up, it has the throughput of its peer; without, it stays below the offered
    rate."""

    def judge(results: Results) -> ClaimJudgement:
        load = results.highest((cold, warm, peer))
        if load is None:
            return absent(results, (cold, warm, peer))
        runs = {name: results.runs(name, load) for name in (cold, warm, peer)}
        warms = ratio_of(runs[warm], runs[peer], goodput)
        colds = ratio_of(runs[cold], runs[warm], goodput)
        slowest_ms = max((max_ms(cell) or 0.0) for cell in runs[cold].values())
        ours = (
            f"{results.at(load)}: {cold} has {colds.text} the throughput of {warm}; {warm} has "
            f"{warms.text} the throughput of {peer}; slowest response of {cold}: "
            f"{as_count(slowest_ms)} ms"
        )
        pairs = {(warm, peer): warms, (cold, warm): colds}
        if warms.bounds is None or colds.bounds is None:
            return _undecided(ours, results, load, pairs, SERVED)
        is_refuted = warms.bounds[1] < SERVED or colds.bounds[0] > SERVED
        is_confirmed = warms.bounds[0] > SERVED and colds.bounds[1] < SERVED
        if is_refuted or is_confirmed:
            return ClaimJudgement("refuted" if is_refuted else "confirmed", ours)
        return _undecided(ours, results, load, pairs, SERVED)

    return judge


def _undecided(
    ours: str,
    results: Results,
    load: float,
    ratios: Mapping[tuple[str, str], Estimate],
    border: float,
    app: str | None = None,
) -> ClaimJudgement:
    """What is needed to decide these ratios of throughputs, each between two servers. If both
    servers serve the offered rate, only a higher load can show which one is faster."""
    undecided = {
        pair: ratio
        for pair, ratio in ratios.items()
        if ratio.bounds is None or ratio.bounds[0] <= border <= ratio.bounds[1]
    }
    has_too_few_runs = any(ratio.bounds is None for ratio in undecided.values())
    is_load_too_low = any(
        all(_serves(results, name, load, app) for name in pair) for pair in undecided
    )

    # More runs can confirm that equal throughputs exceed a border below 1.
    is_run_needed = has_too_few_runs or not is_load_too_low or border < 1
    needs = [MORE_RUNS] if is_run_needed else []
    if is_load_too_low:
        needs.append(higher_load(results, load))
    return ClaimJudgement("undecided", ours, ", and ".join(needs))


def _serves(results: Results, server: str, load: float, app: str | None) -> bool:
    """Whether the median throughput of a server reaches the offered rate. False in a closed
    loop."""
    served = median_of(results.runs(server, load, app), goodput)
    return results.is_open and served is not None and served >= SERVED * load


# --- failures


def fails(server: str, *, share: float, load: float) -> Judge:
    """At this load, at least half of the published share of requests fails."""

    def judge(results: Results) -> ClaimJudgement:
        highest = results.highest((server,))
        failed = None if highest is None else failed_share(results.runs(server, highest))
        if highest is None or failed is None:
            return absent(results, (server,))
        ours = f"{failed.text} errors {results.at(highest)}"
        if failed.bounds is None:
            return needs_runs(ours)
        low, high = failed.bounds
        if low >= share / 2:
            return ClaimJudgement("confirmed", ours)
        if highest < load:
            return ClaimJudgement("undecided", ours, f"{load:,g} connections (--scale full)")
        return ClaimJudgement("refuted", ours) if high < share / 2 else needs_runs(ours)

    return judge


def steady(server: str, *, max_ms: float, load: float) -> Judge:
    """Up to this load, its mean response time stays below ``max_ms`` and almost no request
    fails."""

    def judge(results: Results) -> ClaimJudgement:
        highest = results.highest((server,))
        if highest is None:
            return absent(results, (server,))
        runs = results.runs(server, highest)
        failed, mean = failed_share(runs), mean_of(runs, mean_ms, as_tenths)
        if failed is None or mean is None:
            return absent(results, (server,))
        ours = f"mean response time {mean.text} ms, {failed.text} errors {results.at(highest)}"
        if failed.bounds is None or mean.bounds is None:
            return needs_runs(ours)
        if mean.bounds[0] > max_ms or failed.bounds[0] > HARDLY_ANY:
            return ClaimJudgement("refuted", ours)
        if highest < load:
            return ClaimJudgement("undecided", ours, f"{load:,g} connections (--scale full)")
        holds = mean.bounds[1] < max_ms and failed.bounds[1] < HARDLY_ANY
        return ClaimJudgement("confirmed", ours) if holds else needs_runs(ours)

    return judge


# --- resources


def lightest(few: tuple[str, ...], all_of_them: tuple[str, ...]) -> Judge:
    """The heaviest of the few needs less memory than the lightest of the others at the highest
    load."""

    def judge(results: Results) -> ClaimJudgement:
        load = results.highest(all_of_them)
        if load is None:
            return absent(results, all_of_them)
        runs = {name: results.runs(name, load) for name in all_of_them}
        means = {name: mean_of(one, memory_mb, as_tenths) for name, one in runs.items()}
        peaks = {name: peak for name, peak in means.items() if peak is not None}
        if len(peaks) < len(all_of_them):
            return ClaimJudgement("undecided", because="memory samples of every server")
        others = [name for name in all_of_them if name not in few]
        light = min(others, key=lambda name: peaks[name].middle)
        listed = ", ".join(f"{name} {peaks[name].text} MB" for name in few)
        ours = f"{listed}; lowest of the other servers: {light}, {peaks[light].text} MB"
        ratios = [ratio_of(runs[more], runs[less], memory_mb) for more in others for less in few]
        return all_above(f"{ours} {results.at(load)}", ratios, 1.0)

    return judge


def one_core(few: tuple[str, ...], *, other_max: tuple[str, float]) -> Judge:
    """On several cores, these few servers never use more than one core, and another server never
    uses more cores than ``other_max`` (its name and this limit)."""

    def judge(results: Results) -> ClaimJudgement:
        name, max_used = other_max
        servers = (*few, name)
        load = results.highest(servers)
        if load is None:
            return absent(results, servers)
        runs = {one: results.runs(one, load) for one in servers}
        limits = [cell.limits.cpus for cell in runs[name].values() if cell.limits is not None]
        if any(limit is not None and limit < 2 for limit in limits):
            return ClaimJudgement(
                "not reproducible", because="the servers had fewer than two cores"
            )
        used = {one: mean_of(of_server, cores, as_hundredths) for one, of_server in runs.items()}
        peaks = {one: peak for one, peak in used.items() if peak is not None}
        if len(peaks) < len(servers):
            return ClaimJudgement("undecided", because="CPU samples of every server")
        words = ", ".join(f"{one} {peak.text}" for one, peak in peaks.items())
        ours = f"{words} cores {results.at(load)}"
        if min(map(len, runs.values())) < MIN_RUNS:
            return needs_runs(ours)
        max_cores = dict.fromkeys(few, ONE_CORE) | {name: max_used}
        bounds = {one: peak.bounds or (0.0, max_cores[one]) for one, peak in peaks.items()}
        if any(bounds[one][0] > max_cores[one] for one in servers):
            return ClaimJudgement("refuted", ours)
        holds = all(bounds[one][1] < max_cores[one] for one in servers)
        return ClaimJudgement("confirmed", ours) if holds else needs_runs(ours)

    return judge
