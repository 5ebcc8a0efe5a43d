"""The figures of each target of a load with several targets."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from wsgiload.analysis.absence import enough_requests
from wsgiload.documents.load_report import LoadReport, RequestCounts
from wsgiload.report import words

# With more targets than MAX_ROWS, only the slowest ones are shown.
MAX_ROWS = 20
SLOWEST = 10
_P99 = 0.99


def requests_table(report: LoadReport) -> Iterator[RenderableType]:
    """One row per target in the order of the plan, if there are several; with many targets, only
    the slowest."""
    targets = report.targets
    if not targets:
        return
    is_long = len(targets) > MAX_ROWS
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("request", overflow="fold")
    for heading in ("scheduled", "ok", "failed", "p50", "p99", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for target in sorted(targets, key=_slowness, reverse=True)[:SLOWEST] if is_long else targets:
        table.add_row(Text(target.name), *_figures(target))
    yield table
    if is_long:
        yield Text(_which_shown(report), style="dim")


def _slowness(target: RequestCounts) -> tuple[int, int, int]:
    """Sort key: p99; without quantiles, failures and then scheduled requests."""
    return (target.p99_ns or 0, target.failed, target.scheduled)


def _which_shown(report: LoadReport) -> str:
    is_timed = any(target.p99_ns is not None for target in report.targets)
    by = "the highest p99" if is_timed else "the most failures (too many to record their times)"
    count = words.format_count(len(report.targets))
    return f"the {SLOWEST} of {count} requests with {by}; --json FILE writes all"


def _figures(target: RequestCounts) -> list[str]:
    counts = [words.format_count(count) for count in (target.scheduled, target.ok, target.failed)]
    times = []
    for quantile, value_ns in ((0.5, target.p50_ns), (_P99, target.p99_ns)):
        enough = enough_requests(target.ok, quantile)
        times.append(words.format_duration_ns(value_ns if enough else None))
    return [*counts, *times, words.format_duration_ns(target.max_ns)]
