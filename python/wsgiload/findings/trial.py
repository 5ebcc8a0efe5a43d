"""Checks of a sweep's trial: its host, its limits, its samples, and whether it failed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from wsgiload.doctor.settle import Settled
from wsgiload.documents.cell_result import CellFailure, ServerSettings
from wsgiload.documents.load_report import Blame, LoadReport
from wsgiload.findings.finding import Finding, Fired, percent
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits.model import Enforcement
from wsgiload.sampling.processes import ProcessUsage
from wsgiload.sampling.resources import measured_window
from wsgiload.sampling.sampler import Sample
from wsgiload.serving.launch import ServerExit
from wsgiload.units import NS_PER_S

# Above these shares, a measurement describes the host rather than the server.
MAX_FOREIGN_CPU, MAX_CPU_WAIT = 0.10, 0.05
# A busy host delays single samples by less.
MAX_SAMPLE_GAP_NS = NS_PER_S
_QUIET = "repeat on an idle machine; `wsgiload doctor` lists what disturbs this one"

SHARED_CORES = Finding(
    name="shared-cores",
    examines="the cores of the server and of the generator",
    premise="The server and the generator shared cores, so they competed for CPU time.",
    sighting="server and generator shared cores in",
    consequence="servers may be slower than on dedicated cores",
    fix="use a machine with more cores, or set --server-cpus and --client-cpus",
    blame="host",
)


def shared_cores(cpu_plan: CpuPlan) -> Fired | None:
    """The server and the generator compete for cores."""
    if not cpu_plan.shared_cores:
        return None
    return SHARED_CORES.fired("server and load generator share cores", True, False)


HOST_NOT_IDLE = Finding(
    name="host-not-idle",
    examines="whether the host becomes idle within --settle before each trial",
    premise="The host was still busy at the start of the trial.",
    sighting="the host was not idle before",
    lengthens=True,
    fix=_QUIET,
    blame="host",
)


def host_not_idle(settled: Settled | None, limit_s: float) -> Fired | None:
    """The wait for an idle host ended without success."""
    if settled is None or not settled.disturbances:
        return None
    message = (
        f"the host was not idle when this trial began (waited {settled.waited_s:.0f} s): "
        f"{' and '.join(settled.disturbances)}"
    )
    return HOST_NOT_IDLE.fired(message, round(settled.waited_s, 1), limit_s)


LIMITS = Finding(
    name="limits",
    examines="the limits reported by the kernel",
    premise="A limit could not be enforced, and --limits strict was not given.",
    sighting="a limit was not enforced in",
    consequence="the result does not apply to servers with this limit",
    fix="run as root, or see docs/limits.md",
    blame="host",
)


def missing_limits(enforcement: Enforcement | None) -> Fired | None:
    """A limit was requested but not enforced."""
    if enforcement is None or not enforcement.not_enforced:
        return None
    missing = ", ".join(enforcement.not_enforced)
    return LIMITS.fired(f"limits not enforced: {missing}", missing, None)


CONTAMINATED = Finding(
    name="contaminated",
    examines="the time that the server and the generator waited for a core, and the CPU time of "
    "others",
    premise=f"The server waited for a core for more than {percent(MAX_CPU_WAIT)} of the time, or "
    f"the generator did while other processes used more than {percent(MAX_FOREIGN_CPU)} of the "
    "machine's CPU time. If the server's waits are not known, the CPU time of others alone is "
    "reported.",
    sighting="other processes may have kept the server or the generator waiting in",
    lengthens=True,
    fix=_QUIET,
    blame="host",
)


@dataclass(frozen=True, slots=True)
class Waits:
    """Shares of the measurement in which server and generator waited for a core, and the share of
    the machine's CPU time that others used. None: unknown."""

    foreign_cpu: float | None
    server: float | None
    generator: float | None
    processes: Sequence[ProcessUsage]
    shares_cores: bool
    """Whether the server's own services use its cores."""


def contamination(waits: Waits) -> Fired | None:
    """Other processes kept the server or the generator waiting for a core. CPU time that others
    used while nobody waited has no effect; without a known effect, the message says so."""
    foreign, waited = waits.foreign_cpu, waits.server
    is_busy = foreign is not None and foreign > MAX_FOREIGN_CPU
    if is_busy and waited is None:
        waited = _run_queue_wait(waits.processes)
    if is_busy and waited is None:
        message = f"{_used(foreign)}; whether the server waited for them is unknown"
        return CONTAMINATED.fired(message, foreign, MAX_FOREIGN_CPU)

    shares = {"server": waited, "generator": waits.generator}
    name, share = max(
        ((name, share) for name, share in shares.items() if share is not None),
        key=lambda entry: entry[1],
        default=("", 0.0),
    )
    if share <= MAX_CPU_WAIT or not (is_busy or (name == "server" and not waits.shares_cores)):
        return None
    message = f"the {name} waited {100 * share:.0f} % of the time for a core"
    message += f", while {_used(foreign)}" if is_busy else " that other processes used"
    return CONTAMINATED.fired(message, round(share, 4), MAX_CPU_WAIT)


