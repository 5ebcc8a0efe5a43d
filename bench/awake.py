"""Keeps idle cores from halting during a benchmark."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from pathlib import Path

# While this file is open, cores use only idle states whose wake-up latency does not exceed the
# written number of microseconds (Linux: Documentation/power/pm_qos_interface.rst).
_DEVICE = Path("/dev/cpu_dma_latency")
_NO_LATENCY = struct.pack("i", 0)


@contextlib.contextmanager
def cores_awake(device: Path = _DEVICE) -> Iterator[None]:
    """Until the end of the block (or of this process), idle cores poll instead of halting.

    In a virtual machine, the hypervisor takes tens of microseconds to wake a halted core, which
    delays timers and reads. Raises OSError if the file cannot be written.
    """
    with device.open("wb", buffering=0) as request:
        request.write(_NO_LATENCY)
        yield
