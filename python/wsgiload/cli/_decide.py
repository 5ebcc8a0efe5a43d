"""What a sweep prints beside its answer: findings, recommendations and, if the question stayed
open, the command that would decide it; and the exit code that follows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from wsgiload.analysis.answered import is_unanswered
from wsgiload.cli._output import complain, say
from wsgiload.documents.answer import Recommendation
from wsgiload.documents.load_report import Reason
from wsgiload.documents.summary import Summary
from wsgiload.errors import EXIT_INVALID, EXIT_OK, EXIT_THRESHOLD
from wsgiload.experiment.estimate import runs_s
from wsgiload.program import command_line
from wsgiload.report import recommendation_lines
from wsgiload.report.words import format_span, with_fix
from wsgiload.units import NS_PER_S, parse_duration_ns

# Four times as many trials halve an interval.
_LONGER_SEARCH = 4

_OPTION = re.compile(r"--(?P<name>budget|runs|duration) (?P<value>\w+)")


def code_of_answer(summary: Summary, code: int, arguments: Sequence[str] | None) -> int:
    """98 if the sweep asked a question and got no answer; prints the command that would decide
    it, unless it was resumed, which allows no other plan (``arguments`` is None). Other codes that come before 98 or do not concern the answer stay."""
    if not is_unanswered(summary):
        return code
    needs = summary.answer.needs if summary.answer is not None else None
    command = None if arguments is None else deciding_command(needs or "", summary, arguments)
    complain("undecided" if command is None else f"undecided; to decide, run: {command}")
    return EXIT_INVALID if code in (EXIT_OK, EXIT_THRESHOLD) else code


def say_longer_search(budget_s: float, arguments: Sequence[str]) -> None:
    """Print the command that would decide a capacity search that ended without an answer."""
    minutes = math.ceil(_LONGER_SEARCH * budget_s / 60)
    command = command_line(*arguments, "--budget", f"{minutes}m")
    complain(f"undecided; to decide, run: {command}  # about {format_span(60 * minutes)}")


def deciding_command(needs: str, summary: Summary, arguments: Sequence[str]) -> str | None:
    """This command with the option that ``needs`` names, and its time; None if it names none with a
    value. The last of several equal options counts."""
    option = _OPTION.search(needs)
    if option is None:
        return None
    command = command_line(*arguments, *option[0].split())
    return f"{command}  # about {format_span(_seconds(option, summary))}"


def _seconds(option: re.Match[str], summary: Summary) -> float:
    experiment = summary.experiment
    if option["name"] == "runs":
        return runs_s(experiment, len(experiment.servers), int(option["value"]))
    seconds = parse_duration_ns(option["value"]) / NS_PER_S
    if option["name"] == "budget":
        return seconds
    return experiment.budget_s or seconds * len(summary.cells)


def finding_text(reason: Reason) -> str:
    """The cause, the name of the check for `wsgiload explain`, and the fix."""
    return with_fix(f"{reason.message} ({reason.check})", reason.fix)


def print_recommendations(
    recommendations: Sequence[Recommendation],
    code: int,
    *,
    is_printed: bool = False,
    aside: bool = False,
) -> int:
    """Print one sentence per app, unless ``is_printed``; ``aside`` on standard error if standard
    output is JSON. Returns the exit code: if no configuration meets the objective, it failed."""
    for sentence in () if is_printed else recommendation_lines(recommendations):
        say(sentence, aside=aside)
    is_missed = any(
        one.no_recommendation is not None and one.no_recommendation.is_missed
        for one in recommendations
    )
    return EXIT_THRESHOLD if is_missed and code == EXIT_OK else code
