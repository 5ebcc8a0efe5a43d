"""Results over several runs in words: aggregates, comparisons and discarded trials. Pure.

``analysis`` computes the results; this only words them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from wsgiload.analysis.aggregate import GOODPUT
from wsgiload.analysis.attempts import counted_attempts
from wsgiload.analysis.comparison import CAUTIOUS_SHARE, drift_factor
from wsgiload.analysis.overload import COLLAPSED, HELD, OVERLOADS
from wsgiload.documents.over_cells import (
    Aggregate,
    AggregateFigure,
    Comparison,
    Efficiency,
    Overload,
)
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.statistics.effect import (
    MAX_RUNS,
    MIN_RUNS,
    PLANNED_DEVIATION,
    PLANNED_FACTOR,
    SIGNIFICANT,
    deviation_of,
    runs_needed,
)
from wsgiload.units import three_digits

COMPARISON_NOTE = (
    "Runs are paired by round. Intervals are 95 % confidence intervals (Student's t); p is from a "
    "paired t test, Holm-adjusted for all pairs, load levels and figures (90 % of the error "
    "probability belong to the figure and level that the answer is about). Servers differ only if "
    "the interval excludes 1, p is below 0.05, and the ratio exceeds that of an A/A test (one "
    "server under two names), if there was one."
)
_APPS_APART = "Only servers of the same app are compared."
DISCARD_RULE = (
    "A trial is discarded if the generator, the host or the plan made it invalid, or if its rerun "
    "was less disturbed. Response times do not affect this decision. Discarded trials are stored "
    "and listed."
)


def aggregate_headings(summary: Summary) -> tuple[str, ...]:
    """The headings of ``aggregate_rows``: the server's name, then numbers."""
    load = "offered/s" if summary.experiment.rates else "connections"
    trimmed = ("trimmed mean p99",) if is_trimmed(summary) else ()
    return (
        "server",
        load,
        "runs",
        "median p50",
        "median p99",
        "p99 min to max",
        *trimmed,
        "mean p99 [95 % CI]",
        "p99 CV between runs",
        "median goodput/s",
    )


def aggregate_rows(summary: Summary) -> list[tuple[str, ...]]:
    """One row per server and load level."""
    return [_aggregate_row(entry, is_trimmed(summary)) for entry in summary.aggregates or ()]


def is_trimmed(summary: Summary) -> bool:
    """Whether the aggregate is the mean without the lowest and the highest run."""
    return summary.experiment.aggregate == "trim"


def _aggregate_row(entry: Aggregate, trimmed: bool) -> tuple[str, ...]:
    p50, p99, goodput = entry.figures.p50, entry.figures.p99, entry.figures.goodput
    load = entry.rate if entry.rate is not None else entry.connections
    discarded = f" ({entry.discarded} discarded)" if entry.discarded else ""
    return (
        entry.server,
        words.format_rate(load),
        f"{len(entry.runs)}{discarded}",
        words.format_duration_ns(p50.median),
        words.format_duration_ns(p99.median),
        _span(p99),
        *((words.format_duration_ns(p99.trimmed_mean),) if trimmed else ()),
        _mean(p99),
        _between(p99),
        words.format_measured_rate(goodput.median),
    )


def _span(figure: AggregateFigure) -> str:
    if figure.min is None:
        return words.MISSING
    most = "no finite value" if figure.max is None else words.format_duration_ns(figure.max)
    return f"{words.format_duration_ns(figure.min)} to {most}"


def _between(figure: AggregateFigure) -> str:
    """The standard deviation between runs, and its share of the total variance."""
    cv, share = figure.between_run_cv, figure.between_run_share
    if cv is None:
        return words.MISSING
    return f"± {three_digits(100 * cv)} %" + (
        "" if share is None else f", {words.format_ratio(share)} of variance"
    )


def _mean(figure: AggregateFigure) -> str:
    if figure.interval_95 is None:
        return str(figure.reason)
    low, high = map(words.format_duration_ns, figure.interval_95)
    return f"{words.format_duration_ns(figure.mean)} [{low}, {high}]"


def aggregate_note(summary: Summary) -> str:
    """The meaning of the aggregate's columns."""
    note = (
        "Each run is one observation. The confidence interval uses Student's t on the logarithms "
        "of the runs' quantiles. CV: coefficient of variation (standard deviation / mean)."
    )
    if any(entry.figures.p99.between_run_share is not None for entry in summary.aggregates or ()):
        note += " “Of variance”: the share of the variance that is not sampling error within runs."
    if is_trimmed(summary):
        note += " The trimmed mean excludes the lowest and the highest run and has no interval."
    return note


