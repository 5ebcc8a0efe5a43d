"""Supporting services of the measured servers, such as a database. They are started first and
stopped last, each in a separate group outside the server's limits; services that already run are
attached to."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from wsgiload.errors import ServerError
from wsgiload.experiment.public_options import SupportingService
from wsgiload.host.cpus import available_cpus, format_cpu_list
from wsgiload.interrupts import signal_name, uninterrupted
from wsgiload.limits import LimitedGroup
from wsgiload.limits.attach import Attached, attach_cgroup, attach_pid
from wsgiload.scratch import scratch_folder
from wsgiload.serving.groups import Place, fresh_group
from wsgiload.serving.launch import HOST
from wsgiload.serving.log import OutputLog, last_line, output_log
from wsgiload.units import NS_PER_S

STEP = "service"
POLL_S = 0.05
# A database may flush data to disk before it exits.
STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class RunningService:
    """A service that is ready."""

    name: str
    group: LimitedGroup | Attached
    # The number of cores it may use, and whether it shares them with the server; None: unknown.
    cpus: float | None
    shares_server_cores: bool
    has_ended: Callable[[], str | None]

    def require_alive(self) -> None:
        """Raise ServerError if it has ended."""
        ended = self.has_ended()
        if ended is not None:
            raise ServerError(ended, "see the end of its output", step=STEP)


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """How services are started: place, cores, variables and timeout."""

    place: Place
    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    variables: Mapping[str, str]
    timeout_ns: int

    @property
    def cores(self) -> tuple[int, ...]:
        """The cores that neither the server nor the generator uses; if there are none, those of the
        server."""
        reserved = {*self.server_cpus, *self.client_cpus}
        free = tuple(core for core in available_cpus() if core not in reserved)
        return free or self.server_cpus


@contextmanager
def running_services(
    services: Mapping[str, SupportingService], context: ServiceContext, log: Callable[[str], None]
) -> Iterator[tuple[RunningService, ...]]:
    """All services, started in order, while the block lasts. Raises ServerError if one does not
    become ready."""
    if not services:
        yield ()
        return
    with ExitStack() as stack:
        folder = stack.enter_context(scratch_folder())
        running = []
        for name, service in services.items():
            if service.command is None:
                running.append(stack.enter_context(_attached(name, service)))
                continue
            log(f"starting {name} on CPU {format_cpu_list(context.cores)}")
            started = _started(name, service, context, folder / f"{name}.log")
            running.append(stack.enter_context(started))
        yield tuple(running)


@contextmanager
def _attached(name: str, service: SupportingService) -> Iterator[RunningService]:
    target = service.attach
    group = attach_pid(target) if isinstance(target, int) else attach_cgroup(target or "")

    def has_ended() -> str | None:
        return None if group.pids() else f"the service {name} has ended"

    try:
        cpus = group.effective_limits["effective_cpus"] or float(os.cpu_count() or 1)
        yield RunningService(name, group, cpus, shares_server_cores=False, has_ended=has_ended)
    finally:
        group.close()


@contextmanager
def _started(
    name: str, service: SupportingService, context: ServiceContext, log_path: Path
) -> Iterator[RunningService]:
    cores = context.cores
    unlimited = replace(
        context.place.limits, cpus=None, memory_bytes=None, pids=None, server_cpus=cores
    )
    place = replace(context.place, limits=unlimited)
    with output_log(log_path) as log, fresh_group(f"service-{name}", place) as group:
        launch = _Launch(name, service, group, log, {**context.variables, **service.env}, place)
        with uninterrupted():
            process = launch.spawn(service.command or "")
        has_ended = _end_of(name, process, log)
        try:
            _wait_until_ready(launch, has_ended, context.timeout_ns)
            yield RunningService(
                name,
                group,
                float(len(cores)),
                bool(set(cores) & set(context.server_cpus)),
                has_ended,
            )
        finally:
            with uninterrupted():
                _stop(process, service.stop_signal)


@dataclass(frozen=True, slots=True)
class _Launch:
    """Starts the commands of a service, all in its group."""

    name: str
    service: SupportingService
    group: LimitedGroup
    log: OutputLog
    variables: Mapping[str, str]
    place: Place

    def spawn(self, command: str) -> subprocess.Popen[bytes]:
        argv, folder = shlex.split(command), Path(self.service.cwd)
        process = self.group.spawn(argv, env=self.variables, cwd=folder, log=self.log.stream)
        self.place.janitor.watch(self.group)
        return process


def _end_of(
    name: str, process: subprocess.Popen[bytes], log: OutputLog
) -> Callable[[], str | None]:
    def has_ended() -> str | None:
        code = process.poll()
        if code is None:
            return None
        how = f"was killed by {signal_name(-code)}" if code < 0 else f"exited with code {code}"
        return f"the service {name} {how}: {last_line(log.tail()) or 'without output'}"

    return has_ended


def _wait_until_ready(
    launch: _Launch, has_ended: Callable[[], str | None], timeout_ns: int
) -> None:
    """Poll until the service is ready. Raises ServerError if it ends first or takes too long."""
    until_ns = time.monotonic_ns() + timeout_ns
    while not _is_ready(launch, until_ns):
        ended = has_ended()
        if ended is not None:
            tail = launch.log.tail()
            raise ServerError(ended, f"correct [services.{launch.name}]", step=STEP, log_tail=tail)
        if time.monotonic_ns() > until_ns:
            raise ServerError(
                f"the service {launch.name} was not ready within {timeout_ns / NS_PER_S:g} s "
                f"({_condition(launch.service)})",
                f"correct [services.{launch.name}], or raise --ready-timeout",
                step=STEP,
                log_tail=launch.log.tail(),
            )
        time.sleep(POLL_S)


def _condition(service: SupportingService) -> str:
    ready = service.ready
    return f"port {ready}" if isinstance(ready, int) else f"`{ready}`"


def _is_ready(launch: _Launch, until_ns: int) -> bool:
    ready = launch.service.ready
    if ready is None:
        return True
    if isinstance(ready, int):
        return _listens(ready)
    with uninterrupted():
        process = launch.spawn(ready)
    try:
        remaining_ns = max(until_ns - time.monotonic_ns(), 0)
        return process.wait(remaining_ns / NS_PER_S) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=POLL_S).close()
    except OSError:
        return False
    return True


def _stop(process: subprocess.Popen[bytes], stop_signal: str) -> None:
    """Stop the main process, killing it after a timeout; its group kills the rest."""
    if process.poll() is None:
        process.send_signal(signal.Signals[stop_signal])
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def require_alive(services: Sequence[RunningService]) -> None:
    """Raise ServerError if a service has ended."""
    for service in services:
        service.require_alive()
