"""Which trials of one place in the plan are made again, and which of them stands. Pure, from cells
of summary.json.

Both follow from what the generator and the host did, never from the result of the server: a slow
run is no reason to measure again, and the faster of two runs is none to keep it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wsgiload.documents.cell_result import CellResult

# Who is at fault when a trial may be measured again, and is then not counted. Never the server.
NOT_THE_SERVER = ("client", "host", "method")
_CAUSES = {"client": "the generator", "host": "the host", "method": "the plan"}
# Of a measurement. The slowest hundredth of the requests decides p99, and may all have been due
# then.
MOST_DISTURBED_SHARE = 0.01


def is_discarded(cell: CellResult) -> bool:
    """Whether a trial says nothing about its server, because something else was at fault."""
    if cell.verdict is None:
        return True
    return cell.verdict.status == "invalid" and cell.verdict.blame in NOT_THE_SERVER


def is_disturbed(cell: CellResult) -> bool:
    """Whether the host was disturbed for long enough to change p99, or made the generator stall."""
    is_long = (cell.disturbed_s or 0.0) > MOST_DISTURBED_SHARE * cell.duration_s
    return is_long or _was_stalled(cell)


def _was_stalled(cell: CellResult) -> bool:
    verdict = cell.verdict
    if verdict is None or verdict.blame != "host":
        return False
    return any(reason.check == "client-stalls" for reason in verdict.reasons)


def reason_of_repeat(cell: CellResult) -> str:
    """Why a discarded or disturbed trial is made again, in words."""
    verdict = cell.verdict
    if verdict is None:
        return "not measured"
    if not is_discarded(cell):
        seconds = f" for {cell.disturbed_s:g} of {cell.duration_s:g} s" if cell.disturbed_s else ""
        return f"host disturbed{seconds}"

    checks = sorted({reason.check for reason in verdict.reasons if reason.level == "invalid"})
    cause = _CAUSES.get(verdict.blame or "", str(verdict.blame))
    return f"invalid because of {cause}" + (f" ({', '.join(checks)})" if checks else "")


def place_of(cell: CellResult) -> str:
    """The place in the plan: the identifier without the number of the attempt."""
    attempt = cell.attempt or 1
    return cell.id if attempt == 1 else cell.id.removesuffix(f".{attempt}")


def by_place(cells: Iterable[CellResult]) -> Mapping[str, Sequence[CellResult]]:
    """The attempts at each place in the plan, the first one first."""
    places: dict[str, list[CellResult]] = {}
    for cell in cells:
        places.setdefault(place_of(cell), []).append(cell)
    return {
        place: sorted(attempts, key=lambda cell: cell.attempt or 1)
        for place, attempts in places.items()
    }


def standing_attempt(attempts: Sequence[CellResult]) -> CellResult:
    """Of all attempts at one place the one that counts: of those that are not discarded the one
    during which the host was disturbed the least, the later one if it was as much; where all are
    discarded, the last."""
    kept = [cell for cell in attempts if not is_discarded(cell)]
    return min(reversed(kept), key=_disturbance) if kept else attempts[-1]


def _disturbance(cell: CellResult) -> tuple[bool, bool, float]:
    """The more, the greater. What is not known is more than any that still lets a trial count: the
    counters are missing where the sampler itself got no CPU time."""
    is_unknown = cell.disturbed_s is None and cell.failure is None
    return is_disturbed(cell), is_unknown, cell.disturbed_s or 0.0


def standing_attempts(cells: Sequence[CellResult]) -> list[CellResult]:
    """Without the trials that were replaced by another attempt, in the order given."""
    stand = {standing_attempt(attempts).id for attempts in by_place(cells).values()}
    return [cell for cell in cells if cell.id in stand]


def repeated(cells: Iterable[CellResult], runs: int) -> int:
    """How many of these trials count against ``most_repeats``: of a single run every attempt but
    the first, of several runs those that were made although an earlier one could have stood."""
    return sum(_repeats(attempts, runs) for attempts in by_place(cells).values())


def _repeats(attempts: Sequence[CellResult], runs: int) -> int:
    if runs == 1:
        return len(attempts) - 1
    first = next((n for n, cell in enumerate(attempts) if not is_discarded(cell)), len(attempts))
    return max(0, len(attempts) - 1 - first)
