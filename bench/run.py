"""Executes the steps of a plan and returns one record for each. The record of a failed run contains
the reason."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.arrivals import (
    arrival_timestamps,
    constant_arrivals,
    poisson_arrivals,
    server_lateness_us,
    server_quantiles_us,
)
from bench.clock import clock_late_us
from bench.generators import Generator, find_program
from bench.load import Load, Output, OutputError
from bench.measure import MemorySample, Usage, run_child, sample_memory, wait_until_quiet
from bench.outputs import parse_strace
from bench.placement import Placement
from bench.plan import Step
from bench.servers import Server, ServerError, ServerSpec, running

# A generator is killed this long after the planned end of its load.
_PATIENCE_S = 30.0
# Maximum steal time as a share of the time of all cores. Steal time is counted in ticks, and one
# tick is 0.17 % of 3 s on two cores.
MAX_STEAL_SHARE = 0.002
_QUIET_WITHIN_S = 5.0

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """Placement of client and server, and the maximum number of reruns of a disturbed run."""

    client: Placement
    server: Placement
    again: int = 0


def carry_out(
    planned: Sequence[Step], bench: Bench, report_progress: Callable[[str], None]
) -> Iterator[Record]:
    """One record for each run. The records of disturbed runs precede those of their reruns;
    ``report_progress`` gets a line before each run."""
    with _Servers(bench.server) as servers:
        for number, step in enumerate(planned, start=1):
            for reruns_left in range(bench.again, -1, -1):
                report_progress(f"[{number}/{len(planned)}] {describe(step)}")
                record = _record(step, bench, servers)
                is_last = not reruns_left or not _was_disturbed(record)
                yield record if is_last else record | {"superseded": True}
                if is_last:
                    break
                wait_until_quiet(_QUIET_WITHIN_S)


def _was_disturbed(record: Record) -> bool:
    return (record.get("steal_share") or 0.0) > MAX_STEAL_SHARE


def describe(step: Step) -> str:
    """One line of progress."""
    rate = (
        "closed loop"
        if step.load.rate_per_s is None
        else f"{step.load.rate_per_s:,}/s {step.load.arrivals}"
    )
    spin = f", spin window {step.load.spin}" if step.load.spin else ""
    where = f"{step.server.name}, {step.load.connections:,} connections"
    return f"{step.section}: {step.generator.name}{spin}, {rate}, {where}, round {step.round + 1}"


class _Servers:
    """One server at a time, reused as long as consecutive steps need the same server."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._spec: ServerSpec | None = None
        self._server: Server | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> _Servers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def get(self, spec: ServerSpec, placement: Placement) -> Server:
        if self._server is None or spec != self._spec or spec.fresh or placement != self._placement:
            self.stop()
            self._server = self._stack.enter_context(running(spec, placement))
            self._spec, self._placement = spec, placement
        return self._server

    def stop(self) -> None:
        self._spec = self._server = None
        self._stack.close()


def _record(step: Step, bench: Bench, servers: _Servers) -> Record:
    load = step.load
    record: Record = {
        "section": step.section,
        "round": step.round,
        "generator": step.generator.name,
        "server": step.server.name,
        "connections": load.connections,
        "seconds": load.seconds,
        "rate_per_s": load.rate_per_s,
        "arrivals": load.arrivals if load.rate_per_s else None,
        "spin": load.spin,
        "seed": load.seed,
    }
    # Memory and system calls do not depend on priority, and a real-time client could starve the
    # memory sampler and strace.
    relaxed = step.section in ("memory", "syscalls")
    client = bench.client.ordinary() if relaxed else bench.client
    # At real-time priority, RT throttling would stop a spinning server for 50 ms of each second.
    place = bench.server.ordinary() if relaxed or step.server.is_spinning else bench.server
    try:
        server = servers.get(step.server, place)
        record |= _measured(
            step.section, step.generator, replace(load, url=server.url), client, server.port
        )
        if step.server.logs:
            record["clock_late_us"] = clock_late_us(client)
            servers.stop()
            record["server_log"] = _server_log(server, load)
    except (OutputError, ServerError, OSError) as error:
        servers.stop()
        record["failure"] = str(error)
    return record