# --- comparisons


@dataclass(frozen=True, slots=True)
class Factor:
    """The ratio of two figures with its 95 % interval and both p values."""

    value: float
    low: float
    high: float
    p: float
    p_adjusted: float


def factor_of(entry: Comparison) -> Factor:
    """The factor of a comparison that has one, and therefore an interval and p values."""
    assert entry.factor is not None
    assert entry.interval_95 is not None
    assert entry.p is not None
    assert entry.p_adjusted is not None
    return Factor(entry.factor, *entry.interval_95, entry.p, entry.p_adjusted)


def comparison_lines(summary: Summary) -> list[tuple[str, str]]:
    """A sentence with its style for each pair and load level, then warnings."""
    entries = summary.comparisons or ()
    styles = {"different": "bold", "same": "green"}
    lines = [(comparison_sentence(entry), styles.get(entry.conclusion, "")) for entry in entries]
    if len({entry.app for entry in entries}) > 1:
        lines.append((_APPS_APART, ""))
    of_sessions = bool(summary.experiment.sessions)
    # The intervals of a race are wider, because it may stop after any round.
    deviation = PLANNED_DEVIATION if summary.races else typical_deviation(entries)
    lines += [
        (caution, "yellow") for caution in _cautions(entries, deviation, of_sessions=of_sessions)
    ]
    return lines


def comparison_sentence(entry: Comparison) -> str:
    """ "gthread's p99 is 1.31× [1.22, 1.41] sync's at 500/s", or why there is no result."""
    lead = "A/A: " if entry.same_server else ""
    others = _others(entry, entry.first, f"{entry.second}'s")
    return f"{lead}{_finding(entry)}{others}{_near_capacity(entry)}"


def change_sentence(entry: Comparison) -> str:
    """The same for one server in two stored runs: "waitress at 500/s: p99 is 1.31× [1.22, 1.41]
    the first run's"."""
    others = _others(entry, None, "the first run's")
    spread = sessions_words(entry)
    included = f" (including {spread})" if spread else ""
    change = f"{_change(entry)}{included}{others}{_near_capacity(entry)}"
    return f"{entry.first} at {load_words(entry)}: {change}"


def sessions_words(entry: Comparison) -> str:
    """ "4.1 % between sessions, from 6 repeated runs", or "10 % between sessions, assumed"; empty
    if the entry includes none."""
    if entry.session_spread is None:
        return ""
    repeats = entry.session_repeats
    known = f"from {repeats} repeated runs" if repeats else "assumed"
    return f"{margin_words(entry.session_spread)} between sessions, {known}"


def sessions_note(entries: Sequence[Comparison]) -> str:
    """What the intervals of these comparisons include, as a sentence; empty if nothing."""
    of_entries = [entry for entry in entries if sessions_words(entry)]
    if not of_entries:
        return ""
    widest = max(of_entries, key=lambda entry: entry.session_spread or 0.0)
    most = "up to " if len({entry.session_spread for entry in of_entries}) > 1 else ""
    learn = "" if widest.session_repeats else "; repeat an unchanged sweep to measure it"
    return f"Intervals include {most}{sessions_words(widest)}{learn}."


def load_words(entry: Comparison) -> str:
    """ "500/s", or "100 connections"."""
    return level_text(entry.rate, entry.connections)


def level_text(rate: float | None, connections: int | None) -> str:
    """The load level as text, from its rate or connections."""
    if rate is not None:
        return words.format_per_s(rate)
    return words.plural(connections or 0, "connection")


def _finding(entry: Comparison) -> str:
    first, second, figure = entry.first, entry.second, entry.figure
    where = f"at {load_words(entry)}"
    match entry.conclusion:
        case "different":
            return f"{first}'s {figure} is {_factor_words(entry)} {second}'s {where}"
        case "same":
            known = _factor_words(entry)
            within = margin_words(entry.margin) or "5 %"
            return f"{first} and {second}: {figure} is equivalent within {within} {where} ({known})"
        case "undecided":
            known = _factor_and_p(entry)
            return (
                f"{first} and {second}: no significant difference in {figure} {where}"
                f" ({_at_most(entry)}{known}){_why_undecided(entry)}"
            )
        case _:
            return f"{first} and {second}: not compared {where}: {entry.reason}"


