"""Which setting to run: the one that holds an objective at the largest rate, with its interval, or
why none is named.

Pure, from the cells of a summary or from the document of a capacity search. A recommendation is
made only where the data carry it: enough valid runs, an interval that stays inside the objective,
and nothing else that could be better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any, Literal

from wsgiload.analysis.effective_limit import held_memory_bytes
from wsgiload.analysis.objective import Judgement, Objective
from wsgiload.analysis.threshold import QUANTILES, Threshold
from wsgiload.statistics.student import t_quantile

Json = dict[str, Any]

# Settings that cannot be told apart by their quantiles are told apart by memory, if they differ by
# this factor.
LOWER_BOUND = "lower-bound"
LEANER_BY = 1.1
# The counts in the size of a cell: ``w2-t4``, ``t4-close``.
_COUNTS = re.compile(r"(?:w(?P<workers>\d+))?-?(?:t(?P<threads>\d+))?-?")
# Below four runs no rank or sign test can reach 5 %.
FEWEST_RUNS = 4
USUAL_RUNS = 6

State = Literal["holds", "misses", "unknown"]


@dataclass(frozen=True, slots=True)
class Memory:
    """The most that was used, of how much; None where nobody limited or measured it."""

    peak_bytes: int | None
    limit_bytes: int | None

    @property
    def free_share(self) -> float | None:
        """The headroom as a share of the limit."""
        if self.peak_bytes is None or not self.limit_bytes:
            return None
        return 1 - self.peak_bytes / self.limit_bytes


@dataclass(frozen=True, slots=True)
class AskedCounts:
    """How many workers and threads were asked for, and of what: server, variant and what else the
    grid sets."""

    of: tuple[str | None, ...]
    workers: int
    threads: int

    def is_below(self, other: AskedCounts) -> bool:
        """No more of either, and the same otherwise; sizes of different servers are neither above
        nor below."""
        return (
            self.of == other.of and self.workers <= other.workers and self.threads <= other.threads
        )


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The one setting; ``interval`` is that of ``figure``: nanoseconds of a quantile, or a rate for
    ``capacity``.

    In ``disturbed`` of its ``runs`` something can only have made answers later. ``tied`` hold the
    same as far as can be told, and need more memory, or more workers or threads. ``fewest_beyond``
    are the requests beyond the quantile in the run with the fewest; None where the figure is no
    quantile.
    """

    server: str
    rate_per_s: float
    figure: str
    centre: float | None
    interval: tuple[float, float] | None
    runs: int
    memory: Memory
    runner_up: str | None
    disturbed: int = 0
    tied: tuple[str, ...] = ()
    fewest_beyond: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no setting is recommended, and what would settle it. ``is_missed``: the data say that
    none holds."""

    why: str
    needs: str
    is_missed: bool = False


@dataclass(frozen=True, slots=True)
class AtRate:
    """One setting at one rate: what its runs say of the objective."""

    rate_per_s: float
    state: State
    why: str
    interval: tuple[float, float] | None
    centre: float | None
    runs: int
    disturbed: int
    fewest_beyond: int | None


@dataclass(frozen=True, slots=True)
class SettingRecord:
    """One setting at every rate, lowest first."""

    server: str
    at: tuple[AtRate, ...]
    memory: Memory
    asked: AskedCounts

    def largest(self, *states: State) -> AtRate | None:
        """The largest rate up to which it is in one of these states."""
        last = None
        for entry in self.at:
            if entry.state not in states:
                break
            last = entry
        return last


def by_app(entries: Sequence[Json]) -> dict[str | None, list[Json]]:
    """Cells, or entries of a capacity document, by what was served: nobody has the choice between
    two apps."""
    found: dict[str | None, list[Json]] = {}
    for entry in entries:
        found.setdefault(entry.get("app"), []).append(entry)
    return found


def recommend(cells: Sequence[Json], objective: Objective) -> Recommendation | Refusal:
    """From the open-loop cells of one app in a sweep, every setting at the same rates."""
    records = setting_records(cells, objective)
    if not records:
        return Refusal("there is no open-loop cell to judge", "measure with --rates")
    if all(at.runs < FEWEST_RUNS for record in records for at in record.at):
        return Refusal(
            f"no setting has {FEWEST_RUNS} valid runs at a rate, and fewer carry no inference",
            f"--runs {USUAL_RUNS} on a quiet host would settle it",
        )
    sure = {record.server: record.largest("holds") for record in records}
    best_per_s = max((at.rate_per_s for at in sure.values() if at is not None), default=None)
    if best_per_s is None:
        return _doubt(records, 0.0) or _none_holds(records, objective)
    tied = [
        record for record in records if (at := sure[record.server]) and at.rate_per_s == best_per_s
    ]
    found = _best_of(tied, sure, _next_best(records, sure, best_per_s), objective.thresholds)
    # The one to be recommended may do better still, and is no worse a choice for it; of any other
    # that is a doubt.
    chosen = found.server if isinstance(found, Recommendation) else None
    return _doubt([record for record in records if record.server != chosen], best_per_s) or found


def _none_holds(records: Sequence[SettingRecord], objective: Objective) -> Refusal:
    lowest = min(at.rate_per_s for record in records for at in record.at)
    text = " and ".join(objective.texts)
    return Refusal(
        f"no setting holds {text} at {lowest:g}/s",
        "lower --rates, or a wider limit",
        is_missed=True,
    )


def _doubt(records: Sequence[SettingRecord], best_per_s: float) -> Refusal | None:
    """The first of these settings that may hold a larger rate than this one, which is surely
    held."""
    for record in records:
        possible = record.largest("holds", "unknown")
        if possible is None or possible.rate_per_s <= best_per_s:
            continue
        unknown = next(at for at in record.at if at.state == "unknown")
        return Refusal(
            f"{record.server} at {unknown.rate_per_s:g}/s is undecided: {unknown.why}",
            f"--runs {2 * USUAL_RUNS}, or a quieter host where runs were invalid, would settle it",
        )
    return None


def _next_best(
    records: Sequence[SettingRecord], sure: Mapping[str, AtRate | None], best_per_s: float
) -> str | None:
    others = [
        (at.rate_per_s, record.server)
        for record in records
        if (at := sure[record.server]) is not None
    ]
    below = [entry for entry in others if entry[0] < best_per_s]
    return max(below)[1] if below else None


def _best_of(
    tied: Sequence[SettingRecord],
    sure: Mapping[str, AtRate | None],
    next_best: str | None,
    thresholds: Sequence[Threshold],
) -> Recommendation | Refusal:
    """Of settings that hold the same rate the quickest, if its interval lies below those of the
    others; of those that reach into it the one that needs less than each other: memory, or workers
    and threads."""
    entries = sorted(
        (
            (at.centre if at.centre is not None else math.inf, record, at)
            for record in tied
            if (at := sure[record.server])
        ),
        key=lambda entry: entry[0],
    )
    _, quickest, best = entries[0]
    near = [
        (record, at) for _, record, at in entries if record is quickest or _reaches_into(at, best)
    ]
    least = [
        entry
        for entry in near
        if all(entry is other or _needs_less(entry[0], other[0]) for other in near)
    ]
    if not least:
        return Refusal(
            f"{near[0][0].server} and {near[1][0].server} both hold {best.rate_per_s:g}/s, and "
            "neither their intervals "
            "nor their memory tell them apart",
            "higher --rates, where they part, or more --runs would settle it; so would "
            "`wsgiload capacity`",
        )
    first, at = least[0]
    tied = [record for record, _ in near if record is not first]
    figure = _quantile_of(thresholds)
    others = [record.server for _, record, _ in entries if record is not first]
    return Recommendation(
        first.server,
        at.rate_per_s,
        figure.figure if figure is not None else "error_rate",
        at.centre,
        at.interval,
        at.runs,
        first.memory,
        others[0] if others else next_best,
        at.disturbed,
        tuple(record.server for record in tied),
        at.fewest_beyond,
    )


def _reaches_into(other: AtRate, best: AtRate) -> bool:
    return other.interval is None or best.interval is None or best.interval[1] >= other.interval[0]


def _needs_less(record: SettingRecord, other: SettingRecord) -> bool:
    """Clearly less memory; where it is much the same, no more workers and no more threads of the
    same server."""
    used, used_by_other = record.memory.peak_bytes, other.memory.peak_bytes
    if used is None or used_by_other is None:
        return record.asked.is_below(other.asked)
    if used * LEANER_BY <= used_by_other:
        return True
    return record.asked.is_below(other.asked) and used < used_by_other * LEANER_BY


def setting_records(cells: Sequence[Json], objective: Objective) -> list[SettingRecord]:
    """The cells by setting and rate, judged; of a run that was made again the last attempt, however
    it ended."""
    settings: dict[str, dict[float, dict[int, Json]]] = {}
    for cell in cells:
        if cell["rate"] is not None:
            server = str(cell["id"]).rpartition("@")[0]
            settings.setdefault(server, {}).setdefault(cell["rate"], {})[cell["run"]] = cell
    return [_setting_record(server, rates, objective) for server, rates in settings.items()]


def _setting_record(
    server: str, rates: Mapping[float, Mapping[int, Json]], objective: Objective
) -> SettingRecord:
    cells = [cell for of_rate in rates.values() for cell in of_rate.values()]
    at = tuple(
        _at_rate(rate, list(of_rate.values()), objective) for rate, of_rate in sorted(rates.items())
    )
    return SettingRecord(server, at, _memory(cells), _asked_counts(cells[0]))


def _at_rate(rate_per_s: float, cells: Sequence[Json], objective: Objective) -> AtRate:
    judged = [
        (cell, judgement)
        for cell in cells
        if (judgement := _judge(cell, objective)).met is not None
    ]
    held = [cell for cell, judgement in judged if judgement.met]
    state, why = _state([judgement for _, judgement in judged], len(cells))
    everywhere = held if len(held) == len(judged) else []
    if state == "holds" and (open_end := _open_end(everywhere, objective.thresholds)) is not None:
        state, why = (
            "unknown",
            f"{why}, but the interval of {open_end.figure} reaches beyond {open_end.text}",
        )
    quantile = _quantile_of(objective.thresholds)
    values = _quantiles_ns(everywhere, quantile) if quantile is not None else []
    interval = t_interval(values)
    centre = math.exp(fmean(map(math.log, values))) if interval is not None else None
    disturbed = sum(judgement.disturbance is not None for _, judgement in judged)
    fewest_beyond = _fewest_beyond(held, quantile)
    return AtRate(rate_per_s, state, why, interval, centre, len(judged), disturbed, fewest_beyond)


def _open_end(cells: Sequence[Json], thresholds: Sequence[Threshold]) -> Threshold | None:
    """The first quantile whose interval does not stay within its limit, though each run does."""
    for threshold in thresholds:
        if threshold.figure in QUANTILES:
            interval = t_interval(_quantiles_ns(cells, threshold))
            if interval is None or interval[1] > threshold.limit:
                return threshold
    return None


def _fewest_beyond(cells: Sequence[Json], quantile: Threshold | None) -> int | None:
    if quantile is None:
        return None
    share = 1 - float(QUANTILES[quantile.figure])
    return min(
        (math.floor(cell["outcomes"]["scheduled"] * share + 1e-9) for cell in cells), default=None
    )


def _judge(cell: Json, objective: Objective) -> Judgement:
    judgement = objective.judge(cell)
    if (
        judgement.is_too_short
    ):  # there is no longer run to ask, and to leave it out would be to choose the passes
        return replace(judgement, met=False)
    return (
        judgement
        if cell["failure"] is None or judgement.met is None
        else Judgement(False, "the server failed")
    )


def _state(judgements: Sequence[Judgement], asked: int) -> tuple[State, str]:
    """What the runs at one rate say together. A run that missed while it was disturbed is held
    against nobody."""
    runs = len(judgements)
    missed = [judgement for judgement in judgements if not judgement.met]
    disturbances = [
        judgement.disturbance for judgement in missed if judgement.disturbance is not None
    ]
    if runs < FEWEST_RUNS:
        return "unknown", f"of {asked} runs {runs} can be judged, and {FEWEST_RUNS} are needed"
    if 2 * (len(missed) - len(disturbances)) >= runs:
        return "misses", f"missed in {len(missed)} of {runs} runs"
    if disturbances:
        told = f"in {len(disturbances)} of them while {disturbances[-1]}"
        return "unknown", f"missed in {len(missed)} of {runs} runs, {told}"
    if missed:
        return "unknown", f"held in {runs - len(missed)} of {runs} runs"
    return "holds", f"held in all {runs} runs"


def t_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval over runs, on logarithms; None from fewer than two."""
    if len(values) < 2:
        return None
    logarithms = [math.log(value) for value in values]
    half = t_quantile(0.975, len(values) - 1) * stdev(logarithms) / math.sqrt(len(values))
    return math.exp(fmean(logarithms) - half), math.exp(fmean(logarithms) + half)


