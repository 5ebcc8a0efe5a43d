"""``summary.json`` of a sweep."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.answer import Answer
from wsgiload.documents.base import Document
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.experiment_facts import ExperimentFacts
from wsgiload.documents.over_cells import (
    Aggregate,
    Comparison,
    Efficiency,
    ExperimentValidity,
    InterventionResult,
    Overload,
    Race,
)
from wsgiload.documents.recommendation import Recommendation


class Summary(Document, frozen=True, kw_only=True):
    """The summary of a sweep. Unless a key states another unit, times are in nanoseconds,
    timestamps are readings of CLOCK_MONOTONIC, sizes are in bytes, and rates are per second.
    Unknown values are null, never 0. For a capacity search, `summary.json` contains only the
    trials: all keys after `cells` are null."""

    schema_version: Literal[1]
    """Version of the document format: 1."""
    status: Literal["complete", "interrupted", "failed"]
    """`complete`, `interrupted` (some trials are missing) or `failed`."""
    experiment: ExperimentFacts
    """The plan of the sweep. Source: plan."""
    order: tuple[str, ...]
    """Identifiers of the planned trials, in the planned order. Source: seed."""
    seed: int | None
    """Seed of the order and of the arrivals. Source: plan."""
    cells: tuple[CellResult, ...]
    """Results of all trials."""
    aggregates: tuple[Aggregate, ...] | None = None
    """Results of each server at each load level, over all runs. Source: cells. Null: the sweep has
    not ended."""
    comparisons: tuple[Comparison, ...] | None = None
    """Comparisons of two servers at one load level; empty with fewer than four runs, except in a
    race. Source: cells. Null: the sweep has not ended."""
    races: tuple[Race, ...] | None = None
    """The race at each load level. Source: cells. Null: no `--budget`, or the sweep has not
    ended."""
    overload: tuple[Overload, ...] | None = None
    """Results of the servers that were [saturated](terminology.md#rates) at some load level.
    Source: cells. Null: the sweep has not ended."""
    efficiency: tuple[Efficiency, ...] | None = None
    """The most efficient rate of each server that was measured at three or more rates. Source:
    cells. Null: the sweep has not ended."""
    recommendations: tuple[Recommendation, ...] | None = None
    """The recommended configuration for each app; empty without `--slo`. Source: cells, `slo`.
    Null: the sweep has not ended."""
    validity: ExperimentValidity | None = None
    """The discarded trials, and whether the experiment is valid despite them. Source: cells. Null:
    the sweep has not ended."""
    answer: Answer | None = None
    """The conclusion of the sweep. Source: cells, comparisons. Null: stored by an older version, or
    the sweep has not ended."""
    interventions: tuple[InterventionResult, ...] | None = None
    """The effect of removing a limit, for each server and load level. Source: `--intervene`. Null:
    not requested, or the sweep was interrupted before its first pair of runs."""
