"""The conclusion of an experiment, and the ranking that it rests on."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, PositiveInt


class RankedService(Document, frozen=True, kw_only=True):
    """CPU use of a supporting service while one server was measured at one load level."""

    name: str
    """As in `[services.NAME]`. Source: plan."""
    cpu_cores_mean: NonNegativeFloat | None
    """CPU use, median over runs. Unit: cores. Source: cgroup. Null: not measured."""


class RankingEntry(Document, frozen=True, kw_only=True):
    """One server at one load level."""

    label: str
    """The server, as in the identifiers of its cells. Source: cells."""
    cell_ids: tuple[str, ...]
    """The cells that count. Source: cells."""
    status: Literal["ranked", "overloaded", "invalid", "failed"]
    """`ranked`; `overloaded` (goodput below 95 % of the scheduled rate, or less than 99 % correct
    responses); `invalid` (it responded, but the generator or the host made every run invalid); or
    `failed` (no result). Source: cells."""
    value_ns: NonNegativeFloat | None
    """p99 over all offered requests, median over runs. Unit: ns. Source: cells. Null: no finite
    value, or nothing was measured."""
    interval_ns: tuple[NonNegativeFloat, NonNegativeFloat | None] | None
    """95 % confidence interval of `value_ns`: over runs with four or more runs, otherwise the
    widest within a run, with the lower end reduced by the generator's contribution. Unit: ns.
    Source: cells. Null: as `value_ns`."""
    goodput_per_s: NonNegativeFloat | None
    """Correct responses, median over runs. Unit: 1/s. Source: cells. Null: nothing was
    measured."""
    p50_ns: NonNegativeFloat | None
    """p50 over all offered requests, median over runs. Unit: ns. Source: cells. Null: as
    `value_ns`."""
    cpu_cores_mean: NonNegativeFloat | None
    """CPU use, median over runs. Unit: cores. Source: cgroup. Null: not measured."""
    memory_peak_bytes: NonNegativeInt | None
    """Peak memory, highest of the runs. Unit: bytes. Source: cgroup. Null: not measured."""
    workers: PositiveInt | None
    """As in `settings`. Source: settings. Null: as in `settings`."""
    threads: PositiveInt | None
    """As in `settings`. Source: settings. Null: as in `settings`."""
    tied_with: tuple[str, ...]
    """Ranked servers at this load level whose difference from this one is within the noise. Source:
    comparisons, or overlapping intervals with fewer than four runs."""
    few_requests_beyond: bool = False
    """Whether fewer than ten requests of some run lie beyond `value_ns`. Source: cells."""
    services: tuple[RankedService, ...] = ()
    """The supporting services. Source: cells."""


class RankingLevel(Document, frozen=True, kw_only=True):
    """All servers with one app at one load level, the best first."""

    level: str
    """The load level as text: `3,000/s` or `50 connections`. Source: plan."""
    rate: NonNegativeFloat | None
    """Offered rate. Unit: 1/s. Source: plan. Null: closed loop."""
    connections: NonNegativeInt | None
    """Number of connections. Unit: connections. Source: plan. Null: open loop."""
    app: str | None
    """The app that the servers served. Source: cells. Null: not recorded."""
    entries: tuple[RankingEntry, ...]
    """Ordered by p99, or by goodput in a closed loop; unranked servers last."""


class Answer(Document, frozen=True, kw_only=True):
    """The conclusion of the experiment."""

    question: str
    """The question. Source: plan."""
    status: Literal["decided", "tie", "undecided"]
    """`decided`, `tie` (differences are within the noise) or `undecided`. Source: ranking,
    comparisons, recommendations."""
    sentence: str
    """The conclusion as text."""
    command_line: str | None
    """The commands that start the recommended server with its settings, one per line. The last one
    starts the server; the others prepare for it. Source: settings. Null: no recommendation, or
    measured by an older version."""
    needs: str | None
    """What is needed for a decision. Null: decided."""
    warnings: tuple[str, ...]
    """Warnings about the conclusion, the most important first."""
    ranking: tuple[RankingLevel, ...]
    """All load levels, the highest first."""
    command_of: str | None = None
    """The server that `command_line` starts. Source: ranking. Null: as `command_line`."""
