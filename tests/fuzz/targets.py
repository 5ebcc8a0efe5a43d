"""The fuzz targets. Each takes an input, and returns or raises what went wrong, if anything."""

from __future__ import annotations

import contextlib
import io
import random
import resource
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsgiload import cli
from wsgiload._loadgen import check_plan, read_recording, read_sessions, read_targets
from wsgiload.errors import EXIT_OK, EXIT_USAGE, UsageError
from wsgiload.loads.curl import targets_of_curl
from wsgiload.loads.har import targets_of_har
from wsgiload.loads.openapi import targets_of_openapi
from wsgiload.loads.targets_text import ImportedTargets

from . import http2_load
from .http2_frames import mutated_frames
from .mutation import mutated

HERE = Path(__file__).parent
MAX_MESSAGE_CHARACTERS = 20_000
Feed = Callable[[bytes], str | None]


@dataclass(frozen=True, slots=True)
class Input:
    """A kind of input: its corpus, its target, and its mutation."""

    corpus: Sequence[bytes]
    feed: Feed
    mutate: Callable[[Sequence[bytes], random.Random], bytes] = mutated


def peak_bytes() -> int:
    """The peak memory use of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def message_failure(read: Callable[[], object]) -> str | None:
    """Call ``read``. An expected error must have a message of one short line."""
    try:
        read()
    except (ValueError, OSError, UsageError) as error:
        text = str(error)
        if not text or "\n" in text or len(text) > MAX_MESSAGE_CHARACTERS:
            return f"a message of {len(text)} characters: {text[:200]!r}"
    return None


def plan(data: bytes) -> str | None:
    """Reads the plan of a load."""
    return message_failure(lambda: check_plan(data.decode(errors="replace")))


def file_read_by(read: Callable[[Path], str]) -> Feed:
    """Reads the input from a file."""

    def feed(data: bytes) -> str | None:
        with tempfile.NamedTemporaryFile(prefix="fuzz-") as file:
            file.write(data)
            file.flush()
            return message_failure(lambda: read(Path(file.name)))

    return feed


def imported_by(convert: Callable[[bytes], ImportedTargets]) -> Feed:
    """Converts the input to targets, which a load must be able to read."""

    def feed(data: bytes) -> str | None:
        converted: list[ImportedTargets] = []
        failure = message_failure(lambda: converted.append(convert(data)))
        if failure is not None or not converted:
            return failure

        (targets,) = converted
        if any("\n" in note or len(note) > MAX_MESSAGE_CHARACTERS for note in targets.notes):
            return f"notes that are not single short lines: {targets.notes!r}"

        with tempfile.NamedTemporaryFile(prefix="fuzz-") as file:
            file.write(targets.text.encode())
            file.flush()
            read_targets(Path(file.name))
        return None

    return feed


def curl(data: bytes) -> ImportedTargets:
    """Converts curl commands. The files that they name are not read."""

    def reject(name: str) -> bytes:
        raise UsageError(f"{name!r} is not read")

    return targets_of_curl(data.decode(errors="surrogateescape"), reject)


def openapi(data: bytes) -> ImportedTargets:
    """Converts an OpenAPI description with all its operations."""
    return targets_of_openapi(data, ("POST", "PUT", "PATCH", "DELETE"))


def run_with(name: str) -> Feed:
    """Reports a run directory with the input in place of the file ``name``."""

    def feed(data: bytes) -> str | None:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
            run = Path(directory) / "run"
            shutil.copytree(HERE / "run", run)
            (run / name).write_bytes(data)
            stdout, stderr = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
                code = cli.run(["report", str(run)])

        output = stdout.getvalue() + stderr.getvalue()
        if code not in (EXIT_OK, EXIT_USAGE) or "Traceback" in output or "\x1b" in output:
            return f"exit code {code}: {output[-500:]}"
        return None

    return feed


def _corpus(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((HERE / "corpus" / name).iterdir())]


def _stored(name: str, feed: Feed) -> list[Input]:
    return [Input(_corpus(name), feed)]


def _http2_servers() -> list[Input]:
    if not http2_load.LOADGEN.exists():
        raise SystemExit(f"{http2_load.LOADGEN} is missing; build it with: make build")
    return [Input(_corpus("http2"), http2_load.feed, mutated_frames)]


def _run_files() -> list[Input]:
    paths = sorted(path for path in (HERE / "run").rglob("*") if path.is_file())
    names = [str(path.relative_to(HERE / "run")) for path in paths]
    return [
        Input([path.read_bytes()], run_with(name)) for path, name in zip(paths, names, strict=True)
    ]


# The inputs of each target, by its name on the command line.
INPUTS: dict[str, Callable[[], list[Input]]] = {
    "plan": lambda: _stored("plan", plan),
    "targets": lambda: _stored("targets", file_read_by(read_targets)),
    "sessions": lambda: _stored("sessions", file_read_by(read_sessions)),
    "har": lambda: _stored("har", imported_by(targets_of_har)),
    "curl": lambda: _stored("curl", imported_by(curl)),
    "openapi": lambda: _stored("openapi", imported_by(openapi)),
    "traces": lambda: _stored("traces", file_read_by(read_recording)),
    "runs": _run_files,
    "http2": _http2_servers,
}
