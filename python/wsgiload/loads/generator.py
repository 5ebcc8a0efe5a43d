"""The interface of load generators: a plan goes in, a report comes out.

``LocalGenerator`` (module ``drive``) is the only implementation so far: one process on this
machine. Several generators on several hosts could replace it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from wsgiload._loadgen import check_plan
from wsgiload.documents.codec import encode
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport
from wsgiload.errors import UsageError

ShouldStop = Callable[[], bool]
OnStart = Callable[[int], None]


def never() -> bool:
    """Never stops a load."""
    return False


def ignore(pid: int) -> None:
    """Ignores the generator's process id."""


class Generator(Protocol):
    """Runs loads."""

    def carry_out(
        self, plan: LoadPlan, should_stop: ShouldStop = never, on_start: OnStart = ignore
    ) -> LoadReport:
        """Run the plan and return its report.

        ``should_stop`` is polled twice a second and ends the load early; ``on_start`` gets the
        generator's process id, so its resource use can be sampled.
        """
        ...


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
