"""Documents with only the keys that matter to a test; other keys are null or have plain values."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from wsgiload._loadgen import Histogram
from wsgiload.documents.cell_result import AppliedLimits, CellResult, ServerSettings
from wsgiload.documents.load_report import Bounds, Distribution, Outcomes, Rates, Reason, Verdict
from wsgiload.documents.resources import ResourceUse
from wsgiload.documents.summary import ExperimentFacts, Summary

Json = dict[str, Any]


def outcomes(scheduled: int = 0, ok: int | None = None, **others: int) -> Outcomes:
    """Outcomes in which every scheduled request got a correct response, unless others are given."""
    counts = dict.fromkeys(Outcomes.__struct_fields__, 0)
    counts |= {"scheduled": scheduled, "ok": scheduled if ok is None else ok}
    return Outcomes(**counts | others)


def rates(goodput_per_s: float | None, **others: float | None) -> Rates:
    """The rates of a load; rates that are not given are unknown."""
    unknown = dict.fromkeys(Rates.__struct_fields__)
    return Rates(**unknown | {"goodput_per_s": goodput_per_s} | others)


def reason(check: str, level: Any = "warn", message: str = "", value: Any = None) -> Reason:
    """A reason given by a check."""
    return Reason(check=check, level=level, message=message, value=value, limit=0)


def verdict(status: Any = "valid", blame: Any = None, *reasons: Reason) -> Verdict:
    """A verdict: valid by default."""
    return Verdict(status=status, blame=blame, reasons=reasons)


def distribution(**known: Any) -> Distribution:
    """A distribution with only these figures."""
    empty = dict.fromkeys(Distribution.__struct_fields__)
    plain = {"count": 0, "quantiles": {}, "intervals_95": {}}
    return Distribution(**empty | plain | known)


def times(*values_ns: int) -> Distribution:
    """The distribution of these values, with its histogram, mean and median."""
    histogram = Histogram.from_values(list(values_ns))
    return distribution(
        count=len(values_ns),
        mean=sum(values_ns) / len(values_ns),
        quantiles={"0.5": histogram.quantile(0.5)},
        hdr_v2=base64.b64encode(histogram.to_hdr_v2()).decode(),
    )


def exactly(value_ns: float | None) -> Bounds:
    """The bounds of an exactly known quantile; None is unbounded above."""
    high = None if value_ns is None else round(value_ns)
    return Bounds(low=1_000 if high is None else high, high=high)


def resources(**known: Any) -> ResourceUse:
    """The resources that a server used; others are unknown."""
    return ResourceUse(**dict.fromkeys(ResourceUse.__struct_fields__) | known)


def limits(**known: Any) -> AppliedLimits:
    """The limits of a server; others are unknown."""
    unknown = dict.fromkeys(AppliedLimits.__struct_fields__)
    plain = {"backend": "cgroup-v2", "read_back": {}, "not_enforced": ()}
    return AppliedLimits(**unknown | plain | known)


def settings(**known: Any) -> ServerSettings:
    """The settings of a server; others are unknown."""
    return ServerSettings(**_required(ServerSettings) | {"command": ()} | known)


def filled_cell(**known: Any) -> CellResult:
    """A cell result with these keys."""
    plain = {"server": "a", "run": 1, "warmup_s": 0.0, "duration_s": 1.0, "notes": ()}
    return CellResult(**_required(CellResult) | plain | known)


def filled_summary(
    experiment: Mapping[str, Any], cells: Sequence[CellResult], **more: Any
) -> Summary:
    """A summary of these cells, with these experiment facts."""
    plain = {"duration_s": 1.0, "warmup_s": 0.0, "runs": 1, "servers": ()}
    facts = ExperimentFacts(**_required(ExperimentFacts) | plain | experiment)
    known = {"status": "complete", "order": (), "seed": 1} | more
    return Summary(schema_version=1, experiment=facts, cells=tuple(cells), **known)


def filled_run(plan: Json, host: Json | None = None) -> Json:
    """The content of run.json with this plan, as plain data."""
    return {
        "schema_version": 1,
        "started_utc": "2026-11-21T09:30:00+00:00",
        "status": "complete",
        "plan": plan,
        "host": host or {},
    }


@cache
def _required(kind: type[msgspec.Struct]) -> Json:
    """All keys without a default, set to null."""
    return {field.name: None for field in msgspec.structs.fields(kind) if field.required}
