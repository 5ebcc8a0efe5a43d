"""Builds the result of a finished or abandoned capacity search of one server. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from wsgiload.analysis.effective_limit import effective_memory_bytes
from wsgiload.analysis.objective import Judgement
from wsgiload.analysis.recommend import LOWER_BOUND, is_lower_bound
from wsgiload.capacity_search.limit import limit_of, limiting_services
from wsgiload.documents.capacity import CapacityTrial, ServerCapacity, UseAtCapacity
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.load_report import Blame, Verdict
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_SERVER, EXIT_THRESHOLD
from wsgiload.findings.finding import Finding, Fired, Level, percent
from wsgiload.findings.trial import failed_step
from wsgiload.procedures.capacity import Phase, SearchResult
from wsgiload.report.words import format_per_s

T = TypeVar("T", int, float)

# Discarding more would be a selection of results.
MAX_DISCARDED_SHARE = 0.2
AGAIN = "closed loop, invalid and repeated"
# The fit leaves out one disturbed trial in ten.
MAX_DISTURBED_SHARE = 0.1
# Trials from this share of the capacity up to it show what the server uses there; a search measures
# up to a tenth below the capacity that it knows so far.
NEAR = 0.8


@dataclass(frozen=True, slots=True)
class JudgedTrial:
    """One trial and its judgement; includes the closed loop of the first guess."""

    cell: CellResult
    phase: Phase | None
    judgement: Judgement | None
    # Whether it was repeated, so its result is not used.
    is_discarded: bool = False

    @property
    def why(self) -> str:
        """Whether it meets the objective and why, in words."""
        if self.judgement is not None:
            return self.judgement.why
        return AGAIN if self.is_discarded else "closed loop, for the starting rate of the search"

    @property
    def is_inconclusive(self) -> bool:
        """Whether its result is invalid. Requests of short trials count."""
        judgement = self.judgement
        return judgement is None or (judgement.met is None and not judgement.is_too_short)

    @property
    def is_spoiled(self) -> bool:
        """Whether it was repeated because its result is invalid, not merely disturbed."""
        return self.is_discarded and self.is_inconclusive

    def document(self) -> CapacityTrial:
        """An entry of ``trials``."""
        judgement = self.judgement
        return CapacityTrial(
            cell=self.cell.id,
            stage=self.phase or "initial",
            rate_per_s=self.cell.rate,
            connections=self.cell.connections,
            met=judgement.met if judgement else None,
            discarded=self.is_discarded,
            doubtful=judgement.is_doubtful if judgement else False,
            reason=self.why,
        )


@dataclass(slots=True)
class ServerSearch:
    """The state of the search of one server."""

    server: str
    trials: list[JudgedTrial] = field(default_factory=list)
    result: SearchResult | None = None
    # Why the search was abandoned: blame and message.
    abandoned: tuple[Blame, str] | None = None
    failure: CellFailure | None = None
    failure_blame: Blame = "server"
    app: str | None = None  # the app that it serves; None: unknown

    @property
    def is_over(self) -> bool:
        """Whether no further trial will be made."""
        return self.result is not None or self.abandoned is not None or self.failure is not None

    def fail(self, cell: CellResult) -> None:
        """End the search because of the failure of a trial."""
        self.failure = cell.failure
        self.failure_blame = blame_of(cell)

    def should_repeat(self, trial: JudgedTrial) -> bool:
        """Whether the last trial must be repeated. Once a fifth of the trials has been repeated,
        further disturbed trials count, because some hosts are never quiet."""
        if trial.judgement is None or trial.is_inconclusive:
            return True
        repeated = sum(one.is_discarded and not one.is_spoiled for one in self.trials)
        may_repeat = repeated + 1 <= MAX_DISCARDED_SHARE * len(self.trials)
        return trial.judgement.is_doubtful and may_repeat

    def discard_last(self) -> None:
        """Exclude the last trial from the result."""
        self.trials[-1] = replace(self.trials[-1], is_discarded=True)


def blame_of(cell: CellResult) -> Blame:
    """The blame of a failed trial."""
    blame = cell.verdict.blame if cell.verdict is not None else None
    return blame or "server"


def server_result(state: ServerSearch, width: float) -> ServerCapacity:
    """An entry of ``servers``; None: unknown."""
    result = state.result or SearchResult()
    crossing = None if result.is_abandoned else result.crossing
    lower_per_s, upper_per_s = result.bracket
    # If every trial met the objective, the capacity is at least the highest rate.
    at_least = upper_per_s is None and not result.is_abandoned
    rate_per_s = lower_per_s if at_least else None
    interval: tuple[float, float | None] | None = None
    if rate_per_s is not None:
        interval = (rate_per_s, None)
    if crossing is not None:
        rate_per_s = crossing.rate_per_s
        interval = (crossing.low_per_s, crossing.high_per_s)
    return ServerCapacity(
        server=state.server,
        app=state.app,
        rate_per_s=rate_per_s,
        bracket=result.bracket,
        confirmed=_confirmed(result, rate_per_s),
        verdict=_verdict(_reasons(state, width)),
        interval_95=interval,
        limited_by=limit_of(_missed(state), upper_per_s),
        limiting_services=limiting_services(_missed(state), upper_per_s),
        at_rate=_at_rate(state, rate_per_s),
        failure=state.failure,
        trials=tuple(trial.document() for trial in state.trials),
    )


def _confirmed(result: SearchResult, rate_per_s: float | None) -> tuple[int, int] | None:
    """How many of the trials just below the rate met the objective."""
    near = [one for one in result.trials if _is_near(one.rate_per_s, rate_per_s)]
    return (sum(one.is_met for one in near), len(near)) if near else None


def _is_near(measured_per_s: float | None, rate_per_s: float | None) -> bool:
    if measured_per_s is None or rate_per_s is None:
        return False
    return NEAR * rate_per_s <= measured_per_s <= rate_per_s


def _missed(state: ServerSearch) -> list[CellResult]:
    return [
        trial.cell
        for trial in state.trials
        if not trial.is_discarded and trial.judgement is not None and trial.judgement.met is False
    ]


def _at_rate(state: ServerSearch, rate_per_s: float | None) -> UseAtCapacity | None:
    """The highest resource use of the server in its trials just below the rate."""
    there = [trial.cell for trial in state.trials if _is_near(trial.cell.rate, rate_per_s)]
    used = [cell.resources for cell in there if cell.resources is not None]
    if not used:
        return None
    return UseAtCapacity(
        memory_peak_bytes=_largest([one.memory_peak_bytes for one in used]),
        memory_limit_bytes=effective_memory_bytes(there),
        cpu_cores_mean=_largest([one.cpu_cores_mean for one in used]),
    )


def _largest(values: Sequence[T | None]) -> T | None:
    return max((value for value in values if value is not None), default=None)


SEARCH = Finding(
    name="search",
    examines="the result of a capacity search",
    premise="The search failed to find a rate.",
    fix="repeat the search",
)


def _reasons(state: ServerSearch, width: float) -> list[Fired]:
    """All reasons of the verdict, each with its blame."""
    reasons = _unfinished(state)
    if state.failure is not None:
        failed = failed_step(state.failure, has_load=False)
        reasons.append(replace(failed, blame=state.failure_blame))
    if state.abandoned is not None:
        blame, why = state.abandoned
        reasons.append(SEARCH.fired(why, 1, 0, level="invalid", blame=blame))
    reasons += _discarded(state) + _disturbed(state)

    result = state.result
    if result is None:
        return reasons
    is_open = result.is_abandoned or not result.trials
    return reasons if is_open else reasons + _imprecise(result, width)


NOT_MET = Finding(
    name="not-met",
    examines="the trials at the lowest rates",
    premise="The server missed the objective at every rate tested.",
    fix="relax the objective (--slo), or give the server more resources",
)
NO_UPPER_BOUND = Finding(
    name="no-upper-bound",
    examines="the trials at the highest rates",
    premise="No trial missed the objective, so the capacity may be higher.",
    fix="use more generator threads (--threads), or a second machine",
    blame="method",
)


IMPRECISE = Finding(
    name="imprecise",
    examines="the 95 % confidence interval of the capacity",
    premise="The budget ended before the interval was as narrow as --width.",
    fix="use a longer --budget",
    blame="method",
)


def _imprecise(result: SearchResult, width: float) -> list[Fired]:
    """A warning if the objective was met at no rate or at every rate, or if the interval is
    wide."""
    (low, high), crossing = result.bracket, result.crossing
    if crossing is None and low is None:
        message = f"the objective was missed at every rate, even at {format_per_s(high)}"
        return [NOT_MET.fired(message, high, None)]
    if crossing is None:
        highest = format_per_s(low)
        message = (
            f"the objective was met at every rate up to {highest}, so the capacity may be higher"
        )
        return [NO_UPPER_BOUND.fired(message, low, None)]
    if crossing.width <= width:
        return []
    reached = percent(round(crossing.width, 3))
    message = (
        f"the interval reaches {reached} from the rate, not {percent(width)} as --width asks, "
        f"after {len(result.trials)} trials"
    )
    return [IMPRECISE.fired(message, crossing.width, width)]


UNFINISHED = Finding(
    name="unfinished",
    examines="whether the search completed",
    premise="The search was interrupted or ran out of time.",
    fix="run the search again",
    blame="method",
)


def _unfinished(state: ServerSearch) -> list[Fired]:
    """The reason for an interrupted search. As for an interrupted load, the blame is "method"."""
    if state.is_over:
        return []
    count = len(state.trials)
    when = (
        "before its first trial" if not count else f"after {count} trial{'s' if count > 1 else ''}"
    )
    message = f"the search was interrupted {when}"
    return [UNFINISHED.fired(message, count, None, level="invalid")]


DISCARDED = Finding(
    name="discarded",
    examines="trials that are invalid because of the generator or the host",
    premise="Some trials were discarded and repeated. If more than "
    f"{percent(MAX_DISCARDED_SHARE)} were discarded, the result is invalid.",
    fix="repeat on an idle machine; `wsgiload doctor` lists what disturbs this one",
)


def _discarded(state: ServerSearch) -> list[Fired]:
    # The closed loop does not affect the result.
    judged = [trial for trial in state.trials if trial.judgement is not None]
    discarded = [trial for trial in judged if trial.is_spoiled]
    if not discarded:
        return []

    share = len(discarded) / len(judged)
    is_too_many = share > MAX_DISCARDED_SHARE
    verdicts = [trial.cell.verdict for trial in discarded]
    blames = [one.blame for one in verdicts if one is not None and one.blame is not None]
    blame: Blame = max(set(blames), key=blames.count) if blames else "client"
    message = f"{len(discarded)} of {len(judged)} trials were invalid ({blame}) and were repeated"
    level: Level = "invalid" if is_too_many else "warn"
    return [DISCARDED.fired(message, share, MAX_DISCARDED_SHARE, level=level, blame=blame)]


ONLY_LOWER_BOUND = Finding(
    name=LOWER_BOUND,
    examines="disturbed trials near the capacity that missed the objective",
    premise="The disturbances may have caused the misses, so the capacity may be higher.",
    fix="repeat on an idle machine; `wsgiload doctor` lists what disturbs this one",
    blame="host",
)


def _disturbed(state: ServerSearch) -> list[Fired]:
    """A warning that the rate is a lower bound. A trial that met the objective while it was
    disturbed would also have met it without the disturbance. Misses above the upper bound decided
    nothing."""
    upper_per_s = state.result.bracket[1] if state.result is not None else None
    near = [
        trial
        for trial in state.trials
        if upper_per_s is None or (trial.cell.rate or 0) <= upper_per_s
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
    if len(missed) <= MAX_DISTURBED_SHARE * len(counted):
        return []

    message = (
        f"{len(missed)} of the {len(counted)} trials that decide the rate missed the objective "
        "but were disturbed, so the rate is a lower bound"
    )
    share = len(missed) / len(counted)
    return [ONLY_LOWER_BOUND.fired(message, share, MAX_DISTURBED_SHARE)]


def _verdict(reasons: Sequence[Fired]) -> Verdict:
    """The most severe reason first; its blame is the verdict's."""
    ordered = sorted(reasons, key=lambda one: one.level != "invalid")
    if not ordered:
        return Verdict(status="valid", blame=None, reasons=())
    first = ordered[0]
    reported = tuple(one.reason() for one in ordered)
    return Verdict(status=first.level, blame=first.blame, reasons=reported)