def _used(foreign: float | None) -> str:
    return f"other processes used {100 * (foreign or 0.0):.0f} % of the machine's CPU time"


def _run_queue_wait(processes: Sequence[ProcessUsage]) -> float | None:
    """The time for which the server's threads were runnable without a core, as a share of the
    observed time; None if it was not observed. Includes waits for each other and throttling."""
    times = [one.t_ns for one in processes]
    if not times or max(times) == min(times):
        return None
    waits: dict[int, list[int]] = {}
    for one in processes:
        waits.setdefault(one.pid, []).append(one.run_queue_wait_ns)
    waited_ns = sum(max(of_one) - min(of_one) for of_one in waits.values())
    return waited_ns / (max(times) - min(times))


def generator_wait(load: LoadReport | None) -> float | None:
    """The share of the measurement in which the generator's threads waited for a core."""
    if load is None or load.client is None or load.client.run_queue_wait_ns is None:
        return None
    return load.client.run_queue_wait_ns / load.measured_ns if load.measured_ns else None


MISSING_SAMPLES = Finding(
    name="missing-samples",
    examines="the times of the resource samples during the measurement",
    premise=f"No resources were sampled for more than {MAX_SAMPLE_GAP_NS / NS_PER_S:g} s, because "
    "wsgiload itself was stopped (SIGSTOP, Ctrl-Z) or got no CPU time. The load is not affected, "
    "because the generator is another process.",
    sighting="wsgiload itself was stopped in",
    consequence="CPU and memory figures do not cover the whole measurement",
    fix=_QUIET,
    blame="host",
)


def missing_samples(
    load: LoadReport | None, samples: Sequence[Sample], interval_ns: int
) -> Fired | None:
    """The resources were not sampled for a part of the measurement. The thread that samples has
    nothing else to do, so it was stopped together with wsgiload, or starved."""
    if load is None or not samples:
        return None
    start_ns, end_ns = measured_window(load)[0]
    times = [start_ns, *(one.t_ns for one in samples if start_ns < one.t_ns < end_ns), end_ns]
    longest_ns = max(later - earlier for earlier, later in pairwise(times))
    if longest_ns <= max(MAX_SAMPLE_GAP_NS, 10 * interval_ns):
        return None
    seconds = longest_ns / NS_PER_S
    message = (
        f"no resources were sampled for {seconds:.1f} s, because wsgiload itself was stopped or "
        "got no CPU time"
    )
    return MISSING_SAMPLES.fired(message, round(seconds, 1), MAX_SAMPLE_GAP_NS / NS_PER_S)


STOP_SIGNAL = Finding(
    name="stop-signal",
    examines="how the server ended after the load",
    premise="The server did not exit in time on its stop signal, so other signals and then SIGKILL "
    "were tried. The figures are not affected, but every trial waited for the server.",
    is_quoted=True,
    fix="end a start script with `exec`, or set `stop_signal` in [servers.NAME]",
)


def ignored_stop_signal(
    ended: ServerExit | None, settings: ServerSettings | None, server: str
) -> Fired | None:
    """The server did not end on its stop signal."""
    if ended is None or ended.stopped_by is None or settings is None:
        return None
    sent, works, fix = settings.stop_signal or "SIGTERM", ended.stopped_by, None
    message = f"it did not exit on {sent}, so every trial waited for it"
    if works == "SIGKILL":
        message += " and then killed it"
    else:
        message += f"; {works} ends it"
        fix = f'set stop_signal = "{works}" in its table [servers.{server}]'
        if "uwsgi" in " ".join(settings.command):
            fix += ", or start uWSGI with --die-on-term"
    return STOP_SIGNAL.fired(message, works, sent, fix=fix)


FAILURE = Finding(
    name="failure",
    examines="every step of a cell, from building the environment to stopping the server",
    premise="A step failed, so the cell has no result.",
    fix="look at the message and at the server's log in the run directory",
)


def failed_step(failure: CellFailure, *, has_load: bool) -> Fired:
    """A step of a cell failed. Its message contains the fix."""
    without_load: Blame = "server" if has_load else "client"
    blames: dict[str, Blame] = {"load": without_load, "limits": "host", "port": "host"}
    blame = blames.get(failure.step, FAILURE.blame)
    fired = FAILURE.fired(failure.message, 1, 0, level="invalid", blame=blame)
    return replace(fired, fix=None)
