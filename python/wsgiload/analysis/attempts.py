"""Decides which trials at one place in the plan are repeated, and which attempt counts. Pure, from
cells of summary.json.

Both depend only on the generator and the host, never on the server's result: a slow run is no
reason to measure again, and the faster of two runs is not preferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.load_report import ErrorBudget, Verdict
from wsgiload.findings import trial
from wsgiload.findings.finding import findings_of, generator_checks
from wsgiload.units import duration_words

# Blames for which a trial may be repeated and does not count. Never the server.
NOT_THE_SERVER = ("client", "host", "method")
_CAUSES = {"client": "the generator", "host": "the host", "method": "the plan"}
# Share of a measurement. The slowest 1 % of the requests determines p99, and all of them may have
# been scheduled in that time.
MAX_DISTURBED_SHARE = 0.01


def is_discarded(cell: CellResult) -> bool:
    """Whether a trial gives no result for its server, because something else was at fault."""
    if cell.verdict is None:
        return True
    return cell.verdict.status == "invalid" and cell.verdict.blame in NOT_THE_SERVER


def is_disturbed(cell: CellResult) -> bool:
    """Whether the host was disturbed long enough to change p99, or stalled the generator."""
    is_long = (cell.disturbed_s or 0.0) > MAX_DISTURBED_SHARE * cell.duration_s
    return is_long or _was_stalled(cell)


def _was_stalled(cell: CellResult) -> bool:
    verdict = cell.verdict
    if verdict is None or verdict.blame != "host":
        return False
    return any(reason.check == "client-stalls" for reason in verdict.reasons)


def reason_of_repeat(cell: CellResult) -> str:
    """Why a discarded or disturbed trial is repeated, in words."""
    verdict = cell.verdict
    if verdict is None:
        return "not measured"
    if not is_discarded(cell):
        if not cell.disturbed_s:
            return "the generator stalled" if _was_stalled(cell) else "a rerun was less disturbed"
        whole_s = f"{cell.duration_s:g} s"
        return f"other processes or the hypervisor disturbed {cell.disturbed_s:g} of {whole_s}"

    checks = sorted({reason.check for reason in verdict.reasons if reason.level == "invalid"})
    cause = _CAUSES.get(verdict.blame or "", str(verdict.blame))
    return f"invalid because of {cause}" + (f" ({', '.join(checks)})" if checks else "")


def place_of(cell: CellResult) -> str:
    """The place in the plan: the cell's identifier without the number of the attempt."""
    attempt = cell.attempt or 1
    return cell.id if attempt == 1 else cell.id.removesuffix(f".{attempt}")


def by_place(cells: Iterable[CellResult]) -> Mapping[str, Sequence[CellResult]]:
    """The attempts at each place in the plan, in their order."""
    places: dict[str, list[CellResult]] = {}
    for cell in cells:
        places.setdefault(place_of(cell), []).append(cell)
    return {
        place: sorted(attempts, key=lambda cell: cell.attempt or 1)
        for place, attempts in places.items()
    }


def counted_attempt(attempts: Sequence[CellResult]) -> CellResult:
    """The attempt at one place that counts: the least disturbed one that is not discarded (if
    equal, the later one). If all are discarded, the last one."""
    usable = [cell for cell in attempts if not is_discarded(cell)]
    return min(reversed(usable), key=_disturbance) if usable else attempts[-1]


def _disturbance(cell: CellResult) -> tuple[bool, bool, float]:
    """Sort key; larger means more disturbed. An unknown disturbance ranks above every known one
    that still lets a trial count, because counters are missing if the sampler got no CPU time."""
    is_unknown = cell.disturbed_s is None and cell.failure is None
    return is_disturbed(cell), is_unknown, cell.disturbed_s or 0.0


def counted_attempts(cells: Sequence[CellResult]) -> list[CellResult]:
    """The cells without those that another attempt replaced, in the given order."""
    counted = {counted_attempt(attempts).id for attempts in by_place(cells).values()}
    return [cell for cell in cells if cell.id in counted]


def repeated(cells: Iterable[CellResult], runs: int) -> int:
    """How many of these trials count towards ``max_reruns``: with a single run, every attempt
    after the first; with several runs, those made although an earlier attempt was valid."""
    return sum(_repeats(attempts, runs) for attempts in by_place(cells).values())


def _repeats(attempts: Sequence[CellResult], runs: int) -> int:
    if runs == 1:
        return len(attempts) - 1
    first = next((n for n, cell in enumerate(attempts) if not is_discarded(cell)), len(attempts))
    return max(0, len(attempts) - 1 - first)


# Some disturbances leave an upper bound. The response time of an open loop begins at the
# scheduled send time, so a late generator, or a processor used by others, lengthens response
# times and never shortens them: in a FIFO queue, later arrivals or slower service never end any
# service earlier. An objective that was met would also have been met without the disturbance;
# only a miss is in doubt.
def only_lengthen() -> frozenset[str]:
    """The checks whose causes can only lengthen response times."""
    known = (*generator_checks(), *findings_of(trial))
    return frozenset(one.name for one in known if one.lengthens)


def disturbance_of(verdict: Verdict) -> str | None:
    """The disturbance that can only have lengthened response times, in words; None if there was
    none, or if the measurement is invalid for another reason."""
    invalid = [reason for reason in verdict.reasons if reason.level == "invalid"]
    if not {reason.check for reason in invalid} <= only_lengthen():
        return None

    disturbing = invalid or [
        reason for reason in verdict.reasons if reason.check == trial.CONTAMINATED.name
    ]
    return disturbing[0].message if disturbing else None


def delay_of(budgets: Mapping[str, ErrorBudget], quantile: str) -> int:
    """Nanoseconds that the generator may have added to a quantile that is only an upper bound;
    otherwise 0, because the quantile's bounds include them."""
    budget = budgets.get(quantile)
    if budget is None or budget.bound_status != "upper_bound":
        return 0
    least, value = budget.generator
    return value - least


def delay_words(figure: str, delay_ns: int) -> str:
    """The delay as a clause."""
    return f"the generator's delay may account for up to {duration_words(delay_ns)} of {figure}"
