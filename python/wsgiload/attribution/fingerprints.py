"""Fingerprints of what holds a server up, each a rule over the evidence of one cell.

Pure. A fingerprint says what coincided with the load; its sentence never says that it made the
server slow. The rules follow experiments in which each cause was made on purpose and every signal
held against the slow requests.
"""

from __future__ import annotations

from collections.abc import Callable

from wsgiload.attribution import stretches
from wsgiload.attribution.evidence import Evidence
from wsgiload.documents.attribution_result import FingerprintResult

LEAST_THROTTLED_RATIO = 0.01
LEAST_WAIT_RATIO = 0.05
LEAST_PAUSE_NS = 100_000_000
LEAST_BUSY_CORES = 0.5
LEAST_IMBALANCE = 0.5
FEWEST_STALLS, LEAST_BUSY_SHARE = 2, 0.5


def find_fingerprints(evidence: Evidence) -> list[FingerprintResult]:
    """All that are there, surest first."""
    return [found for look in _LOOKS if (found := look(evidence)) is not None]


def oom_kill(evidence: Evidence) -> FingerprintResult | None:
    """The kernel ended a process of the server."""
    kills = evidence.oom_kills or 0
    if not kills:
        return None
    processes = "1 process" if kills == 1 else f"{kills} processes"
    return FingerprintResult(
        name="oom_kill",
        sentence=f"the kernel OOM-killed {processes} of the server",
        rule="at least one kill",
        source="oom_kill of the cgroup",
        value=kills,
        limit=1,
    )


def throttling(evidence: Evidence) -> FingerprintResult | None:
    """The CPU limit stopped the server for the rest of periods."""
    periods, throttled = evidence.grown("nr_periods"), evidence.grown("nr_throttled")
    if not periods or throttled is None or throttled / periods < LEAST_THROTTLED_RATIO:
        return None

    ratio = throttled / periods
    return FingerprintResult(
        name="throttling",
        sentence=f"the server was CPU-throttled in {_percent(ratio)} of the periods",
        rule=f"throttled in at least {_percent(LEAST_THROTTLED_RATIO)} of the periods",
        source="nr_throttled / nr_periods of the cgroup",
        value=ratio,
        limit=LEAST_THROTTLED_RATIO,
    )


def contention(evidence: Evidence) -> FingerprintResult | None:
    """Others had the server's cores while it wanted to run."""
    ratio = wait_ratio(evidence)
    if ratio is None or ratio < LEAST_WAIT_RATIO:
        return None
    who = "the load generator or other processes" if evidence.shared_cores else "other processes"
    return FingerprintResult(
        name="contention",
        sentence=(
            f"the server was runnable but got no CPU for {_percent(ratio)} of the time, without "
            f"throttling or memory pressure; {who} used its cores"
        ),
        rule=f"at least {_percent(LEAST_WAIT_RATIO)} of the time",
        source=("cpu.pressure (full) of the cgroup, in steps without throttling or lack of memory"),
        value=ratio,
        limit=LEAST_WAIT_RATIO,
    )


def wait_ratio(evidence: Evidence) -> float | None:
    """Share of the time in which everything in the group waited for a CPU, without throttling or
    lack of memory."""
    free = [
        step for step in stretches.unlimited(evidence.steps) if step.psi_cpu_full_ns is not None
    ]
    length_ns = sum(step.length_ns for step in free)
    return (
        sum(step.psi_cpu_full_ns or 0 for step in free) / evidence.length_ns if length_ns else None
    )


def pause(evidence: Evidence) -> FingerprintResult | None:
    """Something inside the process stalled: a collection, a lock, a slow resource behind it."""
    paused = stretches.paused(evidence.steps)
    length_ns = stretches.total_ns(paused)
    if length_ns < LEAST_PAUSE_NS:
        return None
    times = "once" if len(paused) == 1 else f"{len(paused)} times"
    return FingerprintResult(
        name="pause",
        sentence=(
            f"{times}, for {length_ns / 1e9:.1f} s in total, connections waited to be accepted "
            "while the server was neither running nor runnable: its processes were blocked, for "
            "example by a lock or a slow backend"
        ),
        rule=(
            "accept queue not empty and not shrinking, CPU use at most a tenth of its median, no "
            "CPU pressure, no throttling"
        ),
        source="sock_diag, CPU usage and cpu.pressure of the cgroup",
        value=length_ns / 1e9,
        limit=LEAST_PAUSE_NS / 1e9,
    )


