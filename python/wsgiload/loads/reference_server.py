"""Finds and runs ``refsrv``, the reference server whose responses are all known in advance."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wsgiload.errors import ServerError, UsageError
from wsgiload.host.memory_guard import unguarded
from wsgiload.interrupts import uninterrupted

# In a clone, next to the package.
BUILT = Path(__file__).parents[3] / "target" / "release" / "refsrv"
START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5.0


def find_reference_server(named: Path | None = None) -> Path:
    """The named file, or the one of this clone, or one on the PATH."""
    if named is not None:
        if not os.access(named, os.X_OK) or named.is_dir():
            raise UsageError(
                f"{named} is not executable", "name the reference server with --refsrv"
            )
        return named
    if BUILT.is_file():
        return BUILT
    installed = shutil.which("refsrv")
    if installed is None:
        raise UsageError(
            "refsrv (the reference server) not found; wheels do not include it",
            "build it with `cargo build --release -p refsrv` in a clone of wsgiload, then name "
            "it with --refsrv "
            "or put it on the PATH",
        )
    return Path(installed)


@contextmanager
def serving_reference(program: Path, hold_ns: int, cpus: tuple[int, ...]) -> Iterator[str]:
    """Run the server within the block and yield its URL. It delays every response by ``hold_ns``
    and runs on these cores."""
    with uninterrupted():
        process = _start(program, hold_ns, cpus)
    try:
        yield f"http://{_address(process)}/"
    finally:
        with uninterrupted():
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _start(program: Path, hold_ns: int, cpus: tuple[int, ...]) -> subprocess.Popen[str]:
    words = [
        str(program),
        "--listen",
        "127.0.0.1:0",
        "--no-stamps",
        "--hold",
        f"{hold_ns}ns" if hold_ns else "0",
    ]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)  # inherited by the child process
    try:
        with unguarded():
            return subprocess.Popen(
                words,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
    except OSError as error:
        raise UsageError(
            f"{program} cannot be run: {error.strerror}", "name another with --refsrv"
        ) from error
    finally:
        os.sched_setaffinity(0, before)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
    line = process.stdout.readline() if readable else ""
    announcement, _, address = line.strip().rpartition(" ")
    if announcement != "listening on":
        raise ServerError("the reference server did not start", "run it directly to see the error")
    return address
