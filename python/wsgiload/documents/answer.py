"""The conclusion of an experiment, the ranking on which it is based, and recommendations."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)


class RankedService(Document, frozen=True, kw_only=True):
    """CPU use of a supporting service while one server was measured at one load level."""

    name: str
    """Name of the service, as in `[services.NAME]`. Source: plan."""
    cpu_cores_mean: NonNegativeFloat | None
    """CPU use of the service, median over runs. Unit: cores. Source: cgroup. Null: not measured."""


class RankingEntry(Document, frozen=True, kw_only=True):
    """The result of one server at one load level."""

    label: str
    """Name of the server, as in the identifiers of its trials. Source: cells."""
    cell_ids: tuple[str, ...]
    """Identifiers of the trials on which this entry is based, without discarded trials. Empty if
    all trials were discarded; the figures are then those of the discarded trials. Source: cells."""
    status: Literal["ranked", "errors", "overloaded", "invalid", "failed"]
    """`ranked`; `errors` (more errors than the objective allows or, without an objective, errors
    although another server had none); `overloaded` (in at least one run, the cell failed, fewer
    than 99 % of the requests got a correct response or, in an open loop, the goodput was below 95 %
    of the offered rate); `invalid` (the server responded, but the generator, the host or the plan
    made every run invalid); or `failed` (in every run, the cell failed or no request got a correct
    response). In a race, one such run of at least four does not matter. Source: cells."""
    value_ns: NonNegativeFloat | None
    """p99 over all scheduled requests: the geometric mean over four or more runs if all have finite
    values, otherwise the median over runs. Unit: ns. Source: cells. Null: no finite value, or
    nothing was measured."""
    interval_ns: tuple[NonNegativeFloat, NonNegativeFloat | None] | None
    """Lower and upper end of a 95 % confidence interval of p99. With four or more runs, it is the
    interval of the geometric mean over runs and includes run-to-run variation. With fewer runs, the
    interval spans the confidence intervals of all runs; the generator's contribution to p99 is
    first subtracted from the lower end of each run's interval. An unbounded upper end is null.
    Unit: ns. Source: cells. Null: there is no interval."""
    goodput_per_s: NonNegativeFloat | None
    """Correct responses per second, median over runs. Unit: 1/s. Source: cells. Null: nothing was
    measured."""
    p50_ns: NonNegativeFloat | None
    """p50 over all scheduled requests, median over runs. Unit: ns. Source: cells. Null: no finite
    value, or nothing was measured."""
    cpu_cores_mean: NonNegativeFloat | None
    """CPU use of the server, median over runs. Unit: cores. Source: cgroup. Null: not measured."""
    memory_peak_bytes: NonNegativeInt | None
    """Peak memory of the server, maximum over runs. Unit: bytes. Source: cgroup. Null: not
    measured."""
    workers: PositiveInt | None
    """Number of worker processes that the settings request. Unit: processes. Source: settings.
    Null: the server has no such setting, its default applies, or the number for the user's own
    server is unknown."""
    threads: PositiveInt | None
    """Number of threads per worker that the settings request. Unit: threads. Source: settings.
    Null: the server has no such setting, its default applies, or the number for the user's own
    server is unknown."""
    tied_with: tuple[str, ...]
    """Ranked servers at this load level whose difference from this server is within the noise; both
    confidence intervals are bounded. Source: comparisons that exclude a difference of 30 %; with
    fewer than four runs, overlapping confidence intervals or, in a closed loop, goodputs within
    10 %; in a race without a winner, the contenders."""
    undecided_with: tuple[str, ...] = ()
    """Ranked servers at this load level whose order relative to this server is not known: with at
    least four runs, the difference is not significant, but may exceed 30 %; with fewer, a
    confidence interval of p99 is unbounded or missing, and neither p50 nor p90 differs clearly.
    Source: cells, comparisons."""
    error_ratio: NonNegativeFloat = 0.0
    """Share of the scheduled requests that failed, except requests that the generator did not send
    or stopped waiting for at the end. Source: outcomes."""
    few_requests_beyond: bool = False
    """Whether, in at least one run, fewer than ten requests were slower than the p99 of the run.
    Source: cells."""
    services: tuple[RankedService, ...] = ()
    """CPU use of the supporting services. Source: cells."""


class RankingLevel(Document, frozen=True, kw_only=True):
    """The ranking of all servers with one app at one load level."""

    level: str
    """The load level as text: `3,000/s` or `50 connections`. Source: plan."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections in a closed loop. Unit: connections. Source: plan. Null: open loop."""
    app: str | None
    """The app of the servers. Source: cells. Null: unknown."""
    entries: tuple[RankingEntry, ...]
    """Results of the servers, the best first: by p99 or, in a closed loop, by goodput. In a race,
    the servers that dropped out follow the contenders. Servers that are not ranked come last."""


class Answer(Document, frozen=True, kw_only=True):
    """The conclusion of the sweep."""

    question: str
    """The question that the sweep answers. Source: plan."""
    status: Literal["decided", "tie", "undecided"]
    """`decided`, `tie` (differences are within the noise) or `undecided`. Source: ranking,
    comparisons, recommendations."""
    sentence: str
    """The conclusion as text."""
    command_line: str | None
    """Commands that start the recommended server with its settings, one per line. The last command
    starts the server; the commands before it must run first. With several apps and an objective,
    the commands start the recommended server of the first app that has one. Source: settings. Null:
    stored by an older version, no server is recommended, or several apps without an objective."""
    needs: str | None
    """What is needed for a decision, or to meet an objective that was missed. Null: neither is
    needed, or nothing was measured."""
    warnings: tuple[str, ...]
    """Warnings about the conclusion, the most important first."""
    ranking: tuple[RankingLevel, ...]
    """The ranking at each load level, the highest level first."""
    command_of: str | None = None
    """Name of the server that `command_line` starts. Source: ranking. Null: `command_line` is
    null."""


