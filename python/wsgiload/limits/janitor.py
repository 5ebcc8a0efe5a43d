"""A watchdog process that cleans up after its orchestrator, even after SIGKILL.

It detects a crash by end-of-file on its standard input. It then removes all groups and folders
whose names contain the parent's pid, including unfinished ones. The child runs ``sweep.py`` by path
in isolated mode, so it starts fast and needs no import path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Self

from wsgiload.errors import LimitsError
from wsgiload.limits import sweep
from wsgiload.limits.model import LimitedGroup
from wsgiload.limits.select import bases_of
from wsgiload.scratch import scratch_parents, scratch_prefix

END_TIMEOUT_S = 30.0


class Janitor:
    """Registers the groups in use, and removes those that remain at the end or after a crash.

    If its process was killed, the next call starts a new one.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._register: dict[str, sweep.Entry] = {}

    def __enter__(self) -> Self:
        self._process = _start_process()
        return self

    def __exit__(self, *error: object) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(BrokenPipeError):
            _write(process, sweep.END)
        try:
            process.communicate(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def watch(self, group: LimitedGroup) -> None:
        """Register a group; call again after each spawn.

        A group without directories is identified by its sessions, which exist only after a spawn.
        """
        remains = group.remains()
        entry = sweep.Entry(
            name=group.name,
            directories=tuple(str(path.resolve()) for path in remains.directories),
            sessions=tuple(remains.sessions),
            mark=remains.mark,
        )
        self._register[group.name] = entry
        self._send("add", entry)

    def release(self, group: LimitedGroup) -> None:
        """Unregister a closed group."""
        self._register.pop(group.name, None)
        self._send("drop", sweep.Entry(group.name))

    def _send(self, verb: str, entry: sweep.Entry) -> None:
        if self._process is None:
            raise LimitsError("the janitor is not running", "use it as a context manager")
        try:
            _write(self._process, _line(verb, entry))
        except BrokenPipeError:
            self._replace(self._process)

    def _replace(self, dead: subprocess.Popen[bytes]) -> None:
        """Start a new process with the same register."""
        dead.communicate()
        try:
            self._process = _start_process()
            for entry in self._register.values():
                _write(self._process, _line("add", entry))
        except OSError as error:
            raise LimitsError(
                "the cleanup process ended unexpectedly and cannot be started again, so a crash "
                f"could leave servers running: {error.strerror}",
                "check whether it was OOM-killed and restart",
            ) from error


def _start_process() -> subprocess.Popen[bytes]:
    creator = sweep.Creator(
        pid=os.getpid(),
        bases=tuple(str(base.resolve()) for base in bases_of()),
        temporary_folders=tuple(str(parent.resolve()) for parent in scratch_parents()),
        folder_prefix=scratch_prefix(os.getpid()),
    )
    return subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            str(Path(sweep.__file__).resolve()),
            json.dumps(asdict(creator)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # ignore Ctrl-C
    )


def _line(verb: str, entry: sweep.Entry) -> str:
    return f"{verb} {json.dumps(asdict(entry))}"


def _write(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n".encode())
    process.stdin.flush()
