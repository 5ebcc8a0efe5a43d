"""Capacity searches of simulated queues, with the procedure that ``wsgiload capacity`` runs; ``make
simulate`` prints how often it is right. Decision 37 has its output.

The response times are those of a FIFO queue with Poisson arrivals, from an empty queue and after a
second of warm-up, as in a real trial.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from statistics import median

from wsgiload.procedures.capacity import Outcome, Plan, SearchResult, capacity
from wsgiload.statistics.crossing import Counted

WIDTH = 0.05
BUDGET_S = 240.0
WARMUP_S = 1.0
# To launch, probe, warm up and stop a server; and a closed loop with its launch.
AROUND_S, CLOSED_LOOP_S = 4.0, 9.0
TRIAL_S = (BUDGET_S - CLOSED_LOOP_S) / 14 - AROUND_S
ALLOWED = 0.01

Service = Callable[[random.Random], float]


@dataclass(frozen=True)
class Queue:
    """A server with some threads, pauses (per second, and their length), a spread between launches,
    and the capacity that a simulation of 20,000 s (or theory) gives for p99 below the limit."""

    service_s: Service
    limit_s: float
    capacity_per_s: float
    saturation_per_s: float
    threads: int = 1
    pauses: tuple[float, float] = (0.0, 0.0)
    spread: float = 0.0
    disturbed: float = 0.0

    def response_times_s(
        self, rate_per_s: float, seconds: float, draw: random.Random
    ) -> list[float]:
        """The response times of one trial on a newly launched server."""
        launch = math.exp(draw.gauss(0, self.spread))
        disturbed = 3.0 if draw.random() < self.disturbed else 1.0
        often, pause_s = self.pauses
        both, end_s = rate_per_s + often, WARMUP_S + seconds
        free, times = [0.0] * self.threads, list[float]()
        now_s, turn, uniform = 0.0, 0, draw.random
        while (now_s := now_s - math.log(1.0 - uniform()) / both) < end_s:
            is_pause = often > 0 and uniform() * both < often
            service_s = pause_s if is_pause else launch * self.service_s(draw)
            done_s = max(now_s, free[turn]) + service_s
            free[turn] = done_s
            turn = (turn + 1) % self.threads
            if now_s >= WARMUP_S and not is_pause:
                times.append(disturbed * (done_s - now_s))
        return times


def exponential(mean_s: float) -> Service:
    """The service times of M/M/1."""
    return lambda draw: -mean_s * math.log(1.0 - draw.random())


def lognormal(mean_s: float, sigma: float) -> Service:
    """Service times with a long tail."""
    at = math.log(mean_s) - sigma * sigma / 2
    return lambda draw: math.exp(draw.gauss(at, sigma))


def constant(seconds: float) -> Service:
    """The service times of M/D/c."""
    return lambda _: seconds


QUEUES: Mapping[str, Queue] = {
    "M/M/1 2 ms, p99<20ms": Queue(exponential(0.002), 0.020, 269.74, 500),
    "M/M/1 2 ms, p99<50ms": Queue(exponential(0.002), 0.050, 407.90, 500),
    "M/D/4 10 ms, p99<50ms": Queue(constant(0.010), 0.050, 348.9, 400, threads=4),
    "M/G/1 lognormal(1) 2 ms, p99<50ms": Queue(lognormal(0.002, 1.0), 0.050, 351.0, 500),
    "M/G/1 lognormal(1) 1 ms, p99<25ms": Queue(lognormal(0.001, 1.0), 0.025, 702.0, 1000),
    "M/M/1 2 ms, 30 ms pauses, p99<60ms": Queue(
        exponential(0.002), 0.060, 402.3, 492.5, pauses=(0.5, 0.030)
    ),
    "M/M/1 5 ms, p99<150ms": Queue(exponential(0.005), 0.150, 169.30, 200),
    "M/D/4, launches differ by 2 %": Queue(
        constant(0.010), 0.050, 348.9, 400, threads=4, spread=0.02
    ),
    "M/M/1, 1 in 10 disturbed, p99<50ms": Queue(
        exponential(0.002), 0.050, 407.90, 500, disturbed=0.1
    ),
}


def run(queue: Queue, seed: int, budget_s: float = BUDGET_S) -> tuple[SearchResult, float]:
    """One search in virtual time, and its duration."""
    draw = random.Random(seed)
    saturation = queue.saturation_per_s * math.exp(draw.gauss(0, 0.03))
    left_s = budget_s - CLOSED_LOOP_S
    plan = Plan(saturation, saturation / 32, saturation * 16, WIDTH, left_s, TRIAL_S + AROUND_S)
    search, spent_s = capacity(plan), CLOSED_LOOP_S
    following = next(search)
    while True:
        times = sorted(queue.response_times_s(following.rate_per_s, TRIAL_S, draw))
        beyond = len(times) - bisect_right(times, queue.limit_s)
        excess = times[int(len(times) * (1 - ALLOWED))] / queue.limit_s
        counted = Counted(following.rate_per_s, len(times), beyond, ALLOWED, excess)
        spent_s += TRIAL_S + AROUND_S
        try:
            following = search.send(Outcome(counted, TRIAL_S + AROUND_S))
        except StopIteration as end:
            return end.value, spent_s


@dataclass(frozen=True)
class Rates:
    """How often searches of one queue ended in which way, in percent of the searches (or of those
    with an answer), and how far they were from the truth."""

    answered: float
    covered: float
    too_low: float
    too_high: float
    within_5: float
    bias: float
    half_width: float
    median_s: float


def rates_of(queue: Queue, searches: int) -> Rates:
    """Many searches of one queue."""
    done = [run(queue, seed) for seed in range(searches)]
    found = [one.crossing for one, _ in done if one.crossing is not None]
    truth = queue.capacity_per_s

    def percent(are: list[bool]) -> float:
        return 100 * sum(are) / max(1, len(are))

    return Rates(
        answered=100 * len(found) / searches,
        covered=percent([one.low_per_s <= truth <= one.high_per_s for one in found]),
        too_low=percent([one.high_per_s < truth for one in found]),
        too_high=percent([one.low_per_s > truth for one in found]),
        within_5=percent([abs(one.rate_per_s / truth - 1) <= 0.05 for one in found]),
        bias=100 * (median(one.rate_per_s for one in found) / truth - 1),
        half_width=100 * median(one.width for one in found),
        median_s=median(seconds for _, seconds in done),
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Print one line per queue."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--searches", type=int, default=200)
    searches = parser.parse_args().searches
    _say(f"{searches} searches each, budget {BUDGET_S:.0f} s, trials of {TRIAL_S:.1f} s; in %")
    names = [one.name for one in fields(Rates)]
    _say(f"{'':36}" + "".join(f"{name:>12}" for name in names))
    for label, queue in QUEUES.items():
        rates = rates_of(queue, searches)
        _say(f"{label:36}" + "".join(f"{getattr(rates, name):12.1f}" for name in names))


if __name__ == "__main__":
    main()
