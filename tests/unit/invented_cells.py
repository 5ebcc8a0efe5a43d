"""Synthetic cells of summary.json for analyses over servers, load levels and runs."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import Bounds, QuantileUncertainty, Uncertainty

from .filled import exactly, filled_cell, outcomes, rates, verdict

SCHEDULED = 20_000
DURATION_S = 20


def cell(name: str, run: int = 1, p99_ns: float | None = 10e6, **changes: Any) -> CellResult:
    """One valid run at 1,000 requests/s; with ``p99_ns`` None, its quantiles are unbounded."""
    high = None if p99_ns is None else round(p99_ns)
    rate = changes.get("rate", 1000.0)
    level = f"c{changes.get('connections')}" if rate is None else f"{rate:.15g}"

    defaults: dict[str, Any] = {
        "id": f"{name}@{level}#{run}",
        "server": name,
        "variant": "default",
        "profile": "tuned",
        "rate": 1000.0,
        "run": run,
        "duration_s": DURATION_S,
        "verdict": verdict(),
        "rate_result": rates(1000.0),
        "outcomes": outcomes(SCHEDULED),
        "offered_quantiles_ns": {
            quantile: Bounds(low=1_000, high=high) for quantile in ("0.5", "0.99", "0.999")
        },
    }

    return filled_cell(**defaults | changes)


def within(low_ms: float, high_ms: float | None, **others: tuple[float, float]) -> Uncertainty:
    """The interval of p99 within one run and, as ``p50``, that of the median."""
    ends: dict[str, tuple[float, float | None]] = {"0.99": (low_ms, high_ms)}
    ends |= {f"0.{name.removeprefix('p').rstrip('0')}": pair for name, pair in others.items()}
    return Uncertainty(
        offered_quantiles_ns={
            key: QuantileUncertainty(
                interval_95_ns=(round(low * 1e6), None if high is None else round(high * 1e6)),
                effective_requests=None,
                resolution_status="resolved",
                reason=None,
            )
            for key, (low, high) in ends.items()
        },
        response_time_ns={},
    )


def runs_of(name: str, p99s_ns: Sequence[float | None], **changes: Any) -> list[CellResult]:
    """One cell per p99, numbered from run 1."""
    return [cell(name, run, value, **changes) for run, value in enumerate(p99s_ns, start=1)]


def invalid(result: CellResult, blame: str = "client") -> CellResult:
    """This cell with the verdict invalid."""
    return msgspec.structs.replace(result, verdict=verdict("invalid", blame))


def with_p50(cells: Sequence[CellResult], p50s_ns: Mapping[str, float]) -> list[CellResult]:
    """These cells with another median for each server, which varies by 3 % between runs."""
    rng = random.Random(5)
    return [
        msgspec.structs.replace(
            result,
            offered_quantiles_ns=(result.offered_quantiles_ns or {})
            | {"0.5": exactly(p50s_ns[result.server] * math.exp(rng.gauss(0, 0.03)))},
        )
        for result in cells
    ]


def experiment(
    seed: int, means_ns: Mapping[str, float], runs: int = 6, run_effect: float = 0.05
) -> list[CellResult]:
    """Simulated runs of servers with these mean p99s.

    Lognormal noise multiplies each p99: one factor per round and one per run.
    """
    rng = random.Random(seed)
    cells = []
    for run in range(1, runs + 1):
        round_factor_log = rng.gauss(0, run_effect)
        for server, mean_ns in means_ns.items():
            cells.append(
                cell(server, run, mean_ns * math.exp(round_factor_log + rng.gauss(0, run_effect)))
            )
    return cells
