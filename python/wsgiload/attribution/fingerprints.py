"""Fingerprints of what holds a server up, each a rule over the evidence of one cell.

Pure. A fingerprint tells what coincided with the load; its sentence never says that it made the
server slow. The rules follow experiments in which each cause was made on purpose and every signal
held against the slow requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from wsgiload.attribution import stretches
from wsgiload.attribution.evidence import Evidence

LEAST_THROTTLED_RATIO = 0.01
LEAST_WAIT_RATIO = 0.05
LEAST_PAUSE_NS = 100_000_000
LEAST_BUSY_CORES = 0.5
LEAST_IMBALANCE = 0.5


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A pattern that was found: its rule, where its figure comes from, and what it was."""

    name: str
    sentence: str
    rule: str
    source: str
    value: float
    limit: float

    def to_dict(self) -> dict[str, Any]:
        """An entry of ``attribution.fingerprints``."""
        return asdict(self)


def find_fingerprints(evidence: Evidence) -> list[Fingerprint]:
    """All that are there, in the order of how surely they tell."""
    return [found for look in _LOOKS if (found := look(evidence)) is not None]


def oom_kill(evidence: Evidence) -> Fingerprint | None:
    """The kernel ended a process of the server."""
    kills = evidence.oom_kills or 0
    if not kills:
        return None
    processes = "1 process" if kills == 1 else f"{kills} processes"
    return Fingerprint(
        "oom_kill",
        f"the kernel killed {processes} of the server for want of memory",
        "at least one kill",
        "oom_kill of the control group",
        kills,
        1,
    )


def throttling(evidence: Evidence) -> Fingerprint | None:
    """The CPU limit stopped the server for the rest of periods."""
    periods, throttled = evidence.grown("nr_periods"), evidence.grown("nr_throttled")
    if not periods or throttled is None or throttled / periods < LEAST_THROTTLED_RATIO:
        return None
    return Fingerprint(
        "throttling",
        f"the CPU limit stopped the server in {_percent(throttled / periods)} of the CPU periods",
        f"throttled in {_percent(LEAST_THROTTLED_RATIO)} of the periods or more",
        "nr_throttled / nr_periods of the control group",
        throttled / periods,
        LEAST_THROTTLED_RATIO,
    )


def contention(evidence: Evidence) -> Fingerprint | None:
    """Others had the server's cores while it wanted to run."""
    ratio = wait_ratio(evidence)
    if ratio is None or ratio < LEAST_WAIT_RATIO:
        return None
    who = "the load generator or other processes" if evidence.shared_cores else "other processes"
    return Fingerprint(
        "contention",
        f"for {_percent(ratio)} of the time the server wanted to run and nothing of it did, "
        "which neither "
        f"throttling nor want of memory explains: {who} had its cores",
        f"such time is {_percent(LEAST_WAIT_RATIO)} or more",
        "cpu.pressure (full) of the control group, in steps without throttling or want of memory",
        ratio,
        LEAST_WAIT_RATIO,
    )


def wait_ratio(evidence: Evidence) -> float | None:
    """Share of the time in which everything in the group waited for a CPU, without throttling or
    want of memory."""
    free = [
        step for step in stretches.unlimited(evidence.steps) if step.psi_cpu_full_ns is not None
    ]
    length_ns = sum(step.length_ns for step in free)
    return (
        sum(step.psi_cpu_full_ns or 0 for step in free) / evidence.length_ns if length_ns else None
    )


def pause(evidence: Evidence) -> Fingerprint | None:
    """Something inside the process stalled: a collection, a lock, a slow resource behind it."""
    paused = stretches.paused(evidence.steps)
    length_ns = stretches.total_ns(paused)
    if length_ns < LEAST_PAUSE_NS:
        return None
    times = "once" if len(paused) == 1 else f"{len(paused)} times"
    return Fingerprint(
        "pause",
        f"{times}, for {length_ns / 1e9:.1f} s in all, connections waited to be accepted while "
        "the server neither ran "
        "nor wanted to: a pause inside its processes, such as a lock, a collection or a slow "
        "resource behind them",
        "accept queue not empty and not getting shorter, CPU use at most a tenth of the usual, "
        "no CPU pressure, no "
        "throttling",
        "sock_diag, CPU usage and cpu.pressure of the control group",
        length_ns / 1e9,
        LEAST_PAUSE_NS / 1e9,
    )


def backlog_overflow(evidence: Evidence) -> Fingerprint | None:
    """The kernel turned connections away at a full accept queue."""
    drops = evidence.listen_drops or 0
    if not drops:
        return None
    late = sum(evidence.late_connects)
    tail = (
        f"; {late:,} connections took about 1, 3 or 7 s to make, as retried ones do" if late else ""
    )
    backlog = f" (backlog {evidence.backlog})" if evidence.backlog is not None else ""
    attempts = "1 attempt" if drops == 1 else f"{drops:,} attempts"
    return Fingerprint(
        "backlog_overflow",
        f"a full accept queue{backlog} turned {attempts} to connect away{tail}",
        "at least one drop at a listening socket",
        "sock_diag, drops of the listening sockets",
        drops,
        1,
    )


def memory_pressure(evidence: Evidence) -> Fingerprint | None:
    """The server waited for memory inside its limit, and survived."""
    waited, high = evidence.grown("psi_memory_some_ns"), evidence.grown("memory_high") or 0
    ratio = waited / evidence.length_ns if waited is not None and evidence.length_ns else 0.0
    if evidence.oom_kills or (ratio < LEAST_WAIT_RATIO and not high):
        return None
    slowed = f", and was slowed down {high:,} times at memory.high" if high else ""
    return Fingerprint(
        "memory_pressure",
        f"for {_percent(ratio)} of the time something in the server waited for memory{slowed}",
        f"such time is {_percent(LEAST_WAIT_RATIO)} or more, or memory.high was passed; and "
        "nothing was killed",
        "memory.pressure (some) and memory.events of the control group",
        ratio,
        LEAST_WAIT_RATIO,
    )


def worker_imbalance(evidence: Evidence) -> Fingerprint | None:
    """One worker is busy and the others are not."""
    balance = evidence.balance
    if (
        balance is None
        or balance.busiest_cores < LEAST_BUSY_CORES
        or balance.imbalance < LEAST_IMBALANCE
    ):
        return None
    return Fingerprint(
        "worker_imbalance",
        f"one of {balance.workers} workers used {balance.busiest_cores:.2f} CPU cores, the "
        "others had little to do "
        f"(imbalance {balance.imbalance:.2f} of 1)",
        f"the busiest worker uses {LEAST_BUSY_CORES} cores or more and the imbalance is "
        f"{LEAST_IMBALANCE} or more",
        "schedstat of the threads of each process",
        balance.imbalance,
        LEAST_IMBALANCE,
    )


_LOOKS: tuple[Callable[[Evidence], Fingerprint | None], ...] = (
    oom_kill,
    throttling,
    contention,
    pause,
    backlog_overflow,
    memory_pressure,
    worker_imbalance,
)


def _percent(ratio: float) -> str:
    return (
        f"{ratio:.0%}"
        if ratio >= 0.1 or round(ratio * 100, 1) == round(ratio * 100)
        else f"{ratio:.1%}"
    )
