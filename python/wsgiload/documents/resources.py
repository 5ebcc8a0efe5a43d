"""Resource use of a server during a measurement."""

from __future__ import annotations

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, Share


class ResourceUse(Document, frozen=True, kw_only=True):
    """Resource use of a server during the measurement, sampled every 100 ms by default."""

    cpu_cores_mean: NonNegativeFloat | None
    """Mean CPU use. Unit: cores. Source: CPU time of the cgroup or the processes. Null: not
    readable."""
    cpu_cores_peak: NonNegativeFloat | None
    """Highest CPU use between two samples. Unit: cores. Source: CPU time of the cgroup or the
    processes. Null: not readable."""
    cpu_ns_per_request: NonNegativeFloat | None
    """CPU time per correct response. Unit: ns. Source: CPU time of the cgroup or the processes.
    Null: no correct response, or samples for only part of the measurement."""
    memory_peak_bytes: NonNegativeInt | None
    """Peak memory that the server cannot give back: anonymous, shared (including tmpfs) and kernel
    memory, without page cache; a memory limit must exceed it. It is the maximum of all samples,
    from the server's start (with `load`: from the start of the load) to a last sample at the end of
    the load; peaks shorter than the sampling interval can be missed. cgroup v1 includes kernel
    memory only if the kernel counts it. Without a cgroup, there is no kernel memory, and shared
    pages count once per process. Unit: bytes. Source: `memory.stat` of the cgroup (v1: also
    `memory.kmem.usage_in_bytes`), or the processes. Null: not readable."""
    memory_mean_bytes: NonNegativeFloat | None
    """Mean of the same memory as in `memory_peak_bytes`, over the samples of the measurement. Unit:
    bytes. Source: as for `memory_peak_bytes`. Null: not readable."""
    page_cache_peak_bytes: NonNegativeInt | None
    """Peak page cache: files that the kernel keeps in memory, and drops when the memory is needed.
    Unit: bytes. Source: `memory.stat` of the cgroup. Null: not readable, or no cgroup."""
    throttled_period_ratio: Share | None
    """Share of CPU periods that were throttled. Unit: ratio. Source: `cpu.stat`: nr_throttled /
    nr_periods. Null: no CPU limit."""
    oom_kills: NonNegativeInt | None
    """Number of OOM-killed processes since the cgroup was created. Unit: processes. Source: memory
    events of the cgroup. Null: no cgroup."""
    psi_cpu_some_ratio: Share | None
    """Share of the measurement in which at least one task waited for a CPU. Unit: ratio. Source:
    `cpu.pressure` of the cgroup. Null: no PSI (pressure stall information)."""
    listen_queue_peak: NonNegativeInt | None
    """Highest number of connections in the accept queue. Unit: connections. Source: socket
    diagnostics. Null: not readable."""
    listen_drops: NonNegativeInt | None
    """Connections dropped because the accept queue was full: the smaller of the listening socket's
    drop count and the kernel's ListenDrops. Either count alone may be too high. With
    TCP_DEFER_ACCEPT (used by uWSGI), the socket also counts dropped ACKs of connections that
    succeed. ListenDrops covers all sockets. Unit: connections. Source: socket diagnostics, kernel
    counters. Null: not readable."""
    processes_peak: NonNegativeInt | None
    """Highest number of processes and threads; without a cgroup, of processes only. Unit: processes
    and threads. Source: cgroup or processes. Null: not readable."""
    pss_before_bytes: NonNegativeInt | None = None
    """Memory (PSS) of the server's processes before the load. Shared pages are counted once. Unit:
    bytes. Source: `smaps_rollup`. Null: not readable."""
    pss_after_bytes: NonNegativeInt | None = None
    """Memory (PSS) of the server's processes after the load. Shared pages are counted once. Unit:
    bytes. Source: `smaps_rollup`. Null: not readable, or the processes had ended."""
