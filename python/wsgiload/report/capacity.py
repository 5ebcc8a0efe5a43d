"""A capacity search in the terminal: the first screen (the question, the answer, the ranked servers
and warnings), or a table and sentences for each server. From the stored document only; computes
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from wsgiload.analysis.recommend import is_lower_bound
from wsgiload.documents.capacity import CapacityResult, LimitedBy, ServerCapacity, UseAtCapacity
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.summary import Summary
from wsgiload.report import words
from wsgiload.report.answer_box import AnswerBox, markdown_of, print_answer
from wsgiload.report.cautions import at_most_five
from wsgiload.report.cells import label_of
from wsgiload.report.command_line import start_of_cell
from wsgiload.report.first_screen import places_among
from wsgiload.report.question import limits_words
from wsgiload.report.recommendation import recommendation_lines
from wsgiload.report.terminal import full_width, plain_table

HEADINGS = (
    "",
    "server",
    "rate",
    "95 % CI",
    "bracket",
    "confirmed",
    "CPU cores",
    "memory",
    "limited by",
    "verdict",
)
# Columns that a narrow terminal omits, the first one first. The sentence names the best server's
# bottleneck.
_DISPENSABLE = ("bracket", "limited by", "confirmed", "memory", "CPU cores", "verdict")
NOTE = (
    "The rate is the highest that meets the objective in the long run, from a curve fitted to the "
    "requests beyond the limit in all trials; half of the trials just above it meet the objective "
    "by chance. The bracket is the nearest pair of rates around it at which a trial met and missed "
    "the objective. Servers marked = have overlapping intervals."
)


def print_capacity_screen(
    document: CapacityResult, summary: Summary | None, console: Console
) -> None:
    """Print the first screen of a capacity search."""
    print_answer(capacity_screen(document, summary), console)


def capacity_screen(document: CapacityResult, summary: Summary | None) -> AnswerBox:
    """The first screen. Without a summary (searches of a URL), limits and settings are unknown."""
    document = _named(document)
    groups = [_ranked(servers) for servers in _by_app(document.servers)]
    sentences = [_sentence(servers, _lead(servers, groups)) for servers in groups]
    started = _started(document, groups, summary)
    box = AnswerBox(
        question=_question(document, summary),
        sentence=" ".join([*sentences, *recommendation_lines(document.recommendations)]),
        command_line=None if started is None else start_of_cell(started),
        command_of=None if started is None else label_of(started),
        needs=_needs(document),
        tables=[_screen_table(servers) for servers in groups],
        cautions=tuple(at_most_five(_cautions(document.servers))),
        markdown="",
        status=_status(document, groups),
        dispensable=_DISPENSABLE,
    )
    return markdown_of(box)


def _named(document: CapacityResult) -> CapacityResult:
    """The document with the URL as the name of a server that wsgiload did not start."""
    if document.url is None:
        return document
    named = (msgspec.structs.replace(one, server=document.url) for one in document.servers)
    return msgspec.structs.replace(document, servers=tuple(named))


def _question(document: CapacityResult, summary: Summary | None) -> str:
    objective = words.join_words(document.slo)
    inside = limits_words(summary) if summary is not None else ""
    if len(document.servers) != 1:
        which = f"Which of {len(document.servers)} servers"
        return f"{which} meets {objective} at the highest rate{inside}?"
    who = document.servers[0].server
    return f"What is the highest rate at which {who} meets {objective}{inside}?"


def _by_app(servers: Sequence[ServerCapacity]) -> list[list[ServerCapacity]]:
    """The servers of each app, because servers of different apps are not compared."""
    apps = dict.fromkeys(server.app for server in servers)
    return [[server for server in servers if server.app == app] for app in apps]


def _lead(servers: Sequence[ServerCapacity], groups: Sequence[object]) -> str:
    return f"{servers[0].app}: " if len(groups) > 1 else ""


def _ranked(servers: Sequence[ServerCapacity]) -> list[ServerCapacity]:
    """The servers by descending rate; servers without a rate last, in their order."""
    return sorted(servers, key=lambda server: -(server.rate_per_s or 0.0))


def _sentence(servers: Sequence[ServerCapacity], lead: str) -> str:
    """The best server, its rate, and how it compares with the next one."""
    best = servers[0]
    if best.rate_per_s is None:
        return f"{lead}{_without_rate(servers)}."

    interval = f" (95 % CI {interval_words(best.interval_95)})" if best.interval_95 else ""
    limit = f", limited by {limited_words(best)}" if best.limited_by is not None else ""
    rate = words.format_per_s(best.rate_per_s)
    reach = f"up to at least {rate}" if is_lower_bound(best) else f"at up to {rate}"
    return f"{lead}{best.server} meets the objective {reach}{interval}{limit}{_versus(servers)}."


def _without_rate(servers: Sequence[ServerCapacity]) -> str:
    """Whether no rate was found, or the search ended before one was known. With several servers,
    the sentence on the recommendation names the best so far."""
    who = servers[0].server if len(servers) == 1 else "any server"
    if all(server.bracket[0] is None for server in servers):
        return f"No rate was found at which {who} meets the objective"
    unknown = f"It is unknown up to which rate {who} meets the objective"
    if len(servers) > 1:
        return unknown
    reached = words.format_per_s(servers[0].bracket[0])
    return f"{unknown}; so far, it met the objective at {reached}"


def _status(
    document: CapacityResult, groups: Sequence[Sequence[ServerCapacity]]
) -> Literal["decided", "tie", "undecided"]:
    """Decided if the search is complete and each app has a rate."""
    has_rates = all(servers[0].rate_per_s is not None for servers in groups)
    return "decided" if has_rates and document.status == "complete" else "undecided"


def _versus(servers: Sequence[ServerCapacity]) -> str:
    best, *others = (server for server in servers if server.rate_per_s is not None)
    if not others or best.rate_per_s is None or others[0].rate_per_s is None:
        return ""
    second = others[0]
    factor = f"{best.rate_per_s / others[0].rate_per_s:.2f}"
    against = f"; this is {factor}× the rate of {second.server} ({rate_words(second)})"
    tied = [server.server for server in others if _overlap(best, server)]
    if not tied:
        return against
    return (
        f"{against}, but the confidence interval of {best.server} overlaps with that of "
        f"{words.join_names(tied)}, so the order is uncertain"
    )


def _overlap(one: ServerCapacity, other: ServerCapacity) -> bool:
    """Whether the intervals overlap; an unknown bound counts as an overlap."""
    if one.interval_95 is None or other.interval_95 is None:
        return True
    low, other_high = one.interval_95[0], other.interval_95[1]
    return low is None or other_high is None or low <= other_high


def _places(servers: Sequence[ServerCapacity]) -> list[str]:
    """The place of each server; servers whose intervals overlap with the first of their group share
    it."""
    known = [server for server in servers if server.rate_per_s is not None]
    places = places_among(known, _overlap, "=")
    return [*places, *[words.MISSING] * (len(servers) - len(known))]


def _screen_table(servers: Sequence[ServerCapacity]) -> tuple[list[str], list[list[str]]]:
    rows = [[place, *_row(server)] for place, server in zip(_places(servers), servers, strict=True)]
    return list(HEADINGS), rows


def _row(server: ServerCapacity) -> list[str]:
    confirmed, used = server.confirmed, server.at_rate
    return [
        server.server,
        rate_words(server),
        interval_words(server.interval_95),
        bracket_words(server.bracket),
        f"{confirmed[0]} of {confirmed[1]}" if confirmed else words.MISSING,
        words.format_cores(None if used is None else used.cpu_cores_mean),
        memory_words(used),
        words.MISSING if server.limited_by is None else limited_words(server),
        words.verdict_words(server.verdict),
    ]


def _started(
    document: CapacityResult,
    groups: Sequence[Sequence[ServerCapacity]],
    summary: Summary | None,
) -> CellResult | None:
    """A trial of the recommended server, or of the best one; None for several apps."""
    if summary is None or len(groups) != 1 or groups[0][0].rate_per_s is None:
        return None
    chosen = [one.recommended.server for one in document.recommendations if one.recommended]
    name = chosen[0] if chosen else groups[0][0].server
    started_cells = (cell for cell in summary.cells if label_of(cell) == name and cell.settings)
    return next(started_cells, None)


def _needs(document: CapacityResult) -> str | None:
    if document.status == "interrupted":
        return "search again without interruption"
    return None


def _cautions(servers: Sequence[ServerCapacity]) -> list[str]:
    """The remarks of all servers; those of invalid results come first."""
    invalid = [server for server in servers if server.verdict.status == "invalid"]
    others = [server for server in servers if server.verdict.status != "invalid"]
    return [line for server in (*invalid, *others) for line in remarks_of(server)]


_LIMITS: dict[LimitedBy, str] = {
    "cpu_limit": "its CPU limit",
    "cpu_per_process": "one CPU core per process",
    "memory": "its memory",
    "service": "a service",
    "waiting": "waiting for a thread or for a connection to a service (server and services are "
    "not CPU-bound)",
    "workers": "its workers (connections waited although CPU time was available)",
    "accept_queue": "a full accept queue",
}
_STYLES = {"valid": "green", "warn": "yellow", "invalid": "red"}


def print_capacity(document: CapacityResult, console: Console) -> None:
    """Print the conditions, a row per server, and its answers and remarks."""
    answers = [Text(text) for server in document.servers if (text := answer_of(server))]
    remarks = [Text(sentence) for server in document.servers for sentence in remarks_of(server)]
    head = Text(conditions(document), style="dim")
    with full_width(console):
        console.print(Group(head, _table(document.servers), *answers, *remarks))


def conditions(document: CapacityResult) -> str:
    """The objective and the conditions of the search."""
    return (
        f"Highest rate with {words.join_words(document.slo)} over all scheduled requests; "
        f"{document.arrivals.capitalize()} arrivals, keep-alive {document.keepalive}; "
        f"at most {words.format_span(document.budget_s)}"
    )


def _table(servers: Sequence[ServerCapacity]) -> Table:
    table = plain_table(*HEADINGS[1:])
    for server in servers:
        *figures, verdict = _row(server)
        table.add_row(*figures, Text(verdict, style=_STYLES[server.verdict.status]))
    return table


def rate_words(server: ServerCapacity) -> str:
    """The rate, with "≥" if it is only a lower bound because of disturbed trials."""
    mark = "≥ " if server.rate_per_s is not None and is_lower_bound(server) else ""
    return mark + words.format_per_s(server.rate_per_s)


def answer_of(server: ServerCapacity) -> str | None:
    """The rate, its interval and the bottleneck, as one sentence; None without a rate."""
    if server.rate_per_s is None:
        return None
    answer = f"{server.server}: {rate_words(server)}"
    if server.interval_95 is not None:
        answer += f" (95 % CI {interval_words(server.interval_95)})"
    if server.limited_by is not None:
        answer += f", limited by {limited_words(server)}"
    return answer


def limited_words(server: ServerCapacity) -> str:
    """The bottleneck, such as "its CPU limit"; a dash if it is unknown."""
    limit = server.limited_by
    if limit is None:
        return words.MISSING
    if limit == "service" and server.limiting_services:
        return words.join_words(server.limiting_services)
    return _LIMITS[limit]


def bracket_words(bounds: Sequence[float | None]) -> str:
    """ "367/s to 383/s"."""
    if bounds[0] is None and bounds[1] is None:
        return words.MISSING
    return f"{words.format_per_s(bounds[0])} to {words.format_per_s(bounds[1])}"


def interval_words(interval: Sequence[float | None] | None) -> str:
    """ "320/s to 386/s"."""
    return (
        f"{words.format_per_s(interval[0])} to {words.format_per_s(interval[1])}"
        if interval
        else words.MISSING
    )


def memory_words(at_rate: UseAtCapacity | None) -> str:
    """The peak memory at the rate, with its limit."""
    if at_rate is None or at_rate.memory_peak_bytes is None:
        return words.MISSING
    limit = at_rate.memory_limit_bytes
    of_limit = f" of {words.format_bytes(limit)}" if limit is not None else ""
    return f"{words.format_bytes(at_rate.memory_peak_bytes)}{of_limit}"


def remarks_of(server: ServerCapacity) -> list[str]:
    """A sentence for each reason of the verdict, and one for the discarded trials."""
    remarks = [
        f"{server.server}: {words.reason_words(reason)}" for reason in server.verdict.reasons
    ]
    discarded = [trial.cell for trial in server.trials if trial.discarded]
    if discarded:
        listed = "; ".join(words.trial_words(cell) for cell in discarded)
        remarks.append(f"{server.server}: trials discarded and repeated: {listed}")
    return remarks
