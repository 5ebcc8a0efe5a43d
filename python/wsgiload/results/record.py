"""The measurements of one cell, and the settings that all cells of a sweep share. Data only:
nothing here starts or writes anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from wsgiload.attribution.host_disturbance import HostSeconds
from wsgiload.doctor.settle import Settled
from wsgiload.documents.attribution_result import AttributionResult
from wsgiload.documents.cell_result import (
    CellFailure,
    MeasuredConcurrency,
    ServerSettings,
    ServiceUse,
)
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.resources import ResourceUse
from wsgiload.environments.provision import Environment
from wsgiload.errors import LimitsError, ServerError, UsageError, WsgiloadError
from wsgiload.experiment.plan import Cell, Experiment
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits.model import Enforcement, Limits
from wsgiload.sampling.external_counters import ExternalReading
from wsgiload.sampling.listen_queue import rejected_connections
from wsgiload.sampling.processes import ClientUsage, ProcessUsage
from wsgiload.sampling.resources import NOTHING_SAMPLED, measured_window, summarise
from wsgiload.sampling.sampler import Sample
from wsgiload.serving.exchange import CacheProbe
from wsgiload.serving.launch import ServerExit
from wsgiload.serving.services import RunningService
from wsgiload.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Setting:
    """The settings that all cells of a sweep share."""

    experiment: Experiment
    cpu_plan: CpuPlan
    limits: Limits


def failure_of(error: WsgiloadError) -> CellFailure:
    """The failure of a cell, from the error that ended it."""
    if isinstance(error, ServerError):
        return CellFailure(step=error.step, message=str(error), log_tail=error.log_tail)
    return CellFailure(step=_step_of(error), message=str(error), log_tail="")


def _step_of(error: WsgiloadError) -> str:
    if isinstance(error, LimitsError):
        return "limits"
    # In a sweep, a usage error means that the server does not run on this interpreter.
    return "provision" if isinstance(error, UsageError) else "load"


@dataclass(frozen=True, slots=True)
class ServiceSamples:
    """The samples of a supporting service."""

    service: RunningService
    samples: Sequence[Sample]


@dataclass(slots=True)
class CellRecord:
    """Everything measured for one cell, filled step by step. After a failure, it contains the
    earlier steps."""

    cell: Cell
    environment: Environment | None = None
    load: LoadReport | None = None
    samples: Sequence[Sample] = ()
    processes: Sequence[ProcessUsage] = ()
    client: Sequence[ClientUsage] = ()
    services: Sequence[ServiceSamples] = ()
    enforcement: Enforcement | None = None
    starting_peak_bytes: int | None = None  # of its memory, while the server started
    pss_before_bytes: int | None = None
    pss_after_bytes: int | None = None
    oom_kills: int | None = None
    keepalive_honoured: bool | None = None
    cache: CacheProbe | None = None
    external: ExternalReading | None = None
    backlog: int | None = None  # of one listening socket, as read from the kernel
    attribution: AttributionResult | None = None
    host: HostSeconds | None = None
    concurrency: MeasuredConcurrency | None = None
    ready_s: float | None = None
    settled: Settled | None = None
    server_exit: ServerExit | None = None
    settings: ServerSettings | None = None
    failure: CellFailure | None = None
    # Whether the load finished and the server survived it. The server may not have stopped yet.
    measured: bool = False
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    def unhealthy_s(self) -> float | None:
        """The total length of the intervals in which requests were scheduled but none got a correct
        response."""
        if self.load is None:
            return None
        dead = [one for one in self.load.intervals if one.scheduled > 0 and one.ok == 0]
        return sum(interval.length_ns for interval in dead) / NS_PER_S

    @property
    def kernel_listen_drops(self) -> int | None:
        """The increase of the kernel's ListenDrops counter, for all sockets of the host."""
        return None if self.external is None else self.external.tcp.listen_drops

    def _window(self) -> tuple[tuple[int, int], int | None]:
        """The measurement and its number of correct responses; without a report, the range of the
        samples."""
        if self.load is not None:
            return measured_window(self.load)
        return (self.samples[0].t_ns, self.samples[-1].t_ns), None

    @property
    def service_samples(self) -> dict[str, Sequence[Sample]]:
        """The samples of the supporting services, by name."""
        return {one.service.name: one.samples for one in self.services}

    def services_used(self) -> tuple[ServiceUse, ...]:
        """The resource use of the supporting services in the same window."""
        if not self.samples:
            return ()
        window, ok_count = self._window()
        return tuple(
            ServiceUse(
                name=one.service.name,
                cpus=one.service.cpus,
                shares_server_cores=one.service.shares_server_cores,
                resources=summarise(one.samples, window, ok_count),
            )
            for one in self.services
        )

    def resources(self) -> ResourceUse | None:
        """The server's resource use in the measurement; without a report, over all samples."""
        if not self.samples:
            if self.oom_kills is None and self.starting_peak_bytes is None:
                return None
            return msgspec.structs.replace(
                NOTHING_SAMPLED,
                oom_kills=self.oom_kills,
                memory_peak_bytes=self.starting_peak_bytes,
            )

        window, ok_count = self._window()
        use = summarise(
            self.samples, window, ok_count, starting_peak_bytes=self.starting_peak_bytes
        )

        kills = [kills for kills in (use.oom_kills, self.oom_kills) if kills is not None]
        return msgspec.structs.replace(
            use,
            oom_kills=max(kills, default=None),
            listen_drops=rejected_connections(use.listen_drops, self.kernel_listen_drops),
            pss_before_bytes=self.pss_before_bytes,
            pss_after_bytes=self.pss_after_bytes,
        )
