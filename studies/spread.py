"""Comparisons of a study's stored rows: the ratio of the fastest to the slowest server, and the
effect of each factor with fair settings. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from studies.results import Row, StudyRun


@dataclass(frozen=True, slots=True)
class Spread:
    """The fastest and the slowest server in one setting at one load, as a factor of throughput."""

    setting: str
    load: float
    fastest: str
    slowest: str
    factor: float


@dataclass(frozen=True, slots=True)
class Effect:
    """One value of a factor instead of another: the least and the greatest factor of throughput
    over the servers, and who they are."""

    value: str
    instead_of: str
    least: float
    least_server: str
    most: float
    most_server: str


def spreads(run: StudyRun) -> list[Spread]:
    """In each setting, at the highest load at which two servers or more have a throughput."""
    results = []
    for setting, rows in _by_setting(run.rows).items():
        loads: dict[float, dict[str, float]] = defaultdict(dict)
        for row in rows:
            if row.throughput_per_s.value:
                loads[row.load][row.server] = row.throughput_per_s.value
        shared = [load for load, servers in loads.items() if len(servers) >= 2]
        if not shared:
            continue
        servers = loads[max(shared)]
        fastest, slowest = (
            max(servers, key=servers.__getitem__),
            min(servers, key=servers.__getitem__),
        )
        factor = servers[fastest] / servers[slowest]
        results.append(Spread(setting, max(shared), fastest, slowest, factor))
    return results


def effects(run: StudyRun) -> list[Effect]:
    """Of each factor that a grid varied, all others being equal, at the highest load."""
    highest = max((row.load for row in run.rows), default=0.0)
    known = {
        (row.server, _parts(row.setting)): row.throughput_per_s.value
        for row in run.rows
        if row.load == highest and row.throughput_per_s.value
    }
    ratios: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for ((server, one), first), ((rival, other), second) in combinations(known.items(), 2):
        differing = [pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]]
        if server == rival and len(one) == len(other) and len(differing) == 1 and first and second:
            ratios[differing[0]][server].append(first / second)
    return [_effect(value, other, servers) for (value, other), servers in ratios.items()]


def _effect(value: str, other: str, servers: Mapping[str, Sequence[float]]) -> Effect:
    least = min(servers, key=lambda name: min(servers[name]))
    most = max(servers, key=lambda name: max(servers[name]))
    return Effect(value, other, min(servers[least]), least, max(servers[most]), most)


def _parts(setting: str) -> tuple[str, ...]:
    return tuple(setting.split(", "))


def _by_setting(rows: Sequence[Row]) -> Mapping[str, list[Row]]:
    by_setting: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_setting[row.setting].append(row)
    return by_setting