def _measured(
    section: str, generator: Generator, load: Load, client: Placement, port: int
) -> Record:
    if section == "syscalls":
        return _count_syscalls(generator, load, client)
    if section != "memory":
        usage, output = _drive(generator, load, client)
        return _costs(usage, output)
    samples: list[MemorySample] = []
    started = time.monotonic()

    def tick(pid: int) -> None:
        sample = sample_memory(pid, port, started)
        if sample is not None:
            samples.append(sample)

    usage, output = _drive(generator, load, client, tick=tick)
    if not samples:
        raise OutputError(f"{generator.name} ended before its memory could be read")
    return _costs(usage, output) | {
        "peak_rss_bytes": max(sample.peak_rss_bytes for sample in samples),
        "most_connections": max(sample.connections for sample in samples),
        "memory": [asdict(sample) for sample in samples[:: max(len(samples) // 60, 1)]],
    }


def _drive(
    generator: Generator,
    load: Load,
    client: Placement,
    *,
    prefix: Sequence[str] = (),
    tick: Callable[[int], None] | None = None,
) -> tuple[Usage, Output]:
    dialect = generator.dialect
    call = dialect.closed if load.rate_per_s is None else dialect.open_loop
    assert call is not None, "the plan asks only for what a generator can do"
    words = [*prefix, str(generator.path), *call(load)]
    usage = run_child(
        words, client, stdin=dialect.stdin(load), timeout_s=load.seconds + _PATIENCE_S, tick=tick
    )
    text = (
        _report(generator, usage.stdout)
        if dialect.report
        else usage.stdout.decode(errors="replace")
    )
    try:
        output = _parsed(generator, text)
    except OutputError as error:
        message = " ".join(usage.stderr.split())[-200:]
        raise OutputError(
            f"{error}; exit code {usage.code}; stderr: {message or 'empty'}"
        ) from None
    return usage, output


def _parsed(generator: Generator, text: str) -> Output:
    try:
        output = generator.dialect.parse(text)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise OutputError(
            f"the output of {generator.name} has an unknown format: {error!r}"
        ) from None
    if output.requests == 0:
        raise OutputError(f"{generator.name} got no response")
    return output


def _report(generator: Generator, stdout: bytes) -> str:
    words = [str(generator.path), *generator.dialect.report]
    return subprocess.run(words, input=stdout, capture_output=True, check=False).stdout.decode(
        errors="replace"
    )


def _costs(usage: Usage, output: Output) -> Record:
    return {
        "requests": output.requests,
        "failed": output.failed,
        "elapsed_s": output.elapsed_s,
        "wall_s": round(usage.wall_s, 4),
        "user_s": usage.user_s,
        "system_s": usage.system_s,
        "steal_share": usage.steal_share,
        "quantiles_us": output.quantiles_us,
        **({"remarks": output.remarks} if output.remarks else {}),
    }


def _count_syscalls(generator: Generator, load: Load, client: Placement) -> Record:
    strace = find_program("strace")
    if strace is None:
        raise OutputError("strace is not installed; run: apt-get install strace")
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        table = Path(directory) / "calls"
        _, output = _drive(
            generator, load, client, prefix=(str(strace), "-c", "-f", "-o", str(table))
        )
        return {
            "requests": output.requests,
            "failed": output.failed,
            "calls": parse_strace(table.read_text()),
        }


def _server_log(server: Server, load: Load) -> Record:
    assert load.rate_per_s is not None
    analyze = constant_arrivals if load.arrivals == "constant" else poisson_arrivals
    return {
        "requests": len(server.log),
        "arrivals": analyze(server.log, load.rate_per_s),
        "stamped_by_kernel": arrival_timestamps(server.log)[1],
        "quantiles_us": server_quantiles_us(server.log),
        "late": server_lateness_us(server.log),
    }


def print_progress(line: str) -> None:
    """Print one line of progress; on a terminal, it replaces the previous line."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
    else:
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
