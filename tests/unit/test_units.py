"""Durations, sizes, CPUs, rates and lists are parsed from user input; durations are formatted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wsgiload.errors import UsageError
from wsgiload.units import (
    duration_words,
    parse_connections,
    parse_cpus,
    parse_duration_ns,
    parse_rate,
    parse_rates,
    parse_size_bytes,
)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("30s", 30_000_000_000),
        ("250ms", 250_000_000),
        ("10us", 10_000),
        ("7ns", 7),
        ("1.5", 1_500_000_000),
        (".5", 500_000_000),
        ("2m", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1e3ms", 1_000_000_000),
        ("5m30s", 330_000_000_000),
        ("1h2m3s4ms", 3_723_004_000_000),
        (" 1M30S ", 90_000_000_000),
        (" 5 S ", 5_000_000_000),
        ("0s", 0),
    ],
)
def test_a_duration_without_a_unit_is_in_seconds(text: str, ns: int) -> None:
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("65536", 65536),
        ("512MiB", 512 * 1024**2),
        ("256Mi", 256 * 1024**2),
        ("2Gi", 2 * 1024**3),
        ("1g", 1024**3),
        ("1.5GiB", 3 * 1024**3 // 2),
        ("4k", 4096),
        ("4kB", 4000),
        ("2MB", 2_000_000),
        ("3GB", 3_000_000_000),
        ("10b", 10),
    ],
)
def test_size_units_are_powers_of_1024_except_kb_mb_and_gb(text: str, size: int) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "cores"), [("1", 1.0), ("0.5", 0.5), ("1500m", 1.5), ("2cpus", 2.0)]
)
def test_cpus_are_cores_or_millicores(text: str, cores: float) -> None:
    assert parse_cpus(text) == cores


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("1000", (1000.0,)),
        ("1000,2000, 3000", (1000.0, 2000.0, 3000.0)),
        ("1000:3000:500", (1000.0, 1500.0, 2000.0, 2500.0, 3000.0)),
        ("1000:2900:500", (1000.0, 1500.0, 2000.0, 2500.0)),
        ("5:5:1", (5.0,)),
        ("10,20:40:10,10", (10.0, 20.0, 30.0, 40.0)),
        ("0.5", (0.5,)),
        ("50/s,6000/m", (50.0, 100.0)),
        ("10/s:30/s:10", (10.0, 20.0, 30.0)),
    ],
)
def test_rates_are_lists_and_inclusive_ranges_without_duplicates(
    text: str, rates: tuple[float, ...]
) -> None:
    assert parse_rates(text) == rates


def test_a_fractional_range_includes_its_end() -> None:
    assert parse_rates("0.1:0.3:0.1") == pytest.approx((0.1, 0.2, 0.3))


def test_connections_are_whole_numbers() -> None:
    assert parse_connections("10,100:120:10") == (10, 100, 110, 120)
    assert all(isinstance(count, int) for count in parse_connections("10:30:10"))


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_duration_ns, "", "'' is not a duration; write it like 30s, 250ms or 1.5"),
        (parse_duration_ns, "soon", "'soon' is not a duration"),
        (parse_duration_ns, "5parsecs", "'5parsecs' is not a duration"),
        (parse_duration_ns, "-1s", "'-1s' is not a duration"),
        (parse_duration_ns, "30s5m", "'30s5m' is not a duration"),
        (parse_duration_ns, "5m5m", "'5m5m' is not a duration"),
        (parse_duration_ns, "5m30", "'5m30' is not a duration"),
        (parse_duration_ns, "1e400s", "'1e400s' is too large"),
        (parse_duration_ns, "9e30", "'9e30' is too large"),
        (parse_size_bytes, "12parsecs", "'12parsecs' is not a size; write it like 512MiB or 1GiB"),
        (parse_size_bytes, "-5", "'-5' is not a size"),
        (parse_size_bytes, "1e308g", "'1e308g' is too large"),
        (parse_cpus, "0", "'0' is not a number of CPUs; write it like 1, 0.5 or 1500m"),
        (parse_cpus, "half", "'half' is not a number of CPUs"),
        (parse_cpus, "1e400", "'1e400' is not a number of CPUs"),
        (parse_cpus, "1GiB", "'1GiB' is not a number of CPUs"),
        (parse_rates, "", "'' is not a rate; write a list like 1000,2000,3000 or 1000:5000:500"),
        (parse_rates, "1000,,2000", "'' is not a rate"),
        (parse_rates, "1000,abc", "'abc' is not a rate"),
        (parse_rates, "50/d", "'50/d' is not a rate"),
        (parse_rate, "50/", "'50/' is not a rate; write it like 500, 500/s, 3000/m or 1/10s"),
        (parse_rates, "0", "'0' is not a positive rate"),
        (parse_rates, "-5", "'-5' is not a positive rate"),
        (parse_rates, "nan", "'nan' is not a positive rate"),
        (parse_rates, "inf", "'inf' is not a positive rate"),
        (parse_connections, f"1:{10**400}:1", f"'1:{10**400}:1' is not a range"),
        (parse_rates, "5000:1000:500", "'5000:1000:500' is not a range from:to:step of rates"),
        (parse_rates, "1:2", "'1:2' is not a range from:to:step of rates"),
        (parse_rates, "1:2:3:4", "'1:2:3:4' is not a range from:to:step of rates"),
        (parse_rates, "1:100000:1", "'1:100000:1' is not a range from:to:step of rates"),
        (parse_rates, "1:5:0", "'1:5:0' is not a positive rate"),
        (
            parse_connections,
            "1.5",
            "'1.5' is not a number of connections; write a list like 10,20,50",
        ),
        (parse_connections, "0", "'0' is not a positive number of connections"),
    ],
)
def test_an_invalid_value_is_refused_with_an_example(
    parse: Callable[[str], object], text: str, message: str
) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (500, "500 ns"),
        (817_000, "817 µs"),
        (999_600, "1.00 ms"),
        (1_444_000, "1.44 ms"),
        (1_440_000_000, "1.44 s"),
    ],
)
def test_a_duration_has_the_largest_unit_of_which_it_is_at_least_one(
    duration_ns: int, text: str
) -> None:
    assert duration_words(duration_ns) == text
