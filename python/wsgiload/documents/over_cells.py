"""Conclusions from several cells: over runs, between servers, over rates."""

from __future__ import annotations

from typing import Literal

import msgspec

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from wsgiload.documents.cell_result import CellResult


class AggregateFigure(Document, frozen=True, kw_only=True):
    """One figure over several runs: a quantile over all scheduled requests (ns), or the goodput
    (1/s)."""

    values: tuple[NonNegativeFloat | None, ...]
    """Values of the runs, in the order of `runs` ([Aggregate](#aggregate)). Unit: ns, or 1/s.
    Source: cells. Null: an entry: no finite value, or too few requests."""
    median: NonNegativeFloat | None
    """Median of the runs with enough requests. A run without a finite value counts as infinite.
    Unit: ns, or 1/s. Source: values. Null: at least half of these runs have no finite value, or no
    run has enough requests."""
    min: NonNegativeFloat | None
    """Lowest value of the runs. Unit: ns, or 1/s. Source: values. Null: no run has a finite
    value."""
    max: NonNegativeFloat | None
    """Highest value of the runs. Unit: ns, or 1/s. Source: values. Null: a run has no finite value,
    or no run has enough requests."""
    mean: NonNegativeFloat | None
    """Geometric mean of the runs. Unit: ns, or 1/s. Source: values. Null: there is no confidence
    interval (see `reason`)."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Lower and upper end of the geometric mean's 95 % confidence interval (Student's t on
    logarithms). Unit: ns, or 1/s. Source: values. Null: there is no confidence interval (see
    `reason`)."""
    between_run_cv: NonNegativeFloat | None
    """Coefficient of variation between runs (lognormal). Unit: ratio. Source: values. Null: there
    is no confidence interval (see `reason`)."""
    between_run_share: Share | None = None
    """Share of the variance (of logarithms) that is due to differences between runs. The rest of
    the variance is the sampling error within runs. Unit: 0 to 1. Source: values, `uncertainty` of
    the cells. Null: the figure is the goodput, the confidence interval within a run is unknown or
    unbounded, or there is no confidence interval over runs (see `reason`)."""
    trimmed_mean: NonNegativeFloat | None
    """Arithmetic mean without the lowest and the highest run. Unit: ns, or 1/s. Source: values.
    Null: not requested (`--aggregate trim`), fewer than three runs, or an entry of `values` is
    null."""
    reason: str | None
    """Why there is no confidence interval. Source: values. Null: there is a confidence interval."""


