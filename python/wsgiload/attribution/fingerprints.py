"""Fingerprints of delays: each is a rule over the evidence about one cell. Pure.

A fingerprint states a coincidence, never that something made the server slow. The rules are based
on experiments in which each cause was provoked and every signal compared with the slow requests.
"""

from __future__ import annotations

from collections.abc import Callable

from wsgiload.attribution import spans
from wsgiload.attribution.evidence import Event, Evidence
from wsgiload.documents.attribution_result import FingerprintResult
from wsgiload.findings.finding import Finding, percent

MIN_THROTTLED_RATIO = 0.01
MIN_WAIT_RATIO = 0.05
MIN_PAUSE_NS = 100_000_000
MIN_BUSY_CORES = 0.5
MIN_IMBALANCE = 0.5
MIN_STALLS, MIN_BUSY_SHARE = 2, 0.5


class Fingerprint(Finding, frozen=True, kw_only=True):
    """The record of a fingerprint."""

    title: str
    event: Event | None = None
    """The event whose exposure shows how many of the slowest requests it covers."""
    span: str | None = None
    """One such event, in words."""

    def detected(self, sentence: str, value: float, limit: float) -> FingerprintResult:
        """What the rule reports."""
        return FingerprintResult(
            name=self.name,
            sentence=sentence,
            rule=self.premise,
            source=self.examines,
            value=value,
            limit=limit,
        )


def find_fingerprints(evidence: Evidence) -> list[FingerprintResult]:
    """All detected fingerprints, the most certain first."""
    return [result for detect in _DETECTORS if (result := detect(evidence)) is not None]


OOM_KILL = Fingerprint(
    name="oom_kill",
    title="OOM kill",
    examines="oom_kill of the cgroup",
    premise="The kernel OOM-killed at least one process of the server.",
    fix="raise --memory, or use fewer workers",
)


def oom_kill(evidence: Evidence) -> FingerprintResult | None:
    """The kernel OOM-killed a process of the server."""
    kills = evidence.oom_kills or 0
    if not kills:
        return None
    processes = "1 process" if kills == 1 else f"{kills} processes"
    sentence = f"the kernel OOM-killed {processes} of the server"
    return OOM_KILL.detected(sentence, kills, 1)


THROTTLING = Fingerprint(
    name="throttling",
    title="CPU throttling",
    examines="nr_throttled / nr_periods of the cgroup",
    premise=f"The CPU limit stopped the server in at least {percent(MIN_THROTTLED_RATIO)} of the "
    "CPU periods.",
    fix="raise --cpus, or choose a lower rate",
    event="throttled",
    span="a throttled period",
)


def throttling(evidence: Evidence) -> FingerprintResult | None:
    """The CPU limit stopped the server until the next CPU period."""
    periods, throttled = evidence.growth("nr_periods"), evidence.growth("nr_throttled")
    if not periods or throttled is None or throttled / periods < MIN_THROTTLED_RATIO:
        return None

    ratio = throttled / periods
    sentence = f"the CPU limit throttled the server in {_percent(ratio)} of the CPU periods"
    return THROTTLING.detected(sentence, ratio, MIN_THROTTLED_RATIO)


CONTENTION = Fingerprint(
    name="contention",
    title="CPU contention",
    examines="cpu.pressure (full) of the cgroup, without throttled or memory-pressure samples",
    premise="All runnable tasks of the server waited for a CPU for at least "
    f"{percent(MIN_WAIT_RATIO)} of the time, although it was neither throttled nor short "
    "of memory.",
    fix="repeat on an idle machine; `wsgiload doctor` lists what disturbs this one",
    event="cpu_wait",
    span="a time in which the server waited for a CPU",
)


def contention(evidence: Evidence) -> FingerprintResult | None:
    """Other processes used the server's cores while it was runnable."""
    ratio = wait_ratio(evidence)
    if ratio is None or ratio < MIN_WAIT_RATIO:
        return None
    who = "the load generator or other processes" if evidence.shared_cores else "other processes"
    sentence = (
        f"for {_percent(ratio)} of the time, the server was runnable but got no CPU, although "
        f"it was neither throttled nor short of memory; {who} used its cores"
    )
    return CONTENTION.detected(sentence, ratio, MIN_WAIT_RATIO)


def wait_ratio(evidence: Evidence) -> float | None:
    """Share of the measurement in which all runnable tasks of the server waited for a CPU, without
    throttling or memory pressure."""
    free = [step for step in spans.unlimited(evidence.steps) if step.psi_cpu_full_ns is not None]
    length_ns = sum(step.length_ns for step in free)
    return (
        sum(step.psi_cpu_full_ns or 0 for step in free) / evidence.length_ns if length_ns else None
    )


