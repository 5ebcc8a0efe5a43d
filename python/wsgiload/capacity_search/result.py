"""What a finished, or given up, capacity search says of one server. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsgiload.analysis.effective_limit import held_memory_bytes
from wsgiload.analysis.objective import FEWEST_BEYOND, Judgement, Objective
from wsgiload.analysis.recommend import LOWER_BOUND, is_lower_bound
from wsgiload.capacity_search.fit import fit_threshold
from wsgiload.capacity_search.search import Found, Phase
from wsgiload.documents.codec import Level, plain_reason
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_SERVER, EXIT_THRESHOLD
from wsgiload.units import NS_PER_S

Json = dict[str, Any]

SCHEMA_VERSION = 2
# Discarding more of what was measured would be choosing.
MOST_DISCARDED_SHARE = 0.2
UNFINISHED = "unfinished"
AGAIN = "closed loop, invalid and repeated"
# Requests beyond a quantile, below which single trials differ widely.
ENOUGH_BEYOND = 100


@dataclass(frozen=True, slots=True)
class JudgedTrial:
    """One trial, the closed loop of the first guess included, and what it says of the objective."""

    cell: Json
    phase: Phase | None
    judgement: Judgement | None
    # Whether it was made again, so that nothing rests on it.
    is_discarded: bool = False

    @property
    def why(self) -> str:
        """What it says of the objective, in words."""
        if self.judgement is not None:
            return self.judgement.why
        return AGAIN if self.is_discarded else "closed loop that sets the start of the search"

    @property
    def is_spoiled(self) -> bool:
        """Whether it was made again because it says nothing, and not because something disturbed
        it."""
        return self.is_discarded and (self.judgement is None or self.judgement.met is None)

    def to_dict(self) -> Json:
        """An entry of ``trials``."""
        judgement = self.judgement
        return {
            "cell": self.cell["id"],
            "phase": self.phase or "guess",
            "rate_per_s": self.cell["rate"],
            "connections": self.cell["connections"],
            "met": judgement.met if judgement else None,
            "discarded": self.is_discarded,
            "doubtful": judgement.is_doubtful if judgement else False,
            "why": self.why,
        }


@dataclass(slots=True)
class Course:
    """The search of one server as far as it has come."""

    server: str
    trials: list[JudgedTrial] = field(default_factory=list)
    found: Found | None = None
    # Why it could not go on: whose fault, and in words.
    gave_up: tuple[str, str] | None = None
    failure: Json | None = None
    failure_blame: str = "server"
    app: str | None = None  # what it serves; None where nobody knows

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be tried."""
        return self.found is not None or self.gave_up is not None or self.failure is not None

    def fail(self, cell: Json) -> None:
        """End it by the failure of a trial, which is whose fault that trial was."""
        self.failure, self.failure_blame = cell["failure"], cell["verdict"]["blame"]

    def should_repeat(self, judgement: Judgement) -> bool:
        """Whether the last trial is to be made again. A doubtful one counts as it came once a fifth
        was repeated: some hosts are never quiet."""
        if judgement.met is None:
            return True
        repeated = sum(trial.is_discarded and not trial.is_spoiled for trial in self.trials)
        return judgement.is_doubtful and repeated + 1 <= MOST_DISCARDED_SHARE * len(self.trials)

    def discard_last(self) -> None:
        """Let nothing rest on the last trial."""
        self.trials[-1] = replace(self.trials[-1], is_discarded=True)


def server_result(course: Course, objective: Objective, duration_ns: int) -> Json:
    """An entry of ``servers``; None is what the search could not tell."""
    found = course.found
    confirmation = found.confirmations[-1] if found is not None and found.confirmations else None
    fit = (
        fit_threshold([(trial.rate_per_s, trial.passed) for trial in found.trials])
        if found is not None
        else None
    )
    rate = found.rate_per_s if found is not None else None
    reasons = _reasons(course, objective, duration_ns)
    return {
        "server": course.server,
        "app": course.app,
        "rate_per_s": rate,
        "bracket": [found.lower_per_s, found.upper_per_s] if found is not None else [None, None],
        "confirmed": [confirmation.passed, confirmation.of] if confirmation is not None else None,
        "verdict": _verdict(reasons),
        "estimate_per_s": fit.rate_per_s if fit is not None else None,
        "interval_95": [fit.low_per_s, fit.high_per_s] if fit is not None else None,
        "strict_per_s": found.strict_per_s if found is not None else None,
        "at_rate": _at_rate(course, rate),
        "failure": course.failure,
        "trials": [trial.to_dict() for trial in course.trials],
    }