class ComparedFigure(Document, frozen=True, kw_only=True):
    """An additional comparison of the servers (or stored runs) in a [Comparison](#comparison), by
    another figure but with the same statistical tests."""

    figure: Literal["p50", "p99", "p99.9", "goodput"]
    """The compared figure: `p50`, `p99` or `goodput`. Source: plan."""
    factor: NonNegativeFloat
    """Ratio of the two figures, in the same direction as `factor` in [Comparison](#comparison).
    Unit: ratio. Source: rounds."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat]
    """Lower and upper end of the 95 % confidence interval of `factor`. Unit: ratio. Source:
    rounds."""
    p_adjusted: Share
    """p-value, adjusted for all comparisons of the report, of all figures (weighted Holm
    adjustment). In a race, it is adjusted for all comparisons and interim analyses (Bonferroni's
    adjustment). Unit: 0 to 1. Source: rounds."""
    margin: NonNegativeFloat
    """Upper bound on the relative difference between the two figures, with 95 % confidence, from
    two one-sided tests. Unit: ratio. Source: rounds."""
    conclusion: Literal["different", "same", "undecided"]
    """`different`, `same` (equivalent within 5 %) or `undecided`. Source: rounds."""


class Comparison(Document, frozen=True, kw_only=True):
    """A comparison of two servers with one app at one load level, paired by round; or an unpaired
    comparison of one server at one load level between two stored runs."""

    first: str
    """Name of the first server. Source: cells."""
    second: str
    """Name of the second server. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections in a closed loop. Unit: connections. Source: plan. Null: open loop."""
    app: str | None = None
    """The app of both servers. Source: cells. Null: unknown, or two stored runs with different
    apps."""
    figure: Literal["p50", "p99", "p99.9", "goodput"]
    """The compared figure: by default, `p99` in an open loop and `goodput` in a closed loop; for
    two stored runs with too few requests for p99, `p50`. Source: plan."""
    rounds: NonNegativeInt
    """Number of rounds in which both servers have a trial that was not discarded. For the last two
    servers of a race, only rounds after all other servers dropped out are counted, if there are at
    least four such rounds. For two stored runs: the number of repetitions of the cell in the stored
    run with fewer repetitions. Unit: rounds. Source: cells."""
    same_server: bool
    """Whether both names refer to the same server (A/A test). Always false for two stored runs.
    Source: catalogue."""
    factor: NonNegativeFloat | None
    """The first server's figure divided by the second server's; for two stored runs, the second
    run's figure divided by the first run's. If two stored runs have no confidence interval,
    `factor` is the ratio of the medians. Unit: ratio. Source: rounds. Null: no conclusion is
    possible (see `reason`)."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Lower and upper end of the 95 % confidence interval of `factor`; in a race, adjusted for the
    interim analyses. Unit: ratio. Source: rounds. Null: no conclusion is possible (see
    `reason`)."""
    p: Share | None
    """p-value of a two-sided paired t test or, for two stored runs, of Welch's t test with the
    variance between sessions. In a race, it is adjusted for the interim analyses. Unit: 0 to 1.
    Source: rounds. Null: no conclusion is possible (see `reason`)."""
    p_adjusted: Share | None
    """p-value, adjusted for all comparisons of the report, of all figures (weighted Holm
    adjustment). In a race, it is adjusted for all comparisons and interim analyses (Bonferroni's
    adjustment). Unit: 0 to 1. Source: rounds. Null: no conclusion is possible (see `reason`)."""
    aa_factor: float | None
    """Largest ratio between the figures of one server under two names (A/A test), with this app at
    this load level. Unit: ratio. Source: rounds. Null: in a race, for two stored runs,
    or if no A/A test gave a result."""
    margin: NonNegativeFloat | None = None
    """Upper bound on the relative difference between the two figures, with 95 % confidence, from
    two one-sided tests. Unit: ratio. Source: rounds. Null: stored by an older version, or no
    conclusion is possible (see `reason`)."""
    conclusion: Literal["different", "same", "undecided", "no inference"]
    """`different`, `same` (equivalent within 5 %), `undecided` or `no inference`. Source:
    rounds."""
    reason: str | None
    """Why `conclusion` is `no inference`. Also present if `conclusion` is `undecided` because the
    generator's delay may explain a significant difference. Source: rounds. Null: any other
    conclusion."""
    relative_rate: NonNegativeFloat | None
    """The offered rate divided by the lower of the two servers' maximum goodputs; for two stored
    runs, by the server's maximum goodput. Unit: ratio. Source: cells. Null: closed loop, sessions,
    a race, or a server that was never saturated."""
    session_spread: NonNegativeFloat | None = None
    """Standard deviation of the figure between sessions of an unchanged server, which `interval_95`
    and `p` include. Unit: ratio. Source: stored runs. Null: no stored runs are compared, or no
    conclusion is possible (see `reason`)."""
    session_repeats: NonNegativeInt | None = None
    """Number of repeated stored runs that `session_spread` is learned from; 0: it is assumed. Unit:
    runs. Source: stored runs. Null: as in `session_spread`."""
    others: tuple[ComparedFigure, ...] = ()
    """Comparisons by the other figures (p50, p99, goodput), if both servers have a value in every
    round. Source: rounds."""


class RaceDropout(Document, frozen=True, kw_only=True):
    """A server that dropped out of a race. Dropping out does not prove that the server is
    slower."""

    server: str
    """Name of the server. Source: cells."""
    rounds: PositiveInt
    """Number of rounds after which the server dropped out. Unit: rounds. Source: cells."""
    behind: str | None
    """Name of the server that eliminated this server. Source: cells. Null: this server failed or
    missed the objective."""
    factor: NonNegativeFloat | None
    """This server's p99 divided by the p99 of the server in `behind`; in a closed loop, the goodput
    of the server in `behind` divided by this server's goodput. Geometric mean over the rounds that
    both servers completed. Unit: ratio. Source: cells. Null: `behind` is null, or the race has an
    objective."""


class RaceStanding(Document, frozen=True, kw_only=True):
    """A server compared with the leader of a race, the first of `contenders`."""

    server: str
    """Name of the server. Source: cells."""
    relation: Literal["behind", "tied", "open", "failed"]
    """`behind` (its p99 is larger, or its goodput smaller, with 95 % confidence for all servers
    together), `tied` (the difference is smaller than `margin` of the experiment, with 95 %
    confidence), `open` (neither is certain yet) or `failed` (at least two launches failed). Source:
    cells."""
    rounds: NonNegativeInt
    """Number of blocks on which `factor` is based, without disturbed launches. Unit: blocks.
    Source: cells."""
    factor: NonNegativeFloat | None
    """This server's p99 divided by the leader's; in a closed loop, the leader's goodput divided by
    this server's. Geometric mean over blocks. Unit: ratio. Source: cells. Null: the servers have no
    common block."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Lower and upper end of the 95 % confidence interval of `factor`, valid after every block.
    Unit: ratio. Source: cells. Null: fewer than two common blocks."""


class Race(Document, frozen=True, kw_only=True):
    """A [race](experiments.md#races) (`--budget`) between all servers with one app at one load
    level."""

    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections in a closed loop. Unit: connections. Source: plan. Null: open loop."""
    app: str | None
    """The app of the servers. Source: cells. Null: unknown."""
    outcome: Literal["winner", "ties", "leader", "undecided", "failed"]
    """`winner`, `ties` (the contenders differ by less than the margin), `leader` (no contender is
    better than the first by more than the margin, but which are equal is open), `undecided`
    (the budget or the number of rounds was used up before a decision, or the generator's delay may
    explain the difference) or `failed` (every server failed or, with `--slo`, none meets the
    objective). Source: cells."""
    contenders: tuple[str, ...]
    """Servers that did not drop out, the fastest first or, with `--slo`, the leanest first. Source:
    cells."""
    dropped_out: tuple[RaceDropout, ...]
    """Servers that dropped out. Source: cells."""
    standings: tuple[RaceStanding, ...] = ()
    """All servers but the leader, contenders first. Source: cells. Empty: a race with an
    objective."""
    margin: NonNegativeFloat | None
    """Upper bound on the relative difference between the figures of the first server in
    `contenders` and of any other contender, with 95 % confidence. Unit: ratio. Source: cells. Null:
    the race has a winner or an objective, there were too few rounds, or the generator's delay may
    explain the difference."""
    rounds_left: PositiveInt | None
    """Expected number of further rounds until a decision. Unit: rounds. Source: cells. Null: the
    race is decided or has an objective, there were too few rounds, a decision would need more than
    the maximum number of rounds, or the generator's delay may explain the difference."""


class OverloadPoint(Document, frozen=True, kw_only=True):
    """One offered rate above the server's maximum goodput."""

    rate: NonNegativeFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    relative_rate: float
    """The offered rate divided by the maximum goodput. Unit: ratio. Source: cells."""
    goodput_per_s: NonNegativeFloat
    """Correct responses per second. Unit: 1/s. Source: cells."""
    goodput_ratio: Share
    """Goodput divided by the maximum goodput: 1 if overload does not reduce the goodput, 0 if
    overload leaves no goodput. Unit: 0 to 1. Source: cells."""


class Overload(Document, frozen=True, kw_only=True):
    """The behavior of a [saturated](terminology.md#rates) server in an open loop, as medians over
    runs. Sweeps with sessions have no entries in `overload`."""

    server: str
    """Name of the server. At some offered rate, the server was saturated in every run. Source:
    cells."""
    max_goodput_per_s: NonNegativeFloat
    """The server's highest goodput over all rates. Unit: 1/s. Source: cells."""
    points: tuple[OverloadPoint, ...]
    """Results at the offered rates above `max_goodput_per_s`. Source: cells."""


class EfficiencyPoint(Document, frozen=True, kw_only=True):
    """The efficiency of a server at one rate."""

    rate: NonNegativeFloat
    """Offered rate. Unit: 1/s. Source: plan."""
    efficiency_per_s2: NonNegativeFloat
    """Efficiency, median over runs. Unit: 1/s². Source: cells."""


class Efficiency(Document, frozen=True, kw_only=True):
    """The efficiency of a server in an open loop: goodput divided by the mean response time of the
    correct responses. The efficiency is 0 if the server failed or if more than 1 % of the requests
    failed."""

    server: str
    """Name of a server that was measured at three or more rates. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate at which the median efficiency of the runs is highest. Unit: 1/s. Source: cells.
    Null: the rate is unknown (see `reason`)."""
    between: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Range that contains the most efficient rate, from the next lower to the next higher measured
    rate. If the efficiency peaks at different rates in different runs, the range covers all peaks.
    Unit: 1/s. Source: cells. Null: the rate is unknown (see `reason`)."""
    points: tuple[EfficiencyPoint, ...]
    """Efficiency at every measured rate. Source: cells."""
    reason: str | None
    """Why the most efficient rate is unknown: the efficiency peaks at the lowest or the highest
    measured rate, or there were too few correct responses. Source: cells. Null: the rate is
    known."""


class InterventionResult(Document, frozen=True, kw_only=True):
    """The effect of removing a limit from one server at one load level, measured in pairs of runs:
    one run with the limit and one without."""

    limit: Literal["cpu"]
    """The limit that was removed: `cpu`. Source: plan."""
    server: str
    """Name of the server, as in the identifiers of its trials. Source: plan."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections in a closed loop. Unit: connections. Source: plan. Null: open loop."""
    pairs: NonNegativeInt
    """Number of pairs that were started. Unit: pairs."""
    valid_pairs: NonNegativeInt
    """Number of pairs in which neither run is invalid and both have a value for `quantile`. Unit:
    pairs."""
    quantile: NonNegativeFloat | None
    """The compared quantile: p99 or, if a valid run has too few requests, p90 or the median. Unit:
    0 to 1. Null: no valid pair."""
    factor: NonNegativeFloat | None
    """The quantile without the limit divided by the quantile with the limit; geometric mean over
    the valid pairs. Unit: ratio. Source: quantiles over all scheduled requests. Null: no valid
    pair."""
    low: NonNegativeFloat | None
    """Lower end of the 95 % confidence interval of `factor` (Student's t on logarithms). Unit:
    ratio. Source: quantiles over all scheduled requests. Null: fewer than four valid pairs."""
    high: NonNegativeFloat | None
    """Upper end of the 95 % confidence interval of `factor` (Student's t on logarithms). Unit:
    ratio. Source: quantiles over all scheduled requests. Null: fewer than four valid pairs."""
    sentences: tuple[str, ...]
    """The result as sentences."""
    with_limit: tuple[CellResult, ...]
    """Runs with the limit, one for each complete pair ([CellResult](#cellresult))."""
    without_limit: tuple[CellResult, ...]
    """Runs without the limit, one for each complete pair, in the same order as in `with_limit`
    ([CellResult](#cellresult))."""


class AggregateFigures(Document, frozen=True, kw_only=True):
    """The figures of one server at one load level, over its runs."""

    p50: AggregateFigure
    """Median response time. Unit: ns."""
    p99: AggregateFigure
    """p99 response time. Unit: ns."""
    p99_9: AggregateFigure = msgspec.field(name="p99.9")
    """p99.9 response time. Unit: ns."""
    goodput: AggregateFigure
    """Correct responses per second. Unit: 1/s."""


class Aggregate(Document, frozen=True, kw_only=True):
    """The results of one server at one load level over all runs, excluding discarded trials and the
    short trials before a race."""

    server: str
    """Name of the server, as in the identifiers of its trials. Source: cells."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections in a closed loop. Unit: connections. Source: plan. Null: open loop."""
    runs: tuple[PositiveInt, ...]
    """Numbers of the runs with a trial that was not discarded. Source: cells."""
    discarded: NonNegativeInt
    """Number of trials that the generator, the host or the plan made invalid. Unit: trials. Source:
    cells."""
    figures: AggregateFigures
    """Quantiles over all scheduled requests (upper [bounds](terminology.md#statistics)), and
    goodput. Source: cells."""


class DiscardedTrial(Document, frozen=True, kw_only=True):
    """A trial that was discarded."""

    id: str
    """Identifier of the trial."""
    reason: str
    """Why the trial was discarded."""


class ExperimentValidity(Document, frozen=True, kw_only=True):
    """The discarded trials, and whether the experiment is valid despite them."""

    status: Literal["valid", "invalid"]
    """`invalid` if the experiment has several runs, and the generator, the host or the plan made
    more than 20 % of the trials invalid; otherwise `valid`. Source: cells."""
    trials: NonNegativeInt
    """Number of trials, including reruns, but without the short trials before a race. Unit: trials.
    Source: cells."""
    discarded: tuple[DiscardedTrial, ...]
    """All discarded trials: trials that the generator, the host or the plan made invalid, and all
    but the least disturbed attempt of a repeated trial. Source: cells."""
