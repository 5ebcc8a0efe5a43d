"""The load generators: how to find, install and call each, and how to parse its output.

To add a generator, add a ``Dialect`` here and a parser to ``outputs``, or describe the generator in
a file (``custom``).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import outputs
from bench.load import Load, Output

ROOT = Path(__file__).resolve().parent.parent
_BUILT = ROOT / "target" / "distribution"
_PLACES = (_BUILT, _BUILT / "examples", ROOT / "bench" / ".tools" / "bin", Path("/usr/sbin"))
# ab allocates its samples in advance, so it needs a maximum number of requests.
_MAX_RATE_PER_S = 300_000

Call = Callable[[Load], list[str]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to call one generator. ``closed`` and ``open_loop`` return the arguments; None: the
    generator does not support this kind of load."""

    name: str
    install: str
    parse: Callable[[str], Output]
    closed: Call | None = None
    open_loop: Call | None = None
    # Arguments of a second call that converts the output of the first into a report; its CPU time
    # is not counted.
    report: tuple[str, ...] = ()
    stdin: Callable[[Load], str] = lambda _: ""
    version: tuple[str, ...] = ("--version",)
    # It reuses a connection only if the response has `Connection: keep-alive`, which refsrv never
    # sends.
    needs_keep_alive_header: bool = False
    # It has options for the spin window and the inter-arrival distribution.
    paces: bool = False
    # It reports no latencies for shorter loads.
    min_seconds: int = 1


@dataclass(frozen=True, slots=True)
class Generator:
    """A program and its dialect, under the name in the tables."""

    name: str
    dialect: Dialect
    path: Path


@dataclass(frozen=True, slots=True)
class Missing:
    """A generator that is not installed, with a message that says how to install it."""

    name: str
    reason: str


def _loadgen(load: Load) -> list[str]:
    words = [load.url, "-c", str(load.connections), "-d", f"{load.seconds}s", "--quiet"]
    if load.rate_per_s is not None:
        words += ["-R", str(load.rate_per_s), "--arrivals", load.arrivals, "--seed", str(load.seed)]
    return words + (["--spin", load.spin] if load.spin else [])


def _wrk(load: Load) -> list[str]:
    return ["-t1", f"-c{load.connections}", f"-d{load.seconds}s", "--latency", load.url]


def _wrk2(load: Load) -> list[str]:
    return [f"-R{load.rate_per_s}", *_wrk(load)]


def _h2load(load: Load) -> list[str]:
    return ["--h1", "-t1", f"-c{load.connections}", f"-D{load.seconds}s", load.url]


def _h2load_paced(load: Load) -> list[str]:
    return [f"--rps={_per_connection(load)}", *_h2load(load)]


def _ab(load: Load) -> list[str]:
    # -t sets -n, so -n comes after it.
    limit = str(_MAX_RATE_PER_S * load.seconds)
    return ["-q", "-k", "-c", str(load.connections), "-t", str(load.seconds), "-n", limit, load.url]


def _oha(load: Load) -> list[str]:
    return [
        "-z",
        f"{load.seconds}s",
        "-c",
        str(load.connections),
        "--no-tui",
        "--output-format",
        "json",
        load.url,
    ]


def _oha_paced(load: Load) -> list[str]:
    return ["-q", str(load.rate_per_s), "--latency-correction", *_oha(load)]


def _hey(load: Load) -> list[str]:
    return ["-z", f"{load.seconds}s", "-c", str(load.connections), load.url]


def _hey_paced(load: Load) -> list[str]:
    return ["-q", _per_connection(load), *_hey(load)]


def _fortio(load: Load) -> list[str]:
    # A resolution of 10 µs instead of the default of 1 ms; -uniform staggers the connections.
    rate = "0" if load.rate_per_s is None else str(load.rate_per_s)
    words = [
        "load",
        "-quiet",
        "-json",
        "-",
        "-p",
        "50,99",
        "-r",
        "0.00001",
        "-uniform",
        "-qps",
        rate,
    ]
    return [*words, "-c", str(load.connections), "-t", f"{load.seconds}s", load.url]


def _vegeta(load: Load) -> list[str]:
    rate = "0" if load.rate_per_s is None else f"{load.rate_per_s}/1s"
    workers = str(load.connections)
    words = ["attack", "-rate", rate, "-duration", f"{load.seconds}s", "-workers", workers]
    return [*words, "-max-workers", workers, "-connections", workers]


