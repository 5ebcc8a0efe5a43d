"""The lateness of a loop that only reads the clock. It is a lower bound of the send lag of any
generator on the same core.

``python -m bench.clock SECONDS`` runs the loop on the current core at the current priority.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from bench.measure import run_child
from bench.placement import Placement

# Short enough not to be RT-throttled directly after a run that used most of the real-time budget.
_SECONDS = 0.4
# A longer time between two readings is a pause; an iteration of the loop takes about 0.1 µs.
_MIN_PAUSE_NS = 1_000
_SHARES = (0.5, 0.99, 0.999)


def clock_late_us(placement: Placement) -> dict[str, float] | None:
    """Quantiles of the lateness with this placement, in µs; None if the loop could not run."""
    words = [sys.executable, "-m", "bench.clock", str(_SECONDS)]
    used = run_child(words, placement, timeout_s=_SECONDS + 10)
    return json.loads(used.stdout) if used.code == 0 else None


def pauses_ns(seconds: float) -> tuple[list[int], int]:
    """The pauses of the loop and its total duration, in ns."""
    read = time.monotonic_ns
    begin = last = read()
    end = begin + int(seconds * 1e9)
    pauses = []
    while last < end:
        now = read()
        if now - last > _MIN_PAUSE_NS:
            pauses.append(now - last)
        last = now
    return pauses, last - begin


def late_ns(pauses: Sequence[int], elapsed_ns: int, share: float) -> float:
    """The quantile ``share`` of the lateness.

    An event at a random time is late by more than ``x`` if it falls into a pause, more than ``x``
    before the end of the pause. Its probability is ``sum(max(0, pause - x)) / elapsed``, which
    decreases with ``x``, linearly between the lengths of two pauses.
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
    """Print the quantiles in µs, as JSON."""
    pauses, elapsed_ns = pauses_ns(float(sys.argv[1]))
    print(
        json.dumps(
            {str(share): round(late_ns(pauses, elapsed_ns, share) / 1e3, 3) for share in _SHARES}
        )
    )


if __name__ == "__main__":
    main()
