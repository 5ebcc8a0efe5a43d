"""The user's setup and teardown commands, run before a server's start and after its end.

Each runs in the user's environment and in a separate group, outside the server's limits, so it does
not affect the measurement. Processes that it leaves behind are killed.
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
from wsgiload.serving.log import OutputLog, last_line

Step = Literal["setup", "teardown"]


@dataclass(frozen=True, slots=True)
class Preparation:
    """The setup and teardown commands of one server; their output goes to ``log``."""

    server: str
    setup: Sequence[Sequence[str]]
    teardown: Sequence[Sequence[str]]
    folder: Path
    variables: Mapping[str, str]
    log: OutputLog
    timeout_s: float


@contextmanager
def prepared(preparation: Preparation, place: Place) -> Iterator[None]:
    """Run setup before the block, and teardown after it even on errors. Raises ServerError if a
    command fails, unless the block failed first."""
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
    """Run all teardown commands, then raise the first failure."""
    failures = []
    for argv in preparation.teardown:
        try:
            _run("teardown", argv, preparation, place)
        except ServerError as error:
            failures.append(error)
    for failure in failures:
        raise failure


def _run(step: Step, argv: Sequence[str], preparation: Preparation, place: Place) -> None:
    """Run one command until it exits."""
    log, command = preparation.log, shlex.join(argv)
    unlimited = replace(place.limits, cpus=None, memory_bytes=None, pids=None)
    log.add(f"{step}: {command}")
    start = log.mark()
    with fresh_group(step, replace(place, limits=unlimited)) as group:
        with uninterrupted():
            process = group.spawn(
                argv, env=preparation.variables, cwd=preparation.folder, log=log.stream
            )
            place.janitor.watch(group)
        try:
            code: int | None = process.wait(preparation.timeout_s)
        except subprocess.TimeoutExpired:
            code = None
    if code != 0:
        raise _failure(step, command, code, preparation, start)


def _failure(
    step: Step, command: str, code: int | None, preparation: Preparation, start: int
) -> ServerError:
    log = preparation.log.tail(start)
    command_text = f"the {step} command `{command}` of {preparation.server}"
    if code is None:
        cause = f"{command_text} did not end within {preparation.timeout_s:g} s"
        return ServerError(cause, "raise --ready-timeout", step=step, log_tail=log)
    cause = f"{command_text} exited with code {code}: {last_line(log) or 'without output'}"
    fix = f"run it in {preparation.folder} to see why"
    return ServerError(cause, fix, step=step, log_tail=log)
