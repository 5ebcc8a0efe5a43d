"""CPU, memory and process limits for one server at a time, verified after they are set.

``select_backend`` chooses the mechanism, a backend creates a new group for each launch, and a
``Janitor`` cleans up after a crash.
"""

from __future__ import annotations

from wsgiload.limits.janitor import Janitor
from wsgiload.limits.model import (
    COUNTER_NAMES,
    Backend,
    Counters,
    Enforcement,
    LimitedGroup,
    Limits,
    Policy,
    Remains,
    validate_limits,
)
from wsgiload.limits.scope import enter_scope
from wsgiload.limits.select import remove_stale_groups, select_backend

__all__ = [
    "COUNTER_NAMES",
    "Backend",
    "Counters",
    "Enforcement",
    "Janitor",
    "LimitedGroup",
    "Limits",
    "Policy",
    "Remains",
    "enter_scope",
    "remove_stale_groups",
    "select_backend",
    "validate_limits",
]
