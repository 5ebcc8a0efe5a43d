"""The interval log and the percentile text can be read by other HdrHistogram tools."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from wsgiload import Histogram
from wsgiload.documents.codec import histogram_of
from wsgiload.documents.load_report import ClockReading, Interval, LoadReport
from wsgiload.results.interval_log import header, lines, percentile_text
from wsgiload.units import NS_PER_S

from .canned_load import canned_load
from .filled import distribution

TAG = "waitress@200#1"
INTERVALS = ([1_000_000, 2_000_000, 3_000_000], [], [1_500_000, 80_000_000])


def encoded(values: list[int]) -> str:
    return base64.b64encode(Histogram.from_values(values).to_hdr_v2()).decode()


def interval(second: int, values: list[int]) -> Interval:
    count = len(values)
    return Interval(
        start_ns=(50 + second) * NS_PER_S,
        length_ns=NS_PER_S,
        scheduled=count,
        sent=count,
        ok=count,
        failed=0,
        p50_ns=values[count // 2] if values else None,
        p99_ns=None,
        max_ns=max(values, default=None),
        hdr_v2=encoded(values) if values else None,
    )


def three_second_load() -> LoadReport:
    """Three seconds; the second one has no correct response."""
    all_values = Histogram.from_values([value for values in INTERVALS for value in values])
    return canned_load(
        clock=ClockReading(
            monotonic_ns=50 * NS_PER_S, realtime_ns=1_700_000_000 * NS_PER_S, drift_ns=0
        ),
        intervals=tuple(interval(second, values) for second, values in enumerate(INTERVALS)),
        response_time_ns=distribution(
            count=all_values.count,
            mean=all_values.mean,
            max=all_values.max,
            hdr_v2=base64.b64encode(all_values.to_hdr_v2()).decode(),
        ),
    )


def write_log(directory: Path, text_lines: list[str]) -> str:
    path = directory / "latency.hlog"
    path.write_text("".join(f"{line}\n" for line in text_lines))
    return str(path)


def read_all(path: str) -> list[HdrHistogram]:
    reader, histograms = HistogramLogReader(path, HdrHistogram(1, 3_600 * NS_PER_S, 3)), []
    while (interval := reader.get_next_interval_histogram()) is not None:
        histograms.append(interval)
    reader.input_file.close()  # the reader has no close method
    return histograms


def test_another_reader_reads_counts_and_maxima_of_the_intervals(tmp_path: Path) -> None:
    load = three_second_load()
    intervals = read_all(write_log(tmp_path, [*header(load), *lines(TAG, load)]))
    assert [interval.get_total_count() for interval in intervals] == [3, 2]
    assert [interval.get_max_value() for interval in intervals] == pytest.approx(
        [3_000_000, 80_000_000], rel=0.001
    )
    assert [interval.get_tag() for interval in intervals] == [TAG, TAG]


def test_another_reader_reads_the_time_of_each_interval(tmp_path: Path) -> None:
    load = three_second_load()
    first, last = read_all(write_log(tmp_path, [*header(load), *lines(TAG, load)]))
    assert first.get_start_time_stamp() == 1_700_000_000_000
    assert last.get_start_time_stamp() == 1_700_000_002_000
    assert last.get_end_time_stamp() == 1_700_000_003_000


def test_a_payload_decodes_to_the_values_of_its_interval() -> None:
    payload = lines(TAG, three_second_load())[0].rpartition(",")[2]
    decoded = HdrHistogram.decode(payload.encode())
    assert decoded.get_total_count() == 3
    assert decoded.get_count_at_value(2_000_000) == 1
    assert decoded.get_value_at_percentile(100) == pytest.approx(3_000_000, rel=0.001)


def test_a_line_has_a_tag_seconds_a_maximum_in_milliseconds_and_a_histogram() -> None:
    tag, start, length, largest, payload = lines(TAG, three_second_load())[1].split(",")
    assert (tag, start, length, largest) == (f"Tag={TAG}", "1700000002.000", "1.000", "80.000")
    assert payload.startswith("HISTFAAA")


def test_the_intervals_add_up_to_the_whole_load(tmp_path: Path) -> None:
    load = three_second_load()
    total = HdrHistogram(1, 3_600 * NS_PER_S, 3)
    for interval in read_all(write_log(tmp_path, [*header(load), *lines(TAG, load)])):
        total.add(interval)
    expected = histogram_of(load.response_time_ns)
    assert expected is not None
    assert total.get_total_count() == expected.count == 5


def test_the_percentile_text_ends_with_the_maximum_and_a_share_of_one() -> None:
    text = percentile_text(TAG, three_second_load())
    assert text.startswith(f"#[{TAG}]\n")

    rows = [
        line.split()
        for line in text.splitlines()
        if line and line.split()[0].replace(".", "").isdigit()
    ]
    values, shares = [float(row[0]) for row in rows], [float(row[1]) for row in rows]

    assert values == sorted(values) and shares == sorted(shares)
    assert values[-1] == pytest.approx(80, rel=0.001)
    assert rows[-1][1:] == ["1.000000000000", "5", "inf"]
    assert "Total count =            5" in text


def test_without_a_correct_response_nothing_is_written() -> None:
    load = msgspec.structs.replace(three_second_load(), intervals=(), response_time_ns=None)
    assert lines(TAG, load) == []
    assert percentile_text(TAG, load) == ""
