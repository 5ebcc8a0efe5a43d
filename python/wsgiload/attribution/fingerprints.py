"""Fingerprints of delays: each is a rule over the evidence about one cell. Pure.

A fingerprint states a coincidence, never that something made the server slow. The rules are based
on experiments in which each cause was provoked and every signal compared with the slow requests.
"""

from __future__ import annotations

from collections.abc import Callable

from wsgiload.attribution import spans
from wsgiload.attribution.evidence import Evidence
from wsgiload.documents.attribution_result import FingerprintResult

MIN_THROTTLED_RATIO = 0.01
MIN_WAIT_RATIO = 0.05
MIN_PAUSE_NS = 100_000_000
MIN_BUSY_CORES = 0.5
MIN_IMBALANCE = 0.5
MIN_STALLS, MIN_BUSY_SHARE = 2, 0.5


def find_fingerprints(evidence: Evidence) -> list[FingerprintResult]:
    """All detected fingerprints, the most certain first."""
    return [result for detect in _DETECTORS if (result := detect(evidence)) is not None]


def oom_kill(evidence: Evidence) -> FingerprintResult | None:
    """The kernel OOM-killed a process of the server."""
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
    """The CPU limit stopped the server until the next CPU period."""
    periods, throttled = evidence.growth("nr_periods"), evidence.growth("nr_throttled")
    if not periods or throttled is None or throttled / periods < MIN_THROTTLED_RATIO:
        return None

    ratio = throttled / periods
    return FingerprintResult(
        name="throttling",
        sentence=f"the CPU limit throttled the server in {_percent(ratio)} of the CPU periods",
        rule=f"throttled in at least {_percent(MIN_THROTTLED_RATIO)} of the CPU periods",
        source="nr_throttled / nr_periods of the cgroup",
        value=ratio,
        limit=MIN_THROTTLED_RATIO,
    )


def contention(evidence: Evidence) -> FingerprintResult | None:
    """Other processes used the server's cores while it was runnable."""
    ratio = wait_ratio(evidence)
    if ratio is None or ratio < MIN_WAIT_RATIO:
        return None
    who = "the load generator or other processes" if evidence.shared_cores else "other processes"
    return FingerprintResult(
        name="contention",
        sentence=(
            f"for {_percent(ratio)} of the time, the server was runnable but got no CPU, although "
            f"it was neither throttled nor short of memory; {who} used its cores"
        ),
        rule=f"at least {_percent(MIN_WAIT_RATIO)} of the time",
        source="cpu.pressure (full) of the cgroup, without throttled or memory-pressure samples",
        value=ratio,
        limit=MIN_WAIT_RATIO,
    )


def wait_ratio(evidence: Evidence) -> float | None:
    """Share of the measurement in which all runnable tasks of the server waited for a CPU, without
    throttling or memory pressure."""
    free = [step for step in spans.unlimited(evidence.steps) if step.psi_cpu_full_ns is not None]
    length_ns = sum(step.length_ns for step in free)
    return (
        sum(step.psi_cpu_full_ns or 0 for step in free) / evidence.length_ns if length_ns else None
    )


def pause(evidence: Evidence) -> FingerprintResult | None:
    """All processes of the server were blocked, for example by a lock or a slow backend."""
    paused = spans.paused(evidence.steps)
    length_ns = spans.total_ns(paused)
    if length_ns < MIN_PAUSE_NS:
        return None
    times = "once" if len(paused) == 1 else f"{len(paused)} times"
    return FingerprintResult(
        name="pause",
        sentence=(
            "connections waited in the accept queue while all processes of the server were "
            f"blocked, for example by a lock or a slow backend ({times}, "
            f"{length_ns / 1e9:.1f} s in total)"
        ),
        rule=(
            "accept queue neither empty nor shrinking, CPU use at most 10 % of its median, no CPU "
            "pressure, no throttling"
        ),
        source="sock_diag, CPU usage and cpu.pressure of the cgroup",
        value=length_ns / 1e9,
        limit=MIN_PAUSE_NS / 1e9,
    )


def busy_pause(evidence: Evidence) -> FingerprintResult | None:
    """Requests waited while one thread computed, for example a garbage collection or a request that
    holds the GIL."""
    if len(evidence.stalls) < MIN_STALLS:
        return None
    busy = spans.busy(evidence.steps, evidence.stalls)
    if len(busy) < MIN_BUSY_SHARE * len(evidence.stalls):
        return None

    longest_ns = max(end_ns - start_ns for start_ns, end_ns in busy)
    return FingerprintResult(
        name="busy_pause",
        sentence=(
            "requests waited while the server used more CPU than usual, for example for garbage "
            f"collection or a long computation that holds the GIL ({len(busy)} times, up to "
            f"{longest_ns / 1e6:,.0f} ms)"
        ),
        rule=(
            "at least two stalls (ten times the median response time, at least 100 ms); in at "
            f"least half of them, CPU use of at least {spans.BUSY_CORES} cores and "
            f"{spans.BUSIER} times the median"
        ),
        source="the slowest requests, CPU usage of the cgroup",
        value=len(busy),
        limit=MIN_STALLS,
    )


def backlog_overflow(evidence: Evidence) -> FingerprintResult | None:
    """The kernel dropped connection attempts because the accept queue was full."""
    drops = evidence.listen_drops or 0
    if not drops:
        return None
    late = sum(evidence.late_connects)
    tail = (
        f"; {late:,} connections took about 1, 3 or 7 s to open (probably SYN retransmissions)"
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
    """The server waited for memory, but was not OOM-killed."""
    waited, high = evidence.growth("psi_memory_some_ns"), evidence.growth("memory_high") or 0
    ratio = waited / evidence.length_ns if waited is not None and evidence.length_ns else 0.0
    if evidence.oom_kills or (ratio < MIN_WAIT_RATIO and not high):
        return None
    exceeded = f" and exceeded memory.high {high:,} times" if high else ""
    return FingerprintResult(
        name="memory_pressure",
        sentence=(f"the server waited for memory for {_percent(ratio)} of the time{exceeded}"),
        rule=(
            f"at least {_percent(MIN_WAIT_RATIO)} of the time, or memory.high was exceeded; no "
            "process was killed"
        ),
        source="memory.pressure (some) and memory.events of the cgroup",
        value=ratio,
        limit=MIN_WAIT_RATIO,
    )


def worker_imbalance(evidence: Evidence) -> FingerprintResult | None:
    """One worker is busy while the others are nearly idle."""
    balance = evidence.balance
    if (
        balance is None
        or balance.busiest_cores < MIN_BUSY_CORES
        or balance.imbalance < MIN_IMBALANCE
    ):
        return None
    return FingerprintResult(
        name="worker_imbalance",
        sentence=(
            f"one of {balance.workers} workers used {balance.busiest_cores:.2f} CPU cores while "
            f"the others were nearly idle (imbalance {balance.imbalance:.2f}; the maximum is 1)"
        ),
        rule=(
            f"the busiest worker uses at least {MIN_BUSY_CORES} cores and the imbalance is at "
            f"least {MIN_IMBALANCE}"
        ),
        source="schedstat of the threads of each process",
        value=balance.imbalance,
        limit=MIN_IMBALANCE,
    )


_DETECTORS: tuple[Callable[[Evidence], FingerprintResult | None], ...] = (
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
