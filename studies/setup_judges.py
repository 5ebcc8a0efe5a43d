"""Judges of claims about the setup or the measurement of servers: each function makes a judge for
one kind of claim. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from studies.judgement import (
    HARDLY_ANY,
    ClaimJudgement,
    Judge,
    about_one,
    above,
    absent,
    needs_runs,
)
from studies.runs import (
    Bounds,
    Estimate,
    Results,
    Runs,
    as_factor,
    factor_of,
    failed_share,
    goodput,
    load_of,
    ratio_of,
)
from studies.trend import complete_table, trend
from wsgiload import CellResult
from wsgiload.analysis.attempts import place_of
from wsgiload.statistics.effect import MIN_RUNS


def unaffected_by_order(*, within: float) -> Judge:
    """The throughput of a cell differs by less than this share between the first and the last
    position in a round. The rounds measure the same cells in different random orders."""

    def judge(results: Results) -> ClaimJudgement:
        places = results.places()
        points = {
            (_place_without_run(cell), cell.run): (places[place_of(cell)], math.log(per_s))
            for cell in results.cells
            if place_of(cell) in places and (per_s := goodput(cell))
        }
        table = complete_table(points)
        if len(table) < 2 or len(table[0]) < MIN_RUNS:
            return ClaimJudgement("undecided", because="at least four runs of two or more servers")
        slope = trend(table)
        if slope is None:
            return ClaimJudgement("undecided", because="rounds in different orders")
        bounds = (math.exp(slope.mean - slope.half_95), math.exp(slope.mean + slope.half_95))
        factor = Estimate(math.exp(slope.mean), bounds, as_factor)
        ours = (
            f"throughput at the end of a round: {factor.text} the throughput at the start, "
            f"over {len(table[0])} rounds"
        )
        return about_one(ours, bounds, within)

    return judge


def _place_without_run(cell: CellResult) -> tuple[str, float]:
    return cell.id.rpartition("@")[0], load_of(cell)


def does_not_explain(fronted: str, bare: str, leader: str) -> Judge:
    """The proxy in front of a server accounts for less than half of the server's distance from the
    leader, as a factor, at the highest load."""

    def judge(results: Results) -> ClaimJudgement:
        servers = (fronted, bare, leader)
        load = results.highest(servers)
        if load is None:
            return absent(results, servers)
        runs = {name: results.runs(name, load) for name in servers}
        distance = ratio_of(runs[leader], runs[bare], goodput)
        gain = ratio_of(runs[fronted], runs[bare], goodput)
        ours = (
            f"throughput relative to {bare} {results.at(load)}: {fronted} {gain.text}, "
            f"{leader} {distance.text}"
        )
        if distance.bounds is not None and distance.bounds[0] <= 1:
            return ClaimJudgement(
                "undecided", ours, f"a load at which {leader} is faster than {bare}"
            )
        return above(ours, _half_way(runs[leader], runs[bare], runs[fronted]), 1.0)

    return judge


def _half_way(leader: Runs, bare: Runs, fronted: Runs) -> Bounds | None:
    """The geometric mean of the leader and the bare server, relative to the fronted server."""
    logarithms = []
    for run in sorted(leader.keys() & bare.keys() & fronted.keys()):
        ends, fronted_goodput = (goodput(leader[run]), goodput(bare[run])), goodput(fronted[run])
        if ends[0] and ends[1] and fronted_goodput:
            logarithms.append(math.log(ends[0] * ends[1]) / 2 - math.log(fronted_goodput))
    return factor_of(logarithms).bounds if len(logarithms) >= MIN_RUNS else None


def fails_with_small_backlog(
    backlogs: Mapping[int, str], *, app: str, within: float = 0.10
) -> Judge:
    """With the smallest listen backlog, requests fail; from the middle to the largest backlog,
    throughput rises by less than this share. ``backlogs`` are three, with the names of their
    servers."""
    smallest, middle, largest = sorted(backlogs)

    def judge(results: Results) -> ClaimJudgement:
        servers = tuple(backlogs[backlog] for backlog in (smallest, middle, largest))
        load = results.highest(servers, app)
        if load is None:
            return absent(results, servers, app)
        runs = [results.runs(name, load, app) for name in servers]
        failed, gain = failed_share(runs[0]), ratio_of(runs[2], runs[1], goodput)
        if failed is None:
            return absent(results, servers[:1], app)
        ours = (
            f"{results.at(load)}: {failed.text} errors with a backlog of {smallest:,}; a backlog "
            f"of {largest:,} gives {gain.text} the throughput of a backlog of {middle:,}"
        )
        return _of_backlogs(ours, failed.bounds, gain.bounds, 1 / (1 - within))

    return judge


def _of_backlogs(
    ours: str, failed: Bounds | None, gain: Bounds | None, max_gain: float
) -> ClaimJudgement:
    if failed is None or gain is None:
        return needs_runs(ours)
    if failed[1] < HARDLY_ANY or gain[0] > max_gain:
        return ClaimJudgement("refuted", ours)
    holds = failed[0] >= HARDLY_ANY and gain[1] < max_gain
    return ClaimJudgement("confirmed", ours) if holds else needs_runs(ours)
