"""Measure two servers with one app and print the one with the lower p99.

    python better_server.py [MODULE:CALLABLE]

A single run cannot rank servers. To rank them, use `wsgiload sweep --compare`.
"""

import json
import sys

import wsgiload

SERVERS = ["gunicorn-gthread", "waitress"]
RATE = 200


def main(app: str | None) -> None:
    result = wsgiload.sweep(app=app, rates=[RATE], servers=SERVERS)
    # docs/metrics.md describes this file. `cells` has one entry per server, rate and run.
    summary = json.loads((result.run_dir / "summary.json").read_text())

    p99_ms = {}
    for cell in summary["cells"]:
        name, status = cell["id"].partition("@")[0], cell["verdict"]["status"]
        if cell["failure"] is not None:
            print(f"{name}: {cell['failure']['message']}")
            continue
        # None: too many requests failed, so p99 has no upper bound.
        p99_ns = cell["offered_quantiles_ns"]["0.99"]["high"]
        p99_ms[name] = float("inf") if p99_ns is None else p99_ns / 1e6
        print(f"{name}: p99 {p99_ms[name]:.2f} ms at {RATE}/s, {status}")

    if p99_ms:
        print(f"lower p99 in this run: {min(p99_ms, key=p99_ms.__getitem__)}")
    print(f"report: {result.run_dir / 'report.html'}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
