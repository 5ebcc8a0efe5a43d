"""Situations whose limit, order, cause, memory and errors are known by construction, and what the
first screen must say, may say and must never say about each.

A warning that no pattern allows fails its case, so every case is also a control.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced

from msgspec.structs import replace

from tests.unit.filled import outcomes, rates, reason, resources, times, verdict
from tests.unit.invented_cells import experiment, within
from wsgiload.analysis.threshold import parse_threshold
from wsgiload.attribution.evidence import Balance, Evidence
from wsgiload.documents.cell_result import ServiceUse
from wsgiload.documents.load_report import (
    LoadReport,
    QuantileUncertainty,
    Reason,
    Uncertainty,
    WrongResponse,
)
from wsgiload.documents.resources import ResourceUse
from wsgiload.errors import UsageError
from wsgiload.findings.alarms import ServerUse
from wsgiload.findings.trial import Waits
from wsgiload.limits.model import Counters
from wsgiload.sampling.resources import MemoryGrowth, summarise
from wsgiload.sampling.sampler import Sample
from wsgiload.units import parse_margin

from .situations import (
    MIB,
    MS,
    SLO,
    Screen,
    canned,
    exposure,
    failed,
    load,
    provoked,
    search,
    searched,
    six_runs,
    steps,
    sweep,
    trial,
    working,
)

# No screen may say this.
NEVER_IN_ANY = (r"No quantile has a finite value", r"infinite \(0 % failed\)", r"\bNone\b|\bnan\b")


@dataclass(frozen=True)
class Case:
    """One situation; the patterns are regular expressions."""

    name: str
    screen: Callable[[], Screen]
    must: Sequence[str]
    never: Sequence[str] = ()
    # Warnings that are also true.
    may: Sequence[str] = ()
    # The server that the printed command starts; None if no server is recommended.
    command_of: str | None = None


# --- limits

NEAR = r"near [\d,]+/s \(try"
LIMITS = (
    Case(
        "one lock held for 14 ms: 71/s is the limit",
        lambda: sweep([working("lock", rate=50, service_ms=15, cpu_ms=0.6, at_once=(1, 4))]),
        [r"No server saturated at 50/s", r"With 4 requests at a time, .* near 270/s at the latest"],
        [NEAR, "CPU use suggests"],
        command_of="lock",
    ),
    Case(
        "a pool of 2 connections, 30 ms each: 66/s is the limit",
        lambda: sweep([working("pool", rate=50, service_ms=33, cpu_ms=0.5, at_once=(1, 8))]),
        [r"No server saturated at 50/s", r"at the latest"],
        [NEAR, "CPU use suggests"],
        command_of="pool",
    ),
    Case(
        "one thread that waits 12 ms, at a low rate: 83/s is the limit",
        lambda: sweep([working("thread", rate=10, service_ms=12, cpu_ms=0.1, at_once=(1, 1))]),
        [r"With 1 request at a time, 12\.0 ms each, thread would saturate near 83/s at the latest"],
        [r"[1-9],\d{3}/s"],
        may=[r"p99 at 10/s is imprecise"],
        command_of="thread",
    ),
    Case(
        "the same at 50/s: 21 ms, 9 ms of them in the queue",
        lambda: sweep([working("thread", rate=50, service_ms=21, cpu_ms=0.1, at_once=(1, 1))]),
        [r"No server saturated at 50/s\."],
        [r"would saturate"],
        command_of="thread",
    ),
    Case(
        "a rate of 150/s was sustained, though requests queued for most of 180 ms",
        lambda: sweep([working("queue", rate=150, service_ms=180, cpu_ms=1, at_once=(1, 4))]),
        [r"No server saturated at 150/s\."],
        [r"would saturate"],
        command_of="queue",
    ),
    Case(
        "one worker that computes on two cores at once, without the GIL",
        lambda: sweep(
            [working("native", rate=100, service_ms=8, cpu_ms=15, at_once=(1, 4))], cpus=2.0
        ),
        [r"No server saturated at 100/s\."],
        [r"would saturate"],
        command_of="native",
    ),
    Case(
        "waiting greenlets, as many as connections: no limit is known",
        lambda: sweep([working("greenlets", rate=50, service_ms=15, cpu_ms=0.1, at_once=None)]),
        [r"No server saturated at 50/s\."],
        [r"would saturate"],
        command_of="greenlets",
    ),
    Case(
        "4 ms of CPU time per request on one core: 250/s",
        lambda: sweep([working("busy", rate=50, service_ms=4.2, cpu_ms=4, at_once=(1, 4))]),
        [r"CPU use suggests that busy would saturate near 250/s"],
        command_of="busy",
    ),
    Case(
        "one process on two cores computes on one of them: 250/s",
        lambda: sweep(
            [working("gil", rate=50, service_ms=4.2, cpu_ms=4, at_once=(1, 4))], cpus=2.0
        ),
        [r"near 250/s"],
        [r"near 500/s"],
        command_of="gil",
    ),
    Case(
        "one server keeps up, the other answers 70 %",
        lambda: sweep(
            [
                trial("quick"),
                trial("slow", None, rate_result=rates(700.0, offered_per_s=1000.0), ok=1.0),
            ]
        ),
        [r"quick is the only server that sustains 1,000/s", r"not sustained \(goodput 700/s\)"],
        [r"slow has the lowest"],
        command_of="quick",
    ),
    Case(
        "the highest of three rates is too much for one of two servers",
        lambda: sweep(
            [
                *(trial("steady", rate=rate) for rate in (100.0, 200.0, 300.0)),
                *(trial("falling", rate=rate) for rate in (100.0, 200.0)),
                trial("falling", None, rate=300.0, rate_result=rates(210, offered_per_s=300)),
            ]
        ),
        [r"falling is the first not to sustain the rate, at 300/s"],
        [r"No server saturated"],
        command_of="steady",
    ),
)

# --- order

_TAKEN = "cannot listen on port 41017 of 127.0.0.1: Address already in use by process 17"
RACE = {"runs": 11, "budget_s": 600.0, "duration_s": 10.0}
ORDER = (
    Case(
        "three times as fast in six runs",
        lambda: sweep(experiment(1, {"slow": 3e6, "fast": 1e6})),
        [r"fast has the lowest p99 at 1,000/s", r"slow's p99 is [23]\.\d+×"],
        [r"tied"],
        command_of="fast",
    ),
    Case(
        "two equal servers in six runs",
        lambda: sweep(experiment(2, {"one": 1e6, "other": 1e6})),
        [r"one and other are tied|other and one are tied"],
        [r"has the lowest p99 at 1,000/s:"],
        command_of="other",
    ),
    Case(
        "10 % apart, and 30 % between runs: neither a winner nor equal",
        lambda: sweep(experiment(6, {"first": 1e6, "second": 1.1e6}, run_effect=0.3)),
        [r"not decided: they may differ by up to 60 %", r"To decide: 13 runs .* about 10 min"],
        [r"has the lowest p99 at 1,000/s:", r"\btied\b"],
        command_of="first",
    ),
    Case(
        "nine servers in one run, of which two are near each other",
        lambda: sweep(
            [
                *(
                    trial(name, 5.0 + place, uncertainty=within(4.5, 6.5))
                    for place, name in enumerate("ab")
                ),
                *(
                    trial(name, 90.0 + place, uncertainty=within(80.0, 99.0))
                    for place, name in enumerate("cdefghi")
                ),
            ]
        ),
        [r"the difference from b is within the noise", r"To decide: repeat .*at most 5 min"],
        [r"\d h\b", r"\d\d min"],
        command_of="a",
    ),
    Case(
        "one run",
        lambda: sweep(
            [
                trial("fast", 1.0, uncertainty=within(0.9, 1.1)),
                trial("slow", 9.0, uncertainty=within(8.0, 9.5)),
            ]
        ),
        [r"1 run is too few to estimate", r"To confirm this ranking: repeat"],
        [r"significant"],
        command_of="fast",
    ),
    Case(
        "4.84 ms with errors against 76.4 ms without, one end unbounded",
        lambda: sweep(
            [
                trial("errfast", 4.84, ok=0.992, uncertainty=within(4.1, None, p50=(1.0, 1.2))),
                trial("collapse", 76.4, uncertainty=within(3.9, 90.0, p50=(30.0, 36.0))),
            ]
        ),
        [r"errfast is not ranked: 0\.8 % of its requests failed"],
        [r"tie", r"within the noise"],
        command_of="collapse",
    ),
    Case(
        "4.84 ms against 76.4 ms, one end unbounded, medians far apart",
        lambda: sweep(
            [
                trial("fast", 4.84, uncertainty=within(4.1, None, p50=(1.0, 1.2))),
                trial("collapse", 76.4, uncertainty=within(3.9, 90.0, p50=(30.0, 36.0))),
            ]
        ),
        [r"fast.* had the lowest p99", r"Its lead in p50 or p90 exceeds the noise"],
        [r"\btied?\b", r"within the noise"],
        command_of="fast",
    ),
    Case(
        "an open end and equal medians",
        lambda: sweep(
            [
                trial("one", 4.5, uncertainty=within(4.0, None, p50=(1.0, 2.0))),
                trial("other", 6.0, uncertainty=within(3.0, 7.0, p50=(1.5, 3.0))),
            ]
        ),
        [r"is not decided"],
        [r"within the noise", r"tied"],
        command_of="one",
    ),
    Case(
        "a race in which every server missed the objective, the slower one last",
        lambda: sweep(
            [
                *(trial("granian", 854.0, run=run) for run in (1, 2, 3)),
                *(trial("waitress", 372.0, run=run) for run in (1, 2, 3)),
            ],
            **RACE | {"rates": (500.0, 1000.0), "slo": SLO},
        ),
        [r"no configuration meets p99<50ms", r"best so far is waitress \(p99 372 ms\)"],
        [r"\| 1 \|", r"Recommended"],
    ),
    Case(
        "a race whose trials are too short for p99: nothing was compared",
        lambda: sweep(
            [
                trial(name, p99, rate=95.0, run=run, outcomes=outcomes(950), duration_s=10.0)
                for run in (1, 2)
                for name, p99 in (("a", 19.8), ("h", 76.7))
            ],
            **RACE | {"rates": (95.0,)},
        ),
        [r"h was not tested|not decided", r"To decide: .*--duration \d+s"],
        [r"not significantly worse"],
        may=[r"p99 at 95/s is imprecise"],
        command_of="a",
    ),
    Case(
        "a race won by 10 % with a noise of 2 %",
        lambda: sweep(
            experiment(3, {"first": 1e6, "second": 1.1e6}, runs=11, run_effect=0.02), **RACE
        ),
        [r"first has the lowest p99"],
        [r"first and second are tied"],
        command_of="first",
    ),
    Case(
        "a race in which every server failed",
        lambda: sweep(
            [trial(name, None, run=run, ok=0.5) for name in "ab" for run in (1, 2)], **RACE
        ),
        [r"No server sustained any tested load level|Every server failed"],
        [r"\| 1 \|", r"\b[ab] has the lowest", r"reasons are listed below"],
    ),
    Case(
        "closed loops are compared by goodput, not by p99",
        lambda: sweep(
            [
                replace(one, rate=None, connections=50, id=f"{one.server}@c50#1")
                for one in (
                    trial("many", 90.0, rate_result=rates(2000.0)),
                    trial("few", 10.0, rate_result=rates(900.0)),
                )
            ]
        ),
        [r"many.* had the highest goodput at 50 connections"],
        [r"few.* had the highest", r"capped|partly a closed loop"],
        command_of="many",
    ),
    Case(
        "another process took the port of one of two servers in every attempt",
        lambda: sweep([trial("good"), failed("bad", "port", f"bad {_TAKEN}")]),
        [r"good.* sustains 1,000/s", r"bad .*(failed|no valid result)"],
        [r"only server that sustains", r"--ready-timeout"],
        command_of="good",
    ),
    Case(
        "a server that did not start is not the slowest",
        lambda: sweep(
            [trial("good"), failed("bad", "start", "bad exited with code 3: no licence")]
        ),
        [r"good.* sustains 1,000/s", r"bad failed and is not ranked: bad exited with code 3"],
        [r"only server that sustains"],
        command_of="good",
    ),
)

# --- quantiles that are not known


def _correlated(scheduled: int, effective: float | None) -> Screen:
    known = QuantileUncertainty(
        interval_95_ns=(9_000_000, None),
        effective_requests=effective,
        resolution_status="not_resolved",
        reason="too_few_effective_requests",
    )
    return load(
        canned(
            scheduled,
            uncertainty=Uncertainty(offered_quantiles_ns={"0.99": known}, response_time_ns={}),
        )
    )


ABSENT = (
    Case(
        "1,902 requests that count as 640",
        lambda: _correlated(1902, 640.0),
        [r"the 1,902 requests are correlated and count as only 640"],
        [r"only 1,902 were scheduled", r"infinite"],
    ),
    Case(
        "899 requests",
        lambda: load(canned(899)),
        [r"p99 needs at least 1,000 requests, but only 899 were scheduled"],
        [r"infinite", r"finite"],
    ),
    Case(
        "2,000 requests of which a quarter timed out",
        lambda: load(canned(2000, ok=0.75, kind="timeout")),
        [r"75\.0 % of 2,000 requests got a correct response", r"timeout: 500", r">= "],
        [r"infinite"],
        may=[r"timed? ?out"],
    ),
    Case(
        "2,000 requests of which a quarter got a 500",
        lambda: load(canned(2000, ok=0.75, kind="http_status")),
        [r"infinite \(25\.0 % failed\)"],
        [r">= "],
        may=[r"500 of 2,000 requests got an incorrect response"],
    ),
    Case(
        "no request got a response",
        lambda: load(canned(2000, ok=0.0, kind="refused")),
        [r"No request got a correct response \(refused: 2,000\)"],
        [r"p99 is"],
        may=[r"no correct response"],
    ),
)

# --- errors

ERRORS = (
    Case(
        "84 % of the responses are 503 with the cause in the body",
        lambda: sweep([trial("refusing", None, ok=0.16, **provoked(_refused("pool exhausted")))]),
        [
            r'status 503, "pool exhausted"',
            r"To decide: resolve the errors of refusing first: 16,800 of 20,000 requests",
        ],
        [r"use lower --rates", r"count as infinitely slow"],
    ),
    Case(
        "0.8 % of the responses of the fastest are 503",
        lambda: sweep(
            [*six_runs("errfast", 4.8, ok=0.992), *six_runs("clean", 9.0), *six_runs("slow", 30.0)]
        ),
        [r"clean has the lowest p99", r"errfast is not ranked: 0\.8 % of its requests failed"],
        [r"errfast.* has the lowest"],
        command_of="clean",
    ),
    Case(
        "errors within the objective's allowance",
        lambda: sweep(
            [*six_runs("few", 4.8, ok=0.9995), *six_runs("none", 30.0)],
            slo=("p99<50ms", "error_rate<0.1%"),
        ),
        [r"Recommended: few"],
        [r"not ranked"],
        command_of="few",
    ),
)


# --- memory


def _using(anonymous: int, shared: int = 0, kernel: int = 0, cache: int = 0) -> ResourceUse:
    """The resources of a server with this memory in MiB."""
    counters = Counters(
        memory_bytes=(anonymous + shared + kernel + cache) * MIB,
        memory_anon_bytes=anonymous * MIB,
        memory_shared_bytes=shared * MIB,
        memory_kernel_bytes=kernel * MIB,
        memory_file_bytes=(shared + cache) * MIB,
    )
    return summarise([Sample(0, 0, counters)], (0, 1), None)


OBJECTIVE = {"slo": SLO}
MEMORY = (
    Case(
        "171 MiB that cannot be given back against 22 MiB and a large page cache",
        lambda: sweep(
            [
                *six_runs("fat", 9.0, resources=_using(171, cache=8)),
                *six_runs("lean", 9.0, resources=_using(22, cache=378)),
            ],
            **OBJECTIVE,
        ),
        [r"Recommended: lean, the leanest of 2", r"peak memory 22 MiB of 512 MiB \(95\.7 % free\)"],
        [r"400 MiB", r"fat, the leanest"],
        command_of="lean",
    ),
    Case(
        "a server that logs 100 MiB needs no more than a quiet one",
        lambda: sweep(
            [
                *six_runs("quiet", 9.0, resources=_using(28)),
                *six_runs("loud", 9.0, resources=_using(28, cache=98)),
            ],
            **OBJECTIVE,
        ),
        [r"28 MiB of 512 MiB", r"also meets the objective"],
        [r"126 MiB"],
        command_of="quiet",
    ),
    Case(
        "shared and kernel memory count",
        lambda: sweep(
            [
                *six_runs("forking", 9.0, resources=_using(40, shared=90, kernel=20)),
                *six_runs("plain", 9.0, resources=_using(100)),
            ],
            **OBJECTIVE,
        ),
        [r"Recommended: plain"],
        [r"forking, the leanest"],
        command_of="plain",
    ),
    Case(
        "memory that was not measured is not 0",
        lambda: sweep(
            six_runs("unknown", 9.0, resources=resources(cpu_cores_mean=0.3)), **OBJECTIVE
        ),
        [r"peak memory not measured"],
        [r"100 % free", r"0 B"],
        command_of="unknown",
    ),
)


# --- causes, each with a control: the same situation without the cause names nothing


def _refused(body: str) -> LoadReport:
    report = canned(20_000, ok=0.16)
    wrong = WrongResponse(
        **dict.fromkeys(WrongResponse.__struct_fields__)
        | {"outcome": "http_status", "status": 503, "first_line": "", "body": body}
    )
    return replace(report, wrong_responses=(wrong,))


def _transfers(*values_ms: float) -> LoadReport:
    return canned(transfer_ns=times(*(round(ms * MS) for ms in values_ms)))


def _behind(achieved_per_s: float) -> LoadReport:
    known = rates(achieved_per_s, offered_per_s=1000.0, achieved_per_s=achieved_per_s)
    return canned(rate=known)


def _throttled(periods: int) -> Evidence:
    """This many of 50 periods were throttled."""
    return Evidence(steps=steps(*[{"nr_throttled": 1, "psi_cpu_full_ns": 60_000_000}] * periods))


_GC = ((0, 190_000_000), (1_000_000_000, 1_190_000_000))
_COLLECTING = [{"cpu_usage_ns": 95_000_000} if place % 10 < 2 else {} for place in range(12)]
_LOCKED = [{"cpu_usage_ns": 0, "queue_before": 1, "queue_after": 9}] * 3


def _database(cores: float) -> ServiceUse:
    return ServiceUse(
        name="database",
        cpus=1.0,
        shares_server_cores=False,
        resources=resources(cpu_cores_mean=cores),
    )


_DATABASE, _BUSY_DATABASE = _database(0.05), _database(0.97)
_LEAK = MemoryGrowth(grown_bytes=100 * MIB, length_ns=20 * 10**9, memory_bytes=200 * MIB)


def _several() -> Evidence:
    return replaced(_throttled(21), listen_drops=18, backlog=5)


def _drifted() -> Reason:
    drift = reason("stationarity", message="response times drifted: p50 by -90 %")
    return replace(drift, fix="warm up 4 s longer")


def _cause(name: str, must: Sequence[str], never: Sequence[str] = (), **found: object) -> Case:
    """A sustained trial with what was found in it."""
    return Case(
        name,
        lambda: sweep([trial("app", **provoked(**found))]),  # type: ignore[arg-type]
        must,
        never,
        command_of="app",
    )


def _control(name: str, **found: object) -> Case:
    """The same without the cause: no warning at all."""
    return _cause(
        f"control: {name}",
        [r"app.* sustains 1,000/s"],
        [r"Nagle|OOM|memory than its limit|throttled|accept queue|garbage|lock|pool|page cache"],
        **found,
    )


CAUSES = (
    _cause(
        "Nagle's algorithm delays every tenth body by 41 ms",
        [r"Nagle's algorithm", r"TCP_NODELAY"],
        load=_transfers(*[0.1] * 180, *[41.0] * 20),
    ),
    _control(
        "bodies that take 20 to 60 ms because they are computed",
        load=_transfers(*(20 + 0.2 * place for place in range(200))),
    ),
    Case(
        "the kernel OOM-killed three workers; the master survived",
        lambda: sweep(
            [
                failed(
                    "app",
                    "load",
                    "app needs more memory than its limit: the kernel OOM-killed 3 processes under "
                    "load; raise --memory, or lower the number of workers",
                )
            ]
        ),
        [r"OOM-killed 3 processes", r"[Rr]aise --memory"],
        [r"--ready-timeout", r"lower --rates"],
    ),
    _control("a server near its memory limit", evidence=Evidence(steps=steps(), oom_kills=0)),
    _cause(
        "the quota throttled 42 % of the periods and all of the slowest requests",
        [
            r"throttled the server in 42 % of the CPU periods",
            r"100 % of the slowest 1 % of requests",
            r"--cpus",
        ],
        evidence=_throttled(21),
        exposure=exposure("throttled", 1.0, 0.42),
    ),
    _control("a quota that was never reached", evidence=_throttled(0)),
    _control(
        "a quota that was reached, but not by slow requests",
        evidence=_throttled(5),
        exposure=exposure("throttled", 0.1, 0.1),
    ),
    _cause(
        "a full accept queue dropped 18 attempts; 14 connections took 1, 3 or 7 s",
        [
            r"dropped 18 connection attempts",
            r"14 connections took about 1, 3 or 7 s",
            r"backlog|workers",
        ],
        evidence=Evidence(steps=steps(), listen_drops=18, backlog=5, late_connects=(9, 4, 1)),
    ),
    _control(
        "an accept queue that was never full",
        evidence=Evidence(steps=steps(), listen_drops=0, backlog=5, late_connects=(0, 0, 0)),
    ),
    _cause(
        "two garbage collections of 190 ms",
        [r"garbage collection or a long computation", r"2 times, up to 190 ms"],
        evidence=Evidence(steps=steps(*_COLLECTING), stalls=_GC),
    ),
    _control(
        "two slow requests at the usual CPU use",
        evidence=Evidence(steps=steps(), stalls=_GC),
    ),
    _cause(
        "all threads wait for one lock for 0.3 s",
        [r"all processes of the server were blocked, for example by a lock or a slow backend"],
        evidence=Evidence(steps=steps(*[{}] * 5, *_LOCKED)),
        exposure=exposure("paused", 0.9, 0.05),
    ),
    _control(
        "a short queue that a busy server empties",
        evidence=Evidence(steps=steps(*[{"queue_before": 2, "queue_after": 0}] * 5)),
    ),
    Case(
        "threads wait for a pool of two connections while CPU and database are idle",
        lambda: sweep(
            [
                trial(
                    "app",
                    None,
                    ok=1.0,
                    rate_result=rates(66.0, offered_per_s=1000.0, achieved_per_s=66.0),
                    services=(_DATABASE,),
                    **provoked(_behind(66.0), ServerUse(0.04, 1.0, services=(_DATABASE,))),
                )
            ]
        ),
        [r"uses only 4 % of its CPU limit", r"threads or the connection pool are the bottleneck"],
        [r"near [\d,]+/s"],
    ),
    _control("an idle server that keeps up", load=_behind(1000.0), use=ServerUse(0.04, 1.0)),
    Case(
        "control: the CPU seems idle because others use the server's core",
        lambda: sweep(
            [
                trial(
                    "app",
                    None,
                    rate_result=rates(66.0, offered_per_s=1000.0, achieved_per_s=66.0),
                    **provoked(
                        _behind(66.0), ServerUse(0.14, 1.0, cpu_wait=0.6), waits=_host(0.9, 0.6)
                    ),
                )
            ]
        ),
        [r"(?s)may have kept the server .*waiting"],
        [r"idle-server", r"bottleneck"],
    ),
    Case(
        "four threads are busy and the CPU is idle",
        lambda: sweep(
            [
                trial(
                    "app",
                    None,
                    rate_result=rates(66.0, offered_per_s=1000.0, achieved_per_s=66.0),
                    **provoked(_behind(66.0), ServerUse(0.04, 1.0)),
                )
            ]
        ),
        [r"uses only 4 % of its CPU limit", r"threads, connections or a backend"],
        [r"near [\d,]+/s", r"CPU use suggests"],
    ),
    _cause(
        "a file larger than the memory limit is read again and again: its page cache is reclaimed",
        [r"waited for memory for 30 % of the time", r"Raise --memory"],
        [r"leak", r"OOM"],
        evidence=Evidence(steps=steps(*[{"psi_memory_some_ns": 60_000_000}] * 25), oom_kills=0),
        exposure=exposure("memory_pressure", 0.9, 0.3),
    ),
    _cause(
        "one of four workers has all connections",
        [r"one of 4 workers used 0\.95 CPU cores", r"[Uu]se more connections"],
        evidence=Evidence(balance=Balance(4, 0.95, 0.97)),
    ),
    _control(
        "four workers that are equally busy", evidence=Evidence(balance=Balance(4, 0.9, 0.02))
    ),
    _cause(
        "a leak of 100 MiB in 20 s",
        [r"memory was still growing at the end", r"leak"],
        use=ServerUse(0.3, 1.0, memory_growth=_LEAK),
    ),
    Case(
        "the database uses all of its core",
        lambda: sweep(
            [
                trial(
                    "app",
                    None,
                    rate_result=rates(66.0, offered_per_s=1000.0, achieved_per_s=66.0),
                    services=(_BUSY_DATABASE,),
                    **provoked(_behind(66.0), ServerUse(0.1, 1.0, services=(_BUSY_DATABASE,))),
                )
            ]
        ),
        [r"database (uses|used) .*(busy-service)"],
        [r"threads or the connection pool", r"near [\d,]+/s"],
    ),
    Case(
        "several causes: the nearest first",
        lambda: sweep(
            [
                trial(
                    "app",
                    **provoked(
                        evidence=_several(),
                        exposure=exposure("throttled", 1.0, 0.42),
                        waits=_host(0.5, 0.3),
                    ),
                ),
                trial("other", 9.0),
            ]
        ),
        [r"(?s)throttled the server.*dropped 18 connection attempts.*[Oo]ther processes"],
        may=[r"throttled the server", r"dropped 18", r"contaminated"],
        command_of="app",
    ),
    Case(
        "the warm-up left a backlog, which flowed into the measurement",
        lambda: sweep([trial("app", verdict=verdict("warn", "server", _drifted()))]),
        [r"\(stationarity\)\. Warm up 4 s longer"],
        command_of="app",
    ),
    Case(
        "control: a growing page cache is neither a leak nor the server's memory",
        lambda: sweep([trial("app", resources=_using(28, cache=400))]),
        [r"\| 28 MiB \|"],
        [r"428 MiB", r"leak|grow"],
        command_of="app",
    ),
)
# --- the host


def _host(foreign_cpu: float, server: float) -> Waits:
    return Waits(foreign_cpu, server, 0.0, processes=(), shares_cores=False)


HOST = (
    Case(
        "others use half of the CPU time, and the server waits 0.3 % of the time",
        lambda: sweep([trial("one", **provoked(waits=_host(0.5, 0.003))), trial("other", 9.0)]),
        [r"one.* had the lowest p99"],
        [r"other processes", r"order of the servers may be wrong", r"idle machine"],
        command_of="one",
    ),
    Case(
        "others use half of the CPU time, and the server waits 30 % of the time",
        lambda: sweep([trial("one", **provoked(waits=_host(0.5, 0.3))), trial("other", 9.0)]),
        [r"p99 may be too high, so the order of the servers may be wrong", r"contaminated"],
        command_of="one",
    ),
)

# --- questions


def _refusal(text: str, parse: Callable[[str], object] = parse_threshold) -> Screen:
    try:
        parse(text)
    except UsageError as error:
        return Screen(str(error))
    return Screen("accepted")


QUESTIONS = (
    Case(
        "a threshold without a unit has two readings",
        lambda: _refusal("p99<50"),
        [r"p99<50ms", r"p99<50s"],
        [r"accepted"],
    ),
    Case(
        "k6's quantile",
        lambda: _refusal("p(99)<50"),
        [r"a threshold of k6; write 'p99<50ms'"],
        [r"accepted"],
    ),
    Case(
        "k6's share of failed requests",
        lambda: _refusal("http_req_failed<0.01"),
        [r"a threshold of k6; write 'error_rate<1%'"],
        [r"accepted"],
    ),
    Case(
        "k6's mean, which is not judged",
        lambda: _refusal("avg<200"),
        [r"does not judge; choose one of .*'p50<200ms'"],
        [r"accepted"],
    ),
    Case(
        "a margin without a unit",
        lambda: _refusal("10", parse_margin),
        [r"such as 10%"],
        [r"accepted"],
    ),
    Case(
        "a search that became invalid after a trial had met the objective",
        lambda: search(searched("a", 100.0)),
        [r"It is unknown up to which rate .* so far, it met the objective at 100/s", r"98"],
        [r"No rate was found", r"\*a meets the objective"],
        may=[r"no conclusive result"],
    ),
    Case(
        "the same on two servers",
        lambda: search(searched("a", 100.0), searched("b", 80.0)),
        [r"It is unknown", r"the search on a is invalid", r"98"],
        [r"No rate was found", r"[ab] meets the objective at"],
        may=[r"no conclusive result"],
    ),
    Case(
        "a search in which the objective was missed at every rate is answered",
        lambda: search(searched("a", None)),
        [r"No rate was found at which a meets the objective", r"missed at every rate"],
        [r"98", r"so far"],
    ),
    Case(
        "an objective near the result of two runs",
        lambda: sweep(
            [trial("a", p99, run=run) for run, p99 in ((1, 49.0), (2, 51.0))], **OBJECTIVE
        ),
        [r"No recommendation: no configuration has 4 valid runs", r"best so far is a", r"98"],
        [r"Recommended"],
    ),
    Case(
        "an objective that every server clearly misses is answered",
        lambda: sweep([*six_runs("a", 400.0), *six_runs("b", 300.0)], **OBJECTIVE),
        [
            r"no configuration meets p99<50ms .* at 1,000/s; the best so far is b",
            r"To meet the obj",
        ],
        [r"exit code 98", r"Recommended", r"To decide"],
    ),
    Case(
        "a race that its budget did not decide",
        lambda: sweep(experiment(4, {"a": 1e6, "b": 1.04e6}, runs=3, run_effect=0.1), **RACE),
        [r"so far", r"To decide", r"exit code 98: no answer"],
        [r"a has the lowest p99 at 1,000/s:", r"\btied\b"],
        command_of="a",
    ),
)
CASES = (*LIMITS, *ORDER, *ABSENT, *ERRORS, *MEMORY, *CAUSES, *HOST, *QUESTIONS)
