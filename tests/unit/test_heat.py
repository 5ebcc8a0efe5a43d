"""The heatmap of a cell: exact counts, round bucket edges, a limited size, and marked events."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec
import pytest

from wsgiload import Histogram
from wsgiload.documents.load_report import Flights, Interval, LoadReport
from wsgiload.report.grids import of_heat
from wsgiload.report.heat import MAX_COLUMNS, Heat, fields_of_each, make_heat
from wsgiload.report.run_files import SampleRow

from .report_fixture import EPOCH_NS, make_cell

MS = 1_000_000
S = 1_000_000_000
PLAIN = msgspec.convert(make_cell("waitress", 1000, 1)[1], LoadReport)


def interval(second: int, values_ns: Sequence[int]) -> Interval:
    histogram = Histogram.from_values(list(values_ns))
    return Interval(
        start_ns=EPOCH_NS + second * S,
        length_ns=S,
        scheduled=len(values_ns),
        sent=len(values_ns),
        ok=len(values_ns),
        failed=0,
        p50_ns=None,
        p99_ns=None,
        max_ns=None,
        hdr_v2=base64.b64encode(histogram.to_hdr_v2()).decode() if values_ns else None,
    )


def load(*seconds: Sequence[int], flights: Flights | None = None) -> LoadReport:
    intervals = tuple(interval(second, values) for second, values in enumerate(seconds))
    outcomes = msgspec.structs.replace(PLAIN.outcomes, scheduled=1_000)
    return msgspec.structs.replace(PLAIN, intervals=intervals, flights=flights, outcomes=outcomes)


def heatmap(report: LoadReport, samples: Sequence[SampleRow] = (), fields: int = 24_000) -> Heat:
    heat = make_heat(report, samples, fields)
    assert heat is not None
    return heat


def test_every_response_is_counted_once_in_its_bucket() -> None:
    heat = heatmap(load([MS, 2 * MS, 2 * MS, 9 * MS], [], [40 * MS]))
    assert heat.ends_s == (1.0, 2.0, 3.0)
    assert [sum(column) for column in heat.counts] == [4, 0, 1]

    for column, values in zip(
        heat.counts, ([MS, 2 * MS, 2 * MS, 9 * MS], [], [40 * MS]), strict=True
    ):
        for bucket, (low, high) in enumerate(zip(heat.edges_ns, heat.edges_ns[1:], strict=False)):
            inside = [value for value in values if low * 1.002 <= value < high * 0.998]
            assert column[bucket] >= len(inside)


def test_bucket_edges_are_round_and_cover_all_values() -> None:
    heat = heatmap(load([MS, 40 * MS]))
    assert heat.edges_ns[0] <= MS and heat.edges_ns[-1] > 40 * MS
    mantissas = {int(f"{edge:.2e}".split("e")[0].replace(".", "")) for edge in heat.edges_ns}
    assert mantissas <= {100, 125, 160, 200, 250, 315, 400, 500, 630, 800}
    assert list(heat.edges_ns) == sorted(set(heat.edges_ns))


@pytest.mark.parametrize("timelines", [1, 9, 81, 96])
def test_a_page_of_many_cells_has_coarser_heatmaps(timelines: int) -> None:
    values = [100_000, MS, 10 * MS, 900 * MS, 9 * S]
    fields = fields_of_each(timelines)
    heat = heatmap(load(*([values] * 300)), fields=fields)
    assert len(heat.counts) <= MAX_COLUMNS
    assert len(heat.counts) * (len(heat.edges_ns) - 1) <= max(fields, 8 * 24)
    assert sum(map(sum, heat.counts)) == 300 * len(values)
    assert heat.ends_s[-1] == 300.0


def test_without_histograms_there_is_no_heatmap() -> None:
    assert make_heat(load([], []), (), 24_000) is None


def throttled_in(second: int) -> list[SampleRow]:
    """Samples every 100 ms; all CPU periods of one second are throttled."""
    rows = []
    for step in range(41):
        throttled = min(10, max(0, step - 10 * second))
        rows.append(
            SampleRow(
                t_ns=EPOCH_NS + step * 100 * MS,
                cpu_usage_ns=step * 50 * MS,
                nr_periods=step,
                nr_throttled=throttled,
            )
        )
    return rows


def flights(*seconds: float) -> Flights:
    starts = [EPOCH_NS + round(second * S) for second in seconds]
    return Flights(
        slowest=tuple((start, start + 10 * MS) for start in starts),
        sample=((EPOCH_NS, EPOCH_NS + MS),),
    )


def test_a_column_is_marked_if_half_of_its_slowest_requests_overlapped_an_event() -> None:
    slow = flights(0.5, 2.2, 2.4, 2.9, 3.5, 3.95)
    heat = heatmap(load([MS], [MS], [MS], [MS], flights=slow), throttled_in(2))
    assert heat.slowest == (1, 0, 3, 2)
    assert heat.signals[:3] == ((), (), (("CPU throttling", 3),))
    assert next((mark.column, mark.text) for mark in heat.data().marks) == (
        2,
        "CPU throttling (3 of 3)",
    )


def test_one_of_three_slow_requests_does_not_mark_a_column() -> None:
    slow = flights(3.02, 3.5, 3.8)
    heat = heatmap(load([MS], [MS], [MS], [MS], flights=slow), throttled_in(2))
    assert heat.data().marks == ()


def test_the_table_has_every_field() -> None:
    heat = heatmap(load([MS], [MS, 3 * MS], flights=flights(0.5)), throttled_in(0))
    grid = of_heat(heat)
    assert grid.headings[:3] == ("time", "slowest requests", "coincided with")
    assert grid.headings[-1].startswith("up to 3.") and len(grid.rows) == 2
    assert grid.rows[0][:3] == ("0.0 s to 1.0 s", "1", "CPU throttling (1 of 1)")
    assert [int(field) for field in grid.rows[1][3:]] == list(heat.counts[1])
    bare = of_heat(heatmap(load([MS])))
    assert bare.headings[:2] == ("time", "up to 1.25 ms")


def test_times_below_a_microsecond_are_in_the_first_bucket() -> None:
    heat = heatmap(load([3, 700, 1_100]))
    assert list(heat.edges_ns) == sorted(set(heat.edges_ns))
    assert sum(heat.counts[0]) == 3 and heat.counts[0][0] == 3