def _change(entry: Comparison) -> str:
    match entry.conclusion:
        case "different":
            return f"{entry.figure} is {_factor_words(entry)} the first run's"
        case "same":
            within = margin_words(entry.margin) or "5 %"
            return f"{entry.figure} is equivalent within {within} ({_factor_words(entry)})"
        case "undecided":
            known = f"{_at_most(entry)}{_factor_and_p(entry)}"
            return f"no significant difference in {entry.figure} ({known})"
        case _ if entry.factor is not None:
            return (
                f"{entry.figure} is {_times(entry.factor)} the first run's, without a confidence "
                f"interval: {entry.reason}. Repeat both with --runs {MIN_RUNS} or more"
            )
        case _:
            return f"{entry.figure} is not compared: {entry.reason}"


def margin_words(margin: float | None) -> str:
    """``9 %``, or ``a factor of 2.4``; empty if unknown."""
    if margin is None:
        return ""
    if margin < 1:
        return f"{100 * margin:.0f} %" if margin >= 0.1 else f"{100 * margin:.2g} %"
    return f"a factor of {words.format_factor(1 + margin)}"


def _at_most(entry: Comparison) -> str:
    margin = margin_words(entry.margin)
    return f"any difference is at most {margin}; " if margin else ""


def _others(entry: Comparison, whose: str | None, other: str) -> str:
    """Other figures that differ and, if the compared figure shows no difference, how close the
    medians are."""
    if entry.conclusion == "no inference":
        return ""
    is_open = entry.conclusion != "different"
    parts = []
    for one in entry.others:
        if one.conclusion == "different":
            low, high = one.interval_95
            times = f"{_times(one.factor)} [{_number(low)}, {_number(high)}]"
            owner = "" if whose is None else f"{whose}'s "
            full = f"; {owner}{one.figure} is {times} {other}"
            parts.append(full if is_open else f"; {one.figure} is {times}")
        elif is_open and one.figure == "p50":
            parts.append(f"; {one.figure} differs by at most {margin_words(one.margin)}")
    return "".join(parts)


def _why_undecided(entry: Comparison) -> str:
    factor = factor_of(entry)
    if entry.reason is not None:
        return f"; {entry.reason}"
    is_clear = factor.p_adjusted < SIGNIFICANT and not factor.low <= 1 <= factor.high
    if not is_clear or entry.aa_factor is None:
        return ""
    return f"; the A/A difference (one server under two names) is {_times(entry.aa_factor)}"


def _factor_words(entry: Comparison) -> str:
    factor = factor_of(entry)
    return f"{_times(factor.value)} [{_number(factor.low)}, {_number(factor.high)}]"


def _factor_and_p(entry: Comparison) -> str:
    return f"{_factor_words(entry)}, p = {factor_of(entry).p_adjusted:.2g}"


def ratio_words(entry: Comparison) -> str:
    """ "1.31× [1.22, 1.41]", or "1.31×" without an interval; the entry has a factor."""
    if entry.interval_95 is None:
        return words.MISSING if entry.factor is None else _times(entry.factor)
    return _factor_words(entry)


def _times(factor: float) -> str:
    return f"{_number(factor)}×"


def _number(factor: float) -> str:
    return f"{factor:.2f}" if factor < 9.995 else three_digits(factor)


def _near_capacity(entry: Comparison) -> str:
    share = entry.relative_rate
    if share is None or share <= CAUTIOUS_SHARE or entry.figure == GOODPUT:
        return ""
    if share >= 1:
        return (
            "; warning: this rate exceeds the saturation throughput, so p99 grows with the duration"
        )
    moved = three_digits(drift_factor(share))
    return (
        f"; warning: at {share * 100:.0f} % of the saturation throughput, p99 changes by about "
        f"{moved} % if this throughput changes by 1 %"
    )


def _cautions(
    entries: Sequence[Comparison], deviation: float, *, of_sessions: bool
) -> Iterator[str]:
    if not entries:
        return
    families = Counter((entry.rate, entry.connections, entry.app) for entry in entries)
    pairs, rounds = max(families.values()), max(entry.rounds for entry in entries)
    needed = runs_needed(pairs, deviation)
    if rounds < needed:
        yield (
            f"With {words.plural(rounds, 'run')} and {words.plural(pairs, 'pair')} of servers, the "
            f"chance of detecting a difference of {100 * (PLANNED_FACTOR - 1):.0f} % is below "
            f"50 %, given the variation between runs. Use {_runs(needed)}."
        )

    unknown = any(entry.relative_rate is None and entry.rate is not None for entry in entries)
    if unknown and entries[0].figure != GOODPUT:
        why = "rates are in sessions per second" if of_sessions else "some servers never saturated"
        yield (
            f"The distance to saturation is unknown: {why}. Above {CAUTIOUS_SHARE * 100:.0f} % "
            "of the saturation throughput, small changes in this throughput change p99 strongly."
        )


