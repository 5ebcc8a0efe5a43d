"""The data of the page as tables of text: one for each chart, and one with all cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wsgiload.report import coincidence, panels, words
from wsgiload.report.cells import Cell, Sweep, outcome_counts, quantile_ns
from wsgiload.report.heat import Heat
from wsgiload.report.run_files import LoadDigest
from wsgiload.report.strip import Busy, Strip

_FAILURES = {
    "http_status": "HTTP status",
    "bad_body": "wrong body",
    "reset": "reset",
    "stale": "stale connection",
    "refused": "refused",
    "connect_timeout": "connect timeout",
    "timeout": "timeout",
    "dropped": "dropped",
    "unfinished": "unfinished",
    "client_error": "client error",
}


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of text: the first ``names`` columns are words, the rest are numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1


Column = tuple[str, Callable[[Cell], str]]

GOODPUT_COLUMNS: tuple[Column, ...] = (
    ("offered/s", lambda cell: words.format_measured_rate(cell.rates.offered_per_s)),
    ("sent/s", lambda cell: words.format_measured_rate(cell.rates.sent_per_s)),
    ("achieved/s", lambda cell: words.format_measured_rate(cell.rates.achieved_per_s)),
    ("goodput/s", lambda cell: words.format_measured_rate(cell.goodput_per_s)),
    ("ok", lambda cell: words.format_ratio(cell.ok_ratio)),
)
RESOURCE_COLUMNS: tuple[Column, ...] = (
    ("CPU cores (mean)", lambda cell: words.format_cores(cell.used.cpu_cores_mean)),
    ("CPU cores (peak)", lambda cell: words.format_cores(cell.used.cpu_cores_peak)),
    ("CPU time per request", lambda cell: words.format_duration_ns(cell.used.cpu_ns_per_request)),
    ("memory (mean)", lambda cell: words.format_bytes(cell.used.memory_mean_bytes)),
    ("memory (peak)", lambda cell: words.format_bytes(cell.used.memory_peak_bytes)),
    ("page cache (peak)", lambda cell: words.format_bytes(cell.used.page_cache_peak_bytes)),
    ("periods throttled", lambda cell: words.format_ratio(cell.used.throttled_period_ratio)),
    ("CPU pressure", lambda cell: words.format_ratio(cell.used.psi_cpu_some_ratio)),
    ("accept queue (peak)", lambda cell: words.format_count(cell.used.listen_queue_peak)),
    ("accept queue drops", lambda cell: words.format_count(cell.used.listen_drops)),
    ("OOM kills", lambda cell: words.format_count(cell.used.oom_kills)),
    ("processes and threads (peak)", lambda cell: words.format_count(cell.used.processes_peak)),
)


def service_columns(sweep: Sweep) -> list[Column]:
    """CPU and memory of each supporting service."""
    return [
        column
        for name in sweep.services
        for column in (
            (f"{name} CPU cores", lambda cell, name=name: _service_cpu(cell, name)),
            (f"{name} memory", lambda cell, name=name: _service_memory(cell, name)),
        )
    ]


def _service_cpu(cell: Cell, name: str) -> str:
    used = cell.service(name)
    return words.MISSING if used is None else words.format_cores(used.resources.cpu_cores_mean)


def _service_memory(cell: Cell, name: str) -> str:
    used = cell.service(name)
    return words.MISSING if used is None else words.format_bytes(used.resources.memory_peak_bytes)


DISTURBED: Column = ("disturbed", lambda cell: words.format_seconds(cell.result.disturbed_s))


def _quantile_column(quantile: float) -> Column:
    return words.quantile_name(quantile), lambda cell: cell.quantile_words(quantile)


MAIN_COLUMNS: tuple[Column, ...] = (
    *GOODPUT_COLUMNS[3:],
    *(_quantile_column(quantile) for quantile in (0.5, 0.99, 0.999)),
    (
        "service time p50",
        lambda cell: words.format_duration_ns(quantile_ns(cell.result.service_time_ns, 0.5)),
    ),
    ("CPU cores", RESOURCE_COLUMNS[0][1]),
    ("memory", RESOURCE_COLUMNS[4][1]),
)
_CELL_COLUMNS: tuple[Column, ...] = (
    *MAIN_COLUMNS,
    (
        "send lag p99",
        lambda cell: words.format_duration_ns(quantile_ns(cell.result.send_lag_ns, 0.99)),
    ),
    ("periods throttled", RESOURCE_COLUMNS[6][1]),
    DISTURBED,
    ("coincided with", coincidence.names),
)


def _lead(sweep: Sweep, cell: Cell) -> tuple[str, ...]:
    return (cell.label, words.format_rate(cell.load), *((str(cell.run),) if sweep.runs > 1 else ()))


def _lead_headings(sweep: Sweep) -> tuple[str, ...]:
    load = sweep.load_heading
    return ("server", load, "run") if sweep.runs > 1 else ("server", load)


def of_columns(sweep: Sweep, columns: Sequence[Column]) -> Grid:
    """Every cell with its server, load level and these columns."""
    columns = [column for column in columns if column[0] not in _lead_headings(sweep)]
    headings = (*_lead_headings(sweep), *(name for name, _ in columns))
    rows = tuple(
        (*_lead(sweep, cell), *(shown(cell) for _, shown in columns)) for cell in sweep.cells
    )
    return Grid(headings, rows)


def of_times(sweep: Sweep, loads: Mapping[str, LoadDigest]) -> Grid:
    """Every cell with its quantiles and the confidence interval of its p99."""

    def interval(cell: Cell) -> str:
        load = loads.get(cell.id)
        return words.MISSING if load is None else words.format_interval(load.p99_interval_ns)

    quantiles = [_quantile_column(quantile) for quantile in panels.HEADLINE_QUANTILES]
    interval_column = ("95 % CI of this run's p99 (correct responses)", interval)
    return of_columns(sweep, (GOODPUT_COLUMNS[4], *quantiles, interval_column, DISTURBED))


def of_spectrum(sweep: Sweep) -> Grid:
    """Every cell with all quantiles of the spectrum."""
    return of_columns(sweep, [_quantile_column(quantile) for quantile in panels.QUANTILES])


def of_cells(sweep: Sweep) -> Grid:
    """Every cell with its version, its verdict and its main figures."""
    lead = _lead_headings(sweep)
    headings = ("server", "version", "verdict", *lead[1:], *(name for name, _ in _CELL_COLUMNS))
    return Grid(headings, tuple(_cell_row(sweep, cell) for cell in sweep.cells), names=3)


def _cell_row(sweep: Sweep, cell: Cell) -> tuple[str, ...]:
    """The row of one cell. A failed cell without results has its message instead of numbers."""
    version, failure = cell.result.version or words.MISSING, cell.result.failure
    verdict = cell.verdict_words()
    if failure is not None and cell.status == "failed":
        verdict = f"failed: {failure.step}"
    lead = (cell.label, version, verdict, *_lead(sweep, cell)[1:])
    if failure is not None and cell.outcomes is None:
        return (*lead, failure.message)
    # Omits the share in "infinite (0.7 % failed)", which another column contains.
    return (*lead, *(shown(cell).partition(" (")[0] for _, shown in _CELL_COLUMNS))


def of_errors(sweep: Sweep, loads: Mapping[str, LoadDigest]) -> Grid:
    """Failures by kind; only kinds and cells with failures."""
    failed = [
        cell
        for cell in sweep.cells
        if cell.result.failure is not None or words.failed_ratio(cell.outcomes)
    ]
    kinds = [kind for kind in _FAILURES if any(_count(cell, kind) for cell in sweep.cells)]

    headings = (
        *_lead_headings(sweep),
        "scheduled",
        "failed",
        *(_FAILURES[kind] for kind in kinds),
        "status codes",
    )
    rows = [
        (
            *_lead(sweep, cell),
            words.format_count(cell.scheduled),
            words.format_ratio(words.failed_ratio(cell.outcomes)),
            *(words.format_count(_count(cell, kind)) for kind in kinds),
            _status_codes(cell, loads.get(cell.id)),
        )
        for cell in failed
    ]
    return Grid(headings, tuple(rows))


def _count(cell: Cell, kind: str) -> int | None:
    return None if cell.outcomes is None else outcome_counts(cell.outcomes)[kind]


def _status_codes(cell: Cell, load: LoadDigest | None) -> str:
    if cell.result.failure is not None:
        return f"failed: {cell.result.failure.step}"
    if load is None or not load.status_codes:
        return words.MISSING
    codes = sorted(load.status_codes.items())
    return ", ".join(f"{code}: {words.format_count(count)}" for code, count in codes)


def of_strip(strip: Strip) -> Grid:
    """One cell over time: response times and the server's resource use."""
    rows = []
    for place, middle in enumerate(strip.middles_s):
        times = (strip.p50_ns[place], strip.p99_ns[place], strip.max_ns[place])
        rows.append(
            (
                f"{middle:.1f} s",
                *(words.format_duration_ns(value) for value in times),
                words.format_count(strip.failed[place]),
                *_used(strip.busy_around(place)),
                *(_mean_cores(strip.busy_around(place, name)) for name in strip.services),
            )
        )
    headings = ("middle of interval", "p50", "p99", "max", "failed")
    used = ("CPU cores", "periods throttled", "memory", "accept queue")
    of_services = (f"{name} CPU cores" for name in strip.services)
    return Grid((*headings, *used, *of_services), tuple(rows), names=0)