def _quantile_of(thresholds: Sequence[Threshold]) -> Threshold | None:
    """The one whose interval is shown and by which settings are told apart: the highest, the
    hardest to know."""
    quantiles = [threshold for threshold in thresholds if threshold.figure in QUANTILES]
    return max(quantiles, key=lambda threshold: float(QUANTILES[threshold.figure]), default=None)


def _quantiles_ns(cells: Sequence[Json], threshold: Threshold) -> list[float]:
    """Those that are known and finite."""
    bounds = [cell["offered_quantiles_ns"][QUANTILES[threshold.figure]]["high"] for cell in cells]
    return [high for high in bounds if high]


def _memory(cells: Sequence[Json]) -> Memory:
    peaks = [
        cell["resources"]["memory_peak_bytes"] for cell in cells if cell["resources"] is not None
    ]
    return Memory(
        max((peak for peak in peaks if peak is not None), default=None), held_memory_bytes(cells)
    )


def _asked_counts(cell: Json) -> AskedCounts:
    """Counts that nobody named are tied, because the budget decided them."""
    asked = str(cell.get("size") or "")
    counts = _COUNTS.match(asked)
    assert counts is not None  # every part of it may be missing
    workers, threads = (int(count or 0) for count in counts.group("workers", "threads"))
    of = (cell["server"], cell.get("variant"), cell.get("alias"), asked[counts.end() :])
    return AskedCounts(of, workers, threads)


