"""The attempts at one load: when it is repeated, which attempt is reported, and how long all of
them take at most. Pure.

The rules are those of a sweep's trials (``analysis.attempts``): they look at the generator and the
host, never at the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from wsgiload.analysis.attempts import (
    is_discarded,
    is_disturbed,
    reason_of_repeat,
    standing_attempt,
)
from wsgiload.attribution.host_disturbance import HostSeconds
from wsgiload.doctor.settle import WATCH_NS
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadAttempt, LoadReport
from wsgiload.experiment.procedure import SETTLE_BEFORE_RERUN_NS
from wsgiload.results.load_cell import cell_of_load
from wsgiload.sampling.sampler import Sample
from wsgiload.units import NS_PER_S

# The wait for a quiet host looks once more when its time is over.
WAIT_NS = SETTLE_BEFORE_RERUN_NS + WATCH_NS


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: its report, and what was sampled of the server meanwhile."""

    report: LoadReport
    cell: CellResult
    samples: Sequence[Sample] = ()

    @property
    def is_interrupted(self) -> bool:
        """Whether it was stopped before its end."""
        return any(reason.check == "interrupted" for reason in self.report.verdict.reasons)

    @property
    def disturbance(self) -> str | None:
        """Why it is a reason to repeat the load; None if it is not."""
        is_reason = is_discarded(self.cell) or is_disturbed(self.cell)
        return reason_of_repeat(self.cell) if is_reason else None

    def document(self, *, is_reported: bool) -> LoadAttempt:
        """Its entry in the report."""
        times = self.report.response_time_ns
        return LoadAttempt(
            reported=is_reported,
            status=self.report.verdict.status,
            rerun_reason=self.disturbance,
            disturbed_s=self.cell.disturbed_s,
            goodput_per_s=self.report.rate.goodput_per_s,
            p99_ns=times.quantiles.get("0.99") if times is not None else None,
        )


def attempt_of(
    report: LoadReport, number: int, host: HostSeconds | None, samples: Sequence[Sample] = ()
) -> Attempt:
    """The attempt with this number, 1 for the first."""
    cell = msgspec.structs.replace(
        cell_of_load(report, "load" if number == 1 else f"load.{number}"),
        attempt=number,
        duration_s=report.measured_ns / NS_PER_S,  # --requests may end it early
        disturbed_s=host.disturbed_s if host is not None else None,
    )
    return Attempt(report, cell, samples)


def needs_repeat(attempts: Sequence[Attempt]) -> bool:
    """Whether the best attempt so far was spoiled or disturbed."""
    return _best(attempts).disturbance is not None


def reported(attempts: Sequence[Attempt]) -> Attempt:
    """The attempt to report, with an account of all of them in its report."""
    best = _best(attempts)
    account = tuple(one.document(is_reported=one is best) for one in attempts)
    return Attempt(msgspec.structs.replace(best.report, attempts=account), best.cell, best.samples)


def _best(attempts: Sequence[Attempt]) -> Attempt:
    """The least disturbed; an interrupted one only if there is no other."""
    whole = [one for one in attempts if not one.is_interrupted] or list(attempts)
    stands = standing_attempt([one.cell for one in whole])
    return next(one for one in whole if one.cell is stands)


def longest_s(plan: LoadPlan, reruns: int) -> float:
    """Seconds that the load takes at most if it is repeated so often."""
    phases = plan.phases
    measure_ns = phases.measure_ns if plan.precision is None else plan.precision.max_duration_ns
    load_ns = phases.warmup_ns + measure_ns + phases.cooldown_ns + plan.timeout_ns
    return ((1 + reruns) * load_ns + reruns * WAIT_NS) / NS_PER_S
