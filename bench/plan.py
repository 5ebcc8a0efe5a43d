"""The runs, their order and their duration. Pure: starts no program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from bench.generators import Generator
from bench.load import Load
from bench.servers import NGINX, REFSRV_FAST, ServerSpec, refsrv_holding

T = TypeVar("T")

SECTIONS = ("closed", "syscalls", "memory", "open", "accuracy")
_CONNECTIONS = 64
_MANY = 10_000
_FEW = 100
# How long the server of `accuracy` spins before each response, and the maximum share of a core
# that it may spin.
_SERVER_SPIN_US = 60
_SPINNING_SHARE = 0.8
# Duration of a run in addition to its load: start, stop, reading the log.
_OVERHEAD_S = {"closed": 0.15, "syscalls": 0.5, "memory": 3.0, "open": 0.5, "accuracy": 0.5}


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is measured. ``rounds`` applies to the closed loop, ``open_rounds`` to the open
    loop."""

    sections: tuple[str, ...] = SECTIONS
    rounds: int = 9
    seconds: int = 1
    open_rounds: int = 5
    open_seconds: int = 3
    memory_seconds: int = 10
    connections: tuple[int, ...] = (1, 16, 64, 256)
    rates_per_s: tuple[int, ...] = (1_000, 5_000, 20_000)
    accuracy_rates_per_s: tuple[int, ...] = (1_000, 5_000, 20_000)
    # Spin windows of the generators that support them; memory is measured with the last.
    spins: tuple[str, ...] = ("60us", "0s")

    def quick(self) -> Scope:
        """A few minutes: enough for a smoke test, not for publication."""
        return replace(
            self,
            rounds=2,
            open_rounds=1,
            open_seconds=1,
            memory_seconds=3,
            connections=(1, 64),
            rates_per_s=(1_000, 5_000),
            accuracy_rates_per_s=(2_000,),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One run of one generator against one server. The URL of its load is set when the server
    listens."""

    section: str
    round: int
    generator: Generator
    server: ServerSpec
    load: Load

    @property
    def seconds(self) -> float:
        """Approximate duration."""
        return self.load.seconds + _OVERHEAD_S[self.section]


@dataclass(frozen=True, slots=True)
class Contender:
    """A generator with its spin window."""

    generator: Generator
    spin: str | None = None


def steps(scope: Scope, generators: Sequence[Generator]) -> list[Step]:
    """All steps, in order. Within a round, each generator runs once; each round starts with a
    different generator."""
    makers = {
        "closed": _closed,
        "syscalls": _syscalls,
        "memory": _memory,
        "open": _open,
        "accuracy": _accuracy,
    }
    return [
        step
        for name in SECTIONS
        if name in scope.sections
        for step in makers[name](scope, generators)
    ]


def duration_s(planned: Sequence[Step]) -> float:
    """Approximate total duration."""
    return sum(step.seconds for step in planned)


def rotated(ones: Sequence[T], by: int) -> list[T]:
    """The elements, rotated by ``by`` places, so that the first generator changes from round to
    round."""
    start = by % len(ones) if ones else 0
    return [*ones[start:], *ones[:start]]


def _closed(scope: Scope, generators: Sequence[Generator]) -> Iterator[Step]:
    for server in (REFSRV_FAST, NGINX):
        able = _closed_loop(generators, server)
        for connections in scope.connections:
            load = Load("", connections, scope.seconds)
            for number in range(scope.rounds):
                for generator in rotated(able, number):
                    yield Step("closed", number, generator, server, load)


def _syscalls(scope: Scope, generators: Sequence[Generator]) -> Iterator[Step]:
    for server in (REFSRV_FAST, NGINX):
        for generator in _closed_loop(generators, server):
            yield Step("syscalls", 0, generator, server, Load("", _CONNECTIONS, 2))


def _memory(scope: Scope, generators: Sequence[Generator]) -> Iterator[Step]:
    nginx = replace(NGINX, fresh=True)
    for connections in (_FEW, _MANY):
        seconds = scope.memory_seconds if connections == _MANY else 2
        for generator in _closed_loop(generators, nginx):
            yield Step("memory", 0, generator, nginx, Load("", connections, seconds))
    # 5,000 requests per second, each delayed by 1.95 s, keep nearly 10,000 connections busy.
    holding = refsrv_holding("1950ms", "0s", logs=False)
    for contender in _contenders(generators, scope.spins):
        if contender.spin in (None, scope.spins[-1]):
            load = Load("", _MANY, max(scope.memory_seconds, 5), 5_000, spin=contender.spin)
            yield _paced("memory", 0, contender, holding, load)


def _open(scope: Scope, generators: Sequence[Generator]) -> Iterator[Step]:
    contenders = _contenders(generators, scope.spins)
    for rate in scope.rates_per_s:
        # The server spins until the next response is due, so few sends have to wake it up (none of
        # evenly spaced sends). The delay of 2.5 inter-arrival times puts evenly spaced responses
        # halfway between two arrivals.
        hold = f"{2_500_000_000 // rate}ns"
        server = refsrv_holding(hold, hold, logs=True, stamps=True)
        for arrivals in ("constant", "poisson"):
            able = [
                one for one in contenders if arrivals == "constant" or one.generator.dialect.paces
            ]
            load = Load("", _CONNECTIONS, scope.open_seconds, rate, arrivals)
            for number in range(scope.open_rounds):
                for contender in rotated(able, number):
                    yield _paced("open", number, contender, server, load)


def _accuracy(scope: Scope, generators: Sequence[Generator]) -> Iterator[Step]:
    contenders = _contenders(generators, scope.spins)
    for rate in scope.accuracy_rates_per_s:
        # Above that share, the server sleeps; its log contains the delays by sleeping, too.
        spins = rate * _SERVER_SPIN_US / 1e6 < _SPINNING_SHARE
        server = refsrv_holding("2ms", f"{_SERVER_SPIN_US}us" if spins else "0s", logs=True)
        load = Load("", _CONNECTIONS, scope.open_seconds, rate)
        for number in range(scope.open_rounds):
            for contender in rotated(contenders, number):
                yield _paced("accuracy", number, contender, server, load)


def _paced(section: str, number: int, contender: Contender, server: ServerSpec, load: Load) -> Step:
    seconds = max(load.seconds, contender.generator.dialect.min_seconds)
    paced = replace(load, seconds=seconds, spin=contender.spin, seed=number)
    return Step(section, number, contender.generator, server, paced)


def _closed_loop(generators: Sequence[Generator], server: ServerSpec) -> list[Generator]:
    return [
        one
        for one in generators
        if one.dialect.closed
        and not (one.dialect.needs_keep_alive_header and server.name != NGINX.name)
    ]


def _contenders(generators: Sequence[Generator], spins: Sequence[str]) -> list[Contender]:
    contenders = []
    for generator in generators:
        if generator.dialect.open_loop:
            windows = spins if generator.dialect.paces else (None,)
            contenders += [Contender(generator, spin) for spin in windows]
    return contenders
