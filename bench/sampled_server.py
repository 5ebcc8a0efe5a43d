"""A program that runs `refsrv` in a separate cgroup and samples it with wsgiload; started by
`bench.sampler`.

It prints the server's port, reads the client's pid from a line, samples until the end of standard
input, and then prints the cost of sampling as JSON. This is the only benchmark file that imports
wsgiload.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from wsgiload.limits import Limits, select_backend
from wsgiload.sampling.listen_queue import read_listen_queue
from wsgiload.sampling.sampler import Sampler
from wsgiload.serving.launch import HOST, free_port

NS_PER_S = 1_000_000_000


def main() -> int:
    """Arguments: the server's program, the server's core, the sampler's core, and the interval in
    nanoseconds (0: no sampling)."""
    program, core, sampler_core, interval_ns = (
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
    os.sched_setaffinity(0, [sampler_core, core])
    limits = Limits(memory_bytes=2**28, pids=64, server_cpus=(core,))
    group = select_backend(limits).create(limits, "bench")
    os.sched_setaffinity(0, [sampler_core])
    port = free_port()
    try:
        with tempfile.TemporaryFile() as log:
            group.spawn(
                [program, "--listen", f"{HOST}:{port}"],
                env=dict(os.environ),
                cwd=Path("/"),
                log=log,
            )
            while read_listen_queue(port) is None:
                time.sleep(0.01)
            print(
                json.dumps(
                    _sample(
                        Sampler(group, port=port, pids=group.pids, interval_ns=interval_ns or 1),
                        interval_ns,
                        port,
                    )
                )
            )
    finally:
        group.close()
    return 0


def _sample(sampler: Sampler, interval_ns: int, port: int) -> dict[str, float | int | None]:
    if interval_ns:
        sampler.start()
    print(port, flush=True)
    begun_ns, used_ns = time.monotonic_ns(), time.process_time_ns()
    for line in sys.stdin:
        sampler.watch_client(int(line))
    length_ns, used_ns = time.monotonic_ns() - begun_ns, time.process_time_ns() - used_ns
    if not interval_ns:
        return {"core_share": None, "samples": 0, "late_p50_ns": None}
    # Samples are parsed after the load, so the cost does not include parsing.
    samples = sampler.stop()
    late = sorted(sample.late_ns for sample in samples)
    return {
        "core_share": used_ns / length_ns,
        "samples": len(samples),
        "late_p50_ns": late[len(late) // 2],
    }


if __name__ == "__main__":
    raise SystemExit(main())