def _mean_cores(busy: Sequence[Busy]) -> str:
    cores = [one.cores for one in busy]
    return words.format_cores(sum(cores) / len(cores) if cores else None)


def _used(busy: Sequence[Busy]) -> tuple[str, ...]:
    """The mean CPU use, and the maximum of the other figures."""
    throttled = [one.throttled_ratio for one in busy if one.throttled_ratio is not None]
    memory = [one.memory_bytes for one in busy if one.memory_bytes is not None]
    queue = [one.listen_queue for one in busy if one.listen_queue is not None]
    return (
        _mean_cores(busy),
        words.format_ratio(max(throttled, default=None)),
        words.format_bytes(max(memory, default=None)),
        words.format_count(max(queue, default=None)),
    )


def of_heat(heat: Heat) -> Grid:
    """A heatmap as counts by time and response time class."""
    begins, texts = (0.0, *heat.ends_s), heat.texts()
    rows = tuple(
        (
            f"{begins[place]:.1f} s to {end:.1f} s",
            *((str(heat.slowest[place]), texts[place]) if heat.slowest else ()),
            *(words.format_count(count) for count in heat.counts[place]),
        )
        for place, end in enumerate(heat.ends_s)
    )
    known = ("slowest requests", "coincided with") if heat.slowest else ()
    classes = (f"up to {words.format_duration_ns(edge)}" for edge in heat.edges_ns[1:])
    return Grid(("time", *known, *classes), rows)
