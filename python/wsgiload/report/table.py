"""Results as terminal tables: a sweep, one load, the server catalogue, and doctor's findings.

It builds rich renderables from results and draws no conclusions. Each reason for a verdict other
than valid is explained once below the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from wsgiload.analysis.absence import enough_requests
from wsgiload.documents.attribution_result import FingerprintResult
from wsgiload.documents.base import convert
from wsgiload.documents.load_report import AttachedResources, LoadReport, Reason, SessionCounts
from wsgiload.documents.over_cells import Comparison
from wsgiload.documents.run_info import DoctorFinding
from wsgiload.documents.summary import Summary
from wsgiload.findings.alarms import NO_KEEPALIVE, NO_REUSE
from wsgiload.findings.trial import FAILURE
from wsgiload.report import coincidence, grids, load_screen, over_runs, words
from wsgiload.report.cells import (
    HEADLINE,
    Cell,
    Sweep,
    conditions,
    outcome_counts,
    quantile_ns,
    read_sweep,
)
from wsgiload.report.command_line import settings_of
from wsgiload.report.terminal import full_width, plain_table, terminal
from wsgiload.statistics.effect import MIN_RUNS

_STYLES = {"valid": "green", "warn": "yellow", "invalid": "red", "failed": "red"}
_LEVELS = {"red": (0, "red"), "amber": (1, "yellow"), "green": (2, "green")}
_FINDINGS = {"different": "bold", "same": "green"}
_MAX_REQUESTS, _SLOWEST_REQUESTS = 20, 10
_SESSION_QUANTILES = (0.5, 0.9, 0.99)


def print_sweep(summary: Summary, console: Console) -> None:
    """Print the table of a sweep, the results over all runs, and all notes and reasons."""
    sweep = read_sweep(summary)
    status = words.status_words(summary)
    title = [
        Text(conditions(sweep.experiment), style="dim"),
        *([Text(status, style="yellow")] if status else []),
    ]
    with full_width(console):
        table = _fitting_table(sweep, console)
        lifted = [Text(sentence) for sentence in coincidence.interventions(summary)]
        notes = [*_over_runs(summary), *_remarks(sweep), *_settings(sweep)]
        console.print(Group(*title, *table, *notes, *lifted))


def _settings(sweep: Sweep) -> Iterator[RenderableType]:
    """How each server was started."""
    for label, text in settings_of(sweep):
        yield Text(f"settings of {label}: {text}", style="dim")


def print_comparison(
    entries: Sequence[Comparison], remarks: Sequence[str], console: Console
) -> None:
    """Print the changes between two stored runs, and their other differences."""
    lines = [
        Text(over_runs.change_sentence(entry), style=_FINDINGS.get(entry.conclusion, ""))
        for entry in entries
    ]
    _print(console, Group(*lines, *(Text(remark, style="yellow") for remark in remarks)))


def _over_runs(summary: Summary) -> Iterator[RenderableType]:
    """The aggregate of several runs, the comparison if there is one, and the discarded trials."""
    if summary.experiment.runs > 1 and summary.aggregates:
        first, *others = over_runs.aggregate_headings(summary)
        table = plain_table(first)
        for heading in others:
            table.add_column(heading, justify="right", overflow="fold")
        for row in over_runs.aggregate_rows(summary):
            table.add_row(*row)
        yield table
        yield Text(over_runs.aggregate_note(summary), style="dim")
    if summary.comparisons:
        yield from (
            Text(sentence, style=style) for sentence, style in over_runs.comparison_lines(summary)
        )
        yield Text(over_runs.COMPARISON_NOTE, style="dim")
    yield from (Text(sentence) for sentence in over_runs.overload_lines(summary))
    yield from (Text(sentence) for sentence in over_runs.power_lines(summary))
    yield from (Text(sentence, style=style) for sentence, style in over_runs.session_lines(summary))


def print_load(report: LoadReport, console: Console) -> None:
    """Print the result of one load."""
    _print(
        console,
        Group(
            *_load_head(report),
            _times_table(report),
            *_requests_table(report),
            _outcomes_line(report),
        ),
    )


class ServerRow(msgspec.Struct, frozen=True):
    """A row of the catalogue."""

    id: str
    python: str
    status: str
    legacy: bool
    reason: str | None


def print_servers(rows: Iterable[object], console: Console | None = None) -> None:
    """Print the server catalogue from the rows of ``servers list --json``."""
    table = plain_table("name for --servers", "python", "status")
    for row in convert(list(rows), list[ServerRow]):
        status = row.status + (" (legacy)" if row.legacy else "")
        reason = f": {row.reason}" if row.reason else ""
        table.add_row(row.id, row.python, Text(status + reason))
    _print(console or terminal(), table)


def print_doctor(findings: Iterable[DoctorFinding], console: Console | None = None) -> None:
    """Print doctor's findings, the most severe first, each with its fix."""
    table = plain_table("level", "check", "finding")
    for finding in sorted(findings, key=lambda finding: _LEVELS[finding.level][0]):
        message = Text(finding.message)
        if finding.fix:
            message.append(f"\n→ {finding.fix}", style="bold")
        level = Text(finding.level, style=_LEVELS[finding.level][1])
        table.add_row(level, finding.check, message)
    _print(console or terminal(), table)


