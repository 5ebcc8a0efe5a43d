"""Samples an attached server during a load, for ``resources`` of the load report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from wsgiload.documents.load_report import AttachedResources, LoadReport
from wsgiload.limits.attach import Attached
from wsgiload.limits.files import CounterSource
from wsgiload.limits.model import Counters
from wsgiload.loads.reachable import DEFAULT_PORTS
from wsgiload.sampling.listen_queue import listener_pids
from wsgiload.sampling.resources import measured_window, summarise
from wsgiload.sampling.sampler import HOST_SPACING_NS, Sample, Sampler


@dataclass(slots=True)
class Observation:
    """A server that wsgiload did not start, and its samples."""

    attached: Attached
    samples: tuple[Sample, ...] = field(default=())
    # The sampler while it is running.
    sampler: Sampler | None = None

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Its CPU limit in cores and its memory limit in bytes; None: no limit."""
        limits = self.attached.effective_limits
        return limits["effective_cpus"], limits["effective_memory_bytes"]

    def resources(self, load: LoadReport) -> AttachedResources:
        """Its resource use during the measurement of this load."""
        window, ok_count = measured_window(load)
        limits = self.attached.effective_limits
        return AttachedResources(
            source=self.attached.source,
            name=self.attached.name,
            effective_cpus=limits["effective_cpus"],
            effective_memory_bytes=limits["effective_memory_bytes"],
            effective_pids=limits["effective_pids"],
            used=summarise(self.samples, window, ok_count),
        )


@contextmanager
def observing(attached: Attached, url: str) -> Iterator[Observation]:
    """Sample the server while the block lasts."""
    observation = Observation(attached)
    try:
        with Sampler(attached, port=_server_port(attached, url)) as sampler:
            observation.sampler = sampler
            try:
                yield observation
            finally:
                observation.samples = sampler.stop()
    finally:
        attached.close()


class _NoServer:
    """Has no counters, so only the host is sampled."""

    def read_counters(self) -> Counters:
        return Counters()

    def sources(self) -> tuple[CounterSource, ...]:
        return ()


def host_sampler() -> Sampler:
    """Samples the host's CPU counters without a server; use it as a context manager."""
    return Sampler(_NoServer(), interval_ns=HOST_SPACING_NS)


def _server_port(attached: Attached, url: str) -> int | None:
    """The URL's port if the attached server itself listens on it. A container's accept queue is not
    visible, and a proxy's does not belong to the server."""
    parts = urlsplit(url)
    port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    owners = listener_pids(port) if port is not None else None
    return port if owners and owners <= set(attached.pids()) else None