PAUSE = Fingerprint(
    name="pause",
    title="server stall",
    examines="sock_diag, CPU usage and cpu.pressure of the cgroup",
    premise=f"For at least {MIN_PAUSE_NS / 1e6:g} ms in total, connections waited in an accept "
    "queue that did not shrink, with at most 10 % of the median CPU use, no CPU pressure "
    "and no throttling.",
    fix="find what its workers wait for: a lock, a connection pool, a backend",
    event="paused",
    span="a server stall",
)


def pause(evidence: Evidence) -> FingerprintResult | None:
    """All processes of the server were blocked, for example by a lock or a slow backend."""
    paused = spans.paused(evidence.steps)
    length_ns = spans.total_ns(paused)
    if length_ns < MIN_PAUSE_NS:
        return None
    times = "once" if len(paused) == 1 else f"{len(paused)} times"
    sentence = (
        "connections waited in the accept queue while all processes of the server were "
        f"blocked, for example by a lock or a slow backend ({times}, "
        f"{length_ns / 1e9:.1f} s in total)"
    )
    return PAUSE.detected(sentence, length_ns / 1e9, MIN_PAUSE_NS / 1e9)


BUSY_PAUSE = Fingerprint(
    name="busy_pause",
    title="GC or long computation",
    examines="the slowest requests, CPU usage of the cgroup",
    premise=f"At least {MIN_STALLS} stalls (ten times the median response time, at least 100 ms); "
    f"in at least {percent(MIN_BUSY_SHARE)} of them, CPU use of at least "
    f"{spans.BUSY_CORES} cores and {spans.BUSIER} times the median.",
    fix="call gc.freeze() after the import, or move the computation out of the requests",
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
    sentence = (
        "requests waited while the server used more CPU than usual, for example for garbage "
        f"collection or a long computation that holds the GIL ({len(busy)} times, up to "
        f"{longest_ns / 1e6:,.0f} ms)"
    )
    return BUSY_PAUSE.detected(sentence, len(busy), MIN_STALLS)


BACKLOG_OVERFLOW = Fingerprint(
    name="backlog_overflow",
    title="full accept queue",
    examines="sock_diag, drops of the listening sockets",
    premise="A listening socket of the server dropped at least one connection attempt, which the "
    "client's kernel repeats after 1, 3 and 7 s.",
    fix="raise the server's backlog, or add workers",
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
    sentence = f"a full accept queue{backlog} dropped {attempts}{tail}"
    return BACKLOG_OVERFLOW.detected(sentence, drops, 1)


MEMORY_PRESSURE = Fingerprint(
    name="memory_pressure",
    title="memory pressure",
    examines="memory.pressure (some) and memory.events of the cgroup",
    premise=f"The server waited for memory for at least {percent(MIN_WAIT_RATIO)} of the time, or "
    "exceeded memory.high; no process was killed.",
    fix="raise --memory",
    event="memory_pressure",
    span="a memory stall",
)


def memory_pressure(evidence: Evidence) -> FingerprintResult | None:
    """The server waited for memory, but was not OOM-killed."""
    waited, high = evidence.growth("psi_memory_some_ns"), evidence.growth("memory_high") or 0
    ratio = waited / evidence.length_ns if waited is not None and evidence.length_ns else 0.0
    if evidence.oom_kills or (ratio < MIN_WAIT_RATIO and not high):
        return None
    exceeded = f" and exceeded memory.high {high:,} times" if high else ""
    sentence = f"the server waited for memory for {_percent(ratio)} of the time{exceeded}"
    return MEMORY_PRESSURE.detected(sentence, ratio, MIN_WAIT_RATIO)


WORKER_IMBALANCE = Fingerprint(
    name="worker_imbalance",
    title="worker imbalance",
    examines="schedstat of the threads of each process",
    premise=f"The busiest of several workers uses at least {MIN_BUSY_CORES} cores, and the "
    f"imbalance is at least {MIN_IMBALANCE}: (its CPU time / the mean − 1) / (workers − "
    "1).",
    fix="use more connections: each stays with the worker that accepted it",
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
    sentence = (
        f"one of {balance.workers} workers used {balance.busiest_cores:.2f} CPU cores while "
        f"the others were nearly idle (imbalance {balance.imbalance:.2f}; the maximum is 1)"
    )
    return WORKER_IMBALANCE.detected(sentence, balance.imbalance, MIN_IMBALANCE)


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


FINGERPRINTS = {one.name: one for one in list(globals().values()) if isinstance(one, Fingerprint)}


def _percent(ratio: float) -> str:
    percent = 100 * ratio
    is_whole = percent >= 10 or round(percent, 1) == round(percent)
    return f"{percent:.0f} %" if is_whole else f"{percent:.1f} %"
