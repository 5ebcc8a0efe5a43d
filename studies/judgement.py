"""The judgement of a claim, and how a confidence interval decides it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from studies.runs import Bounds, Estimate, Results

Status: TypeAlias = Literal["confirmed", "refuted", "not reproducible", "undecided"]

# The share of an offered rate above which it counts as served.
SERVED = 0.99
# Almost no errors.
HARDLY_ANY = 0.01
MORE_RUNS = "more runs, such as --runs 6"


@dataclass(frozen=True, slots=True)
class ClaimJudgement:
    """``ours`` is our figure in words, with its interval; ``because`` says why there is none, or
    what would decide the claim."""

    status: Status
    ours: str | None = None
    because: str | None = None


Judge: TypeAlias = Callable[[Results], ClaimJudgement]


def not_reproducible(why: str) -> Judge:
    """A judge for claims whose subject no longer exists."""
    return lambda results: ClaimJudgement("not reproducible", because=why)


def with_settings(judge: Judge, servers: Sequence[str], **original: int) -> Judge:
    """Decides nothing while a run of these servers had other settings than the original, on which
    the claim depends: ``workers``, or the listen ``backlog`` that the kernel reported."""

    def judge_like(results: Results) -> ClaimJudgement:
        found = judge(results)
        if found.status not in ("confirmed", "refuted"):
            return found
        deviations = [
            f"{name} {value:,}, as in the original (here: {', '.join(map(str, ours))})"
            for name, value in original.items()
            if (ours := sorted(results.settings(servers, name) - {str(value)}))
        ]
        if not deviations:
            return found
        return ClaimJudgement("undecided", found.ours, " and ".join(deviations))

    return judge_like


def higher_load(results: Results, load: float) -> str:
    """Twice this load, as an option."""
    option = "--rates" if results.is_open else "--connections"
    return f"a higher load, such as {option} {2 * load:g}"


def needs_runs(ours: str) -> ClaimJudgement:
    """Undecided until there are more runs."""
    return ClaimJudgement("undecided", ours, MORE_RUNS)


def absent(results: Results, servers: Sequence[str], app: str | None = None) -> ClaimJudgement:
    """Undecided, because the servers have no valid run in common."""
    missing = results.missing(servers, app)
    what = (
        f"a valid run of {', '.join(missing)}"
        if missing
        else f"valid runs of {', '.join(servers)} at one load level"
    )
    return ClaimJudgement("undecided", because=what)


def above(ours: str, bounds: Bounds | None, border: float) -> ClaimJudgement:
    """Confirmed if the whole interval is above the border, refuted if it is below."""
    if bounds is not None and bounds[0] > border:
        return ClaimJudgement("confirmed", ours)
    if bounds is not None and bounds[1] < border:
        return ClaimJudgement("refuted", ours)
    return needs_runs(ours)


def all_above(ours: str, estimates: Sequence[Estimate], border: float) -> ClaimJudgement:
    """Confirmed if every interval is above the border, refuted if one is below."""
    bounds = [estimate.bounds for estimate in estimates]
    if any(one is not None and one[1] < border for one in bounds):
        return ClaimJudgement("refuted", ours)
    if all(one is not None and one[0] > border for one in bounds):
        return ClaimJudgement("confirmed", ours)
    return needs_runs(ours)


def lowest(estimate: Estimate) -> float:
    """The lower end of the interval; 0 without an interval."""
    return estimate.bounds[0] if estimate.bounds is not None else 0.0


def about_one(ours: str, bounds: Bounds | None, within: float) -> ClaimJudgement:
    """Confirmed if the whole interval of a factor differs from 1 by less than this share, refuted
    if the whole interval differs by more."""
    if bounds is None:
        return needs_runs(ours)
    (low, high), least, most = bounds, 1 - within, 1 / (1 - within)
    if least < low and high < most:
        return ClaimJudgement("confirmed", ours)
    return ClaimJudgement("refuted", ours) if high < least or low > most else needs_runs(ours)
