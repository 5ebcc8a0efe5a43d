"""Warnings about the conclusion: at most five lines, each with its consequence. Pure, from a
summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wsgiload.analysis.answered import wrong_responses_of
from wsgiload.analysis.attempts import counted_attempts, is_disturbed
from wsgiload.documents.answer import RankingLevel
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.load_report import ErrorBudget
from wsgiload.documents.summary import Summary
from wsgiload.findings.finding import Finding
from wsgiload.findings.of_trials import of_trials
from wsgiload.findings.over_cells import alarms_over_cells
from wsgiload.findings.wrong_responses import WRONG_RESPONSES
from wsgiload.report import words
from wsgiload.report.causes import bottleneck_lines, cause_of_no_result
from wsgiload.report.cells import HEADLINE
from wsgiload.report.coincidence import nearest_lines
from wsgiload.report.question import decisive_levels, ranked
from wsgiload.report.recommendation import enough_s
from wsgiload.units import level_words

MAX_CAUTIONS = 5
# More servers than this are not named.
MAX_NAMED = 3
# A disturbance is reported if it changes p99 by more than this factor and this time.
MATTERS_BY, MATTERS_FROM_NS = 1.1, 100_000


def _about_server(one: Finding) -> bool:
    return one.sighting is None and one.consequence is not None


def _too_long(one: Finding) -> bool:
    """Whether its cause can only lengthen response times, because these start at the scheduled send
    time."""
    return one.sighting is not None and one.lengthens


def _about_trials(one: Finding) -> bool:
    return one.sighting is not None and not one.lengthens


def _is_shown(one: Finding) -> bool:
    return one.sighting is not None or one.consequence is not None


@dataclass(frozen=True, slots=True)
class _Measured:
    """The trials on which the conclusion is based (``here``), and the others."""

    here: Sequence[CellResult]
    elsewhere: Sequence[CellResult]
    where: str
    is_open: bool
    servers: int

    def share(self, count: int) -> str:
        """``2 of 18 trials at 3,000/s``, or ``all 18 trials at 3,000/s``."""
        return f"{self.share_here(count)} at {self.where}"

    def share_here(self, count: int) -> str:
        """The same without the load level."""
        total = len(self.here)
        if total == 1:
            return "the trial"
        every = "both" if total == 2 else f"all {total}"
        which = every if count == total else f"{count} of {total}"
        return f"{which} trials"


def cautions(summary: Summary, ranking: Sequence[RankingLevel]) -> list[str]:
    """At most five lines, the most important first."""
    cells = summary.cells
    decisive = decisive_levels(ranking, summary)
    counted = counted_attempts(cells)
    measured = _measured(counted, decisive)
    lines = [
        *_not_ranked(ranking, cells),
        *nearest_lines(measured.here),
        *_wrong_responses(measured),
        *bottleneck_lines(counted),
        *_about_servers(measured),
        *_quoted(measured),
        *_upper_bounds(measured),
        *_too_high(measured),
        *_without_disturbance(measured),
        *_about_host(measured),
        *_rough(ranking, decisive),
        *_not_checked(measured),
    ]
    over_cells = (alarm.message for alarm in alarms_over_cells(counted))
    lines += [message for message in over_cells if message not in lines]
    return at_most_five([*lines, *_only_elsewhere(measured)])


def at_most_five(
    lines: Sequence[str], others: str = " warnings: see --verbose or the HTML report"
) -> list[str]:
    """The first lines, and the number of further ones with where to find them."""
    if len(lines) <= MAX_CAUTIONS:
        return list(lines)
    omitted = len(lines) - MAX_CAUTIONS + 1
    return [*lines[: MAX_CAUTIONS - 1], f"{omitted} more{others}"]


def _measured(cells: Sequence[CellResult], decisive: Sequence[RankingLevel]) -> _Measured:
    levels = {(level.rate, level.connections, level.app) for level in decisive}
    here: list[CellResult] = []
    elsewhere: list[CellResult] = []
    for cell in cells:
        if cell.outcomes is not None:
            is_here = (cell.rate, cell.connections, cell.app) in levels
            (here if is_here else elsewhere).append(cell)
    return _Measured(
        here=here,
        elsewhere=elsewhere,
        where=words.join_words(list(dict.fromkeys(level.level for level in decisive))),
        is_open=any(level.rate is not None for level in decisive),
        servers=len({server_of(cell) for cell in here}),
    )


# --- servers that are in no table, or not ranked


def _failed_words(servers: Sequence[str], cause: str) -> str:
    are = "is" if len(servers) == 1 else "are"
    return f"{words.join_names(servers)} failed and {are} not ranked: {cause}"


def _not_ranked(ranking: Sequence[RankingLevel], cells: Sequence[CellResult]) -> list[str]:
    """Servers that failed, with the cause, and servers without a valid measurement."""
    failed: dict[tuple[str, str], list[str]] = {}
    unjudged: dict[str, list[str]] = {}
    for level in ranking:
        for entry in level.entries:
            if entry.status == "failed":
                cause = cause_of_no_result(entry, level, cells)
                failed.setdefault((cause, entry.label), []).append(level.level)
            elif entry.status == "invalid":
                unjudged.setdefault(entry.label, []).append(level.level)

    by_cause: dict[str, list[str]] = {}
    for (cause, label), levels in failed.items():
        by_cause.setdefault(cause, []).append(_at(label, levels, ranking))
    lines = [_failed_words(labels, cause) for cause, labels in by_cause.items()]
    if unjudged:
        labels = [_at(label, levels, ranking) for label, levels in unjudged.items()]
        lines.append(_unjudged_words(labels))
    return lines


def _unjudged_words(servers: Sequence[str]) -> str:
    have, are = ("has", "is") if len(servers) == 1 else ("have", "are")
    return (
        f"{words.join_names(servers)} {have} no valid result (trials disturbed) and {are} not "
        "ranked. Repeat on an idle machine"
    )


def _at(label: str, levels: Sequence[str], ranking: Sequence[RankingLevel]) -> str:
    """The server, with the load levels unless all are affected."""
    return label if len(levels) == len(ranking) else f"{label} at {' and '.join(reversed(levels))}"


# --- uncertainty at the load level that the conclusion is about


def _wrong_responses(measured: _Measured) -> list[str]:
    """The servers that responded with errors, with the status and the start of the body."""
    return [
        f"{name}: {words.with_fix(f'{reason.message} ({WRONG_RESPONSES.name})', reason.fix)}"
        for name, reason in wrong_responses_of(measured.here).items()
    ]


def _about_servers(measured: _Measured) -> list[str]:
    """Findings about individual servers: one line per check with the servers' names."""
    servers: dict[str, dict[str, None]] = {}
    explained = wrong_responses_of(measured.here)
    for cell in measured.here:
        for check in _checks(cell, _about_server):
            if check == "failed" and server_of(cell) in explained:
                continue
            servers.setdefault(check, {})[server_of(cell)] = None
    return [
        words.with_fix(
            f"{words.join_names(list(names))}: {one.consequence} ({check})",
            _fix_in(measured.here, check) or one.fix,
        )
        for check, one in of_trials().items()
        if (names := servers.get(check))
    ]


