"""The record of a check or an alarm, and what its rule reports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Literal

import msgspec

from wsgiload._loadgen import check_catalogue
from wsgiload.documents.base import decode_json
from wsgiload.documents.load_report import Blame, Reason

Level = Literal["warn", "invalid"]
Figure = float | str | bool | None
LENGTHENS = "response times may be too long, never too short"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A check or an alarm: everything that ``wsgiload explain``, the first screen and the
    documentation say about it. Only ``message`` of each ``Fired`` contains measured values.

    A finding about servers has a ``consequence``; the servers' names precede it. A finding about
    trials has a ``sighting``, which ends with "in", "during" or "before"; the trials follow.
    """

    name: str
    examines: str
    premise: str
    """When it fires: sentences."""
    consequence: str | None = None
    """What follows for the result: a clause. None: the messages say it, or ``lengthens``."""
    sighting: str | None = None
    is_quoted: bool = False
    """Whether the first screen prints the message, after the servers' names."""
    lengthens: bool = False
    """Whether the cause can only lengthen response times, so that figures remain upper bounds."""
    fix: str | None = None
    misleads: str | None = None
    """An alarm: what it would be mistaken for in a publication."""
    blame: Blame = "server"
    thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    """Defaults of ``--check-threshold``, by key."""

    def fired(
        self,
        message: str,
        value: Figure,
        limit: Figure,
        *,
        level: Level = "warn",
        fix: str | None = None,
        blame: Blame | None = None,
    ) -> Fired:
        """What the rule reports, with the record's fix and blame unless the case has its own."""
        return Fired(
            blame=blame or self.blame,
            check=self.name,
            level=level,
            message=message,
            value=value,
            limit=limit,
            fix=fix or self.fix,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """A check or an alarm that fired."""

    blame: Blame
    check: str
    level: Level
    message: str
    value: Figure
    limit: Figure
    fix: str | None

    def reason(self) -> Reason:
        """As a reason of a verdict."""
        return Reason(
            check=self.check,
            level=self.level,
            message=self.message,
            fix=self.fix,
            value=self.value,
            limit=self.limit,
        )


@cache
def generator_checks() -> tuple[Finding, ...]:
    """The checks of a load, whose rules are in the generator."""
    return decode_json(check_catalogue(), tuple[Finding, ...])


def findings_of(*modules: ModuleType) -> tuple[Finding, ...]:
    """The records of these modules, in the order of their definition."""
    return tuple(
        one for module in modules for one in vars(module).values() if isinstance(one, Finding)
    )


def percent(share: float) -> str:
    """0.95 becomes "95 %"."""
    return f"{100 * share:g} %"
