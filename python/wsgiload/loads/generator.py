"""What the generator says about a plan before anything is started."""

from __future__ import annotations

from collections.abc import Collection

from wsgiload._loadgen import check_plan
from wsgiload.documents.codec import encode
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.errors import UsageError


def require_possible(plan: LoadPlan) -> None:
    """Raise UsageError for a plan that the generator cannot carry out; nothing is started."""
    plan_warnings(plan, ())


def plan_warnings(
    plan: LoadPlan, given: Collection[str], open_by: str = "--rate"
) -> tuple[str, ...]:
    """The generator's warnings about options that have no effect on this plan.

    ``given`` are the options that the user set, named like the flags with underscores: the plan of
    a closed loop does not contain the options of an open loop. ``open_by`` is the flag that selects
    an open loop. Raises UsageError like ``require_possible``.
    """
    try:
        return tuple(check_plan(encode(plan), list(given), open_by))
    except ValueError as error:
        raise UsageError(str(error)) from error
