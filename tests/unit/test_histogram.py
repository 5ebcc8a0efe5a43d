"""The histogram of response times: its definition, its sums, and its encoding against another
implementation."""

from __future__ import annotations

import base64
import math
import pickle
import random

import pytest
from hdrh.histogram import HdrHistogram

from wsgiload import Histogram

RELATIVE_WIDTH = 1 / 1024  # of a bucket, with three significant digits
HOUR_NS = 3_600_000_000_000


@pytest.fixture(scope="module")
def values() -> list[int]:
    numbers = random.Random(11)
    return [int(numbers.lognormvariate(14, 1.5)) for _ in range(20_000)]


@pytest.fixture(scope="module")
def histogram(values: list[int]) -> Histogram:
    return Histogram.from_values(values)


def test_count_min_max_and_mean_match_the_values(histogram: Histogram, values: list[int]) -> None:
    assert histogram.count == len(histogram) == len(values)
    assert (
        min(values) * (1 - RELATIVE_WIDTH)
        <= (histogram.min or 0)
        <= min(values) * (1 + RELATIVE_WIDTH)
    )
    assert (
        max(values) * (1 - RELATIVE_WIDTH)
        <= (histogram.max or 0)
        <= max(values) * (1 + RELATIVE_WIDTH)
    )
    assert histogram.mean == pytest.approx(sum(values) / len(values), rel=RELATIVE_WIDTH)


@pytest.mark.parametrize("quantile", [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0])
def test_a_quantile_is_the_smallest_value_with_enough_at_or_below_it(
    histogram: Histogram, values: list[int], quantile: float
) -> None:
    """It is reported as the highest value of its bucket: never below the exact value, and at most
    0.1 % above it."""
    exact = sorted(values)[math.ceil(quantile * len(values)) - 1]
    reported = histogram.quantile(quantile)
    assert reported is not None
    assert exact <= reported <= exact * (1 + RELATIVE_WIDTH)


def test_small_values_are_exact() -> None:
    small = Histogram.from_values([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    assert [small.quantile(rank / 10) for rank in range(1, 11)] == list(range(1, 11))
    assert small.quantile(0.91) == 10
    assert (small.min, small.max, small.mean) == (1, 10, 5.5)
    assert small.buckets() == [(value, 1) for value in range(1, 11)]


@pytest.mark.parametrize(("limit_ns", "above"), [(0, 4), (1, 3), (2, 2), (3, 1), (1000, 0)])
def test_values_above_a_limit_are_counted(limit_ns: int, above: int) -> None:
    assert Histogram.from_values([1, 2, 3, 1000]).count_above(limit_ns) == above


def test_an_empty_histogram_has_no_statistics() -> None:
    empty = Histogram.from_values([])
    assert empty.count == len(empty) == 0
    assert (empty.min, empty.max, empty.mean, empty.quantile(0.5)) == (None, None, None, None)
    assert empty.buckets() == []
    assert Histogram.from_hdr_v2(empty.to_hdr_v2()) == empty


def test_a_sum_is_the_histogram_of_all_values_in_any_order(
    values: list[int], histogram: Histogram
) -> None:
    first, second = Histogram.from_values(values[:7_000]), Histogram.from_values(values[7_000:])
    assert first + second == second + first == first.merge(second) == histogram
    assert (first.count, second.count) == (7_000, 13_000), "the operands are not changed"
    assert first != second


def test_adding_another_type_is_a_type_error(histogram: Histogram) -> None:
    with pytest.raises(TypeError):
        histogram + 1  # type: ignore[operator]


def test_a_histogram_survives_pickling_and_encoding(histogram: Histogram) -> None:
    assert pickle.loads(pickle.dumps(histogram)) == histogram

    decoded = Histogram.from_hdr_v2(histogram.to_hdr_v2())
    assert decoded == histogram
    assert [decoded.quantile(q) for q in (0.5, 0.99, 0.999)] == [
        histogram.quantile(q) for q in (0.5, 0.99, 0.999)
    ]
    # The format has only counts of buckets, so max and mean are as imprecise as a bucket is wide.
    assert (histogram.max or 0) <= (decoded.max or 0) <= (histogram.max or 0) * (1 + RELATIVE_WIDTH)
    assert decoded.mean == pytest.approx(histogram.mean, rel=RELATIVE_WIDTH)


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x1c\x84\x93\x14" + bytes(8)])
def test_invalid_bytes_are_rejected(data: bytes) -> None:
    with pytest.raises(ValueError):
        Histogram.from_hdr_v2(data)


def test_another_implementation_decodes_the_same_values(histogram: Histogram) -> None:
    other = HdrHistogram.decode(base64.b64encode(histogram.to_hdr_v2()))
    assert other.get_total_count() == histogram.count
    assert other.get_min_value() == pytest.approx(histogram.min, rel=RELATIVE_WIDTH)
    assert other.get_max_value() == pytest.approx(histogram.max, rel=RELATIVE_WIDTH)

    for percentile in (50, 90, 99, 99.9, 99.99):
        expected = histogram.quantile(percentile / 100)
        assert other.get_value_at_percentile(percentile) == pytest.approx(
            expected, rel=RELATIVE_WIDTH
        )


def test_the_encoding_of_another_implementation_is_decoded(
    values: list[int], histogram: Histogram
) -> None:
    other = HdrHistogram(1, HOUR_NS, 3)
    for value in values:
        other.record_value(value)
    assert Histogram.from_hdr_v2(base64.b64decode(other.encode())) == histogram
