"""The interval log and the percentile text, as the readers of HdrHistogram take them."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from wsgiload import Histogram
from wsgiload.documents.histograms import histogram_of
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


def invented_load() -> LoadReport:
    """Three seconds, of which the second had no correct response."""
    everything = Histogram.from_values([value for values in INTERVALS for value in values])
    return canned_load(
        clock=ClockReading(
            monotonic_ns=50 * NS_PER_S, realtime_ns=1_700_000_000 * NS_PER_S, drift_ns=0
        ),
        intervals=tuple(interval(second, values) for second, values in enumerate(INTERVALS)),
        response_time_ns=distribution(
            count=everything.count,
            mean=everything.mean,
            max=everything.max,
            hdr_v2=base64.b64encode(everything.to_hdr_v2()).decode(),
        ),
    )


def written(folder: Path, text_lines: list[str]) -> str:
    path = folder / "latency.hlog"
    path.write_text("".join(f"{line}\n" for line in text_lines))
    return str(path)


def read_all(path: str) -> list[HdrHistogram]:
    reader, found = HistogramLogReader(path, HdrHistogram(1, 3_600 * NS_PER_S, 3)), []
    while (interval := reader.get_next_interval_histogram()) is not None:
        found.append(interval)
    reader.input_file.close()  # it has no method of its own for that
    return found


def test_another_reader_finds_the_intervals_with_their_counts_and_maxima(tmp_path: Path) -> None:
    load = invented_load()
    intervals = read_all(written(tmp_path, [*header(load), *lines(TAG, load)]))
    assert [interval.get_total_count() for interval in intervals] == [3, 2]
    assert [interval.get_max_value() for interval in intervals] == pytest.approx(
        [3_000_000, 80_000_000], rel=0.001
    )
    assert [interval.get_tag() for interval in intervals] == [TAG, TAG]


def test_another_reader_finds_the_time_of_each_interval(tmp_path: Path) -> None:
    load = invented_load()
    first, last = read_all(written(tmp_path, [*header(load), *lines(TAG, load)]))
    assert first.get_start_time_stamp() == 1_700_000_000_000
    assert last.get_start_time_stamp() == 1_700_000_002_000
    assert last.get_end_time_stamp() == 1_700_000_003_000


def test_a_payload_decodes_to_the_values_of_its_interval() -> None:
    payload = lines(TAG, invented_load())[0].rpartition(",")[2]
    decoded = HdrHistogram.decode(payload.encode())
    assert decoded.get_total_count() == 3
    assert decoded.get_count_at_value(2_000_000) == 1
    assert decoded.get_value_at_percentile(100) == pytest.approx(3_000_000, rel=0.001)


def test_a_line_has_a_tag_seconds_a_maximum_in_milliseconds_and_a_histogram() -> None:
    tag, start, length, largest, payload = lines(TAG, invented_load())[1].split(",")
    assert (tag, start, length, largest) == (f"Tag={TAG}", "1700000002.000", "1.000", "80.000")
    assert payload.startswith("HISTFAAA")


def test_the_intervals_add_up_to_the_whole(tmp_path: Path) -> None:
    load = invented_load()
    total = HdrHistogram(1, 3_600 * NS_PER_S, 3)
    for interval in read_all(written(tmp_path, [*header(load), *lines(TAG, load)])):
        total.add(interval)
    whole = histogram_of(load.response_time_ns)
    assert whole is not None
    assert total.get_total_count() == whole.count == 5


def test_the_percentile_text_rises_to_the_maximum_and_to_one() -> None:
    text = percentile_text(TAG, invented_load())
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


def test_without_a_correct_response_there_is_nothing_to_write() -> None:
    load = msgspec.structs.replace(invented_load(), intervals=(), response_time_ns=None)
    assert lines(TAG, load) == []
    assert percentile_text(TAG, load) == ""