def typical_deviation(entries: Sequence[Comparison]) -> float:
    """The median of the observed standard deviations between paired rounds, or the planned one
    without any."""
    observed = [
        deviation_of(entry.interval_95, entry.rounds)
        for entry in entries
        if entry.interval_95 is not None and entry.rounds > 1 and min(entry.interval_95) > 0
    ]
    return median(observed) if observed else PLANNED_DEVIATION


def _runs(needed: int) -> str:
    """The required runs as text. ``runs_needed`` never returns more than ``MAX_RUNS``."""
    return f"{needed} runs" if needed < MAX_RUNS else f"more than {MAX_RUNS} runs"


# --- beyond capacity


def overload_lines(summary: Summary) -> list[str]:
    """The goodput of each saturated server under more load, and how far beyond capacity it was
    measured."""
    entries = summary.overload or ()
    lines = [_overload_sentence(entry) for entry in entries]
    largest = max((point.relative_rate for entry in entries for point in entry.points), default=0.0)
    if lines and largest < OVERLOADS[-1]:
        lines.append(
            f"No server was offered at least {OVERLOADS[-1] * 100:.0f} % of its maximum goodput, "
            "so it is unknown whether goodput collapses under overload."
        )
    return lines


def _overload_sentence(entry: Overload) -> str:
    most = words.format_measured_per_s(entry.max_goodput_per_s)
    text = f"The maximum goodput of {entry.server} was {most}."
    beyond = [point for point in entry.points if point.relative_rate >= OVERLOADS[0]]
    if not beyond:
        return text

    worst = min(beyond, key=lambda point: point.goodput_ratio)
    share = f"{worst.relative_rate * 100:.0f} % of this maximum"
    where = f"At an offered rate of {words.format_per_s(worst.rate)} ({share}), goodput"
    if worst.goodput_ratio >= HELD:
        return f"{text} {where} stayed near the maximum."
    ending = "collapsed" if worst.goodput_ratio < COLLAPSED else "fell"
    return f"{text} {where} {ending} to {words.format_ratio(worst.goodput_ratio)} of the maximum."


def power_lines(summary: Summary) -> list[str]:
    """The rate with the highest efficiency of each server, or why it is unknown, and the definition
    of efficiency."""
    entries = summary.efficiency or ()
    lines = [_power_sentence(entry) for entry in entries if entry.reason is None]

    reasons = dict.fromkeys(entry.reason for entry in entries if entry.reason is not None)
    for reason in reasons:
        servers = ", ".join(entry.server for entry in entries if entry.reason == reason)
        lines.append(f"The most efficient rate of {servers} is unknown: {reason}.")
    if lines:
        lines[0] += " Efficiency (Kleinrock's power) is goodput divided by mean response time."
    return lines


def _power_sentence(entry: Efficiency) -> str:
    low, high = map(words.format_per_s, entry.between or (None, None))
    return (
        f"{entry.server} is most efficient near {words.format_per_s(entry.rate)} (between {low} "
        f"and {high})."
    )


# --- the session


def session_lines(summary: Summary) -> list[tuple[str, str]]:
    """Sentences with their styles: the discarded trials with their reasons, and whether there are
    too many."""
    session = summary.validity
    discarded = session.discarded if session is not None else ()
    if summary.experiment.runs == 1:
        # The verdicts of trials that were not repeated state the same.
        shown = {cell.id for cell in counted_attempts(summary.cells)}
        discarded = tuple(trial for trial in discarded if trial.id not in shown)
    if session is None or not discarded:
        return []

    listed = "; ".join(f"{words.attempt_words(trial.id)}: {trial.reason}" for trial in discarded)
    count = len(discarded)
    share = words.format_ratio(count / session.trials)
    trials = words.plural(session.trials, "trial")
    lines = [(f"Discarded {count} of {trials} ({share}). {listed}.", "yellow")]
    if session.status == "invalid":
        lines.append(
            ("More than 20 % of the trials were discarded, so the experiment is invalid.", "red")
        )
    return lines