def recommend_capacity(servers: Sequence[Json]) -> Recommendation | Refusal:
    """From the entries of one app in a capacity document: the largest confirmed rate, if no other
    can be as large."""
    for server in servers:
        if server["verdict"]["status"] == "invalid" and server["failure"] is None:
            return Refusal(
                f"the search of {server['server']} is invalid ({server['verdict']['blame']})",
                "the same search on a quieter host would settle it",
            )
    confirmed = sorted(
        (
            server
            for server in servers
            if server["rate_per_s"] is not None and server["confirmed"] is not None
        ),
        key=lambda server: -server["rate_per_s"],
    )
    if not confirmed:
        return _unconfirmed(servers)
    first, others = confirmed[0], [server for server in servers if server is not confirmed[0]]
    for other in others:
        if other["failure"] is None and is_lower_bound(other):
            return Refusal(
                f"{other['server']} may hold more than was found, because disturbances made "
                "trials of it miss",
                "the same search on a quieter host would settle it",
            )
        if other["failure"] is None and _may_reach(other, first):
            return Refusal(
                f"{first['server']} and {other['server']} are too near: their intervals overlap",
                "longer trials (--duration) or a smaller --width would settle it",
            )
    used = first["at_rate"] or {"memory_peak_bytes": None, "memory_limit_bytes": None}
    return Recommendation(
        first["server"],
        first["rate_per_s"],
        "capacity",
        first["estimate_per_s"],
        None
        if first["interval_95"] is None
        else (first["interval_95"][0], first["interval_95"][1]),
        first["confirmed"][1],
        Memory(used["memory_peak_bytes"], used["memory_limit_bytes"]),
        confirmed[1]["server"] if len(confirmed) > 1 else None,
    )


def _unconfirmed(servers: Sequence[Json]) -> Refusal:
    failures = [server["failure"]["message"] for server in servers if server["failure"] is not None]
    if len(failures) == len(servers):
        return Refusal(
            f"nothing could be tried: {failures[0]}",
            "the same search would settle it once that is mended",
        )
    is_missed = all(server["bracket"][0] is None for server in servers)
    return Refusal(
        "no setting has a confirmed rate", "longer trials (--duration) would settle it", is_missed
    )


def _may_reach(other: Json, first: Json) -> bool:
    """Whether the other's interval reaches into that of the first; without one, whether its bound
    does."""
    reach = other["interval_95"][1] if other["interval_95"] is not None else other["bracket"][1]
    from_per_s = (
        first["interval_95"][0] if first["interval_95"] is not None else first["rate_per_s"]
    )
    return reach is None or reach >= from_per_s


def is_lower_bound(server: Mapping[str, Any]) -> bool:
    """Whether an entry of ``servers`` may be too low because of disturbances."""
    return any(reason["check"] == LOWER_BOUND for reason in server["verdict"]["reasons"])
