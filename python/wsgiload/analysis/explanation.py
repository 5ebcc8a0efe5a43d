"""The explanation of a check or an alarm."""

from __future__ import annotations

import msgspec

from wsgiload.loads.thresholds import ORCHESTRATOR_THRESHOLDS


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One check or alarm. ``thresholds`` maps keys of ``--check-threshold`` to their defaults."""

    name: str
    looks_at: str
    fires_when: str
    fix: str | None = None
    thresholds: dict[str, float] = msgspec.field(default_factory=dict)


def explain(name: str, looks_at: str, fires_when: str, fix: str | None = None) -> Explanation:
    """The explanation of a check that is not one of the generator's."""
    return Explanation(
        name=name,
        looks_at=looks_at,
        fires_when=fires_when,
        fix=fix,
        thresholds=dict(ORCHESTRATOR_THRESHOLDS.get(name, {})),
    )
