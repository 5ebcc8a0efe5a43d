"""Feeds made-up inputs to whatever reads files of users and of others, or HTTP/2 of a server.

Each input is a mutation of the stored corpus. A file must be read, or refused in one line, in a
time and in memory that do not grow with what it says; a load must end on time and in little memory,
with one outcome per request. An input for which this fails is kept, to be added to the corpus. The
same seed makes the same inputs in the same order.
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

KEPT = Path("target/fuzz-failures")
# For one input; far more than any takes.
HANGS_AFTER_S = 60.0
MAX_DURATION_S = 10.0
MAX_GROWTH_BYTES = 512 << 20


def fuzz(name: str, seconds: float, seed: int, kept: Path = KEPT) -> tuple[int, str | None]:
    """How many inputs were fed, and what went wrong with the last."""
    inputs, chance = INPUTS[name](), random.Random(seed)
    before_bytes, end, count = peak_bytes(), time.monotonic() + seconds, 0
    kept.mkdir(parents=True, exist_ok=True)
    while time.monotonic() < end:
        one = chance.choice(inputs)
        data = one.mutate(one.corpus, chance)
        last = kept / f"{name}-last"
        last.write_bytes(data)  # for whoever looks after a crash
        count += 1
        complaint = complaint_of(one, data)
        if complaint is None and peak_bytes() - before_bytes > MAX_GROWTH_BYTES:
            complaint = f"memory grew to {peak_bytes() >> 20} MiB"
        if complaint is not None:
            path = kept / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}"
            last.rename(path)
            return count, f"{complaint}; try it again with: {replay(name, path)}"
        last.unlink()
    return count, None


def replay(name: str, path: Path) -> str:
    """The command that feeds a kept input again."""
    return shlex.join([sys.executable, "-m", "tests.fuzz", name, "--input", str(path)])


def complaint_of(one: Input, data: bytes) -> str | None:
    """What is wrong with how the input is treated."""
    began = time.monotonic()
    faulthandler.dump_traceback_later(HANGS_AFTER_S, exit=True)
    try:
        complaint = one.feed(data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic is no Exception
        return f"{type(error).__name__}: {error}"
    finally:
        faulthandler.cancel_dump_traceback_later()
    took_s = time.monotonic() - began
    return f"it took {took_s:.1f} s" if complaint is None and took_s > MAX_DURATION_S else complaint


def feed_again(names: Sequence[str], data: bytes) -> int:
    """Feed this input to what is named."""
    code = 0
    for name in names:
        found = {complaint_of(one, data) for one in INPUTS[name]()} - {None}
        sys.stdout.write(f"{name}: {'; '.join(map(str, found)) or 'nothing wrong'}\n")
        code = max(code, int(bool(found)))
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz what is named, or everything, for so long."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(INPUTS)}")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each, default 20")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--input", type=Path, default=None, help="feed only this file")
    given = parser.parse_args(arguments)
    if given.input is not None:
        return feed_again(given.names or list(INPUTS), given.input.read_bytes())
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(2**32)

    names = given.names or list(INPUTS)
    if len(names) > 1:
        return fuzz_in_processes(names, given.seconds, seed)
    count, complaint = fuzz(names[0], given.seconds, seed)
    sys.stdout.write(f"{names[0]}: {count:,} inputs, seed {seed}\n")
    if complaint is not None:
        sys.stdout.write(f"{names[0]} FAILED: {complaint}\n")
    return int(complaint is not None)


def fuzz_in_processes(names: Sequence[str], seconds: float, seed: int) -> int:
    """Fuzz each in a process of its own, one per core at a time: a crash ends only one of them."""

    def run(name: str) -> int:
        options = ["--seconds", str(seconds), "--seed", str(seed)]
        process = subprocess.run(
            [sys.executable, "-m", "tests.fuzz", name, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        ending = "" if process.returncode in (0, 1) else f"{name}: exit {process.returncode}\n"
        sys.stdout.write(process.stdout + ending)
        sys.stdout.flush()
        return process.returncode

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return int(any(pool.map(run, names)))


if __name__ == "__main__":
    raise SystemExit(main())
