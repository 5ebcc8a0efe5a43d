"""Fuzzes the file parsers and the HTTP/2 client.

Each input is a mutation of the stored corpus. A reader must accept the input or reject it with one
line, in bounded time and memory. A load must end on time, in bounded memory, and with one outcome
per request. Failing inputs are stored, to be added to the corpus. The same seed generates the same
inputs in the same order.
"""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .targets import INPUTS, Input, peak_bytes

FAILURES = Path("target/fuzz-failures")
# For one input, far longer than any takes.
HANG_TIMEOUT_S = 60.0
MAX_DURATION_S = 10.0
MAX_GROWTH_BYTES = 512 << 20


def fuzz(
    name: str, seconds: float, seed: int, directory: Path = FAILURES
) -> tuple[int, str | None]:
    """Fuzz until the first failure. Returns the number of inputs and the failure; ``directory``
    then contains the failing input."""
    inputs, rng = INPUTS[name](), random.Random(seed)
    before_bytes, end_s, count = peak_bytes(), time.monotonic() + seconds, 0
    directory.mkdir(parents=True, exist_ok=True)

    while time.monotonic() < end_s:
        source = rng.choice(inputs)
        data = source.mutate(source.corpus, rng)
        # Written first, so that it is available if this process crashes.
        last = directory / f"{name}-last"
        last.write_bytes(data)

        count += 1
        failure = failure_of(source, data)
        if failure is None and peak_bytes() - before_bytes > MAX_GROWTH_BYTES:
            failure = f"memory grew to {peak_bytes() >> 20} MiB"
        if failure is not None:
            path = directory / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}"
            last.rename(path)
            return count, f"{failure}; reproduce with: {replay_command(name, path)}"
        last.unlink()

    return count, None


def replay_command(name: str, path: Path) -> str:
    """The command that feeds a stored input again."""
    return shlex.join([sys.executable, "-m", "tests.fuzz", name, "--input", str(path)])


def failure_of(source: Input, data: bytes) -> str | None:
    """Feed the input; returns what went wrong, if anything."""
    begin_s = time.monotonic()
    faulthandler.dump_traceback_later(HANG_TIMEOUT_S, exit=True)
    try:
        failure = source.feed(data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a Rust panic is not an Exception
        return f"{type(error).__name__}: {error}"
    finally:
        faulthandler.cancel_dump_traceback_later()

    duration_s = time.monotonic() - begin_s
    if failure is None and duration_s > MAX_DURATION_S:
        return f"took {duration_s:.1f} s"
    return failure


def replay(names: Sequence[str], data: bytes) -> int:
    """Feed this input to the named targets. Returns the exit code."""
    code = 0
    for name in names:
        failures = {failure_of(source, data) for source in INPUTS[name]()} - {None}
        sys.stdout.write(f"{name}: {'; '.join(map(str, failures)) or 'passed'}\n")
        code = max(code, int(bool(failures)))
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz the named targets, or all, each for the given time."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(INPUTS)}")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each NAME [default: 20]")
    parser.add_argument("--seed", type=int, default=None, help="[default: random]")
    parser.add_argument("--input", type=Path, default=None, help="feed only this file")
    options = parser.parse_args(arguments)
    names = options.names or list(INPUTS)
    if options.input is not None:
        return replay(names, options.input.read_bytes())

    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    if len(names) > 1:
        return fuzz_in_processes(names, options.seconds, seed)

    count, failure = fuzz(names[0], options.seconds, seed)
    sys.stdout.write(f"{names[0]}: {count:,} inputs, seed {seed}\n")
    if failure is not None:
        sys.stdout.write(f"{names[0]} FAILED: {failure}\n")
    return int(failure is not None)


def fuzz_in_processes(names: Sequence[str], seconds: float, seed: int) -> int:
    """Fuzz each target in a separate process, so that a crash ends only one; one process per core
    runs at a time."""

    def run(name: str) -> int:
        options = ["--seconds", str(seconds), "--seed", str(seed)]
        process = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", name, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

        crash = "" if process.returncode in (0, 1) else f"{name}: exit {process.returncode}\n"
        sys.stdout.write(process.stdout + crash)
        sys.stdout.flush()
        return process.returncode

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return int(any(pool.map(run, names)))


if __name__ == "__main__":
    raise SystemExit(main())
