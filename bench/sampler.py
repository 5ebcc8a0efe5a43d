"""The CPU time of sampling, and its effect on the client: `python -m bench sampler [ROUNDS]
[SECONDS]`.

Each round runs the same load without sampling, with samples every 100 ms and every 10 ms, in random
order; the client's p50 is compared within rounds. Sampler and client share a core, which is the
worst case.
"""

from __future__ import annotations

import datetime
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.generators import ROOT
from bench.host import commit_time, host_facts, versions
from bench.measure import run_child
from bench.placement import Placement, choose_cores
from bench.store import RESULTS, new_path, readable_name, write
from bench.tables import render

INTERVALS_MS = (0, 100, 10)
RATE_PER_S = 1_000
_PROGRAM = Path(__file__).with_name("sampled_server.py")
# Additional time for start and end.
_SPARE_S = 30.0

Record = dict[str, Any]


def main(words: Sequence[str]) -> int:
    """Prints one line per run to stderr and the page to stdout, and stores both."""
    rounds, seconds = (int(word) for word in [*words, *("5", "10")[len(words) :]])
    cores = choose_cores()
    results = _facts(cores)
    began_s = time.monotonic()
    for number in range(rounds):
        for interval_ms in random.Random(number).sample(INTERVALS_MS, len(INTERVALS_MS)):
            record = {"section": "sampler", "round": number, "seconds": seconds} | run(
                interval_ms, seconds, cores
            )
            print(json.dumps(record), file=sys.stderr)
            results["runs"].append(record)
    results["took_s"] = round(time.monotonic() - began_s)
    page = render(results)
    path = new_path(RESULTS, readable_name(results, ["sampler"]))
    write(path, results, page)
    print(page, end="")
    print(f"written: {path} and {path.with_suffix('.md').name}", file=sys.stderr)
    return 0


def _facts(cores: tuple[int, int]) -> Record:
    return {
        "schema_version": 1,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "quick": False,
        "priority": "ordinary",
        "client_core": cores[0],
        "server_core": cores[1],
        "host": host_facts(),
        "commit_time": commit_time(),
        "versions": {
            name: version for name, version in versions([]).items() if name == "wsgiload commit"
        },
        "left_out": [],
        "runs": [],
    }


def run(interval_ms: int, seconds: int, cores: tuple[int, int]) -> Record:
    """One load, and the CPU time of the sampler."""
    client, server = cores
    program = [
        str(ROOT / "target/distribution/refsrv"),
        str(server),
        str(client),
        str(interval_ms * 1_000_000),
    ]
    with subprocess.Popen(
        [sys.executable, str(_PROGRAM), *program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as sampled:
        assert sampled.stdin is not None and sampled.stdout is not None
        port = int(sampled.stdout.readline())
        load = [
            str(ROOT / "target/distribution/loadgen"),
            f"http://127.0.0.1:{port}/",
            "--json",
            "-",
            "--quiet",
        ]
        load += ["-R", str(RATE_PER_S), "-d", f"{seconds}s", "--warmup", "500ms"]
        done = run_child(
            load,
            Placement(client, real_time=False),
            timeout_s=seconds + _SPARE_S,
            tick=_pid_sender(sampled),
        )
        cost: Record = json.loads(sampled.communicate("")[0])
    quantiles = json.loads(done.stdout)["response_time_ns"]["quantiles"]
    record: Record = {
        "interval_ms": interval_ms,
        "p50_us": quantiles["0.5"] / 1e3,
        "p99_us": quantiles["0.99"] / 1e3,
    }
    return record | cost | {"steal_share": done.steal_share}


def _pid_sender(sampled: subprocess.Popen[str]) -> Callable[[int], None]:
    """A function that sends the client's pid to the sampler once, to sample its threads, too."""
    sent: list[int] = []

    def send(pid: int) -> None:
        if not sent and sampled.stdin is not None:
            sent.append(pid)
            print(pid, file=sampled.stdin, flush=True)

    return send