def _zrk(load: Load) -> list[str]:
    pace = ["--closed"] if load.rate_per_s is None else [f"-R{load.rate_per_s}"]
    return [
        "-t1",
        f"-c{load.connections}",
        f"-d{load.seconds}s",
        *pace,
        "--format",
        "json",
        load.url,
    ]


def _floor(load: Load) -> list[str]:
    return [load.url, str(load.connections), str(load.seconds)]


def _per_connection(load: Load) -> str:
    assert load.rate_per_s is not None
    return f"{load.rate_per_s / load.connections:g}"


def _apt(package: str) -> str:
    return f"apt-get install {package}"


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("loadgen", "make build", outputs.parse_loadgen, _loadgen, _loadgen, paces=True),
        Dialect("wrk", _apt("wrk"), outputs.parse_wrk, _wrk, version=("-v",)),
        Dialect("h2load", _apt("nghttp2-client"), outputs.parse_h2load, _h2load, _h2load_paced),
        Dialect(
            "ab",
            _apt("apache2-utils"),
            outputs.parse_ab,
            _ab,
            version=("-V",),
            needs_keep_alive_header=True,
        ),
        Dialect("oha", "bench/install", outputs.parse_oha, _oha, _oha_paced),
        Dialect("hey", "bench/install", outputs.parse_hey, _hey, _hey_paced, version=()),
        Dialect(
            "fortio", "bench/install", outputs.parse_fortio, _fortio, _fortio, version=("version",)
        ),
        Dialect(
            "vegeta",
            "bench/install",
            outputs.parse_vegeta,
            _vegeta,
            _vegeta,
            report=("report", "-type", "json"),
            stdin=lambda load: f"GET {load.url}\n",
            # After `go install`, its -version prints only the version of Go.
            version=(),
        ),
        # The syscall baseline; not a load generator.
        Dialect("floor", "make bench", outputs.parse_floor, _floor),
        # bench/install does not install wrk2 and zrk: pass their paths with --generator. wrk2
        # calibrates for ten seconds.
        Dialect(
            "wrk2",
            "--generator wrk2=PATH",
            outputs.parse_wrk,
            None,
            _wrk2,
            version=("-v",),
            min_seconds=13,
        ),
        Dialect("zrk", "--generator zrk=PATH", outputs.parse_zrk, _zrk, _zrk),
    )
}
_OPTIONAL = ("wrk2", "zrk")


def find_program(name: str) -> Path | None:
    """The path of a program; programs of this repository precede the search path."""
    for place in _PLACES:
        if os.access(place / name, os.X_OK):
            return place / name
    path = shutil.which(name)
    return Path(path) if path else None


def find_generators(given: list[Generator]) -> tuple[list[Generator], list[Missing]]:
    """The installed generators and those given by path, which take precedence."""
    named = {generator.name: generator for generator in given}
    missing = []
    for dialect in DIALECTS.values():
        if dialect.name in named or dialect.name in _OPTIONAL:
            continue
        path = find_program(dialect.name)
        if path is None:
            missing.append(
                Missing(dialect.name, f"{dialect.name} is not installed; run: {dialect.install}")
            )
        else:
            named[dialect.name] = Generator(dialect.name, dialect, path)
    order = list(DIALECTS)
    return sorted(
        named.values(), key=lambda one: order.index(one.name) if one.name in order else len(order)
    ), missing


def read_given(word: str) -> Generator:
    """``NAME=PATH`` or ``NAME:DIALECT=PATH``: a program given by path. Raises ValueError with the
    reason if it is not valid."""
    name, equals, path = word.partition("=")
    name, _, dialect_name = name.partition(":")
    dialect = DIALECTS.get(dialect_name or name)
    if not equals or not name:
        raise ValueError(f"'{word}' is not NAME=PATH")
    if dialect is None:
        known = ", ".join(DIALECTS)
        raise ValueError(
            f"unknown dialect '{dialect_name or name}'; choose from {known} "
            "(NAME:DIALECT=PATH), or use --generator-file"
        )
    if not os.access(path, os.X_OK):
        raise ValueError(f"'{path}' is not an executable file")
    return Generator(name, dialect, Path(path).resolve())