def busy_pause(evidence: Evidence) -> FingerprintResult | None:
    """Requests waited while one thread computed: a collection of garbage, or a request that keeps
    the interpreter's lock."""
    if len(evidence.stalls) < FEWEST_STALLS:
        return None
    found = stretches.busy(evidence.steps, evidence.stalls)
    if len(found) < LEAST_BUSY_SHARE * len(evidence.stalls):
        return None

    longest_ns = max(end_ns - start_ns for start_ns, end_ns in found)
    return FingerprintResult(
        name="busy_pause",
        sentence=(
            f"{len(found)} times, for up to {longest_ns / 1e6:,.0f} ms, requests waited while the "
            "server used more CPU than usual: garbage collection, or a long computation that holds "
            "the GIL"
        ),
        rule=(
            "at least two stalls (ten times the median response time, at least 100 ms); in half "
            f"of them CPU use of at least {stretches.BUSY_CORES} cores and "
            f"{stretches.BUSIER} times the median"
        ),
        source="the slowest requests, CPU usage of the cgroup",
        value=len(found),
        limit=FEWEST_STALLS,
    )


def backlog_overflow(evidence: Evidence) -> FingerprintResult | None:
    """The kernel turned connections away at a full accept queue."""
    drops = evidence.listen_drops or 0
    if not drops:
        return None
    late = sum(evidence.late_connects)
    tail = (
        f"; {late:,} connections took about 1, 3 or 7 s, which indicates SYN retries"
        if late
        else ""
    )
    backlog = f" (backlog {evidence.backlog:,})" if evidence.backlog is not None else ""
    attempts = "1 connection attempt" if drops == 1 else f"{drops:,} connection attempts"
    return FingerprintResult(
        name="backlog_overflow",
        sentence=f"a full accept queue{backlog} dropped {attempts}{tail}",
        rule="at least one drop at a listening socket",
        source="sock_diag, drops of the listening sockets",
        value=drops,
        limit=1,
    )


def memory_pressure(evidence: Evidence) -> FingerprintResult | None:
    """The server waited for memory inside its limit, and survived."""
    waited, high = evidence.grown("psi_memory_some_ns"), evidence.grown("memory_high") or 0
    ratio = waited / evidence.length_ns if waited is not None and evidence.length_ns else 0.0
    if evidence.oom_kills or (ratio < LEAST_WAIT_RATIO and not high):
        return None
    slowed = f" and was slowed down {high:,} times at memory.high" if high else ""
    return FingerprintResult(
        name="memory_pressure",
        sentence=(f"the server waited for memory for {_percent(ratio)} of the time{slowed}"),
        rule=(
            f"at least {_percent(LEAST_WAIT_RATIO)} of the time, or memory.high was exceeded; no "
            "process was killed"
        ),
        source="memory.pressure (some) and memory.events of the cgroup",
        value=ratio,
        limit=LEAST_WAIT_RATIO,
    )


def worker_imbalance(evidence: Evidence) -> FingerprintResult | None:
    """One worker is busy and the others are not."""
    balance = evidence.balance
    if (
        balance is None
        or balance.busiest_cores < LEAST_BUSY_CORES
        or balance.imbalance < LEAST_IMBALANCE
    ):
        return None
    return FingerprintResult(
        name="worker_imbalance",
        sentence=(
            f"one of {balance.workers} workers used {balance.busiest_cores:.2f} CPU cores while "
            f"the others were nearly idle (imbalance {balance.imbalance:.2f} of 1)"
        ),
        rule=(
            f"the busiest worker uses at least {LEAST_BUSY_CORES} cores and the imbalance is at "
            f"least {LEAST_IMBALANCE}"
        ),
        source="schedstat of the threads of each process",
        value=balance.imbalance,
        limit=LEAST_IMBALANCE,
    )


_LOOKS: tuple[Callable[[Evidence], FingerprintResult | None], ...] = (
    oom_kill,
    throttling,
    contention,
    pause,
    busy_pause,
    backlog_overflow,
    memory_pressure,
    worker_imbalance,
)


def _percent(ratio: float) -> str:
    percent = 100 * ratio
    is_whole = percent >= 10 or round(percent, 1) == round(percent)
    return f"{percent:.0f} %" if is_whole else f"{percent:.1f} %"
