"""The two text formats of HdrHistogram: the interval log (V2, tagged) and the percentile
distribution.

The log format is defined by the class HistogramLogWriter in
https://github.com/HdrHistogram/HdrHistogram. Values are in nanoseconds; the maximum of an interval
is in milliseconds, as other readers expect.
"""

from __future__ import annotations

from datetime import UTC, datetime

from wsgiload._loadgen import Histogram
from wsgiload.documents.codec import histogram_of
from wsgiload.documents.load_report import Distribution, LoadReport
from wsgiload.units import NS_PER_S

NS_PER_MS = 1_000_000
# Five ticks per half distance to 1, as the usual plotters of this format expect.
TICKS_PER_HALF_DISTANCE = 5


def header(load: LoadReport) -> list[str]:
    """The lines before the first interval; times in the log are offsets from the base time."""
    base_s = load.clock.realtime_ns / NS_PER_S
    when = datetime.fromtimestamp(base_s, UTC).isoformat(timespec="milliseconds")

    return [
        "#[Histogram log format version 1.3]",
        "#[Response time from the scheduled send time, correct responses only, nanoseconds]",
        f"#[StartTime: {base_s:.3f} (seconds since epoch), {when}]",
        "#[BaseTime: 0.000 (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]


def lines(tag: str, load: LoadReport) -> list[str]:
    """One line for each interval with a correct response."""
    to_wall_ns = load.clock.realtime_ns - load.clock.monotonic_ns
    return [
        f"Tag={tag},{(interval.start_ns + to_wall_ns) / NS_PER_S:.3f},"
        f"{interval.length_ns / NS_PER_S:.3f},"
        f"{(interval.max_ns or 0) / NS_PER_MS:.3f},{interval.hdr_v2}"
        for interval in load.intervals
        if interval.hdr_v2 is not None
    ]


def percentile_text(tag: str, load: LoadReport) -> str:
    """The percentile distribution of one cell in milliseconds, for the HdrHistogram plotters."""
    distribution = load.response_time_ns
    histogram = histogram_of(distribution)
    if distribution is None or histogram is None:
        return ""

    rows = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    rows += [_row(value_ns, count, histogram.count) for value_ns, count in _ticks(histogram)]
    rows.append(_footer(distribution, histogram.count))
    return f"#[{tag}]\n" + "\n".join(rows) + "\n\n"


def _footer(distribution: Distribution, count: int) -> str:
    mean_ms = (distribution.mean or 0) / NS_PER_MS
    largest_ms = (distribution.max or 0) / NS_PER_MS
    return f"#[Mean    = {mean_ms:12.3f}, Max     = {largest_ms:12.3f}, Total count = {count:12}]"


def _row(value_ns: int, count: int, total: int) -> str:
    share = count / total
    inverse = "inf" if count == total else f"{1 / (1 - share):.2f}"
    return f"{value_ns / NS_PER_MS:12.3f} {share:14.12f} {count:10} {inverse:>14}"


def _ticks(histogram: Histogram) -> list[tuple[int, int]]:
    """Values at increasingly finer steps towards the maximum, with the number of responses up to
    each value."""
    ticks: list[tuple[int, int]] = []
    seen, next_share = 0, 0.0
    for value_ns, count in histogram.buckets():
        seen += count
        share = seen / histogram.count
        if share >= next_share or seen == histogram.count:
            ticks.append((value_ns, seen))
            next_share = share + (1 - share) / TICKS_PER_HALF_DISTANCE / 2
    return ticks