def _fix_in(cells: Sequence[CellResult], check: str) -> str | None:
    """The fix that all trials with this finding have, such as "warm up 3 s longer"."""
    reasons = (cell.verdict.reasons for cell in cells if cell.verdict is not None)
    fixes = {reason.fix for of_cell in reasons for reason in of_cell if reason.check == check}
    return fixes.pop() if len(fixes) == 1 else None


def _checks(cell: CellResult, is_meant: Callable[[Finding], bool]) -> list[str]:
    """The checks that fired in a trial and are findings of this kind."""
    fired = (reason.check for reason in cell.verdict.reasons) if cell.verdict is not None else ()
    known = of_trials()
    return list(dict.fromkeys(name for name in fired if name in known and is_meant(known[name])))


def _quoted(measured: _Measured) -> list[str]:
    """Findings whose messages say more than their records: one line per message."""
    servers: dict[tuple[str, str, str | None], dict[str, None]] = {}
    for cell in measured.here:
        for reason in cell.verdict.reasons if cell.verdict is not None else ():
            one = of_trials().get(reason.check)
            if one is not None and one.is_quoted:
                found = servers.setdefault((one.name, reason.message, reason.fix), {})
                found[server_of(cell)] = None
    return [
        words.with_fix(f"{words.join_names(list(names))}: {message} ({check})", fix)
        for (check, message, fix), names in servers.items()
    ]


def _upper_bounds(measured: _Measured) -> list[str]:
    """The servers whose p99 is an upper bound because of the generator's send lag."""
    bound = [
        (cell, budget)
        for cell in measured.here
        if (budget := _budget(cell)) is not None and budget.bound_status == "upper_bound"
    ]
    if not bound:
        return []
    servers = list(dict.fromkeys(server_of(cell) for cell, _ in bound))
    added = max(budget.generator[1] - budget.generator[0] for _, budget in bound)
    return [
        f"p99 of {words.join_names(servers)} at {measured.where} may be up to "
        f"{words.format_duration_ns(added)} lower than shown, because the generator sent requests "
        "late (send-lag)"
    ]


def _budget(cell: CellResult) -> ErrorBudget | None:
    return cell.error_budget_ns.get("0.99")


def _too_high(measured: _Measured) -> list[str]:
    """One line about all checks whose causes can only make servers look worse."""
    counts = Counter(check for cell in measured.here for check in _checks(cell, _too_long))
    if not counts:
        return []
    (first, count), *others = counts.most_common()
    parts = [
        (first, measured.share(count)),
        *((check, measured.share_here(number)) for check, number in others),
    ]
    reasons = [
        _capitalized(f"{of_trials()[check].sighting} {which} ({_of(check, measured)})")
        for check, which in parts
    ]
    figure = "p99 may be too high" if measured.is_open else "goodput may be too low"
    return [". ".join([f"{figure}{_order(measured)}", *reasons, "Repeat on an idle machine"])]


