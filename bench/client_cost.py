"""What one request costs the load generator: CPU time per request, against a server cheaper than any client.

    make bench

The server (``refsrv --fast``) runs on the last core, the client on the first. Where wrk is installed, the two clients
run in turn, and the ratio of each pair is printed: it holds where absolute times drift with the machine.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RELEASE = ROOT / "target" / "release"
PAIRS = 5
SECONDS = 2
CONNECTIONS = 64


def main() -> None:
    """Measure in pairs, interleaved, and print medians."""
    cores = sorted(os.sched_getaffinity(0))
    server = subprocess.Popen(
        [RELEASE / "refsrv", "--fast", "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores[-1:]),
    )
    try:
        assert server.stdout is not None
        url = f"http://{server.stdout.readline().split()[-1]}/"
        os.sched_setaffinity(0, cores[:1])
        compare(url)
    finally:
        server.terminate()
        server.wait()


def compare(url: str) -> None:
    """Print what each client costs and, pair by pair, how they compare."""
    has_wrk = shutil.which("wrk") is not None
    ours, theirs = [], []
    for _ in range(PAIRS):
        ours.append(cost_of_loadgen(url))
        if has_wrk:
            theirs.append(cost_of_wrk(url))
    print(f"closed loop, {CONNECTIONS} connections, {SECONDS} s, median of {PAIRS}")
    print(f"loadgen {statistics.median(ours):.2f} µs CPU per request")
    if has_wrk:
        ratios = [own / other for own, other in zip(ours, theirs, strict=True)]
        print(f"wrk     {statistics.median(theirs):.2f} µs CPU per request")
        print(f"ratio   {statistics.median(ratios):.2f} [{min(ratios):.2f}–{max(ratios):.2f}]")
    else:
        print("wrk is not installed, so there is nothing to compare with: apt-get install wrk")


def cost_of_loadgen(url: str) -> float:
    """CPU time of the whole process per request, in µs."""
    words = [str(RELEASE / "loadgen"), url, "-c", str(CONNECTIONS), "-d", f"{SECONDS}s", "--quiet"]
    cpu_s, text = run(words)
    return cpu_s * 1e6 / json.loads(text)["outcomes"]["ok"]


def cost_of_wrk(url: str) -> float:
    """As ``cost_of_loadgen``."""
    cpu_s, text = run(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", url])
    found = re.search(r"(\d+) requests in", text)
    if found is None:
        raise SystemExit(f"wrk printed no count of requests:\n{text}")
    return cpu_s * 1e6 / int(found[1])


def run(words: list[str]) -> tuple[float, str]:
    """CPU seconds of a finished child, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


if __name__ == "__main__":
    main()
