"""Conclusions from several cells: over runs, between servers, over rates."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from wsgiload.documents.cell_result import CellResult


class AggregateFigure(Document, frozen=True, kw_only=True):
    """A quantile over all offered requests (ns), or a goodput (1/s), over several runs."""

    values: tuple[NonNegativeFloat | None, ...]
    """One value per run, in the order of `runs`. Unit: ns, or 1/s. Source: cells. Null: no finite
    value, or too few requests."""
    median: NonNegativeFloat | None
    """Median of the runs; a run without a finite value counts as infinite. Unit: ns, or 1/s.
    Source: values. Null: no finite value in half of the runs."""
    min: NonNegativeFloat | None
    """Lowest run. Unit: ns, or 1/s. Source: values. Null: no run has a finite value."""
    max: NonNegativeFloat | None
    """Highest run. Unit: ns, or 1/s. Source: values. Null: a run has no finite value."""
    mean: NonNegativeFloat | None
    """Geometric mean. Unit: ns, or 1/s. Source: values. Null: see `reason`."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """95 % confidence interval of the geometric mean (Student's t on logarithms): low, high. Unit:
    ns, or 1/s. Source: values. Null: see `reason`."""
    between_run_cv: NonNegativeFloat | None
    """Coefficient of variation between runs (lognormal). Unit: share. Source: values. Null: see
    `reason`."""
    between_run_share: Share | None = None
    """Share of the variance (of logarithms) that is due to differences between runs; the rest is
    the sampling error within runs. Unit: 0 to 1. Source: values, `uncertainty` of the cells. Null:
    see `reason`, a goodput, or a run without a confidence interval."""
    trimmed_mean: NonNegativeFloat | None
    """Arithmetic mean without the lowest and the highest run. Unit: ns, or 1/s. Source: values.
    Null: not requested (`--aggregate trim`), or fewer than three runs."""
    reason: str | None
    """Why there is no interval. Source: values. Null: there is an interval."""


class ComparedFigure(Document, frozen=True, kw_only=True):
    """Another figure of the two compared servers, evaluated in the same way."""

    figure: Literal["p50", "p99", "p99.9", "goodput"]
    """Compared figure. Source: plan."""
    factor: NonNegativeFloat
    """Ratio: the first server's figure divided by the second's. Unit: ratio. Source: rounds."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat]
    """95 % confidence interval of the ratio: low, high. Unit: ratio. Source: rounds."""
    p_adjusted: Share
    """p-value, adjusted for all pairs with this app at this load level. Unit: 0 to 1. Source:
    rounds."""
    margin: NonNegativeFloat
    """As in the comparison. Unit: share. Source: rounds."""
    conclusion: Literal["different", "same", "undecided"]
    """`different`, `same` (within 5 %) or `undecided`. Source: rounds."""


class Comparison(Document, frozen=True, kw_only=True):
    """Two servers with one app at one load level, paired by round."""

    first: str
    """The first server. Source: cells."""
    second: str
    """The second server. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None = None
    """The app that both served. Source: cells. Null: different apps in two stored runs."""
    figure: Literal["p50", "p99", "p99.9", "goodput"]
    """Compared figure: `p99` in an open loop, `goodput` in a closed loop, or the one chosen.
    Source: plan."""
    rounds: NonNegativeInt
    """Rounds in which both have a valid result. Source: cells."""
    same_server: bool
    """Whether both are the same server under two names (A/A test). Source: catalogue."""
    factor: NonNegativeFloat | None
    """Ratio: the first server's figure divided by the second's; for two stored runs without an
    interval, the ratio of their medians. Unit: ratio. Source: rounds. Null: see `reason`."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """95 % confidence interval of the ratio: low, high. Unit: ratio. Source: rounds. Null: see
    `reason`."""
    p: Share | None
    """p-value of a two-sided paired t test; for two stored runs, of a permutation test. Unit: 0 to
    1. Source: rounds. Null: see `reason`."""
    p_adjusted: Share | None
    """p-value, Holm-adjusted for all pairs with this app at this load level. Unit: 0 to 1. Source:
    rounds. Null: see `reason`."""
    aa_factor: float | None
    """A/A ratio: one server compared with itself, with this app at this load level. Unit: ratio.
    Source: rounds. Null: no server was measured under two names."""
    margin: NonNegativeFloat | None = None
    """The two differ by at most this share, with 95 % confidence (0.09 is 9 %); two one-sided
    tests. Unit: share. Source: rounds. Null: see `reason`, or stored by an older version."""
    conclusion: Literal["different", "same", "undecided", "no inference"]
    """`different`, `same` (within 5 %), `undecided` or `no inference`. Source: rounds."""
    reason: str | None
    """Why no conclusion is possible, or why a difference is not reported. Source: rounds. Null:
    neither applies."""
    relative_rate: NonNegativeFloat | None
    """The rate divided by the lower of the two servers' saturated goodputs. Unit: share. Source:
    cells. Null: closed loop, sessions, or one of the servers was never saturated."""
    others: tuple[ComparedFigure, ...] = ()
    """Comparisons of p50, p99 and goodput, without the one in `figure`. A comparison is present if
    its values are known in every round. Source: rounds."""


class RaceDropout(Document, frozen=True, kw_only=True):
    """Why a server dropped out of a race. Dropping out is not proof that it is slower."""

    server: str
    """The server. Source: cells."""
    rounds: PositiveInt
    """Rounds until it dropped out. Unit: rounds. Source: cells."""
    behind: str | None
    """The server that was ahead of it. Source: cells. Null: it failed in two rounds."""
    factor: NonNegativeFloat | None
    """Ratio to that server's figure over their common rounds. Unit: ratio. Source: cells. Null: as
    `behind`."""
    in_qualifying: bool = False
    """Whether it dropped out in the short trials before the race; `rounds` then counts these.
    Source: cells."""


class Race(Document, frozen=True, kw_only=True):
    """A race within a budget between the servers with one app at one load level."""

    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None
    """The app that the servers served. Source: cells. Null: not recorded."""
    outcome: Literal["winner", "ties", "undecided", "failed"]
    """`winner`, `ties` (more rounds are unlikely to separate the contenders), `undecided` (the
    budget ran out first) or `failed` (every server failed). Source: cells."""
    contenders: tuple[str, ...]
    """The servers that did not drop out, the fastest first. Source: cells."""
    dropped_out: tuple[RaceDropout, ...]
    """The servers that dropped out. Source: cells."""
    margin: NonNegativeFloat | None
    """Maximum difference between the contenders and the first, with 95 % confidence (0.09 is 9 %).
    Unit: share. Source: cells. Null: a winner, or too few rounds."""
    rounds_left: PositiveInt | None
    """Expected number of further rounds until a decision. Unit: rounds. Source: cells. Null:
    decided, or more than the maximum number of rounds."""


class OverloadPoint(Document, frozen=True, kw_only=True):
    """One rate above the maximum goodput."""

    rate: NonNegativeFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    relative_rate: float
    """The rate divided by the maximum goodput. Unit: share. Source: cells."""
    goodput_per_s: NonNegativeFloat
    """Correct responses. Unit: 1/s. Source: cells."""
    goodput_ratio: Share
    """Goodput divided by the maximum goodput: 1 means that the goodput was kept, 0 that it
    collapsed. Unit: 0 to 1. Source: cells."""


class Overload(Document, frozen=True, kw_only=True):
    """A saturated server in an open loop, as medians over runs; not available for sessions."""

    server: str
    """A server whose goodput was below 95 % of the scheduled rate in every run at some rate.
    Source: cells."""
    max_goodput_per_s: NonNegativeFloat
    """Its highest goodput at any rate. Unit: 1/s. Source: cells."""
    points: tuple[OverloadPoint, ...]
    """The rates above that goodput. Source: cells."""


class EfficiencyPoint(Document, frozen=True, kw_only=True):
    """The efficiency at one rate."""

    rate: NonNegativeFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    efficiency_per_s2: NonNegativeFloat
    """Median over runs. Unit: 1/s². Source: cells."""


class Efficiency(Document, frozen=True, kw_only=True):
    """Efficiency in an open loop: goodput divided by the mean response time of the correct
    responses. It is 0 if the server or more than 1 % of the requests failed."""

    server: str
    """A server that was measured at three rates or more. Source: cells."""
    rate: NonNegativeFloat | None
    """The offered rate with the highest efficiency (median over runs). Unit: 1/s. Source: cells.
    Null: see `reason`."""
    between: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """The next lower and the next higher measured rate; a wider range if runs disagree. Unit: 1/s.
    Source: cells. Null: see `reason`."""
    points: tuple[EfficiencyPoint, ...]
    """All measured rates. Source: cells."""
    reason: str | None
    """Why the rate is unknown: efficiency peaks at the lowest or the highest measured rate, or
    there were too few correct responses. Source: cells. Null: it is known."""


class InterventionResult(Document, frozen=True, kw_only=True):
    """The effect of removing a limit."""

    limit: Literal["cpu"]
    """The limit that was removed. Source: plan."""
    server: str
    """The server, with its variant and size. Source: plan."""
    rate: NonNegativeFloat | None
    """As in a cell. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """As in a cell. Unit: connections. Source: plan. Null: open loop."""
    pairs: NonNegativeInt
    """Pairs of runs that were started."""
    valid_pairs: NonNegativeInt
    """Pairs in which both runs are valid and have the quantile."""
    quantile: NonNegativeFloat | None
    """The compared quantile: the highest for which every valid run has enough requests, otherwise
    the median. Unit: 0 to 1. Null: no usable pair."""
    factor: NonNegativeFloat | None
    """Ratio: the quantile without the limit divided by the quantile with it; geometric mean over
    pairs. Source: headline quantiles. Null: no usable pair."""
    low: NonNegativeFloat | None
    """Lower 95 % bound, by Student's t on logarithms. Source: the same. Null: fewer than four
    pairs."""
    high: NonNegativeFloat | None
    """Upper 95 % bound. Source: the same. Null: fewer than four pairs."""
    sentences: tuple[str, ...]
    """The result as sentences."""
    with_limit: tuple[CellResult, ...]
    """The runs with the limit, pair by pair. Unit: as cells."""
    without_limit: tuple[CellResult, ...]
    """The runs without the limit, pair by pair. Unit: as cells."""


class AggregateFigures(Document, frozen=True, kw_only=True):
    """The figures of one server at one load level, over its runs."""

    p50: AggregateFigure
    """The median."""
    p99: AggregateFigure
    """p99."""
    p99_9: AggregateFigure = msgspec.field(name="p99.9")
    """p99.9."""
    goodput: AggregateFigure
    """Correct responses per second."""


class Aggregate(Document, frozen=True, kw_only=True):
    """One server at one load level over its runs, without discarded trials."""

    server: str
    """The server, as in a cell's `id`. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    runs: tuple[PositiveInt, ...]
    """Numbers of the valid runs. Source: cells."""
    discarded: NonNegativeInt
    """Number of discarded trials. Unit: trials. Source: cells."""
    figures: AggregateFigures
    """`p50`, `p99`, `p99.9` over all offered requests (upper bounds), and `goodput`. Source:
    cells."""


class DiscardedTrial(Document, frozen=True, kw_only=True):
    """A trial that does not count."""

    id: str
    """The cell."""
    reason: str
    """Why it does not count."""


class ExperimentValidity(Document, frozen=True, kw_only=True):
    """The discarded trials, and whether there were so many that the experiment is invalid."""

    status: Literal["valid", "invalid"]
    """`invalid` if more than 20 % of the trials of several runs were invalid. Source: cells."""
    trials: NonNegativeInt
    """Number of trials, including reruns. Unit: trials. Source: cells."""
    discarded: tuple[DiscardedTrial, ...]
    """The trials invalidated by the generator, the host or the plan, and those that were repeated
    because the host was disturbed. Source: cells."""
