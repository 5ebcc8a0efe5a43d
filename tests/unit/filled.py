"""Documents of which a test gives only the keys that it is about; the rest is null or plain."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from wsgiload._loadgen import Histogram
from wsgiload.documents.cell_result import AppliedLimits, CellResult
from wsgiload.documents.experiment_facts import ExperimentFacts
from wsgiload.documents.load_report import (
    Bounds,
    Distribution,
    Outcomes,
    Rates,
    Reason,
    Verdict,
)
from wsgiload.documents.resources import ResourceUse
from wsgiload.documents.summary import Summary

Json = dict[str, Any]


def outcomes(scheduled: int = 0, ok: int | None = None, **others: int) -> Outcomes:
    """Where nothing else is given, every request got its correct response."""
    counts = dict.fromkeys(Outcomes.__struct_fields__, 0)
    counts |= {"scheduled": scheduled, "ok": scheduled if ok is None else ok}
    return Outcomes(**counts | others)


def rates(goodput_per_s: float | None, **others: float | None) -> Rates:
    """The rates of a load, of which the rest is not known."""
    unknown = dict.fromkeys(Rates.__struct_fields__)
    return Rates(**unknown | {"goodput_per_s": goodput_per_s} | others)


def reason(check: str, level: Any = "warn", message: str = "", value: Any = None) -> Reason:
    """What a check found."""
    return Reason(check=check, level=level, message=message, value=value, limit=0)


def verdict(status: Any = "valid", blame: Any = None, *reasons: Reason) -> Verdict:
    """Valid, unless something else is given."""
    return Verdict(status=status, blame=blame, reasons=reasons)


def distribution(**known: Any) -> Distribution:
    """Times of which only these figures are known."""
    empty = dict.fromkeys(Distribution.__struct_fields__)
    plain = {"count": 0, "quantiles": {}, "intervals_95": {}}
    return Distribution(**empty | plain | known)


def times(*values_ns: int) -> Distribution:
    """A distribution of exactly these, with its histogram and median."""
    histogram = Histogram.from_values(list(values_ns))
    return distribution(
        count=len(values_ns),
        mean=sum(values_ns) / len(values_ns),
        quantiles={"0.5": histogram.quantile(0.5)},
        hdr_v2=base64.b64encode(histogram.to_hdr_v2()).decode(),
    )


def exactly(value_ns: float | None) -> Bounds:
    """A quantile that is known exactly; None for one that was not met."""
    high = None if value_ns is None else round(value_ns)
    return Bounds(low=1_000 if high is None else high, high=high)


def resources(**known: Any) -> ResourceUse:
    """What a server used, as far as it is given."""
    return ResourceUse(**dict.fromkeys(ResourceUse.__struct_fields__) | known)


def limits(**known: Any) -> AppliedLimits:
    """The limits of a server, as far as they are given."""
    unknown = dict.fromkeys(AppliedLimits.__struct_fields__)
    plain = {"backend": "cgroup-v2", "read_back": {}, "not_enforced": ()}
    return AppliedLimits(**unknown | plain | known)


def filled_cell(**known: Any) -> CellResult:
    """A cell with these keys."""
    plain = {"server": "a", "run": 1, "warmup_s": 0.0, "duration_s": 1.0, "notes": ()}
    return CellResult(**_required(CellResult) | plain | known)


def filled_summary(
    experiment: Mapping[str, Any], cells: Sequence[CellResult], **more: Any
) -> Summary:
    """A summary with these facts of the experiment, and these cells."""
    plain = {"duration_s": 1.0, "warmup_s": 0.0, "runs": 1, "servers": ()}
    facts = ExperimentFacts(**_required(ExperimentFacts) | plain | experiment)
    known = {"status": "complete", "order": (), "seed": 1} | more
    return Summary(schema_version=2, experiment=facts, cells=tuple(cells), **known)


def filled_run(plan: Json, host: Json | None = None) -> Json:
    """A run.json with this plan, as plain data."""
    return {
        "schema_version": 2,
        "started_utc": "2026-11-21T09:30:00+00:00",
        "status": "complete",
        "plan": plan,
        "host": host or {},
    }


@cache
def _required(kind: type[msgspec.Struct]) -> Json:
    """The keys that have no default, all null."""
    return {field.name: None for field in msgspec.structs.fields(kind) if field.required}