def sweep_table(sweep: Sweep, left_out: Sequence[str] = ()) -> Table:
    """One row per cell, grouped by server, without the columns that are ``left_out``."""
    load = sweep.load_heading
    columns = [column for column in columns_of(sweep) if column[0] not in left_out]
    table = plain_table()
    table.add_column("server", no_wrap=True)
    for heading in (
        load,
        *(("run",) if sweep.runs > 1 else ()),
        *(heading for heading, _ in columns),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold", min_width=_VERDICT_WIDTH)
    for label in sweep.labels:
        for position, cell in enumerate(sweep.of(label)):
            lead = [words.format_rate(cell.load)] + ([str(cell.run)] if sweep.runs > 1 else [])
            # Without the failed share, which the column "ok" shows.
            numbers = [shown(cell).partition(" (")[0] for _, shown in columns]
            table.add_row(Text(label if position == 0 else ""), *lead, *numbers, _verdict(cell))
        table.add_section()
    return table


_VERDICT_WIDTH = 14
_RESULT_COLUMNS: tuple[tuple[str, Callable[[Cell], str]], ...] = (
    *grids.MAIN_COLUMNS,
    ("page cache", lambda cell: words.format_bytes(cell.used.page_cache_peak_bytes)),
    ("throttled", lambda cell: words.format_ratio(cell.used.throttled_period_ratio)),
)


def columns_of(sweep: Sweep) -> list[tuple[str, Callable[[Cell], str]]]:
    """The table's columns, including two for each supporting service."""
    return [*_RESULT_COLUMNS, *grids.service_columns(sweep)]


_DISPENSABLE = (
    "page cache",
    "service time p50",
    "throttled",
    "memory",
    "p50",
    "CPU cores",
    "p99.9",
)


def _fitting_table(sweep: Sweep, console: Console) -> list[RenderableType]:
    """The table with as many columns as fit, and a line that names the omitted ones."""
    left_out: list[str] = []
    table = sweep_table(sweep)
    for heading in _DISPENSABLE:
        if _needed_width(table, console) <= console.width:
            break
        left_out.append(heading)
        table = sweep_table(sweep, left_out)
    if not left_out:
        return [table]
    named = words.join_words([heading for heading, _ in _RESULT_COLUMNS if heading in left_out])
    return [table, Text(f"Columns hidden (terminal too narrow): {named}.", style="dim")]


def _needed_width(table: Table, console: Console) -> int:
    """The width at which only the verdict wraps."""
    verdict = table.columns[-1]
    verdict.max_width = _VERDICT_WIDTH
    width = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    verdict.max_width = None
    return width


def _verdict(cell: Cell) -> Text:
    return Text(cell.verdict_words(), style=_STYLES.get(cell.status, ""))


def _remarks(sweep: Sweep) -> list[RenderableType]:
    lines: list[RenderableType] = [
        Text(
            "Response times cover all scheduled requests and start at the scheduled send time.",
            style="dim",
        )
    ]
    lines += [
        Text(f"{sentence} [{cells}]", style=style) for sentence, style, cells in remarks(sweep)
    ]
    if sweep.runs < MIN_RUNS:
        lines.append(Text(no_inference(sweep.runs), style="yellow"))
    return lines


def no_inference(runs: int) -> str:
    """Why fewer than four runs cannot rank servers, and the fix."""
    if runs == 1:
        return "One run cannot rank servers. Use --compare."
    return f"{words.plural(runs, 'run')} cannot rank servers. Use --compare."


def remarks(sweep: Sweep) -> list[tuple[str, str, str]]:
    """Every failed check, coincidence and note: its sentence, its style, and its cells.

    A check that failed in several cells is listed once, with its worst figure.
    """
    unordered = [*_reasons(sweep), *_coincidences(sweep), *_notes(sweep)]
    ordered = sorted(unordered, key=lambda remark: ("red", "yellow", "").index(remark[1]))
    return [(sentence, style, _cell_names(cells, sweep)) for sentence, style, cells in ordered]


def _reasons(sweep: Sweep) -> list[tuple[str, str, list[Cell]]]:
    places: dict[tuple[str, str, str], list[tuple[Reason, Cell]]] = {}
    for cell in sweep.cells:
        for reason in cell.result.verdict.reasons if cell.result.verdict is not None else ():
            # Failures have individual messages; the messages of one check differ only in figures.
            check = reason.check if reason.check != FAILURE.name else reason.message
            # Figures with different limits are not comparable, such as p99 and p99.9.
            key = (check, reason.level, str(reason.limit))
            places.setdefault(key, []).append((reason, cell))

    remarks = []
    for (_, level, _), entries in places.items():
        worst, _ = max(entries, key=lambda entry: _transgression(entry[0]))
        differ = len({reason.message for reason, _ in entries}) > 1
        sentence = words.reason_words(worst, f"; worst of {len(entries)} trials" if differ else "")
        remarks.append((sentence, _STYLES.get(level, ""), [cell for _, cell in entries]))
    return remarks


def _coincidences(sweep: Sweep) -> list[tuple[str, str, list[Cell]]]:
    """Each fingerprint once, with the sentence of the cell in which it was strongest."""
    places: dict[str, list[tuple[FingerprintResult, Cell]]] = {}
    for cell in sweep.cells:
        for fingerprint in coincidence.fingerprints(cell):
            places.setdefault(fingerprint.name, []).append((fingerprint, cell))

    remarks = []
    for entries in places.values():
        strongest, where = max(entries, key=lambda entry: entry[0].value)
        sentence = coincidence.sentence(where, strongest)
        if len(entries) > 1:
            sentence += f" Worst of {len(entries)} trials."
        remarks.append((sentence, "", [cell for _, cell in entries]))
    return remarks


def _transgression(reason: Reason) -> float:
    """The distance of a figure from its limit, in either direction."""
    value, limit = (
        abs(float(one)) if isinstance(one, int | float) else 0.0
        for one in (reason.value, reason.limit)
    )
    return abs(value - limit)


def _notes(sweep: Sweep) -> list[tuple[str, str, list[Cell]]]:
    places: dict[str, list[Cell]] = {}
    for cell in sweep.cells:
        for sentence in [*_notes_of(cell), *_hidden_quantiles(cell)]:
            places.setdefault(sentence, []).append(cell)
    return [(sentence, _STYLES.get("note", ""), cells) for sentence, cells in places.items()]


def _notes_of(cell: Cell) -> list[str]:
    """The notes without the one on keep-alive, which the check states for all servers."""
    verdict = cell.result.verdict
    reasons = verdict.reasons if verdict is not None else ()
    has_check = any(reason.check == NO_REUSE.name for reason in reasons)
    return [note for note in cell.result.notes if not (has_check and NO_KEEPALIVE in note)]


def _hidden_quantiles(cell: Cell) -> list[str]:
    count = cell.scheduled
    return [
        f"{words.quantile_name(probability)} {what}: it {words.needed_requests(probability)}"
        for probability, what in ((HEADLINE, "is imprecise (≈)"), (0.999, "is not shown"))
        if count is not None and not enough_requests(count, probability)
    ]


def _cell_names(cells: Sequence[Cell], sweep: Sweep) -> str:
    if len(cells) == len(sweep.cells) and len(cells) > 1:
        return "all trials"
    runs_at: dict[str, dict[float, list[int]]] = {}
    for cell in cells:
        runs_at.setdefault(cell.label, {}).setdefault(cell.load, []).append(cell.run)
    names = []
    for label, loads in runs_at.items():
        # Runs after some load levels only would seem to apply to all of them.
        are_all = all(len(runs) == sweep.runs for runs in loads.values())
        shown = [
            sweep.load_words(load) + ("" if are_all else _runs(runs))
            for load, runs in loads.items()
        ]
        names.append(f"{label} at {words.join_words(shown)}")
    return "; ".join(names)


def _runs(runs: Sequence[int]) -> str:
    return (
        f" ({'run' if len(runs) == 1 else 'runs'} {words.join_words([str(run) for run in runs])})"
    )


def _load_head(report: LoadReport) -> list[RenderableType]:
    verdict, share = report.verdict, words.format_ratio(words.ok_ratio(report.outcomes))
    status = Text("verdict: ").append(
        words.verdict_words(verdict), style=_STYLES.get(verdict.status, "")
    )
    headline = (
        f"offered {load_screen.offered_words(report)}, "
        f"sent {words.format_measured_per_s(report.rate.sent_per_s)}, "
        f"goodput {words.format_measured_per_s(report.rate.goodput_per_s)} "
        f"({share} of scheduled requests), p99 over all scheduled requests "
        f"{load_screen.headline_p99(report)}"
    )
    return [
        status,
        *(Text(words.reason_words(reason)) for reason in verdict.reasons),
        *_not_checked(report),
        Text(headline),
        Text(f"Times of the correct responses ({share}):", style="dim"),
    ]


def _not_checked(report: LoadReport) -> list[Text]:
    """Why the stationarity check, which would detect a warm-up or slowdown, was skipped."""
    reason = report.stationarity.reason
    if reason is None:
        return []
    text = f"response times were not checked for changes (stationarity): {reason}"
    return [Text(text, style="dim")]


def _times_table(report: LoadReport) -> Table:
    table = plain_table("time", numbers=load_screen.TIME_HEADINGS[1:])
    for row in load_screen.time_rows(report):
        table.add_row(*row)
    return table


def _requests_table(report: LoadReport) -> Iterator[RenderableType]:
    """The figures of each request of a load with several; only the slowest of many."""
    rows = load_screen.request_rows(report, _MAX_REQUESTS, _SLOWEST_REQUESTS)
    if not rows:
        return
    table = plain_table("request", numbers=load_screen.REQUEST_HEADINGS[1:])
    for name, *figures in rows:
        table.add_row(Text(name), *figures)
    yield table
    if note := load_screen.shown_requests(report, len(rows)):
        yield Text(note, style="dim")


def _outcomes_line(report: LoadReport) -> Text:
    counts = outcome_counts(report.outcomes)
    kinds = [f"{name} {words.format_count(count)}" for name, count in counts.items() if count]
    opened = None if report.connections is None else report.connections.opened
    lines = [
        f"requests: {', '.join(kinds)}",
        f"connections opened: {words.format_count(opened)}",
    ]
    if report.client is not None:
        lines.append(f"generator used: {words.client_words(report.client)}")
    if report.sessions is not None:
        lines.append(_sessions_line(report.sessions))
    if report.resources is not None:
        lines.append(_used_line(report.resources))
    if pacing := _pacing(report):
        lines.append(f"generator: {pacing}")
    return Text("\n".join(lines))


def _pacing(report: LoadReport) -> str | None:
    """How busy-waiting was limited; None in a closed loop, which does not wait for scheduled
    sends."""
    if report.client is None or load_screen.open_loop(report) is None:
        return None
    return words.pacing_words(report.client)


def _sessions_line(sessions: SessionCounts) -> str:
    """The outcomes of the sessions, and the durations of completed ones."""
    counts = {
        "started": sessions.started,
        "completed": sessions.completed,
        "failed": sessions.failed,
        "unfinished": sessions.unfinished,
        "requests not sent": sessions.requests_not_reached,
    }
    ends = [f"{name} {words.format_count(count)}" for name, count in counts.items() if count]
    line = f"sessions: {', '.join(ends)}"
    durations = sessions.duration_ns
    if durations is None:
        return line

    shown = [
        f"p{100 * quantile:g} {words.format_duration_ns(quantile_ns(durations, quantile))}"
        for quantile in _SESSION_QUANTILES
        if enough_requests(durations.count, quantile)
    ]
    shown.append(f"longest {words.format_duration_ns(durations.max)}")
    return f"{line}\nduration of completed sessions, including think times: {', '.join(shown)}"


def _used_line(attached: AttachedResources) -> str:
    """The resource use of a server that wsgiload did not start, and its source."""
    used = attached.used
    figures = [
        f"{words.format_cores(used.cpu_cores_mean)} CPU cores on average",
        f"{words.format_bytes(used.memory_peak_bytes)} peak memory",
    ]
    if used.throttled_period_ratio:
        ratio = words.format_ratio(used.throttled_period_ratio)
        figures.append(f"CPU-throttled in {ratio} of the periods")
    if used.oom_kills:
        figures.append(f"{words.plural(used.oom_kills, 'OOM kill')}")
    return f"server used: {', '.join(figures)} ({attached.source} {attached.name})"


def _print(console: Console, renderable: RenderableType) -> None:
    with full_width(console):
        console.print(renderable)
