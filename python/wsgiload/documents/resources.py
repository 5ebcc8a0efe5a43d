"""What a server used during a measurement."""

from __future__ import annotations

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, Share


class ResourceUse(Document, frozen=True, kw_only=True):
    """Over the measurement phase, from samples every 100 ms."""

    cpu_cores_mean: NonNegativeFloat | None
    """Mean CPU use. Unit: cores. Source: CPU usage of the cgroup. Null: no cgroup."""
    cpu_cores_peak: NonNegativeFloat | None
    """Highest CPU use between two samples. Unit: cores. Source: the same. Null: no cgroup."""
    cpu_ns_per_request: NonNegativeFloat | None
    """CPU time per correct response. Unit: ns. Source: the same. Null: no correct response, or
    samples for only part of the measurement."""
    memory_peak_bytes: NonNegativeInt | None
    """Peak memory, including file cache. Unit: bytes. Source: memory usage of the cgroup. Null: no
    cgroup."""
    memory_mean_bytes: NonNegativeFloat | None
    """Mean memory. Unit: bytes. Source: the same. Null: no cgroup."""
    throttled_period_ratio: Share | None
    """Share of CPU periods with throttling. Unit: 0 to 1. Source: `cpu.stat`: nr_throttled /
    nr_periods. Null: no CPU limit."""
    oom_kills: NonNegativeInt | None
    """OOM-killed processes. Unit: processes. Source: memory events of the cgroup. Null: no
    cgroup."""
    psi_cpu_some_ratio: Share | None
    """Share of time in which at least one task waited for a CPU. Unit: 0 to 1. Source: pressure
    file of the cgroup. Null: no PSI."""
    listen_queue_peak: NonNegativeInt | None
    """Maximum number of connections waiting to be accepted. Unit: connections. Source: socket
    diagnostics. Null: not readable."""
    listen_drops: NonNegativeInt | None
    """Connections dropped by a full accept queue: the drops of the listening socket, but at most
    the kernel's ListenDrops. The latter excludes ACKs dropped by a socket with TCP_DEFER_ACCEPT
    (uWSGI), whose connections are established anyway. Unit: connections. Source: sock_diag, kernel
    counters. Null: not readable."""
    processes_peak: NonNegativeInt | None
    """Maximum number of processes and threads. Source: cgroup. Null: no cgroup."""
    pss_before_bytes: NonNegativeInt | None = None
    """Memory of the processes before the load, with shared pages counted once. Unit: bytes. Source:
    `smaps_rollup`. Null: not readable."""
    pss_after_bytes: NonNegativeInt | None = None
    """The same after the load. Unit: bytes. Source: `smaps_rollup`. Null: not readable, or the
    processes were gone."""
