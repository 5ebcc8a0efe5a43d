"""What is fuzzed: each takes an input and says what is wrong with how that went, or raises."""

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
    """A kind of input: what mutations begin with, what takes it, and how it is mutated."""

    corpus: Sequence[bytes]
    feed: Feed
    mutate: Callable[[Sequence[bytes], random.Random], bytes] = mutated


def peak_bytes() -> int:
    """The most memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def complaint_of_message(read: Callable[[], object]) -> str | None:
    """Whatever is refused is refused in one short line."""
    try:
        read()
    except (ValueError, OSError, UsageError) as error:
        text = str(error)
        if not text or "\n" in text or len(text) > MAX_MESSAGE_CHARACTERS:
            return f"a message of {len(text)} characters: {text[:200]!r}"
    return None


def plan(data: bytes) -> str | None:
    """Reads a plan of a load."""
    return complaint_of_message(lambda: check_plan(data.decode(errors="replace")))


def file_read_by(read: Callable[[Path], str]) -> Feed:
    """Reads the input from a file."""

    def feed(data: bytes) -> str | None:
        with tempfile.NamedTemporaryFile(prefix="fuzz-") as file:
            file.write(data)
            file.flush()
            return complaint_of_message(lambda: read(Path(file.name)))

    return feed


def imported_by(convert: Callable[[bytes], ImportedTargets]) -> Feed:
    """Converts the input to targets, which a load must be able to read."""

    def feed(data: bytes) -> str | None:
        made: list[ImportedTargets] = []
        complaint = complaint_of_message(lambda: made.append(convert(data)))
        if complaint is not None or not made:
            return complaint
        if any("\n" in note or len(note) > MAX_MESSAGE_CHARACTERS for note in made[0].notes):
            return f"notes that are no lines: {made[0].notes!r}"
        with tempfile.NamedTemporaryFile(prefix="fuzz-") as file:
            file.write(made[0].text.encode())
            file.flush()
            read_targets(Path(file.name))
        return None

    return feed


def curl(data: bytes) -> ImportedTargets:
    """Reads commands that cannot read any file."""

    def refused(name: str) -> bytes:
        raise UsageError(f"{name!r} is not read")

    return targets_of_curl(data.decode(errors="surrogateescape"), refused)


def openapi(data: bytes) -> ImportedTargets:
    """Reads a description with all its operations."""
    return targets_of_openapi(data, ("POST", "PUT", "PATCH", "DELETE"))


def run_with(name: str) -> Feed:
    """Reports a run of which this file is the input."""

    def feed(data: bytes) -> str | None:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            run = Path(folder) / "run"
            shutil.copytree(HERE / "run", run)
            (run / name).write_bytes(data)
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = cli.run(["report", str(run)])
        said = out.getvalue() + err.getvalue()
        if code not in (EXIT_OK, EXIT_USAGE) or "Traceback" in said or "\x1b" in said:
            return f"exit code {code}: {said[-500:]}"
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


def _files_of_a_run() -> list[Input]:
    paths = sorted(path for path in (HERE / "run").rglob("*") if path.is_file())
    names = [str(path.relative_to(HERE / "run")) for path in paths]
    return [
        Input([path.read_bytes()], run_with(name)) for path, name in zip(paths, names, strict=True)
    ]


# By the name of what is fuzzed.
INPUTS: dict[str, Callable[[], list[Input]]] = {
    "plan": lambda: _stored("plan", plan),
    "targets": lambda: _stored("targets", file_read_by(read_targets)),
    "sessions": lambda: _stored("sessions", file_read_by(read_sessions)),
    "har": lambda: _stored("har", imported_by(targets_of_har)),
    "curl": lambda: _stored("curl", imported_by(curl)),
    "openapi": lambda: _stored("openapi", imported_by(openapi)),
    "traces": lambda: _stored("traces", file_read_by(read_recording)),
    "runs": _files_of_a_run,
    "http2": _http2_servers,
}
