"""Objectives, and whether a trial meets them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsgiload.analysis.absence import MIN_BEYOND
from wsgiload.analysis.disturbance import delay_of, delay_words, disturbance_of
from wsgiload.analysis.threshold import (
    QUANTILES,
    Measured,
    Threshold,
    parse_threshold,
)
from wsgiload.documents.load_report import Reason, Verdict
from wsgiload.errors import UsageError
from wsgiload.units import NS_PER_S

# Without a limit on failures, a server could meet any quantile by rejecting requests.
USUAL_FAILURES = "error_rate<=0.1%"
# RFC 9411: one failed transaction in 100,000.
STRICT_FAILURES = "error_rate<=0.001%"
SPARE = 1.2
# If a disturbed trial is within this factor of a limit, on either side, the disturbance may have
# decided it.
NEAR_A_LIMIT = 1.5
# These figures get worse with the load; goodput is the result of the search, not an objective.
SEARCHABLE = (*QUANTILES, "error_rate")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a trial met the objective; None if the trial is inconclusive, because it is invalid
    or too short.

    ``disturbance`` names a disturbance that can only have lengthened response times;
    ``is_doubtful`` means that the result was also near a limit.
    """

    met: bool | None
    why: str
    is_too_short: bool = False
    disturbance: str | None = None
    is_doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Objective:
    """Every threshold must hold over all offered requests, the server must be stable, and the
    measurement must be valid."""

    thresholds: tuple[Threshold, ...]

    @property
    def texts(self) -> list[str]:
        """The thresholds as the user wrote them, and those that were added."""
        return [threshold.text for threshold in self.thresholds]

    @property
    def highest_quantile(self) -> float | None:
        """The highest quantile of the objective; None if it only limits failures."""
        return max(
            (float(QUANTILES[one.figure]) for one in self.thresholds if one.figure in QUANTILES),
            default=None,
        )

    def judge(self, result: Measured) -> Judgement:
        """The judgement of a cell of a sweep, or of a load report."""
        verdict = result.verdict
        if verdict is None:
            return Judgement(None, "nothing was measured")

        disturbance = disturbance_of(verdict)
        if verdict.status == "invalid" and disturbance is None:
            return _judge_invalid(verdict)

        disturbance = disturbance or self._delay(result)
        judgement = self._judge_figures(result, verdict)
        if disturbance is None:
            return judgement
        why = f"{judgement.why}, while {disturbance}"
        return replace(
            judgement, why=why, disturbance=disturbance, is_doubtful=self._is_near_a_limit(result)
        )

    def _delay(self, result: Measured) -> str | None:
        """The generator's possible contribution to a quantile of the objective, in words."""
        for figure in (one.figure for one in self.thresholds if one.figure in QUANTILES):
            if delay_ns := delay_of(result.error_budget_ns, QUANTILES[figure]):
                return delay_words(figure, delay_ns)
        return None

    def _judge_figures(self, result: Measured, verdict: Verdict) -> Judgement:
        unstable = [reason for reason in verdict.reasons if is_unstable(reason)]
        if unstable:
            return Judgement(False, unstable[0].message)

        missed = [threshold for threshold in self.thresholds if not threshold.holds(result)]
        if not missed:
            return Judgement(True, "met")

        texts = ", ".join(threshold.text for threshold in missed)
        requests = result.outcomes.scheduled if result.outcomes is not None else 0
        # Few requests make it harder to meet a quantile; a single slow one is enough to miss it.
        if all(requests < threshold.requests_needed for threshold in missed):
            return Judgement(
                None,
                f"missed {texts}, but fewer than {MIN_BEYOND} requests lie beyond the quantile",
                is_too_short=True,
            )
        return Judgement(False, f"missed {texts}")

    def _is_near_a_limit(self, result: Measured) -> bool:
        """Whether it would have met wider limits and missed narrower ones. Both sides of a limit
        are treated alike: repeating only misses would bias the result."""
        wider, narrower = (
            [replace(one, limit=one.limit * factor) for one in self.thresholds]
            for factor in (NEAR_A_LIMIT, 1 / NEAR_A_LIMIT)
        )
        return all(one.holds(result) for one in wider) and not all(
            one.holds(result) for one in narrower
        )

    def long_enough_ns(self, rate_per_s: float) -> int:
        """The duration of a trial at this rate for which at least ten requests lie beyond each
        quantile, however the arrivals fall."""
        if self.highest_quantile is None:
            return 0
        return round(SPARE * MIN_BEYOND / (1 - self.highest_quantile) / rate_per_s * NS_PER_S)


def _judge_invalid(verdict: Verdict) -> Judgement:
    """An invalid measurement is a miss only if the server is to blame."""
    reason = verdict.reasons[0].message if verdict.reasons else "no reason reported"
    if verdict.blame == "server":
        return Judgement(False, reason)
    return Judgement(None, f"invalid ({verdict.blame}): {reason}")


def is_unstable(reason: Reason) -> bool:
    """Whether a verdict's reason says that the server cannot sustain the offered rate."""
    return reason.check == "backlog-growth" and reason.message.startswith("UNSTABLE")


def parse_objective(texts: Sequence[str], *, strict: bool = False) -> Objective:
    """An objective from texts such as ``p99<50ms``. Without a threshold for failures, the usual one
    is added."""
    thresholds = [parse_threshold(text) for text in texts]

    if not thresholds:
        raise UsageError(
            "a capacity search needs an objective",
            "add one, such as --slo 'p99<50ms'",
        )
    for threshold in thresholds:
        if threshold.figure not in SEARCHABLE or threshold.comparison not in ("<", "<="):
            raise UsageError(
                f"{threshold.text!r} is not an objective: it must get worse as the load increases",
                "write an objective like 'p99<50ms' or 'error_rate<0.1%'",
            )

    if not any(threshold.figure == "error_rate" for threshold in thresholds):
        thresholds.append(parse_threshold(STRICT_FAILURES if strict else USUAL_FAILURES))
    return Objective(tuple(thresholds))
