"""Load a URL and fail if p99 exceeds a threshold.

    python load_with_threshold.py URL THRESHOLD_MS

The exit code is 98 if the measurement is invalid, and 99 if p99 exceeds the threshold or requests
failed.
"""

import sys

import wsgiload


def main(url: str, threshold_ms: float) -> int:
    report = wsgiload.load(url, rate=200, duration=6)
    failed = report.outcomes["scheduled"] - report.outcomes["ok"]
    if report.response_time is None:
        print("no correct response")
        return 99
    p99_ns = report.response_time.quantile(0.99)

    print(f"verdict: {report.verdict.status}")
    for reason in report.verdict.reasons:
        print(f"  {reason.message}")
    print(f"p99 of correct responses: {p99_ns / 1e6:.1f} ms; failed requests: {failed}")

    if report.verdict.status == "invalid":
        return 98
    return 0 if failed == 0 and p99_ns <= threshold_ms * 1e6 else 99


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
