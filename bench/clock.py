"""How late a loop on a core is that only reads the clock: no generator that runs there can be less
late.

Run as a program, on the core and at the priority in question: ``python -m bench.clock SECONDS``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from bench.measure import run_child
from bench.placement import Placement

# Short enough to leave a process that has just used nearly all of its real-time share within it.
_SECONDS = 0.4
# Two readings that are farther apart than this had something between them; the loop itself takes
# some 0.1 µs.
_LEAST_PAUSE_NS = 1_000
_SHARES = (0.5, 0.99, 0.999)


def clock_late_us(placement: Placement) -> dict[str, float] | None:
    """Quantiles of the lateness on that core, in µs; None if the loop could not run."""
    words = [sys.executable, "-m", "bench.clock", str(_SECONDS)]
    used = run_child(words, placement, timeout_s=_SECONDS + 10)
    return json.loads(used.stdout) if used.code == 0 else None


def pauses_ns(seconds: float) -> tuple[list[int], int]:
    """The stretches in which the loop did not get to read the clock, and how long it ran, in
    nanoseconds."""
    read = time.monotonic_ns
    begin = last = read()
    end = begin + int(seconds * 1e9)
    pauses = []
    while last < end:
        now = read()
        if now - last > _LEAST_PAUSE_NS:
            pauses.append(now - last)
        last = now
    return pauses, last - begin


def late_ns(pauses: Sequence[int], elapsed_ns: int, share: float) -> float:
    """The lateness that this share of all instants does not exceed.

    An instant at random is later than ``x`` if it lies in a pause and more than ``x`` before its
    end: of all time the share ``sum(max(0, pause - x)) / elapsed``. That falls with ``x``, linearly
    between the lengths of two pauses.
    """
    allowed_ns = (1 - share) * elapsed_ns
    total = 0
    ordered = sorted(pauses, reverse=True)
    for count, pause in enumerate(ordered, start=1):
        total += pause
        late = (total - allowed_ns) / count
        if count == len(ordered) or late >= ordered[count]:
            return max(late, 0.0)
    return 0.0


def main() -> None:
    """Print the quantiles in µs as JSON."""
    pauses, elapsed_ns = pauses_ns(float(sys.argv[1]))
    print(
        json.dumps(
            {str(share): round(late_ns(pauses, elapsed_ns, share) / 1e3, 3) for share in _SHARES}
        )
    )


if __name__ == "__main__":
    main()
