"""The charts over loads, each as SVG text.

Draws what it is given and concludes nothing; the sentences under the charts are made in
``findings``. A value that does not exist is not drawn as a number: it stands on the rail at the
top, or is left out.
"""

from __future__ import annotations

import math

from wsgiload.documents.summary import AppliedLimits
from wsgiload.report import svg, words
from wsgiload.report.axes import (
    finish,
    from_zero,
    limit_line,
    limits_of,
    log_duration_axis,
    panels_of,
    quantile_axis,
)
from wsgiload.report.cells import Cell, Sweep, median_upper_ns
from wsgiload.report.marks import draw_numbers, draw_quantile, draw_rail

HEADLINE_QUANTILES = (0.5, 0.99, 0.999)
SPECTRUM_QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)
MOST_SPECTRUM_PANELS = 3
# As read back from the control group; not positive where there is none.
_CPU_QUOTA = "cpu_quota_us"


def response_time_chart(sweep: Sweep) -> str:
    """p50, p99 and p99.9 response time against load: runs as dots, medians as lines, failures on a
    rail."""
    with svg.settings():
        figure, panels = panels_of(
            sweep, [words.quantile_name(quantile) for quantile in HEADLINE_QUANTILES]
        )
        values = [
            cell.upper_ns(quantile) for cell in sweep.cells for quantile in HEADLINE_QUANTILES
        ]
        values += [cell.low_ns(quantile) for cell in sweep.cells for quantile in HEADLINE_QUANTILES]
        limits = limits_of(
            values, rail=any(value is not None and math.isinf(value) for value in values)
        )
        for axes, quantile in zip(panels, HEADLINE_QUANTILES, strict=True):
            log_duration_axis(axes, limits)
            draw_rail(axes, limits, named=axes is panels[0])
            draw_quantile(axes, sweep, quantile, limits)
        panels[0].set_ylabel("response time (log)")
        return finish(figure, "response-time", "Response time against " + _short_axis(sweep), sweep)


def goodput_chart(sweep: Sweep) -> str:
    """Correct responses per second against load, and the share of requests that got none."""
    with svg.settings():
        titles = ["correct responses per second", "share of offered requests that failed"]
        figure, (goodput, failed) = panels_of(sweep, titles, shared=False)
        # With sessions the rate is theirs, and responses are to requests.
        if sweep.open_loop and sweep.loads and not sweep.is_of_sessions:
            goodput.axline((0, 0), slope=1, color=svg.MUTED, linewidth=0.8, dashes=(4, 3), zorder=1)
            goodput.annotate(
                "achieved = offered",
                (sweep.loads[-1], sweep.loads[-1]),
                (-6, 5),
                fontsize=7,
                color=svg.MUTED,
                textcoords="offset points",
                ha="right",
            )
        draw_numbers(goodput, sweep, lambda cell: cell.goodput_per_s)
        draw_numbers(failed, sweep, _failed_percent)
        from_zero(goodput)
        from_zero(failed, least_top=1.0)
        goodput.yaxis.set_major_formatter(lambda value, _: words.format_rate(value))
        failed.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        return finish(
            figure, "goodput", "Achieved rate (goodput) against " + _short_axis(sweep), sweep
        )


def resource_chart(sweep: Sweep) -> str:
    """CPU, memory and throttling of the server's control group against load, with the limits that
    held."""
    from matplotlib.ticker import MaxNLocator

    with svg.settings():
        titles = ["CPU cores in use (mean)", "memory (peak)", "CPU periods throttled"]
        figure, (cpu, memory, throttled) = panels_of(sweep, titles, shared=False)
        draw_numbers(cpu, sweep, lambda cell: cell.used.cpu_cores_mean)
        draw_numbers(memory, sweep, _memory_mib)
        draw_numbers(throttled, sweep, _throttled_percent, _why_none_throttled(sweep))
        memory_bytes = sweep.memory_limit_bytes
        limit_line(cpu, sweep.cpu_limit, "limit")
        limit_line(memory, None if memory_bytes is None else memory_bytes / (1 << 20), "limit")
        for axes in (cpu, memory, throttled):
            from_zero(axes, least_top=1.0)
        memory.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 1.28, 2.56, 5.12, 10]))
        memory.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f} MiB")
        throttled.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        return finish(
            figure, "resources", "Resources of the server against " + _short_axis(sweep), sweep
        )


def spectrum_loads(sweep: Sweep) -> tuple[float, ...]:
    """The loads that get a panel in the spectrum: the lowest, the middle and the highest."""
    loads = sweep.loads
    if len(loads) <= MOST_SPECTRUM_PANELS:
        return loads
    return (loads[0], loads[(len(loads) - 1) // 2], loads[-1])


def spectrum_chart(sweep: Sweep) -> str:
    """Response time at each quantile, spread by 1/(1-p), one panel per load."""
    with svg.settings():
        loads = spectrum_loads(sweep)
        figure, panels = panels_of(
            sweep, [f"at {sweep.load_words(load)}" for load in loads], by_load=False
        )
        lines = {
            (label, load): _spectrum(sweep.at(label, load))
            for label in sweep.labels
            for load in loads
        }
        limits = limits_of((value for points in lines.values() for _, value in points), rail=False)
        for axes, load in zip(panels, loads, strict=True):
            log_duration_axis(axes, limits)
            quantile_axis(
                axes,
                max(
                    (quantile for points in lines.values() for quantile, _ in points), default=0.99
                ),
            )
            for index, label in enumerate(sweep.labels):
                points = lines[label, load]
                style = svg.series_style(index)
                axes.plot(
                    [1 / (1 - quantile) for quantile, _ in points],
                    [value for _, value in points],
                    color=style.colour,
                    marker=style.marker,
                    linestyle=style.dash,
                    linewidth=1.3,
                    markersize=3.6,
                )
        if panels:
            panels[0].set_ylabel("response time (log)")
        return finish(figure, "spectrum", "Percentile spectrum of response time", sweep)


def _failed_percent(cell: Cell) -> float | None:
    ratio = words.failed_ratio(cell.outcomes)
    return None if ratio is None else ratio * 100


def _throttled_percent(cell: Cell) -> float | None:
    ratio = cell.used.throttled_period_ratio
    return None if ratio is None else ratio * 100


def _why_none_throttled(sweep: Sweep) -> str:
    """A limit that whole cores hold, or none, needs no quota, and without one the kernel counts no
    periods."""
    set_limits = [cell.result.limits for cell in sweep.cells if cell.result.limits is not None]
    had_quota = any(_has_cpu_quota(limits) for limits in set_limits)
    return "no CPU quota was set" if set_limits and not had_quota else words.NOT_MEASURED


def _has_cpu_quota(limits: AppliedLimits) -> bool:
    quota_us = limits.read_back.get(_CPU_QUOTA)
    return isinstance(quota_us, int | float) and quota_us > 0


def _memory_mib(cell: Cell) -> float | None:
    size_bytes = cell.used.memory_peak_bytes
    return None if size_bytes is None else size_bytes / (1 << 20)


def _spectrum(cells: tuple[Cell, ...]) -> list[tuple[float, float]]:
    """The quantiles of one server at one load, up to the first that has no finite value."""
    points: list[tuple[float, float]] = []
    for quantile in SPECTRUM_QUANTILES:
        value = median_upper_ns(cells, quantile) if any(cell.usable for cell in cells) else None
        if value is None:
            break
        points.append((quantile, value))
    return points


def _short_axis(sweep: Sweep) -> str:
    if not sweep.open_loop:
        return "connections"
    return "offered rate of sessions" if sweep.is_of_sessions else "offered rate"
