"""Compare `loadgen` with other load generators: CPU time per request, memory and accuracy.

Examples:
    python -m bench                                         all sections
    python -m bench closed --quick                          smoke test
    python -m bench open --generator zrk=PATH               another generator
    python -m bench closed --generator before:loadgen=PATH  two builds in pairs
    python -m bench sampler 5 10                            cost of the sampler
    python -m bench render bench/results/NAME.json          tables of a result
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench import sampler
from bench.awake import cores_awake
from bench.custom import read_description
from bench.generators import Generator, Missing, find_generators, find_program, read_given
from bench.host import commit_time, host_facts, versions
from bench.placement import Placement, choose_cores, real_time_permitted
from bench.plan import SECTIONS, Scope, Step, duration_s, steps
from bench.run import Bench, carry_out, print_progress
from bench.store import RESULTS, new_path, readable_name, write
from bench.tables import render

_REAL_TIME = (
    "real-time (SCHED_RR) for client and server, ordinary for memory, system calls "
    "and the server of the open loop"
)


def main() -> int:
    """Exit code 0: done, 2: usage or nothing to run."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.sections[:1] == ["render"]:
        return _render_again(parser, arguments.sections[1:])
    if arguments.sections[:1] == ["sampler"]:
        return sampler.main(arguments.sections[1:])
    unknown = set(arguments.sections) - {*SECTIONS, "all"}
    if unknown:
        parser.error(
            f"unknown section {', '.join(sorted(unknown))}; choose from "
            f"{', '.join(SECTIONS)} and all"
        )
    try:
        generators, missing = _generators(arguments)
    except ValueError as error:
        parser.error(str(error))
    scope = _scope(arguments)
    planned = steps(scope, generators)
    skipped = _skipped(missing, scope)
    for sentence in skipped:
        print(f"skipped: {sentence}", file=sys.stderr)
    if not any(one.dialect.name == "loadgen" for one in generators):
        parser.error("loadgen is not built; run: make build")
    print(f"{len(planned)} runs, about {duration_s(planned) / 60:.0f} minutes", file=sys.stderr)
    if arguments.dry_run:
        return 0
    results = _results(arguments, generators, skipped)
    with _optionally_awake(arguments.awake):
        _carry_out(planned, results, _file(arguments, results), arguments.again)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "sections",
        nargs="*",
        help=f"sections to run: {', '.join(SECTIONS)} or all; or one of the commands above",
    )
    parser.add_argument(
        "--quick", action="store_true", help="smoke test of a few minutes; not for publication"
    )
    parser.add_argument("--rounds", type=int, help="number of rounds of the closed loop")
    parser.add_argument("--seconds", type=int, help="duration of a closed-loop run")
    parser.add_argument("--open-rounds", type=int, help="number of rounds of the open loop")
    parser.add_argument("--open-seconds", type=int, help="duration of an open-loop run")
    parser.add_argument(
        "--memory-seconds", type=int, help="duration of a run with 10,000 connections"
    )
    parser.add_argument(
        "--connections", type=_numbers, metavar="N,N", help="numbers of connections (closed loop)"
    )
    parser.add_argument(
        "--rates", type=_numbers, metavar="N,N", help="rates of the open loop, per second"
    )
    parser.add_argument(
        "--accuracy-rates",
        type=_numbers,
        metavar="N,N",
        help="rates of the section `accuracy`, per second",
    )
    parser.add_argument(
        "--spins",
        type=lambda text: tuple(text.split(",")),
        metavar="TIME,TIME",
        help="spin windows of loadgen (--spin), such as 2ms,60us,0s",
    )
    parser.add_argument(
        "--generator",
        action="append",
        default=[],
        metavar="NAME[:DIALECT]=PATH",
        help="another generator or build, with the command-line options of generator DIALECT",
    )
    parser.add_argument(
        "--generator-file",
        action="append",
        default=[],
        metavar="FILE",
        help="description of any other generator; see bench/custom.py",
    )
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        metavar="NAME,NAME",
        help="generators to measure",
    )
    parser.add_argument(
        "--priority",
        choices=("rr", "ordinary", "auto"),
        default="auto",
        help="scheduling policy of the generators: rr (SCHED_RR, real-time), ordinary "
        "(SCHED_OTHER), or auto (rr if permitted)",
    )
    parser.add_argument(
        "--awake", action="store_true", help="make idle cores poll instead of halting; needs root"
    )
    parser.add_argument(
        "--again",
        type=int,
        default=3,
        metavar="N",
        help="maximum number of reruns of a disturbed run [default: 3]",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIRECTORY",
        default=RESULTS,
        help="directory of the results [default: bench/results]",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the expected duration and exit"
    )
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    numbers = tuple(int(word.replace("_", "")) for word in text.split(","))
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError("every number must be at least 1")
    return numbers


