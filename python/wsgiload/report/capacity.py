"""A capacity search as a table and sentences for each server, from the stored document only."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from wsgiload.analysis.recommend import is_lower_bound
from wsgiload.documents.capacity import CapacityResult, LimitedBy, ServerCapacity, UseAtCapacity
from wsgiload.report import words
from wsgiload.report.terminal import FULL_WIDTH

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
    if not console.is_terminal and console.width < FULL_WIDTH:
        console.width = FULL_WIDTH
    answers = [Text(text) for server in document.servers if (text := answer_of(server))]
    remarks = [Text(sentence) for server in document.servers for sentence in remarks_of(server)]
    head = Text(conditions(document), style="dim")
    console.print(Group(head, _table(document.servers), *answers, *remarks))


def conditions(document: CapacityResult) -> str:
    """The objective and the conditions of the search."""
    trials = words.format_seconds(document.duration_s)
    return (
        f"Highest rate with {words.join_words(document.slo)} over all scheduled requests; "
        f"{document.arrivals.capitalize()} arrivals, keep-alive {document.keepalive}; "
        f"trials of {trials}; search resolution {words.format_ratio(document.width)}"
    )


def _table(servers: Sequence[ServerCapacity]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for heading in (
        "server",
        "rate",
        "bracket",
        "95 % CI",
        "confirmed",
        "no misses up to",
        "memory",
        "verdict",
    ):
        table.add_column(heading, overflow="fold")
    for server in servers:
        verdict, confirmed = server.verdict, server.confirmed
        table.add_row(
            server.server,
            rate_words(server),
            bracket_words(server.bracket),
            interval_words(server.interval_95),
            f"{confirmed[0]} of {confirmed[1]}" if confirmed else words.MISSING,
            words.format_per_s(server.strict_per_s),
            memory_words(server.at_rate),
            Text(words.verdict_words(verdict), style=_STYLES[verdict.status]),
        )
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