def _at_rate(course: Course, rate_per_s: float | None) -> Json | None:
    """What the server used at the rate that holds: the most over its trials there."""
    there = [
        trial.cell
        for trial in course.trials
        if rate_per_s is not None and trial.cell["rate"] == rate_per_s
    ]
    used = [cell["resources"] for cell in there if cell["resources"] is not None]
    if not used:
        return None
    return {
        "memory_peak_bytes": _largest([one["memory_peak_bytes"] for one in used]),
        "memory_limit_bytes": held_memory_bytes(there),
        "cpu_cores_mean": _largest([one["cpu_cores_mean"] for one in used]),
    }


def _largest(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _reasons(course: Course, objective: Objective, duration_ns: int) -> list[tuple[str, Json]]:
    """Every doubt with whose doing it is."""
    reasons = _unfinished(course)
    if course.failure is not None:
        reasons.append(
            (
                course.failure_blame,
                plain_reason("failure", "invalid", course.failure["message"], 1, 0),
            )
        )
    if course.gave_up is not None:
        blame, why = course.gave_up
        reasons.append((blame, plain_reason("search", "invalid", why, 1, 0)))
    reasons += _discarded(course) + _disturbed(course)
    found = course.found
    if found is None:
        return reasons
    if found.is_abandoned:
        return reasons + _brevity(found, objective, duration_ns)
    if found.lower_per_s is None:
        message = f"the objective was missed even at {found.upper_per_s:g}/s"
        reasons.append(
            ("server", plain_reason("not-met", "warn", message, found.upper_per_s, None))
        )
    elif found.upper_per_s is None:
        message = (
            f"the objective held at every rate up to {found.lower_per_s:g}/s: there is "
            "no upper bound"
        )
        reasons.append(
            ("method", plain_reason("no-upper-bound", "warn", message, found.lower_per_s, None))
        )
    if found.confirmations and found.rate_per_s is None:
        last = found.confirmations[-1]
        message = (
            "not confirmed: on fresh trials the objective was missed at "
            f"{found.confirmations[0].rate_per_s:g}/s and "
            f"still at {last.rate_per_s:g}/s; longer trials scatter less (--duration)"
        )
        reasons.append(
            ("method", plain_reason("not-confirmed", "warn", message, last.passed, last.of))
        )
    elif not found.confirmations and found.lower_per_s is not None:
        message = "not confirmed: the bound was selected because it passed, so it is biased upwards"
        reasons.append(("method", plain_reason("unconfirmed", "warn", message, 0, 6)))
    return reasons + _brevity(found, objective, duration_ns)


def _unfinished(course: Course) -> list[tuple[str, Json]]:
    """A search that was cut off has found nothing yet; blamed as the generator blames a load that
    was stopped."""
    if course.is_over:
        return []
    count = len(course.trials)
    when = (
        "before its first trial" if not count else f"after {count} trial{'s' if count > 1 else ''}"
    )
    return [
        (
            "method",
            plain_reason(UNFINISHED, "invalid", f"the search was cut off {when}", count, None),
        )
    ]


def _discarded(course: Course) -> list[tuple[str, Json]]:
    judged = [
        trial for trial in course.trials if trial.judgement is not None
    ]  # nothing rests on the closed loop
    discarded = [trial for trial in judged if trial.is_spoiled]
    if not discarded:
        return []
    share = len(discarded) / len(judged)
    is_too_many = share > MOST_DISCARDED_SHARE
    blames = [
        trial.cell["verdict"]["blame"] for trial in discarded if trial.cell["verdict"] is not None
    ]
    blame = max(set(blames), key=blames.count) if blames else "client"
    message = f"{len(discarded)} of {len(judged)} trials were invalid ({blame}) and repeated"
    level: Level = "invalid" if is_too_many else "warn"
    return [(blame, plain_reason("discarded", level, message, share, MOST_DISCARDED_SHARE))]


def _disturbed(course: Course) -> list[tuple[str, Json]]:
    """A bound in one direction stays a bound: what was met while disturbed would have been met
    without. What missed far above the upper bound decided nothing."""
    upper_per_s = course.found.upper_per_s if course.found is not None else None
    near = [
        trial
        for trial in course.trials
        if upper_per_s is None or (trial.cell["rate"] or 0) <= upper_per_s
    ]
    judgements = [
        trial.judgement for trial in near if trial.judgement is not None and not trial.is_discarded
    ]
    counted = [judgement for judgement in judgements if judgement.met is not None]
    missed = [
        judgement
        for judgement in counted
        if judgement.disturbance is not None and not judgement.met
    ]
    if not missed:
        return []
    message = (
        f"{len(missed)} of the {len(counted)} trials up to the upper bound missed while "
        "generator or host were "
        "disturbed, which can only make answers later: the rate is a lower bound, and on a "
        "quiet host it may be larger"
    )
    return [("host", plain_reason(LOWER_BOUND, "warn", message, len(missed) / len(counted), 0))]


def _brevity(found: Found, objective: Objective, duration_ns: int) -> list[tuple[str, Json]]:
    """What short trials cost: a quantile that rests on a handful of requests."""
    quantile = objective.highest_quantile
    if quantile is None or found.lower_per_s is None:
        return []
    requests = found.lower_per_s * duration_ns / NS_PER_S
    beyond = requests * (1 - quantile)
    if beyond >= ENOUGH_BEYOND:
        return []
    needed_s = ENOUGH_BEYOND / (1 - quantile) / found.lower_per_s
    weak = "says nothing certain" if beyond < FEWEST_BEYOND else "differs from trial to trial"
    message = (
        f"in trials of {duration_ns / NS_PER_S:g} s p{quantile * 100:g} rests on the "
        f"{beyond:.0f} slowest of "
        f"{requests:.0f} requests and {weak}; --duration {needed_s:.0f}s gives it {ENOUGH_BEYOND}"
    )
    return [("method", plain_reason("brevity", "warn", message, beyond, ENOUGH_BEYOND))]


def _verdict(reasons: Sequence[tuple[str, Json]]) -> Json:
    """The gravest reason first; its blame is the verdict's."""
    ordered = sorted(reasons, key=lambda entry: entry[1]["level"] != "invalid")
    if not ordered:
        return {"status": "valid", "blame": None, "reasons": []}
    blame, first = ordered[0]
    return {"status": first["level"], "blame": blame, "reasons": [reason for _, reason in ordered]}


def exit_code(status: str, servers: Sequence[Json], failed: Collection[str] = ()) -> int:
    """Interrupted before failed server before invalid measurement before an objective that nothing
    held; ``failed`` are the servers that miss a threshold."""
    if status == "interrupted":
        return EXIT_INTERRUPTED
    invalid = [server["verdict"] for server in servers if server["verdict"]["status"] == "invalid"]
    if any(verdict["blame"] == "server" for verdict in invalid):
        return EXIT_SERVER
    if invalid:
        return EXIT_INVALID
    missing = [
        server for server in servers if server["server"] in failed or server["rate_per_s"] is None
    ]
    if not missing:
        return EXIT_OK
    # What was missed by a lower bound may be held by the server.
    return EXIT_INVALID if all(is_lower_bound(server) for server in missing) else EXIT_THRESHOLD


def is_unfinished(server: Mapping[str, Any]) -> bool:
    """Whether the search of an entry of ``servers`` was cut off."""
    return any(reason["check"] == UNFINISHED for reason in server["verdict"]["reasons"])
