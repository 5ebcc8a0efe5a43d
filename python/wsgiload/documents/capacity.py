"""``capacity.json`` of a capacity search."""

from __future__ import annotations

from typing import Literal

from wsgiload.documents.base import (
    Document,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from wsgiload.documents.load_report import Verdict
from wsgiload.documents.summary import CellFailure, Recommendation


class UseAtCapacity(Document, frozen=True, kw_only=True):
    """UseAtCapacity."""

    memory_peak_bytes: NonNegativeInt | None
    """TODO."""
    memory_limit_bytes: NonNegativeInt | None
    """TODO."""
    cpu_cores_mean: NonNegativeFloat | None
    """TODO."""


class CapacityTrial(Document, frozen=True, kw_only=True):
    """CapacityTrial."""

    cell: str
    """TODO."""
    phase: Literal["guess", "bracket", "bisect", "confirm"]
    """TODO."""
    rate_per_s: PositiveFloat | None
    """TODO."""
    connections: PositiveInt | None
    """TODO."""
    met: bool | None
    """TODO."""
    discarded: bool
    """TODO."""
    doubtful: bool
    """TODO."""
    why: str
    """TODO."""


class ServerCapacity(Document, frozen=True, kw_only=True):
    """ServerCapacity."""

    server: str
    """TODO."""
    app: str | None = None
    """TODO."""
    rate_per_s: PositiveFloat | None
    """TODO."""
    bracket: tuple[PositiveFloat | None, PositiveFloat | None]
    """TODO."""
    confirmed: tuple[NonNegativeInt, NonNegativeInt] | None
    """TODO."""
    verdict: Verdict
    """TODO."""
    estimate_per_s: PositiveFloat | None
    """TODO."""
    interval_95: tuple[NonNegativeFloat | None, NonNegativeFloat | None] | None
    """TODO."""
    strict_per_s: PositiveFloat | None
    """TODO."""
    at_rate: UseAtCapacity | None
    """TODO."""
    failure: CellFailure | None
    """TODO."""
    trials: tuple[CapacityTrial, ...]
    """TODO."""


class CapacityResult(Document, frozen=True, kw_only=True):
    """Found on the app `conformance`, with the settings of the cell."""

    schema_version: Literal[2]
    """TODO."""
    status: Literal["complete", "interrupted", "failed"]
    """TODO."""
    slo: tuple[str, ...]
    """TODO."""
    arrivals: Literal["poisson", "constant"]
    """TODO."""
    keepalive: Literal["on", "off"] | PositiveInt
    """TODO."""
    duration_s: PositiveFloat
    """TODO."""
    confirm_duration_s: PositiveFloat
    """TODO."""
    width: PositiveFloat
    """TODO."""
    url: str | None
    """TODO."""
    servers: tuple[ServerCapacity, ...]
    """TODO."""
    recommendations: tuple[Recommendation, ...]
    """TODO."""
    run_dir: str
    """TODO."""
