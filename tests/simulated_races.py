"""Races of simulated servers, with the procedure that ``wsgiload sweep`` runs; ``make simulate``
prints how often it is right. Decision 34 has its output.

A launch has the logarithm of its server's p99, plus a spread between launches, the sampling error of
a slice, the host's drift and, in some scenarios, a threefold disturbance.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from wsgiload.analysis.races import rules_of
from wsgiload.procedures.race import Outcome, Plan, race
from wsgiload.statistics.effect import DECISIVE_SHARE
from wsgiload.statistics.leading import State, compare, fit_of

MARGIN = 0.1
BUDGET_S = 300.0
# To launch, probe, warm up, measure for 1.1 s at 1,000/s, and stop.
LAUNCH_S = 3.0
# The standard deviation of the logarithm of p99 from 1,100 requests of a queue at half its capacity.
WITHIN_SLICE = 0.06
MAX_BLOCKS = 60
EIGHT = tuple("abcdefgh")


@dataclass(frozen=True)
class World:
    """Servers with the ratio of their p99 to that of the best, and how their launches scatter."""

    ratios: Mapping[str, float]
    spread: float = 0.1
    spreads: Mapping[str, float] = field(default_factory=dict)
    disturbed: float = 0.0
    drift: float = 0.0

    def launch(self, draw: random.Random, server: str, host: float) -> float:
        """The logarithm of p99 of one launch."""
        value = math.log(self.ratios[server]) + host
        value += draw.gauss(0, self.spreads.get(server, self.spread)) + draw.gauss(0, WITHIN_SLICE)
        return value + (math.log(3) if draw.random() < self.disturbed else 0.0)

    @property
    def best(self) -> set[str]:
        """The servers that no other beats."""
        return {name for name, ratio in self.ratios.items() if ratio == 1}


def lead(percent: float, servers: int = 8) -> dict[str, float]:
    """The first server is ahead of all others, which are equal."""
    return {name: 1.0 if name == "a" else 1 + percent / 100 for name in EIGHT[:servers]}


@dataclass(frozen=True)
class Raced:
    """A finished race."""

    state: State
    seconds: float
    figures: tuple[dict[str, float], ...]

    @property
    def winner(self) -> str | None:
        """The only server left."""
        return self.state.leader if len(self.state.contenders) == 1 else None


def run(world: World, seed: int) -> Raced:
    """One race in virtual time."""
    draw, names = random.Random(seed), tuple(world.ratios)
    order = [draw.sample(names, len(names)) for _ in range(MAX_BLOCKS)]
    rules = rules_of(MARGIN, BUDGET_S / LAUNCH_S / len(names))
    procedure = race(Plan(order, 1, BUDGET_S, [LAUNCH_S], rules))
    host, count, blocks = 0.0, 0, dict[int, dict[str, float]]()
    try:
        launch = next(procedure)
        while True:
            host, count = host + draw.gauss(0, world.drift), count + 1
            figure = world.launch(draw, launch.server, host)
            blocks.setdefault(launch.block, {})[launch.server] = figure
            launch = procedure.send(Outcome({0: figure}, LAUNCH_S))
    except StopIteration as end:
        return Raced(end.value, count * LAUNCH_S, tuple(blocks.values()))


@dataclass
class Rates:
    """How often races of one world ended in which way, in percent of the races."""

    named: float
    wrong: float
    tied: float
    tied_wrongly: float
    best_dropped: float
    good: float
    any_behind: float
    covered: float
    median_s: float


def rates_of(world: World, races: int) -> Rates:
    """Many races of one world."""
    done = [run(world, seed) for seed in range(races)]

    def percent(count: int) -> float:
        return 100 * count / races

    def is_tied_wrongly(one: Raced) -> bool:
        tied = [standing.server for standing in one.state.standings if standing.relation == "tied"]
        leader = world.ratios[one.state.leader or ""]
        logs = [abs(math.log(world.ratios[name] / leader)) for name in tied]
        return any(ratio > math.log1p(MARGIN) + 1e-9 for ratio in logs)

    inside = [
        standing.interval[0]
        <= world.ratios[standing.server] / world.ratios[one.state.leader or ""]
        <= standing.interval[1]
        for one in done
        for standing in one.state.standings
        if standing.interval is not None
    ]
    return Rates(
        named=percent(sum(one.winner in world.best for one in done)),
        wrong=percent(sum(one.winner is not None and one.winner not in world.best for one in done)),
        tied=percent(sum(one.state.is_decided and one.winner is None for one in done)),
        tied_wrongly=percent(sum(map(is_tied_wrongly, done))),
        best_dropped=percent(sum(not world.best & set(one.state.contenders) for one in done)),
        good=percent(
            sum(
                world.ratios[one.state.leader or ""] <= 1 + MARGIN
                for one in done
                if not one.state.is_decided and one.state.is_good
            )
        ),
        any_behind=percent(
            sum(any(each.relation == "behind" for each in one.state.standings) for one in done)
        ),
        covered=100 * sum(inside) / max(1, len(inside)),
        median_s=median(one.seconds for one in done),
    )


def false_differences(races: int, levels: int = 3, figures: int = 3) -> float:
    """Percent of A/A races in which any figure at any level is called different."""
    world = World({"a": 1.0, "b": 1.0})
    share = (1 - DECISIVE_SHARE) / (levels * figures)
    wrong = 0
    for seed in range(races):
        done, draw = run(world, seed), random.Random(-1 - seed)
        different = any(one.relation == "behind" for one in done.state.standings)
        rules = rules_of(MARGIN, BUDGET_S / LAUNCH_S / 2, share)
        for _ in range(levels * figures - 1):
            blocks = [
                {name: world.launch(draw, name, 0.0) for name in block} for block in done.figures
            ]
            found = compare("a", "b", blocks, fit_of(("a", "b"), blocks), rules)
            different |= found is not None and abs(found.mean) > found.half
        wrong += different
    return 100 * wrong / races


WORLDS: Mapping[str, World] = {
    "8 servers, ahead by 30 %": World(lead(30)),
    "8 servers, ahead by 20 %": World(lead(20)),
    "8 servers, ahead by 15 %": World(lead(15)),
    "2 servers, equal": World({"a": 1.0, "b": 1.0}),
    "2 servers, equal, spreads 0.02 and 0.35": World(
        {"a": 1.0, "b": 1.0}, spreads={"a": 0.02, "b": 0.35}
    ),
    "8 servers, equal": World(dict.fromkeys(EIGHT, 1.0)),
    "2 servers, 12 % apart": World(lead(12, 2)),
    "2 servers, 15 % apart, spread 0.2": World(lead(15, 2), spread=0.2),
    "noisy best of 5 (0.35), ahead by 30 %": World(lead(30, 5), spreads={"a": 0.35}),
    "noisy best of 5 (0.35), ahead by 20 %": World(lead(20, 5), spreads={"a": 0.35}),
    "1 in 10 disturbed threefold, ahead by 30 %": World(lead(30), disturbed=0.1),
    "1 in 10 disturbed threefold, 2.0 to 8 ms": World(
        dict(zip(EIGHT, (1.0, 1.3, 1.5, 1.5, 1.75, 2.0, 2.5, 4.0), strict=True)), disturbed=0.1
    ),
    "drift of 2 % per launch, ahead by 30 %": World(lead(30), drift=0.02),
    "2.0, 2.0, 2.2, 2.6, 3, 3, 4, 8 ms, spread 0.03": World(
        dict(zip(EIGHT, (1.0, 1.0, 1.1, 1.3, 1.5, 1.5, 2.0, 4.0), strict=True)), spread=0.03
    ),
    "spread 0.02, ahead by 15 %": World(lead(15), spread=0.02),
    "spread 0.35, ahead by 100 %": World(lead(100), spread=0.35),
}


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Print one line per world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--races", type=int, default=300)
    races = parser.parse_args().races
    names = (
        "named",
        "wrong",
        "tied",
        "tied_wrongly",
        "best_dropped",
        "good",
        "any_behind",
        "covered",
        "median_s",
    )
    _say(
        f"{races} races each, budget {BUDGET_S:.0f} s, {LAUNCH_S:g} s per launch; in % of the races"
    )
    _say(f"{'':46}" + "".join(f"{name:>14}" for name in names))
    for label, world in WORLDS.items():
        rates = rates_of(world, races)
        _say(f"{label:46}" + "".join(f"{getattr(rates, name):14.1f}" for name in names))
    _say(f"A/A, 3 levels × 3 figures, any false difference: {false_differences(races):.1f} %")


if __name__ == "__main__":
    main()