def _generators(arguments: argparse.Namespace) -> tuple[list[Generator], list[Missing]]:
    given = [read_given(word) for word in arguments.generator]
    given += [read_description(Path(name)) for name in arguments.generator_file]
    generators, missing = find_generators(given)
    if arguments.only is None:
        return generators, missing
    known = {one.name for one in generators} | {one.name for one in missing}
    unknown = set(arguments.only) - known
    if unknown:
        raise ValueError(f"--only: unknown or not installed: {', '.join(sorted(unknown))}")
    return (
        [one for one in generators if one.name in arguments.only],
        [one for one in missing if one.name in arguments.only],
    )


def _scope(arguments: argparse.Namespace) -> Scope:
    scope = Scope().quick() if arguments.quick else Scope()
    chosen = {
        "rounds": arguments.rounds,
        "seconds": arguments.seconds,
        "open_rounds": arguments.open_rounds,
        "open_seconds": arguments.open_seconds,
        "memory_seconds": arguments.memory_seconds,
        "connections": arguments.connections,
        "rates_per_s": arguments.rates,
        "accuracy_rates_per_s": arguments.accuracy_rates,
        "spins": arguments.spins,
    }
    if arguments.sections and "all" not in arguments.sections:
        chosen["sections"] = tuple(arguments.sections)
    return replace(scope, **{name: value for name, value in chosen.items() if value is not None})


def _skipped(missing: Sequence[Missing], scope: Scope) -> list[str]:
    sentences = [one.reason for one in missing]
    tools = {"nginx": ("apt-get install nginx-light", {"closed", "syscalls", "memory"})}
    tools["strace"] = ("apt-get install strace", {"syscalls"})
    for name, (fix, sections) in tools.items():
        if sections & set(scope.sections) and find_program(name) is None:
            sentences.append(f"{name} is not installed, so runs with it fail; run: {fix}")
    return sentences


def _results(
    arguments: argparse.Namespace, generators: list[Generator], skipped: list[str]
) -> dict[str, Any]:
    if arguments.priority == "rr" and not real_time_permitted():
        raise SystemExit(
            "--priority rr is not permitted here: run as root, grant CAP_SYS_NICE, or use "
            "--priority auto"
        )
    real_time = arguments.priority != "ordinary" and real_time_permitted()
    client, server = choose_cores()
    return {
        "schema_version": 1,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "quick": arguments.quick,
        "priority": _REAL_TIME if real_time else "ordinary",
        "real_time": real_time,
        "awake": arguments.awake,
        "client_core": client,
        "server_core": server,
        "host": host_facts(),
        "commit_time": commit_time(),
        "versions": versions(generators),
        "left_out": skipped,
        "runs": [],
    }


@contextlib.contextmanager
def _optionally_awake(awake: bool) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        if awake:
            try:
                stack.enter_context(cores_awake())
            except OSError as error:
                raise SystemExit(
                    f"--awake: {error.filename}: {error.strerror}; run as root, or omit it"
                ) from None
        yield


def _file(arguments: argparse.Namespace, results: dict[str, Any]) -> Path:
    sections = SECTIONS if "all" in arguments.sections else arguments.sections or SECTIONS
    return new_path(arguments.output, readable_name(results, sections))


def _carry_out(planned: Sequence[Step], results: dict[str, Any], path: Path, again: int) -> None:
    real_time = results["real_time"]
    bench = Bench(
        Placement(results["client_core"], real_time),
        Placement(results["server_core"], real_time),
        again,
    )
    if results["client_core"] == results["server_core"]:
        print(
            "warning: client and server share one core, so they slow each other down",
            file=sys.stderr,
        )
    started = time.monotonic()
    # Sent by `timeout` or a supervisor.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for record in carry_out(planned, bench, print_progress):
            results["runs"].append(record)
    except KeyboardInterrupt:
        results["left_out"].append("all runs after the interrupt")
    finally:
        # Completed runs are kept, even after an error.
        results["took_s"] = round(time.monotonic() - started)
        page = render(results)
        write(path, results, page)
    print(page)
    print(
        f"\n{results['took_s'] / 60:.1f} minutes; written: {path} and "
        f"{path.with_suffix('.md').name}",
        file=sys.stderr,
    )


def _render_again(parser: argparse.ArgumentParser, names: list[str]) -> int:
    if len(names) != 1:
        parser.error("render takes one file")
    print(render(json.loads(Path(names[0]).read_text())), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
