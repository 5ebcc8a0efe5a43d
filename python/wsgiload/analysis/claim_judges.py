"""How results decide a claim: each function makes a judge for one kind of claim. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from wsgiload.analysis.claim_results import (
    Results,
    cores,
    failed_share,
    goodput,
    mean_ms,
    median_of,
    memory_mb,
    most_ms,
    ratio_of,
    span,
)
from wsgiload.statistics.effect import FEWEST_RUNS

Status: TypeAlias = Literal["confirmed", "refuted", "not reproducible", "undecided"]

# An offered rate counts as served from this share of it on.
SERVED = 0.99
# Almost no errors.
HARDLY_ANY = 0.01
MORE_RUNS = "more runs, such as --runs 6"


@dataclass(frozen=True, slots=True)
class Judgement:
    """``ours`` is our figure in words, with its interval; ``because`` says why there is none, or
    what would decide."""

    status: Status
    ours: str | None = None
    because: str | None = None


Judge: TypeAlias = Callable[[Results], Judgement]


# --- claims that no result decides


def not_reproducible(why: str) -> Judge:
    """What it is about is gone."""
    return lambda results: Judgement("not reproducible", because=why)


def undecided(needs: str) -> Judge:
    """No experiment file asks this."""
    return lambda results: Judgement("undecided", because=needs)


def _needs_runs(ours: str) -> Judgement:
    """Neither, so far."""
    return Judgement("undecided", ours, MORE_RUNS)


def _absent(results: Results, servers: Sequence[str], app: str | None = None) -> Judgement:
    """Servers have no valid run in common."""
    gone = results.missing(servers, app)
    what = (
        f"a valid run of {', '.join(gone)}" if gone else f"a load that {', '.join(servers)} share"
    )
    return Judgement("undecided", because=what)


# --- throughput


def ahead(first: str, rivals: tuple[str, ...], *, app: str | None = None) -> Judge:
    """It has a higher throughput than each of its rivals, at the highest load."""

    def judge(results: Results) -> Judgement:
        load = results.highest((first, *rivals), app)
        if load is None:
            return _absent(results, (first, *rivals), app)
        own = results.runs(first, load, app)
        ratios = {name: ratio_of(own, results.runs(name, load, app), goodput) for name in rivals}
        nearest = min(ratios, key=lambda name: ratios[name].middle)
        ratio = ratios[nearest]
        ours = f"{ratio.text} the throughput of {nearest} {results.at(load)}"
        return _of_bounds(ours, ratio.bounds, 1.0)

    return judge


def as_fast(first: str, second: str, *, within: float) -> Judge:
    """Their throughputs differ by less than this share, at the highest load."""

    def judge(results: Results) -> Judgement:
        load = results.highest((first, second))
        if load is None:
            return _absent(results, (first, second))
        ratio = ratio_of(results.runs(first, load), results.runs(second, load), goodput)
        ours = f"{ratio.text} the throughput of {second} {results.at(load)}"
        if ratio.bounds is None:
            return _needs_runs(ours)
        low, high = ratio.bounds
        if 1 - within < low and high < 1 / (1 - within):
            return Judgement("confirmed", ours)
        is_other = high < 1 - within or low > 1 / (1 - within)
        return Judgement("refuted", ours) if is_other else _needs_runs(ours)

    return judge


def in_order(servers: tuple[str, ...]) -> Judge:
    """Each has at least the throughput of the next, at the highest load."""

    def judge(results: Results) -> Judgement:
        load = results.highest(servers)
        if load is None:
            return _absent(results, servers)
        runs = {name: results.runs(name, load) for name in servers}
        middles = {name: median_of(runs[name], goodput) or 0.0 for name in servers}
        ranked = sorted(servers, key=lambda name: -middles[name])
        ours = f"{', '.join(f'{name} {middles[name]:.0f}/s' for name in ranked)} {results.at(load)}"

        ratios = [ratio_of(runs[one], runs[other], goodput) for one, other in pairwise(servers)]
        bounds = [ratio.bounds for ratio in ratios if ratio.bounds is not None]
        if any(high < 1 for _, high in bounds):
            return Judgement("refuted", ours)
        # A server that serves every request is not slower than another that does.
        if len(bounds) == len(ratios) and all(low > SERVED for low, _ in bounds):
            return Judgement("confirmed", ours)
        return Judgement("undecided", ours, f"{MORE_RUNS}, and a load above all capacities")

    return judge


def erratic(server: str, peer: str) -> Judge:
    """Its throughput varies more from second to second than that of its peer, at the highest
    load."""

    def judge(results: Results) -> Judgement:
        load = results.highest((server, peer))
        if load is None:
            return _absent(results, (server, peer))
        runs = {name: results.runs(name, load) for name in (server, peer)}
        middles = {name: median_of(one, results.unsteadiness) for name, one in runs.items()}
        if None in middles.values():
            return Judgement("undecided", because="longer runs, such as --duration 10s")
        ratio = ratio_of(runs[server], runs[peer], results.unsteadiness)
        ours = f"{ratio.text} the standard deviation of {peer} {results.at(load)}"
        return _of_bounds(ours, ratio.bounds, 1.0)

    return judge


def saturates(server: str, *, load: float) -> Judge:
    """It cannot serve this rate."""

    def judge(results: Results) -> Judgement:
        runs = results.runs(server, load)
        if not runs:
            return Judgement("undecided", because=f"a valid run of {server} at {load:g}/s")
        shares = [(goodput(cell) or 0.0) / load for cell in runs.values()]
        ours = f"{span([share * load for share in shares])} of {load:g} requests/s"
        if len(runs) < FEWEST_RUNS:
            return _needs_runs(ours)
        if max(shares) < SERVED:
            return Judgement("confirmed", ours)
        return Judgement("refuted", ours) if min(shares) >= SERVED else _needs_runs(ours)

    return judge


def slow_until_warm(cold: str, warm: str, peer: str) -> Judge:
    """Warm it has the throughput of its peer, cold it has less than was offered."""

    def judge(results: Results) -> Judgement:
        load = results.highest((cold, warm, peer))
        if load is None:
            return _absent(results, (cold, warm, peer))
        runs = {name: results.runs(name, load) for name in (cold, warm, peer)}
        served = {name: (median_of(one, goodput) or 0.0) / load for name, one in runs.items()}
        slowest_ms = max((most_ms(cell) or 0.0) for cell in runs[cold].values())
        ours = (
            f"cold {served[cold]:.1%} of {load:g}/s, at most {slowest_ms:.0f} ms; "
            f"warm {served[warm]:.1%}, {peer} {served[peer]:.1%}"
        )
        if min(map(len, runs.values())) < FEWEST_RUNS:
            return _needs_runs(ours)
        warms = ratio_of(runs[warm], runs[peer], goodput).bounds
        colds = ratio_of(runs[cold], runs[warm], goodput).bounds
        if warms is None or colds is None:
            return _needs_runs(ours)
        is_refuted = warms[1] < SERVED or colds[0] > SERVED
        is_confirmed = warms[0] > SERVED and colds[1] < SERVED
        if is_refuted or is_confirmed:
            return Judgement("refuted" if is_refuted else "confirmed", ours)
        return _needs_runs(ours)

    return judge


# --- failures


def fails(server: str, *, share: float, load: float) -> Judge:
    """At this load, at least half of the published share of its requests fails."""

    def judge(results: Results) -> Judgement:
        highest = results.highest((server,))
        found = None if highest is None else failed_share(results.runs(server, highest))
        if highest is None or found is None:
            return _absent(results, (server,))
        ours = f"{found.text} errors {results.at(highest)}"
        if found.bounds is None:
            return _needs_runs(ours)
        low, high = found.bounds
        if low >= share / 2:
            return Judgement("confirmed", ours)
        if highest < load:
            return Judgement("undecided", ours, f"{load:g} connections (--scale full)")
        return Judgement("refuted", ours) if high < share / 2 else _needs_runs(ours)

    return judge


def steady(server: str, *, most_ms: float, load: float) -> Judge:
    """Up to this load, its mean response time stays below this and hardly a request fails."""

    def judge(results: Results) -> Judgement:
        highest = results.highest((server,))
        if highest is None:
            return _absent(results, (server,))
        runs = results.runs(server, highest)
        failed, means = failed_share(runs), [mean_ms(cell) for cell in runs.values()]
        known = [mean for mean in means if mean is not None]
        if failed is None or not known:
            return _absent(results, (server,))
        ours = f"{span(known)} ms on average, {failed.text} errors {results.at(highest)}"
        if failed.bounds is None or len(known) < FEWEST_RUNS:
            return _needs_runs(ours)
        if min(known) > most_ms or failed.bounds[0] > HARDLY_ANY:
            return Judgement("refuted", ours)
        if highest < load:
            return Judgement("undecided", ours, f"{load:g} connections (--scale full)")
        holds = max(known) < most_ms and failed.bounds[1] < HARDLY_ANY
        return Judgement("confirmed", ours) if holds else _needs_runs(ours)

    return judge


# --- resources


def lightest(few: tuple[str, ...], all_of_them: tuple[str, ...]) -> Judge:
    """They need less memory than all others, at the highest load, in every run."""

    def judge(results: Results) -> Judgement:
        load = results.highest(all_of_them)
        if load is None:
            return _absent(results, all_of_them)
        peaks = {
            name: [memory_mb(cell) for cell in results.runs(name, load).values()]
            for name in all_of_them
        }
        known = {name: [one for one in found if one is not None] for name, found in peaks.items()}
        if not all(known.values()):
            return Judgement("undecided", because="the memory of every server")
        light = [peak for name in few for peak in known[name]]
        heavy = [peak for name in all_of_them if name not in few for peak in known[name]]
        ours = f"{span(light)} MB, the others {span(heavy)} MB {results.at(load)}"
        if min(map(len, known.values())) < FEWEST_RUNS:
            return _needs_runs(ours)
        if max(light) < min(heavy):
            return Judgement("confirmed", ours)
        is_other = min(max(known[name]) for name in few) > min(heavy)
        return Judgement("refuted", ours) if is_other else _needs_runs(ours)

    return judge


def one_core(few: tuple[str, ...], *, most_of_all: tuple[str, float]) -> Judge:
    """On several cores, these never use more than one, and another one never more than so many."""

    def judge(results: Results) -> Judgement:
        name, most = most_of_all
        servers = (*few, name)
        load = results.highest(servers)
        if load is None:
            return _absent(results, servers)
        runs = {one: results.runs(one, load) for one in servers}
        limits = [cell.limits.cpus for cell in runs[name].values() if cell.limits is not None]
        if any(limit is not None and limit < 2 for limit in limits):
            return Judgement("not reproducible", because="its servers had less than two cores here")
        peaks = {one: median_of(found, cores) for one, found in runs.items()}
        if None in peaks.values():
            return Judgement("undecided", because="the CPU time of every server")
        used = ", ".join(f"{one} {peak:.2f}" for one, peak in peaks.items())
        ours = f"{used} cores {results.at(load)}"
        if min(map(len, runs.values())) < FEWEST_RUNS:
            return _needs_runs(ours)
        holds = all((peaks[one] or 0) < 1.1 for one in few) and (peaks[name] or 0) < most
        return Judgement("confirmed" if holds else "refuted", ours)

    return judge


def _of_bounds(ours: str, bounds: tuple[float, float] | None, border: float) -> Judgement:
    if bounds is not None and bounds[0] > border:
        return Judgement("confirmed", ours)
    if bounds is not None and bounds[1] < border:
        return Judgement("refuted", ours)
    return _needs_runs(ours)