def _capitalized(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _of(check: str, measured: _Measured) -> str:
    """The check, with its servers if there are few."""
    cells = (cell for cell in measured.here if check in _checks(cell, _too_long))
    servers = list(dict.fromkeys(server_of(cell) for cell in cells))
    if len(servers) > MAX_NAMED or len(servers) == measured.servers:
        return check
    return f"{check}: {words.join_words(servers)}"


def _order(measured: _Measured) -> str:
    return ", so the order of the servers may be wrong" if measured.servers > 1 else ""


def _without_disturbance(measured: _Measured) -> list[str]:
    """Disturbances that no check names, and the p99 that disturbances changed most, with its value
    without the disturbed seconds."""
    changed = [
        (budget.value / budget.undisturbed, budget, cell)
        for cell in measured.here
        if (budget := _budget(cell)) is not None
        and budget.undisturbed
        and budget.value > MATTERS_BY * budget.undisturbed
        and budget.value - budget.undisturbed > MATTERS_FROM_NS
    ]
    unknown = [cell for cell in measured.here if _is_disturbed_throughout(cell)]
    lines = []
    if (changed or unknown) and not any(_checks(cell, _too_long) for cell in measured.here):
        lines.append(
            "other processes or the hypervisor disturbed "
            f"{measured.share(len(changed) + len(unknown))}{_order(measured)}"
        )
    if changed:
        _, budget, cell = max(changed, key=lambda entry: entry[0])
        in_run = f" in run {cell.run}" if any(one.run > 1 for one in measured.here) else ""
        lines.append(
            "Without the disturbed seconds, p99 of "
            f"{server_of(cell)} at {level_words(cell.rate, cell.connections)}{in_run} is "
            f"{words.format_duration_ns(budget.undisturbed)} instead of "
            f"{words.format_duration_ns(budget.value)}"
        )
    if not lines:
        return []
    return [". ".join([lines[0].replace("Without", "without", 1), *lines[1:]])]


def _is_disturbed_throughout(cell: CellResult) -> bool:
    """Whether the undisturbed seconds of a disturbed measurement are too few for its p99."""
    budget = _budget(cell)
    return (
        budget is not None
        and budget.undisturbed is None
        and bool(cell.disturbed_s)
        and is_disturbed(cell)
    )


def _about_host(measured: _Measured) -> list[str]:
    counts = Counter(check for cell in measured.here for check in _checks(cell, _about_trials))
    return [
        f"{one.sighting} {measured.share(count)}, so {one.consequence} ({check})"
        for check, count in counts.most_common()
        for one in (of_trials()[check],)
    ]


def _rough(ranking: Sequence[RankingLevel], decisive: Sequence[RankingLevel]) -> list[str]:
    """The load levels whose p99 has too few requests, and the required duration."""
    rough = [
        level
        for level in ranking
        if level.rate is not None and any(entry.few_requests_beyond for entry in ranked(level))
    ]
    rates = [level.rate for level in rough if level.rate]
    if not rates:
        return []
    where = words.join_words([level.level for level in reversed(rough)])
    if not any(level in decisive for level in rough):
        consequence = ", but this does not affect the result"
    elif any(len(ranked(level)) > 1 for level in rough):
        consequence = ", so the order of the servers may be wrong"
    else:
        consequence = ""
    return [
        f"p99 at {where} is imprecise (≈){consequence}. It {words.needed_requests(HEADLINE)} per "
        f"run. Use --duration {enough_s(min(rates))}s"
    ]


def _not_checked(measured: _Measured) -> list[str]:
    """Trials without a stationarity check, which would detect a warm-up or slowdown."""
    reasons = [
        one.reason
        for cell in measured.here
        for one in cell.not_checked or ()
        if one.check == "stationarity" and _has_response(cell)
    ]
    return [
        f"p99 may include warm-up effects. In {measured.share(reasons.count(reason))}, response "
        f"times were not checked for changes (stationarity): {reason}"
        for reason in dict.fromkeys(reasons)
    ]


def _has_response(cell: CellResult) -> bool:
    return cell.outcomes is not None and cell.outcomes.ok > 0


# --- warnings at other load levels only


def _only_elsewhere(measured: _Measured) -> list[str]:
    here = {check for cell in measured.here for check in _checks(cell, _is_shown)}
    counts = Counter(
        check
        for cell in measured.elsewhere
        for check in _checks(cell, _is_shown)
        if check not in here
    )
    if not counts:
        return []
    total = words.plural(len(measured.elsewhere), "trial")
    named = words.join_words([f"{check} in {count}" for check, count in counts.most_common()])
    return [f"warnings at other load levels (no effect on this result): {named} of {total}"]
