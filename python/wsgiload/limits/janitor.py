"""A watchdog process, so that no server outlives its orchestrator, not even one ended by SIGKILL.

It learns of a crash by the end of its standard input, which the kernel closes with the parent.
The child runs ``sweep.py`` by its path, isolated, so it starts fast and needs no import path.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from wsgiload.errors import LimitsError
from wsgiload.limits import sweep
from wsgiload.limits.model import LimitedGroup

END_TIMEOUT_S = 30.0


class Janitor:
    """Knows the groups that are in use; on the way out, orderly or not, what is left is removed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(sweep.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # an interrupt from the keyboard is not meant for it
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def watch(self, group: LimitedGroup) -> None:
        """Register a group; call it before the first spawn and again after it.

        Groups without directories are known by their sessions, which exist only after the spawn.
        """
        remains = group.remains()
        entry = sweep.Entry(
            name=group.name,
            directories=tuple(str(path.resolve()) for path in remains.directories),
            sessions=tuple(remains.sessions),
            mark=remains.mark,
        )
        self._send("add", entry)

    def release(self, group: LimitedGroup) -> None:
        """Forget a group that was closed."""
        self._send("drop", sweep.Entry(group.name))

    def _send(self, verb: str, entry: sweep.Entry) -> None:
        stream = self._process.stdin if self._process else None
        if stream is None:
            raise LimitsError("the janitor is not running", "use it as a context manager")
        try:
            stream.write(f"{verb} {json.dumps(asdict(entry))}\n".encode())
            stream.flush()
        except BrokenPipeError as error:
            raise LimitsError(
                "the cleanup process ended unexpectedly, so a crash could leave servers running",
                "check whether it was OOM-killed and restart",
            ) from error
