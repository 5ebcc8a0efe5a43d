"""Commands of the user's around a server of his own: setup before its start, teardown after its
end.

Each runs in the user's environment and in a group of its own, outside the server's limits, so that
it counts for nothing in the measurement. What it leaves running is ended with it.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from wsgiload.errors import ServerError
from wsgiload.interrupts import uninterrupted
from wsgiload.serving.groups import Place, fresh_group
from wsgiload.serving.log import last_line, tail_of

Step = Literal["setup", "teardown"]


@dataclass(frozen=True, slots=True)
class Preparation:
    """The commands around one server, and how they are run; their output goes to ``log_path``."""

    server: str
    setup: Sequence[Sequence[str]]
    teardown: Sequence[Sequence[str]]
    folder: Path
    variables: Mapping[str, str]
    log_path: Path
    timeout_s: float


@contextmanager
def prepared(preparation: Preparation, place: Place) -> Iterator[None]:
    """Setup before the block and teardown after it, whatever happens. Raises ServerError where one
    fails, unless the block has failed before."""
    # Setup and the server add to it; what is there is of an earlier attempt.
    preparation.log_path.write_bytes(b"")
    try:
        for argv in preparation.setup:
            _run("setup", argv, preparation, place)
        yield
    except BaseException:
        with suppress(ServerError):
            _tear_down(preparation, place)
        raise
    _tear_down(preparation, place)


def _tear_down(preparation: Preparation, place: Place) -> None:
    """All of its commands; the first failure is raised after the last command."""
    failures = []
    for argv in preparation.teardown:
        try:
            _run("teardown", argv, preparation, place)
        except ServerError as error:
            failures.append(error)
    for failure in failures:
        raise failure


def _run(step: Step, argv: Sequence[str], preparation: Preparation, place: Place) -> None:
    """One command to its end."""
    path, command = preparation.log_path, shlex.join(argv)
    unlimited = replace(place.limits, cpus=None, memory_bytes=None, pids=None)
    with path.open("ab") as log, fresh_group(step, replace(place, limits=unlimited)) as group:
        log.write(f"{step}: {command}\n".encode())
        log.flush()
        began = path.stat().st_size
        with uninterrupted():
            process = group.spawn(argv, env=preparation.variables, cwd=preparation.folder, log=log)
            place.janitor.watch(group)
        try:
            code: int | None = process.wait(preparation.timeout_s)
        except subprocess.TimeoutExpired:
            code = None
    if code != 0:
        raise _failure(step, command, code, preparation, began)


def _failure(
    step: Step, command: str, code: int | None, preparation: Preparation, began: int
) -> ServerError:
    log = tail_of(preparation.log_path, began)
    what = f"the {step} command `{command}` of {preparation.server}"
    if code is None:
        cause = f"{what} did not end within {preparation.timeout_s:g} s"
        return ServerError(cause, "raise --ready-timeout", step=step, log_tail=log)
    cause = f"{what} exited with code {code}: {last_line(log) or 'without output'}"
    fix = f"run it in {preparation.folder} to see why"
    return ServerError(cause, fix, step=step, log_tail=log)
