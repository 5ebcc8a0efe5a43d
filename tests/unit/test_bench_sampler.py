"""The table of what sampling costs, from invented runs."""

from __future__ import annotations

from typing import Any

from bench.sampler import render


def run(number: int, interval_ms: int, p50_us: float, share: float | None) -> dict[str, Any]:
    late_ns = None if share is None else 50_000
    return {"round": number, "interval_ms": interval_ms, "p50_us": p50_us, "core_share": share, "late_p50_ns": late_ns}


def test_the_client_is_compared_within_rounds() -> None:
    # The second round was twice as slow throughout, which is not the sampler's.
    records = [run(0, 0, 100, None), run(0, 100, 101, 0.001), run(1, 0, 200, None), run(1, 100, 202, 0.003)]
    lines = render(records).splitlines()
    assert lines[2] == "| not at all | – | – | 150 (100 to 200) | – |"
    assert lines[3] == "| 100 ms | 0.2 (0.1 to 0.3) | 50 (50 to 50) | 152 (101 to 202) | 1.01 (1.01 to 1.01) |"
    assert lines[4] == "| 10 ms | – | – | – | – |"
