"""Objectives, and whether a trial meets them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wsgiload.analysis.absence import MIN_BEYOND
from wsgiload.analysis.attempts import delay_of, delay_words, disturbance_of
from wsgiload.analysis.threshold import QUANTILES, Measured, Threshold, parse_threshold
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import histogram_of
from wsgiload.documents.load_report import Reason, Verdict
from wsgiload.errors import UsageError
from wsgiload.statistics.crossing import Counted

# Without a limit on failures, a server could meet any quantile by rejecting requests.
USUAL_FAILURES = "error_rate<=0.1%"
# RFC 9411: one failed transaction in 100,000.
STRICT_FAILURES = "error_rate<=0.001%"
# If a disturbed trial is within this factor of a limit, on either side, the disturbance may have
# decided it.
NEAR_A_LIMIT = 1.5
# These figures get worse with the load; goodput is the result of the search, not an objective.
SEARCHABLE = (*QUANTILES, "error_rate")
# An objective without any failure cannot be distinguished from this share.
RAREST = 1e-6
# Beyond saturation, response times only measure the duration of the trial.
MAX_EXCESS = 10.0


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
    def quantiles(self) -> list[Threshold]:
        """The conditions on response times."""
        return [one for one in self.thresholds if one.figure in QUANTILES]

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

    def count(self, cell: CellResult) -> Counted:
        """How many requests of an open-loop trial were beyond the limit of the condition that it
        misses most clearly. A trial without a load (the server died) missed with every request."""
        rate_per_s, outcomes = cell.rate or 0.0, cell.outcomes
        if outcomes is None or not outcomes.scheduled:
            return Counted(rate_per_s, 1, 1, max(self._allowed), MAX_EXCESS)
        failed = outcomes.scheduled - outcomes.ok
        times = histogram_of(cell.response_time_ns)
        counts, excess = list[tuple[int, float]](), 0.0
        for threshold, allowed in zip(self.thresholds, self._allowed, strict=True):
            if threshold.figure not in QUANTILES or times is None:
                counts.append((failed, allowed))
                continue
            counts.append((failed + times.count_above(round(threshold.limit)), allowed))
            value_ns = times.quantile(float(QUANTILES[threshold.figure])) or 0
            excess = max(excess, value_ns / threshold.limit if threshold.limit else MAX_EXCESS)
        beyond, allowed = max(counts, key=lambda one: one[0] / one[1])
        if not excess or beyond == failed > allowed * outcomes.scheduled:
            excess = beyond / (allowed * outcomes.scheduled)
        return Counted(rate_per_s, outcomes.scheduled, beyond, allowed, min(MAX_EXCESS, excess))

    @property
    def _allowed(self) -> list[float]:
        """The share of requests that may be beyond each limit."""
        return [
            1 - float(QUANTILES[one.figure]) if one.figure in QUANTILES else max(one.limit, RAREST)
            for one in self.thresholds
        ]


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
