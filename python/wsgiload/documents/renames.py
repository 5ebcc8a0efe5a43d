"""Keys and values of version 2 that have been renamed: documents with the old names stay readable.

The tables are by type, because one key can have several meanings. Pure.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from wsgiload.documents.answer import Answer, RankingEntry
from wsgiload.documents.attribution_result import AttributionResult, ExposureResult
from wsgiload.documents.base import Document
from wsgiload.documents.capacity import CapacityTrial
from wsgiload.documents.cell_result import ServerSettings
from wsgiload.documents.experiment_facts import QualifyingFacts
from wsgiload.documents.load_plan import LoadPlan, PrecisionTarget
from wsgiload.documents.load_report import (
    ErrorBudget,
    GeneratorUsage,
    LoadAttempt,
    QuantileUncertainty,
    RejectedTimestamps,
    SpinUse,
)
from wsgiload.documents.over_cells import (
    ComparedFigure,
    Comparison,
    InterventionResult,
    Overload,
    OverloadPoint,
    Race,
)
from wsgiload.documents.recommendation import (
    NoRecommendation,
    Recommendation,
    RecommendedConfiguration,
)
from wsgiload.documents.summary import Summary

# By type: old key, new key.
RENAMED_KEYS: dict[type[Document], dict[str, str]] = {
    Answer: {"cautions": "warnings"},
    AttributionResult: {"foreign_cpu_ratio": "other_cpu_ratio"},
    CapacityTrial: {"phase": "stage", "why": "reason"},
    ComparedFigure: {"finding": "conclusion"},
    Comparison: {"finding": "conclusion", "load_share": "relative_rate"},
    ErrorBudget: {"standing": "bound_status"},
    ExposureResult: {"signal": "event"},
    GeneratorUsage: {"stamp_doubts": "rejected_timestamps"},
    InterventionResult: {
        "used": "valid_pairs",
        "limited": "with_limit",
        "lifted": "without_limit",
    },
    LoadAttempt: {"disturbance": "rerun_reason"},
    LoadPlan: {"floor": "noise_floor"},
    NoRecommendation: {"why": "reason"},
    Overload: {"capacity_per_s": "max_goodput_per_s"},
    OverloadPoint: {"load_share": "relative_rate", "kept_ratio": "goodput_ratio"},
    PrecisionTarget: {"share": "half_width", "longest_ns": "max_duration_ns"},
    QualifyingFacts: {"field": "max_servers"},
    QuantileUncertainty: {"standing": "resolution_status"},
    Race: {"dropped": "dropped_out"},
    RankingEntry: {"is_rough": "few_requests_beyond"},
    Recommendation: {"refused": "no_recommendation"},
    RecommendedConfiguration: {
        "centre": "estimate",
        "interval": "interval_95",
        "fewest_beyond": "min_requests_beyond",
    },
    RejectedTimestamps: {"rejected": "count"},
    ServerSettings: {"own_command": "user_command"},
    Summary: {"session": "validity"},
}
# By type and new key: old value, new value.
RENAMED_VALUES: dict[tuple[type[Document], str], dict[str, str]] = {
    (CapacityTrial, "stage"): {"guess": "initial"},
    (ExposureResult, "event"): {"without_cpu": "cpu_wait", "short_of_memory": "memory_pressure"},
    (GeneratorUsage, "scheduling"): {"ordinary": "sched_other"},
    (QuantileUncertainty, "reason"): {"measurement_floor": "below_noise_floor"},
    (Race, "outcome"): {"open": "undecided"},
    (RankingEntry, "status"): {"unjudged": "invalid"},
    (SpinUse, "reason"): {"asked": "user_set"},
}


def with_new_names(kind: type[Document], plain: Any) -> Any:
    """A decoded document with the current names of its keys and values."""
    return _renamed(inspect.type_info(kind), plain)


def _renamed(info: inspect.Type, plain: Any) -> Any:
    match info, plain:
        case inspect.UnionType(types=types), _:
            matching = [one for one in types if _fits(one, plain)]
            return _renamed(matching[0], plain) if matching else plain
        case inspect.StructType(), dict():
            return _renamed_struct(info, plain)
        case inspect.DictType(value_type=value_type), dict():
            return {key: _renamed(value_type, value) for key, value in plain.items()}
        case inspect.VarTupleType(item_type=item_type), list():
            return [_renamed(item_type, value) for value in plain]
    return plain


def _fits(info: inspect.Type, plain: Any) -> bool:
    if isinstance(plain, dict):
        return isinstance(info, inspect.StructType | inspect.DictType)
    return isinstance(plain, list) and isinstance(info, inspect.VarTupleType)


def _renamed_struct(info: inspect.StructType, plain: dict[str, Any]) -> dict[str, Any]:
    kind: Any = info.cls
    keys = RENAMED_KEYS.get(kind, {})
    fields = {field.encode_name: field.type for field in info.fields}

    renamed = {}
    for old_key, value in plain.items():
        key = keys.get(old_key, old_key)
        values = RENAMED_VALUES.get((kind, key), {})
        if isinstance(value, str):
            renamed[key] = values.get(value, value)
        else:
            renamed[key] = _renamed(fields[key], value) if key in fields else value
    return renamed
