"""The trials of a capacity search as data for its chart, and as a table. Draws no conclusions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wsgiload.analysis.threshold import QUANTILES, Threshold, parse_threshold
from wsgiload.documents.capacity import CapacityTrial, ServerCapacity
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.page_data import PageObjective, PageSearch, PageTrial
from wsgiload.report import words
from wsgiload.report.capacity import bracket_words, rate_words
from wsgiload.report.grids import Grid
from wsgiload.report.page import Chart

_OUTCOMES = {True: "met", False: "missed", None: "inconclusive"}
READING = (
    "Each mark is one trial; faint marks are trials that were repeated. The shaded band is the "
    "bracket, the error bar is the 95 % confidence interval of the capacity, the solid line is the "
    "capacity, and the dashed line is the objective."
)

Loads = Mapping[str, LoadReport]


def searches(
    servers: Sequence[ServerCapacity], slo: Sequence[str], loads: Loads
) -> tuple[PageSearch, ...]:
    """The chart data of each server's search."""
    return tuple(
        _search(server, [parse_threshold(text) for text in slo], loads, _name(place))
        for place, server in enumerate(servers)
    )


def charts(servers: Sequence[ServerCapacity], slo: Sequence[str], loads: Loads) -> list[Chart]:
    """The chart of each server, with the table of its trials."""
    thresholds = [parse_threshold(text) for text in slo]
    return [
        Chart(
            _name(place),
            _label(server),
            _caption(server),
            READING,
            _grid(server, thresholds, loads),
        )
        for place, server in enumerate(servers)
    ]


def _name(place: int) -> str:
    return f"search-{place}"


def _label(server: ServerCapacity) -> str:
    trials = words.plural(len(server.trials), "trial")
    return f"Capacity search on {server.server}. {trials}, in the order in which they ran"


def _caption(server: ServerCapacity) -> str:
    judged = [trial for trial in server.trials if trial.rate_per_s is not None]
    counts = [
        f"{count} {name}"
        for met, name in _OUTCOMES.items()
        if (count := sum(trial.met is met for trial in judged))
    ]
    result = (
        f"capacity {rate_words(server)}"
        if server.rate_per_s is not None
        else "no capacity was found"
    )
    bracket = bracket_words(server.bracket)
    known = "" if bracket == words.MISSING else f", bracket {bracket}"
    trials = words.plural(len(judged), "open-loop trial")
    return f"{trials}{': ' if counts else ''}{', '.join(counts)}; {result}{known}."


def _search(
    server: ServerCapacity, thresholds: Sequence[Threshold], loads: Loads, name: str
) -> PageSearch:
    interval = server.interval_95
    is_bounded = interval is not None and None not in interval
    return PageSearch(
        name=name,
        label=_label(server),
        conditions=tuple(_condition(threshold) for threshold in thresholds),
        trials=tuple(
            _trial(number, trial, thresholds, loads.get(trial.cell))
            for number, trial in enumerate(server.trials, start=1)
            if trial.rate_per_s is not None
        ),
        bracket=server.bracket,
        interval_95=(interval[0] or 0.0, interval[1] or 0.0) if interval and is_bounded else None,
        rate_per_s=server.rate_per_s,
    )


def _condition(threshold: Threshold) -> PageObjective:
    return PageObjective(
        title=_heading(threshold),
        unit="ns" if threshold.figure in QUANTILES else "ratio",
        limit=threshold.limit,
        label=threshold.text,
    )


def _heading(threshold: Threshold) -> str:
    return threshold.figure if threshold.figure in QUANTILES else "failed"


def _trial(
    number: int, trial: CapacityTrial, thresholds: Sequence[Threshold], load: LoadReport | None
) -> PageTrial:
    return PageTrial(
        number=number,
        phase=words.SEARCH_PHASES[trial.stage],
        rate_per_s=trial.rate_per_s or 0.0,
        outcome="inconclusive" if trial.met is None else "met" if trial.met else "missed",
        is_repeated=trial.discarded,
        values=tuple(_value(threshold, load) for threshold in thresholds),
        texts=tuple(_text(threshold, load) for threshold in thresholds),
    )


def _value(threshold: Threshold, load: LoadReport | None) -> float | None:
    """The figure's value; for a quantile its upper bound, as in the objective."""
    if load is None:
        return None
    quantile = QUANTILES.get(threshold.figure)
    if quantile is None:
        return words.failed_ratio(load.outcomes)
    bounds = (load.offered_quantiles_ns or {}).get(quantile)
    return None if bounds is None else bounds.high


def _text(threshold: Threshold, load: LoadReport | None) -> str:
    if load is None:
        return words.MISSING
    quantile = QUANTILES.get(threshold.figure)
    if quantile is None:
        return words.format_ratio(words.failed_ratio(load.outcomes))
    bounds = (load.offered_quantiles_ns or {}).get(quantile)
    return words.format_bounds(bounds, float(quantile), load.outcomes)


def _grid(server: ServerCapacity, thresholds: Sequence[Threshold], loads: Loads) -> Grid:
    headings = ("trial", "phase", "outcome", "reason", "rate")
    rows = tuple(
        (
            str(number),
            words.SEARCH_PHASES[trial.stage],
            _outcome_words(trial),
            trial.reason,
            _load_words(trial),
            *(_text(threshold, loads.get(trial.cell)) for threshold in thresholds),
        )
        for number, trial in enumerate(server.trials, start=1)
    )
    return Grid((*headings, *(_heading(one) for one in thresholds)), rows, names=4)


def _load_words(trial: CapacityTrial) -> str:
    if trial.rate_per_s is not None:
        return words.format_per_s(trial.rate_per_s)
    return words.plural(trial.connections or 0, "connection")


def _outcome_words(trial: CapacityTrial) -> str:
    if trial.stage == "initial":
        return words.MISSING
    return f"{_OUTCOMES[trial.met]}{', repeated' if trial.discarded else ''}"
