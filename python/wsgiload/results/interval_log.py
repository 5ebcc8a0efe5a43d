"""The two text formats of HdrHistogram: the interval log (V2, tagged) and the percentile
distribution.

The format of the log: https://github.com/HdrHistogram/HdrHistogram, class HistogramLogWriter.
Values are recorded in nanoseconds; the maximum of an interval is written in milliseconds, as other
readers expect it.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from wsgiload._loadgen import Histogram

Json = dict[str, Any]

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000
# Half the distance to 1 five times per step: what the usual plotters of this format expect.
TICKS_PER_HALF_DISTANCE = 5


def header(load: Json) -> list[str]:
    """The lines before the first interval; times in the log are offsets from the base time."""
    base_s = _base_ns(load) / NS_PER_S
    when = datetime.fromtimestamp(base_s, UTC).isoformat(timespec="milliseconds")
    return [
        "#[Histogram log format version 1.3]",
        "#[Response time from the intended send, right answers only, nanoseconds]",
        f"#[StartTime: {base_s:.3f} (seconds since epoch), {when}]",
        "#[BaseTime: 0.000 (seconds since epoch)]",
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ]


def lines(tag: str, load: Json) -> list[str]:
    """One line per interval that has a right answer."""
    to_wall_ns = _base_ns(load) - load["clock"]["monotonic_ns"]
    return [
        f"Tag={tag},{(interval['start_ns'] + to_wall_ns) / NS_PER_S:.3f},"
        f"{interval['length_ns'] / NS_PER_S:.3f},"
        f"{interval['max_ns'] / NS_PER_MS:.3f},{interval['hdr_v2']}"
        for interval in load["intervals"]
        if interval["hdr_v2"] is not None
    ]


def _base_ns(load: Json) -> int:
    base_ns: int = load["clock"]["realtime_ns"]
    return base_ns


def percentile_text(tag: str, load: Json) -> str:
    """The percentile distribution of one cell, in milliseconds, as the HdrHistogram plotters read
    it."""
    distribution = load["response_time_ns"]
    if distribution is None:
        return ""
    histogram = Histogram.from_hdr_v2(base64.b64decode(distribution["hdr_v2"]))
    rows = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    rows += [_row(value_ns, count, histogram.count) for value_ns, count in _ticks(histogram)]
    mean, largest = distribution["mean"] / NS_PER_MS, distribution["max"] / NS_PER_MS
    rows.append(
        f"#[Mean    = {mean:12.3f}, Max     = {largest:12.3f}, Total count = {histogram.count:12}]"
    )
    return f"#[{tag}]\n" + "\n".join(rows) + "\n\n"


def _row(value_ns: int, count: int, total: int) -> str:
    share = count / total
    inverse = "inf" if count == total else f"{1 / (1 - share):.2f}"
    return f"{value_ns / NS_PER_MS:12.3f} {share:14.12f} {count:10} {inverse:>14}"


def _ticks(histogram: Histogram) -> list[tuple[int, int]]:
    """Values at ever finer steps towards the maximum, with how many lie at or below each."""
    ticks: list[tuple[int, int]] = []
    seen, next_share = 0, 0.0
    for value_ns, count in histogram.buckets():
        seen += count
        share = seen / histogram.count
        if share >= next_share or seen == histogram.count:
            ticks.append((value_ns, seen))
            next_share = share + (1 - share) / TICKS_PER_HALF_DISTANCE / 2
    return ticks
