"""Check thresholds that the user sets, such as ``send-lag.warn=0.02``: parsed, and split between
generator and orchestrator. Pure.

The generator's thresholds go into its plan; it knows their names and rejects others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from wsgiload.errors import UsageError

# Thresholds of the checks that only the orchestrator can perform.
ORCHESTRATOR_THRESHOLDS: Mapping[str, Mapping[str, float]] = {
    "app-calls": {"warn": 0.0, "invalid": 0.0001},
    "kernel-drops": {"warn": 0.0},
}

_FIX = "write it like send-lag.warn=0.02"


def parse_check_threshold(text: str) -> tuple[str, float]:
    """The name and the value of ``send-lag.warn=0.02``."""
    name, equals, number = text.partition("=")
    check, dot, key = name.strip().partition(".")
    if not (equals and dot and check and key):
        raise UsageError(f"{text!r} is not a threshold", _FIX)
    try:
        limit = float(number)
    except ValueError:
        raise UsageError(f"{text!r}: {number!r} is not a number", _FIX) from None
    require_thresholds({f"{check}.{key}": limit})
    return f"{check}.{key}", limit


def require_thresholds(limits: Mapping[str, float]) -> None:
    """Raise UsageError unless this is a mapping such as ``{"send-lag.warn": 0.02}``."""
    for name, limit in limits.items():
        _require_threshold(name, limit)


def _require_threshold(name: str, limit: float) -> None:
    check, dot, key = name.partition(".")
    if not (math.isfinite(limit) and limit >= 0):
        raise UsageError(f"the threshold {name} must be 0 or more, not {limit:g}")
    if not (dot and key):
        raise UsageError(f"{name!r} is not a threshold", "write it like send-lag.warn")
    if check in ORCHESTRATOR_THRESHOLDS and key not in ORCHESTRATOR_THRESHOLDS[check]:
        keys = " or ".join(ORCHESTRATOR_THRESHOLDS[check])
        raise UsageError(f"{check} has no threshold {key!r}", f"choose {keys}")


def require_of_generator(thresholds: Mapping[str, float]) -> None:
    """Raise UsageError for thresholds of checks that require a server launched by wsgiload."""
    for name in thresholds:
        check = name.partition(".")[0]
        if check in ORCHESTRATOR_THRESHOLDS:
            raise UsageError(f"{name}: only `wsgiload sweep` runs the check {check}", "omit it")


def of_generator(thresholds: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The generator's thresholds in the form of its plan, by check and key."""
    plan: dict[str, dict[str, float]] = {}
    for name, limit in thresholds.items():
        check, _, key = name.partition(".")
        if check not in ORCHESTRATOR_THRESHOLDS:
            plan.setdefault(check, {})[key] = float(limit)
    return plan


def of_orchestrator(thresholds: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The thresholds of the orchestrator's checks: the defaults, with overrides."""
    merged = {check: dict(limits) for check, limits in ORCHESTRATOR_THRESHOLDS.items()}
    for name, limit in thresholds.items():
        check, _, key = name.partition(".")
        if check in merged:
            merged[check][key] = float(limit)
    return merged
