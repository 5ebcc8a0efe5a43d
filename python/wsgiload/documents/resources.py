"""What a server used during a measurement."""

from __future__ import annotations

from wsgiload.documents.base import Document, NonNegativeFloat, NonNegativeInt, Share


class ResourceUse(Document, frozen=True, kw_only=True):
    """Over the measurement phase, from samples every 100 ms."""

    cpu_cores_mean: NonNegativeFloat | None
    """CPU time per time. Unit: cores. Source: CPU usage of the control group. Null: no control
    group."""
    cpu_cores_peak: NonNegativeFloat | None
    """Largest value between two samples. Unit: cores. Source: the same. Null: no control group."""
    cpu_ns_per_request: NonNegativeFloat | None
    """CPU time per correct response. Unit: ns. Source: the same. Null: no correct response, or
    samples of only a part of the measurement."""
    memory_peak_bytes: NonNegativeInt | None
    """Most memory, file cache included. Unit: bytes. Source: memory usage of the control group.
    Null: no control group."""
    memory_mean_bytes: NonNegativeFloat | None
    """Mean memory. Unit: bytes. Source: the same. Null: no control group."""
    throttled_period_ratio: Share | None
    """Share of CPU periods in which the limit stopped the server. Unit: 0 to 1. Source:
    `cpu.stat`: nr_throttled / nr_periods. Null: no CPU limit."""
    oom_kills: NonNegativeInt | None
    """Processes killed for lack of memory. Unit: processes. Source: memory events of the control
    group. Null: no control group."""
    psi_cpu_some_ratio: Share | None
    """Share of time in which something in the group waited for a CPU. Unit: 0 to 1. Source:
    pressure file of the control group. Null: the kernel has none."""
    listen_queue_peak: NonNegativeInt | None
    """Most connections waiting to be accepted. Unit: connections. Source: socket diagnostics.
    Null: not readable."""
    listen_drops: NonNegativeInt | None
    """Connections dropped by a full queue: what the listening socket dropped, and no more than
    the kernel's ListenDrops, which leaves out the acknowledgements that a socket with
    TCP_DEFER_ACCEPT (uWSGI) drops of connections that are made all the same. Unit:
    connections. Source: sock_diag, kernel counters. Null: not readable."""
    processes_peak: NonNegativeInt | None
    """Most processes and threads. Source: control group. Null: no control group."""
    pss_before_bytes: NonNegativeInt | None = None
    """Memory of the processes before the load, shared pages counted once. Unit: bytes. Source:
    `smaps_rollup`. Null: not readable."""
    pss_after_bytes: NonNegativeInt | None = None
    """The same after the load. Unit: bytes. Source: `smaps_rollup`. Null: not readable, or
    nothing was left."""
