"""Merge the histograms of two loads.

    python merge_histograms.py FIRST_URL SECOND_URL

Histograms can be merged; quantiles cannot. The mean of two p99 values is not a p99.
"""

import sys

import wsgiload
from wsgiload import Histogram


def main(first_url: str, second_url: str) -> None:
    first = wsgiload.load(first_url, rate=200, duration=3).response_time
    second = wsgiload.load(second_url, rate=200, duration=3).response_time

    # HdrHistogram V2 in base64, a format that other tools read and write.
    stored = [first.to_hdr_v2(), second.to_hdr_v2()]
    merged = Histogram.from_hdr_v2(stored[0]) + Histogram.from_hdr_v2(stored[1])

    for name, histogram in (("first", first), ("second", second), ("merged", merged)):
        p50_ms, p99_ms = histogram.quantile(0.5) / 1e6, histogram.quantile(0.99) / 1e6
        print(f"{name:<7} {histogram.count:5} requests, p50 {p50_ms:.3f} ms, p99 {p99_ms:.3f} ms")

    mean_ms = (first.quantile(0.99) + second.quantile(0.99)) / 2e6
    print(f"mean of both p99 values: {mean_ms:.3f} ms, which is not a quantile of these requests")


if __name__ == "__main__":
    main(*sys.argv[1:3])
