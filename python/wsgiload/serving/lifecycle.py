"""The lifecycle of one server, whose order only this module defines.

setup → group created → watched by the janitor → started → ready → (the caller's work) → stopped →
final counters → group removed → teardown.

The user's setup and teardown commands run in the user's environment and in a separate group,
outside the server's limits, so they do not affect the measurement. Processes that they leave behind
are killed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from wsgiload.account import Account, require_reachable
from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import ServerVariant
from wsgiload.catalogue.user_server import filled, split_words
from wsgiload.documents.cell_result import ServerSettings
from wsgiload.environments.provision import Environment
from wsgiload.errors import ServerError
from wsgiload.foreign_text import legible_log
from wsgiload.interrupts import uninterrupted
from wsgiload.limits import Enforcement, LimitedGroup
from wsgiload.sampling.resources import memory_peak_bytes
from wsgiload.sampling.sampler import Sampler
from wsgiload.scratch import scratch_folder
from wsgiload.serving import readiness
from wsgiload.serving.groups import Place, fresh_group
from wsgiload.serving.launch import ServerExit, ServerProcess
from wsgiload.serving.log import OutputLog, last_line, output_log
from wsgiload.serving.readiness import Expectation
from wsgiload.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class Service:
    """A server to run, and the response that shows that it is ready."""

    variant: ServerVariant
    environment: Environment
    expected: Expectation
    log_path: Path
    # Added to the server's environment.
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Served:
    """Facts of a server's lifecycle, filled in step by step and kept after errors."""

    enforcement: Enforcement | None = None
    settings: ServerSettings | None = None
    ready_s: float | None = None
    ended: ServerExit | None = None
    oom_kills: int | None = None
    starting_peak_bytes: int | None = None  # of its memory, while the server started
    # Processes that left the server's control group, by pid with their names.
    escaped: Mapping[int, str] = field(default_factory=dict)
    # False: kill the server immediately.
    gracefully: bool = True


@contextmanager
def serving(
    label: str,
    service: Service,
    place: Place,
    context: Callable[[Path], LaunchContext],
    served: Served,
) -> Iterator[ServerProcess]:
    """A ready server while the block lasts. Raises ServerError if it does not become ready."""
    with (
        legible_log(service.log_path),
        output_log(service.log_path) as log,
        scratch_folder() as scratch,
        prepared(
            preparation_of(
                service,
                launch_context := _context_in(scratch, context, place.limits.account),
                log,
            ),
            place,
        ),
        fresh_group(label, place) as group,
    ):
        served.enforcement = group.enforcement
        server = ServerProcess(service.variant, group, log)
        try:
            used = (service.environment.python, launch_context.import_dir)
            require_reachable(place.limits.account, used)
            with uninterrupted():
                server.start(service.environment, launch_context, service.variables)
                served.settings = server.settings
                place.janitor.watch(group)
            with _sampling_memory(group, served):
                served.ready_s = readiness.wait_until_ready(
                    server, launch_context.port, service.expected
                )
            yield server
        except KeyboardInterrupt:
            served.gracefully = False  # do not wait for a clean stop
            raise
        finally:
            with uninterrupted():
                served.ended = server.stop(gracefully=served.gracefully)
                # Read the counters before the group is removed.
                served.oom_kills = group.oom_kills()
                served.escaped = group.escaped


@contextmanager
def _sampling_memory(group: LimitedGroup, served: Served) -> Iterator[None]:
    """Record the most memory that the server needs while it starts, such as to import its app."""
    with Sampler(group) as sampler:
        try:
            yield
        finally:
            served.starting_peak_bytes = memory_peak_bytes(sampler.stop())


def _context_in(
    scratch: Path, context: Callable[[Path], LaunchContext], account: Account | None
) -> LaunchContext:
    """The launch parameters, whose folder belongs to the server's user once it is written. The
    scratch folder around it stays ours, so that the user can neither move nor replace it."""
    if account is None:
        return context(scratch)
    folder = scratch / "server"
    folder.mkdir(0o700)
    launch_context = context(folder)
    for path in (*folder.rglob("*"), folder):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    scratch.chmod(0o711)
    return launch_context


def preparation_of(service: Service, context: LaunchContext, log: OutputLog) -> Preparation:
    """The setup and teardown commands; none for a catalogue server."""
    user_server = service.variant.server.user_server

    def filled_in(step: str, commands: Sequence[str]) -> list[list[str]]:
        return [filled(split_words(command, step), context) for command in commands]

    return Preparation(
        server=service.variant.id,
        setup=filled_in("setup", user_server.setup) if user_server is not None else [],
        teardown=filled_in("teardown", user_server.teardown) if user_server is not None else [],
        folder=user_server.working_folder if user_server is not None else context.app_dir,
        variables=service.environment.environ(context.import_dir) | dict(service.variant.variables),
        log=log,
        timeout_s=service.expected.ready_timeout_ns / NS_PER_S,
    )


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