class NoRecommendation(Document, frozen=True, kw_only=True):
    """Why no configuration is recommended, and what is needed for a recommendation."""

    reason: str
    """Why no configuration can be recommended. Source: cells."""
    needs: str
    """What is needed for a recommendation. Source: cells."""
    is_missed: bool
    """Whether no configuration meets the objective ([exit code](results.md#exit-codes) 99). Source:
    cells."""


class MemoryHeadroom(Document, frozen=True, kw_only=True):
    """Peak memory and memory limit of the recommended configuration."""

    peak_bytes: NonNegativeInt | None
    """Peak memory of the server: in a sweep, over all rates; in a race with an objective or a
    capacity search, at the recommended rate. Unit: bytes. Source: cgroup. Null: not measured."""
    limit_bytes: NonNegativeInt | None
    """Memory limit of the server. Unit: bytes. Source: cgroup. Null: no limit."""


class CpuHeadroom(Document, frozen=True, kw_only=True):
    """CPU use and CPU limit of the recommended configuration."""

    cores_mean: NonNegativeFloat | None
    """CPU use at the recommended rate, mean over runs; in a capacity search, maximum over trials.
    Unit: cores. Source: cgroup. Null: not measured."""
    limit_cores: NonNegativeFloat | None
    """CPU limit of the server. Unit: cores. Source: cgroup. Null: no limit, or a capacity
    search."""


class RecommendedConfiguration(Document, frozen=True, kw_only=True):
    """The recommended configuration and the reasons for recommending it."""

    server: str
    """Name of the configuration, as in the identifiers of its trials. Source: cells."""
    rate_per_s: PositiveFloat
    """Highest rate such that this configuration meets the objective at this rate and at all lower
    measured rates; in a capacity search, the capacity. Unit: 1/s. Source: cells."""
    figure: str
    """The figure to which `estimate` and `interval_95` refer: the highest quantile of the
    objective, `error_rate` if the objective has no quantile, or `capacity` in a capacity search.
    Source: objective."""
    estimate: NonNegativeFloat | None
    """Estimate of `figure`: geometric mean of the quantile over the runs (ns), or the estimated
    capacity (1/s). Unit: ns, or 1/s. Source: cells. Null: `figure` is `error_rate`, or the capacity
    could not be estimated."""
    interval_95: tuple[NonNegativeFloat, NonNegativeFloat] | None
    """Lower and upper end of the 95 % confidence interval of `estimate`; for a quantile, a
    [confidence interval over runs](terminology.md#statistics) (Student's t; in a race with an
    objective, adjusted for the interim analyses). Unit: ns, or 1/s. Source: cells. Null: unknown or
    unbounded."""
    runs: PositiveInt
    """Number of conclusive runs at `rate_per_s`; in a capacity search, number of
    open-loop trials. Unit: runs, or trials. Source: cells."""
    disturbed: NonNegativeInt
    """Number of runs that met the objective although the generator or the host was disturbed; in a
    capacity search, always 0. Unit: runs. Source: cells."""
    memory: MemoryHeadroom
    """Peak memory and memory limit. Unit: bytes. Source: cgroup."""
    runner_up: str | None
    """Name of the configuration with the second-highest `rate_per_s`. Source: cells. Null:
    `also_meets` is not empty, no other configuration meets the objective at any of the rates,
    or a race with an objective."""
    tied: tuple[str, ...]
    """Configurations that also meet the objective and need about the same resources. Their
    differences in performance are within the noise. Source: cells."""
    min_requests_beyond: NonNegativeInt | None
    """Number of requests slower than the quantile in `figure`, minimum over runs. Reports show this
    number if it is below ten. Unit: requests. Source: cells. Null: the objective has no quantile,
    or a capacity search found the rate."""
    also_meets: tuple[str, ...] = ()
    """All other configurations that meet the objective at `rate_per_s`, the leanest first. Source:
    cells."""
    cpu: CpuHeadroom | None = None
    """CPU use at `rate_per_s`, and the CPU limit. Unit: cores. Source: cgroup. Null: stored by an
    older version."""
    needs: str | None = None
    """What is needed for a conclusive result, if the configuration met the objective in every run
    but there were too few runs, or a leaner one or a higher rate was not decided. Source: cells.
    Null: the result is conclusive."""


class Recommendation(Document, frozen=True, kw_only=True):
    """The recommended configuration for an app
    ([capacity.md](capacity.md#choosing-a-configuration))."""

    app: str | None
    """The app as `module:callable`. Source: cells. Null: unknown."""
    objective: tuple[str, ...]
    """The conditions of the objective. Source: plan."""
    recommended: RecommendedConfiguration | None
    """The recommended configuration. Source: cells. Null: there is no recommendation (see
    `no_recommendation`)."""
    no_recommendation: NoRecommendation | None
    """Why there is no recommendation. Source: cells. Null: there is a recommendation."""
