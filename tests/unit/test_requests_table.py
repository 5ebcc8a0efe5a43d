"""The table of requests: all of a few requests, or the slowest of many."""

from __future__ import annotations

import io

import msgspec
from rich.console import Console

from wsgiload.documents.load_report import RequestCounts
from wsgiload.report import print_load

from .load_report_fixture import healthy_report


def lines(*targets: RequestCounts) -> list[str]:
    console = Console(file=io.StringIO(), width=150)
    print_load(msgspec.structs.replace(healthy_report(), targets=targets), console)
    assert isinstance(console.file, io.StringIO)
    return [line.strip() for line in console.file.getvalue().splitlines()]


def request(number: int, ms: int | None, failed: int = 0) -> RequestCounts:
    time_ns = None if ms is None else ms * 1_000_000
    return RequestCounts(
        name=f"GET /{number}",
        scheduled=200 + failed,
        ok=200,
        failed=failed,
        p50_ns=time_ns,
        p99_ns=time_ns,
        max_ns=time_ns,
    )


def rows(shown: list[str]) -> list[str]:
    return [line.split("  ")[0] for line in shown if line.startswith("GET /")]


def test_a_few_requests_are_shown_in_their_order() -> None:
    shown = lines(*(request(number, number % 7) for number in range(20)))
    assert rows(shown) == [f"GET /{number}" for number in range(20)]
    assert not any("requests with" in line for line in shown)


def test_only_the_ten_slowest_of_many_requests_are_shown() -> None:
    shown = lines(*(request(number, number) for number in range(1, 1_501)))
    assert rows(shown) == [f"GET /{number}" for number in range(1_500, 1_490, -1)]
    assert "the 10 of 1,500 requests with the highest p99; --json FILE writes all" in shown


def test_without_times_the_requests_with_the_most_failures_are_shown() -> None:
    shown = lines(*(request(number, None, failed=number % 100) for number in range(3_000)))
    assert set(rows(shown)) == {f"GET /{number}" for number in range(99, 1_000, 100)}
    assert (
        "the 10 of 3,000 requests with the most failures (too many to record their times); "
        "--json FILE writes all"
    ) in shown
