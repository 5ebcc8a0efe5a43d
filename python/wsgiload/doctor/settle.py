"""Waits between trials until the host is quiet, so one trial does not affect the next.

Only observes and waits. Pure functions decide what counts as quiet; a host that never becomes quiet
is reported, not refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wsgiload.doctor.checks import CpuTimes, read_cpu_times
from wsgiload.limits.files import CPU_PRESSURE, read_text, under
from wsgiload.units import NS_PER_S

MIN_IDLE_SHARE = 0.95
MAX_PRESSURE_PERCENT = 1.0
MAX_TIME_WAIT = 1_000
WATCH_NS = 2 * NS_PER_S
# The effects of a load may appear late: workers that exit, sockets that close, pages that are
# written.
MIN_WAIT_NS = 5 * NS_PER_S
_TIME_WAIT = "06"


# After this many waits in a row in which the host did not become quiet, the next will hardly
# succeed.
MAX_UNSUCCESSFUL = 3


@dataclass(frozen=True, slots=True)
class HostState:
    """The state of the host over a short period; None: unknown."""

    idle_share: float | None
    pressure_percent: float | None
    time_wait: int | None


@dataclass(frozen=True, slots=True)
class Settled:
    """How long a trial waited, and what still disturbed the host when it began."""

    waited_s: float
    disturbances: tuple[str, ...]


def disturbances(state: HostState) -> tuple[str, ...]:
    """What disturbs this host, in words; unknown values count as quiet."""
    sentences = []
    if state.idle_share is not None and state.idle_share <= MIN_IDLE_SHARE:
        sentences.append(f"CPUs were only {100 * state.idle_share:.0f} % idle")
    if state.pressure_percent is not None and state.pressure_percent >= MAX_PRESSURE_PERCENT:
        sentences.append(
            f"tasks waited for a CPU for {state.pressure_percent:.1f} % of the last 2 s"
        )
    if state.time_wait is not None and state.time_wait >= MAX_TIME_WAIT:
        sentences.append(f"{state.time_wait:,} connections to the port were in TIME_WAIT")
    return tuple(sentences)


def settle(
    max_ns: int,
    observe: Callable[[], HostState],
    clock_ns: Callable[[], int] = time.monotonic_ns,
    pause_s: Callable[[float], None] = time.sleep,
) -> Settled:
    """Wait until the host is quiet, at least 5 s and at most ``max_ns``. ``observe`` blocks while
    it measures the host."""
    started_ns = clock_ns()
    min_ns = min(MIN_WAIT_NS, max_ns)
    while True:
        remaining = disturbances(observe())
        waited_ns = clock_ns() - started_ns
        if not remaining and waited_ns < min_ns:
            pause_s(min(min_ns - waited_ns, WATCH_NS) / NS_PER_S)
            continue
        if not remaining or waited_ns >= max_ns:
            return Settled(waited_ns / NS_PER_S, remaining)


@dataclass(slots=True)
class Patience:
    """How long the trials of an experiment wait: only the minimum after several unsuccessful waits
    in a row, until the host becomes quiet again."""

    unsuccessful: int = 0

    def settle(self, max_ns: int, observe: Callable[[], HostState]) -> Settled:
        """Wait before the next trial, at most ``max_ns``."""
        min_ns = min(MIN_WAIT_NS, max_ns)
        settled = settle(min_ns if self.unsuccessful >= MAX_UNSUCCESSFUL else max_ns, observe)
        self.unsuccessful = self.unsuccessful + 1 if settled.disturbances else 0
        return settled


def watch_host(port: int | None, root: Path = Path("/")) -> HostState:
    """The state of the host over the next two seconds."""
    before, waited_ns, started_ns = read_cpu_times(root), _pressure_ns(root), time.monotonic_ns()
    time.sleep(WATCH_NS / NS_PER_S)
    elapsed_ns = time.monotonic_ns() - started_ns
    idle = _idle_share(before, read_cpu_times(root))
    pressure = _pressure_percent(waited_ns, _pressure_ns(root), elapsed_ns)
    return HostState(idle, pressure, None if port is None else _time_wait(port, root))


def _idle_share(before: CpuTimes | None, after: CpuTimes | None) -> float | None:
    if before is None or after is None or after.total <= before.total:
        return None
    return 1 - (after.busy - before.busy + after.stolen - before.stolen) / (
        after.total - before.total
    )


def _pressure_percent(before_ns: int | None, after_ns: int | None, elapsed_ns: int) -> float | None:
    """From the kernel's total, not from its 10 s average, which still includes the previous trial:
    after a saturating trial, the average exceeds 1 % for 40 s on an idle host."""
    if before_ns is None or after_ns is None:
        return None
    return 100 * (after_ns - before_ns) / elapsed_ns


def _pressure_ns(root: Path) -> int | None:
    text = read_text(under(root, "/proc/pressure/cpu"))
    return None if text is None else CPU_PRESSURE(text).get("psi_cpu_some_ns")


def _time_wait(port: int, root: Path) -> int | None:
    """The number of connections from or to a port in TIME_WAIT."""
    tables = [read_text(under(root, f"/proc/net/{name}")) for name in ("tcp", "tcp6")]
    if tables == [None, None]:
        return None
    ending, count = f":{port:04X}", 0
    for line in (line for table in tables for line in (table or "").splitlines()[1:]):
        fields = line.split()
        if len(fields) > 3 and fields[3] == _TIME_WAIT:
            count += fields[1].endswith(ending) or fields[2].endswith(ending)
    return count
