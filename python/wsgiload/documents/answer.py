"""The conclusion of an experiment, and the ranking on which it is based."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, PositiveInt


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
