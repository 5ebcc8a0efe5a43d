"""Raise the rate step by step until the server falls behind.

    python rate_staircase.py URL RATE...

Each step is a separate load, because a quantile over several rates describes none of the rates.
"""

import sys
from collections.abc import Sequence

import wsgiload


def main(url: str, rates: Sequence[float]) -> None:
    print(f"{'offered/s':>10} {'goodput/s':>10} {'p50 ms':>8} {'p99 ms':>8}  verdict")
    for rate in rates:
        report = wsgiload.load(url, rate=rate, duration=3)
        if report.response_time is None:
            print(f"No correct response at {rate:g} requests per second.")
            return
        figures = report.to_dict()["rate"]
        offered, goodput = figures["offered_per_s"], figures["goodput_per_s"]
        p50_ms, p99_ms = (report.response_time.quantile(q) / 1e6 for q in (0.5, 0.99))

        status = report.verdict.status
        print(f"{offered:10.0f} {goodput:10.0f} {p50_ms:8.2f} {p99_ms:8.2f}  {status}")
        if goodput < 0.95 * offered:
            print(f"The server falls behind at {rate:g} requests per second.")
            return


if __name__ == "__main__":
    main(sys.argv[1], [float(rate) for rate in sys.argv[2:]])
