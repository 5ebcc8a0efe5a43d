"""Keeps idle cores from halting while generators are compared."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path

# The kernel's own interface: while somebody holds this file open, no core idles in a way from which
# it wakes more slowly than the number of microseconds that was written to it
# (Documentation/power/pm_qos_interface.rst of Linux).
_DEVICE = Path("/dev/cpu_dma_latency")
_NO_LATENCY = struct.pack("i", 0)


@contextlib.contextmanager
def cores_awake(device: Path = _DEVICE) -> Iterator[None]:
    """Until the end of the block, and no longer than this process lives, an idle core polls instead
    of halting.

    Waking a halted core of a virtual machine takes tens of microseconds of the hypervisor's, which
    a generator's timers and a server's reads are late by. OSError where the file cannot be written.
    """
    with device.open("wb", buffering=0) as held:
        held.write(_NO_LATENCY)
        yield
