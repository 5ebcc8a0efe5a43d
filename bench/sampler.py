"""What sampling costs, and whether the client notices: `python -m bench sampler [ROUNDS] [SECONDS]`.

Each round runs the same load without a sampler, every 100 ms and every 10 ms, in an order of its own; the client's p50
is compared within rounds. Sampler and client share a core, which is the worst case.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.generators import ROOT
from bench.pairs import Spread, paired_ratio, spread
from bench.placement import choose_cores

INTERVALS_MS = (0, 100, 10)
RATE_PER_S = 1_000
_PROGRAM = Path(__file__).with_name("sampled_server.py")

Record = dict[str, Any]


def main(words: Sequence[str]) -> int:
    """Prints one line per run on standard error and the table on standard output."""
    rounds, seconds = (int(word) for word in [*words, *("5", "4")[len(words) :]])
    client, server = choose_cores()
    records = []
    for number in range(rounds):
        for interval_ms in random.Random(number).sample(INTERVALS_MS, len(INTERVALS_MS)):
            record = {"round": number} | run(interval_ms, seconds, (client, server))
            print(json.dumps(record), file=sys.stderr)
            records.append(record)
    print(render(records))
    return 0


def run(interval_ms: int, seconds: int, cores: tuple[int, int]) -> Record:
    """One load, and what the sampler beside it used."""
    client, server = cores
    program = [str(ROOT / "target/release/refsrv"), str(server), str(client), str(interval_ms * 1_000_000)]
    with subprocess.Popen(
        [sys.executable, str(_PROGRAM), *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as sampled:
        assert sampled.stdin is not None and sampled.stdout is not None
        port = int(sampled.stdout.readline())
        load = [str(ROOT / "target/release/loadgen"), f"http://127.0.0.1:{port}/", "--json", "-", "--quiet"]
        load += ["-R", str(RATE_PER_S), "-d", f"{seconds}s", "--warmup", "500ms"]
        done = subprocess.run(
            load, stdout=subprocess.PIPE, check=False, preexec_fn=lambda: os.sched_setaffinity(0, [client])
        )
        cost: Record = json.loads(sampled.communicate("")[0])
    quantiles = json.loads(done.stdout)["response_time_ns"]["quantiles"]
    record: Record = {"interval_ms": interval_ms, "p50_us": quantiles["0.5"] / 1e3, "p99_us": quantiles["0.99"] / 1e3}
    return record | cost


def render(records: Sequence[Record]) -> str:
    """A line per interval: the median over rounds, with the least and the greatest."""
    lines = [
        "| sampled every | % of a core | late p50, µs | client p50, µs | p50 to that without |",
        "|---|---|---|---|---|",
    ]
    without = [record for record in records if record["interval_ms"] == 0]
    for interval_ms in INTERVALS_MS:
        own = [record for record in records if record["interval_ms"] == interval_ms]
        share = spread(None if record["core_share"] is None else record["core_share"] * 100 for record in own)
        late = spread(None if record["late_p50_ns"] is None else record["late_p50_ns"] / 1e3 for record in own)
        ratio = paired_ratio(own, without, lambda record: record["p50_us"]) if interval_ms else None
        figures = (share, late, spread(record["p50_us"] for record in own), ratio)
        name = f"{interval_ms} ms" if interval_ms else "not at all"
        lines.append(f"| {name} | " + " | ".join(_figure(figure) for figure in figures) + " |")
    return "\n".join(lines)


def _figure(found: Spread | None) -> str:
    return "–" if found is None else f"{found.median:.3g} ({found.least:.3g} to {found.most:.3g})"
