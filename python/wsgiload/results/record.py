"""What was measured of one cell, and what all cells of a sweep share. Data only: nothing here
starts or writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsgiload.attribution import Attribution
from wsgiload.doctor.settle import Settled
from wsgiload.environments.provision import Environment
from wsgiload.errors import LimitsError, ServerError, UsageError, WsgiloadError
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits.model import Enforcement, Limits
from wsgiload.sampling.external_counters import OutsideCounts
from wsgiload.sampling.listen_queue import turned_away
from wsgiload.sampling.processes import ClientUsage, ProcessUsage
from wsgiload.sampling.resources import ResourceSummary, measured_window, summarise
from wsgiload.sampling.sampler import Sample
from wsgiload.serving.concurrency import Concurrency
from wsgiload.serving.launch import ServerExit
from wsgiload.units import NS_PER_S

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """What every cell of a sweep shares."""

    experiment: Experiment
    cpu_plan: CpuPlan
    limits: Limits


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a cell has no result that stands."""

    step: str
    message: str
    log_tail: str

    @classmethod
    def of(cls, error: WsgiloadError) -> Failure:
        """From the error that ended the cell."""
        if isinstance(error, LimitsError):
            return cls("limits", str(error), "")
        if isinstance(
            error, UsageError
        ):  # of a whole sweep, only one server cannot be used: on this interpreter
            return cls("provision", str(error), "")
        step = error.step if isinstance(error, ServerError) else "load"
        tail = error.log_tail if isinstance(error, ServerError) else ""
        return cls(step, str(error), tail)


@dataclass(slots=True)
class CellRecord:
    """Everything measured of one cell; filled step by step, so that a failure keeps what came
    before it."""

    cell: Cell
    environment: Environment | None = None
    load: Json | None = None
    samples: Sequence[Sample] = ()
    processes: Sequence[ProcessUsage] = ()
    client: Sequence[ClientUsage] = ()
    enforcement: Enforcement | None = None
    memory_peak_bytes: int | None = None
    pss_before_bytes: int | None = None
    pss_after_bytes: int | None = None
    oom_kills: int | None = None
    keepalive_honoured: bool | None = None
    outside: OutsideCounts | None = None
    backlog: int | None = None  # as the kernel says, of one listening socket
    attribution: Attribution | None = None
    capacity: Concurrency | None = None
    ready_s: float | None = None
    settled: Settled | None = None
    server_exit: ServerExit | None = None
    failure: Failure | None = None
    # The load was carried out and the server survived it; only its stop may be missing.
    measured: bool = False
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    def unhealthy_s(self) -> float | None:
        """For how long in the measurement requests were due and none was answered rightly, interval
        by interval."""
        if self.load is None:
            return None
        dead = [
            slice_
            for slice_ in self.load["intervals"]
            if slice_["scheduled"] > 0 and slice_["ok"] == 0
        ]
        return float(sum(slice_["length_ns"] for slice_ in dead) / NS_PER_S)

    @property
    def kernel_listen_drops(self) -> int | None:
        """The kernel's ListenDrops meanwhile, of every socket of the host."""
        return None if self.outside is None else self.outside.tcp.listen_drops

    def resources(self) -> ResourceSummary | None:
        """What the server used in the measure window; without a report, over the samples there
        are."""
        if not self.samples:
            if self.oom_kills is None and self.memory_peak_bytes is None:
                return None
            return ResourceSummary(
                oom_kills=self.oom_kills, memory_peak_bytes=self.memory_peak_bytes
            )
        window = (self.samples[0].t_ns, self.samples[-1].t_ns)
        ok_count: int | None = None
        if self.load is not None:
            window, ok_count = measured_window(self.load)
        summary = summarise(
            self.samples, window, ok_count, memory_peak_bytes=self.memory_peak_bytes
        )
        kills = [kills for kills in (summary.oom_kills, self.oom_kills) if kills is not None]
        return replace(
            summary,
            oom_kills=max(kills, default=None),
            listen_drops=turned_away(summary.listen_drops, self.kernel_listen_drops),
            pss_before_bytes=self.pss_before_bytes,
            pss_after_bytes=self.pss_after_bytes,
        )