def exit_code(
    status: str,
    servers: Sequence[ServerCapacity],
    failed: Collection[str] = (),
    undecided: Collection[str] = (),
) -> int:
    """The exit code: interrupted, then failed server, then invalid measurement, then missed
    objective. ``failed`` are the servers that missed a threshold, ``undecided`` those whose
    interval contains one."""
    if status == "interrupted":
        return EXIT_INTERRUPTED
    invalid = [server.verdict for server in servers if server.verdict.status == "invalid"]
    if any(verdict.blame == "server" for verdict in invalid):
        return EXIT_SERVER
    if invalid:
        return EXIT_INVALID

    short = {*failed, *undecided}
    missing = [server for server in servers if server.server in short or server.rate_per_s is None]
    if not missing:
        return EXIT_OK
    # A server with a lower bound may still meet a threshold that this bound misses, and one without
    # a rate met the objective in some trials.
    is_open = all(
        is_lower_bound(server) or has_open_rate(server) or server.server in undecided
        for server in missing
    )
    return EXIT_INVALID if is_open else EXIT_THRESHOLD


def has_open_rate(server: ServerCapacity) -> bool:
    """Whether the server met the objective in some trials, but up to which rate is unknown."""
    return server.rate_per_s is None and server.bracket[0] is not None


def is_unfinished(server: ServerCapacity) -> bool:
    """Whether this server's search was interrupted."""
    return any(reason.check == UNFINISHED.name for reason in server.verdict.reasons)
