"""Starts one server inside its group, stops it, and reports its settings and how it ended."""

from __future__ import annotations

import errno
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wsgiload.catalogue.adjust import adjusted_command
from wsgiload.catalogue.bundled import scripts_in
from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import ServerVariant
from wsgiload.documents.cell_result import ServerSettings, Versions
from wsgiload.environments.cache import install_command, missing_packages
from wsgiload.environments.provision import Environment
from wsgiload.errors import LoadError, ServerError, UsageError
from wsgiload.experiment.variables import without_secrets
from wsgiload.interrupts import signal_name
from wsgiload.limits import LimitedGroup
from wsgiload.sampling.listen_queue import listener_pids
from wsgiload.serving.log import LOG_TAIL_BYTES, OutputLog, last_line

HOST = "127.0.0.1"
BACKLOG = 1_024
SOMAXCONN = Path("/proc/sys/net/core/somaxconn")
POLL_S = 0.01
# Tried, for this long each, on a server that does not exit on its stop signal.
OTHER_SIGNALS, OTHER_SIGNAL_S = ("SIGINT", "SIGTERM"), 3.0
LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Limited, because some servers allocate a table entry per possible file descriptor.
MAX_FDS = 65_536


@dataclass(frozen=True, slots=True)
class ServerExit:
    """How a server ended; ``clean`` means that it exited on the signal and left no processes
    behind."""

    code: int | None
    signal: str | None
    clean: bool
    stop_s: float
    # What ended a server that did not exit on its stop signal: another signal, or SIGKILL.
    stopped_by: str | None = None


def raise_fd_limit() -> None:
    """Raise the limit on file descriptors for this process and the servers that it starts.

    With the usual soft limit of 1,024, a server would refuse connections of the load.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_FDS if hard == resource.RLIM_INFINITY else min(hard, MAX_FDS)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def free_port() -> int:
    """A free TCP port of the loopback interface."""
    with socket.socket() as probe:
        try:
            probe.bind((HOST, 0))
        except OSError as error:
            require_local_port(error)
            raise
        port: int = probe.getsockname()[1]
    return port


def require_local_port(error: OSError) -> None:
    """Raise LoadError if the client has no free local port, for which no server is to blame."""
    if error.errno in (errno.EADDRNOTAVAIL, errno.EADDRINUSE):
        first, last = LOCAL_PORTS.read_text().split()
        raise LoadError(
            f"the client has no free local port: all of {first} to {last} are in use",
            "wait a minute until closed connections free theirs, or as root run "
            "`sysctl -w net.ipv4.ip_local_port_range='10240 65535'`",
        ) from error


def require_free_port(port: int) -> None:
    """Raise UsageError if the port is in use, naming the process."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            owners = listener_pids(port)
            owner_text = f" by process {', '.join(map(str, sorted(owners)))}" if owners else ""
            raise UsageError(
                f"cannot listen on port {port} of {HOST}: {error.strerror}{owner_text}",
                "choose another --port, or omit it to use a free one",
            ) from None


def tuned_backlog() -> int:
    """The backlog of the tuned profile, limited by the kernel's somaxconn."""
    try:
        return min(BACKLOG, int(SOMAXCONN.read_text()))
    except (OSError, ValueError):
        return BACKLOG


class ServerProcess:
    """The process of a server; always call ``stop``."""

    def __init__(self, variant: ServerVariant, group: LimitedGroup, log: OutputLog) -> None:
        self.variant = variant
        self.group = group
        self.log = log
        self.settings: ServerSettings | None = None
        self.folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def start(
        self, environment: Environment, context: LaunchContext, added: Mapping[str, str]
    ) -> None:
        """Start the server inside its group, without waiting until it is ready."""
        server, kind = self.variant.server, self.variant.variant
        require_system(self.variant)
        argv = adjusted_command(server.command(kind, context), context.app, self.variant)
        server_variables = server.environ(kind, context) | dict(self.variant.variables)
        variables = environment.environ(context.import_dir) | server_variables | dict(added)
        if context.shim_dir is not None:
            # `python -m` would put the working directory first, before the standard library.
            variables["PYTHONSAFEPATH"] = "1"
        self.settings = settings_of(self.variant, context, argv, server_variables, environment)
        self._log_start = self.log.mark()  # setup commands wrote to the same log
        try:
            self.folder = (
                context.app_dir if server.user_server is None else server.user_server.working_folder
            )
            self._process = self.group.spawn(
                argv, env=variables, cwd=self.folder, log=self.log.stream
            )
        except OSError as error:
            raise ServerError(
                f"{self.variant.id} could not be started: {error}",
                f"the command was: {' '.join(argv)}",
                step="start",
            ) from error

    def exit_code(self) -> int | None:
        """The first process's exit code (negative: killed by that signal); None while it runs."""
        return None if self._process is None else self._process.poll()

    def log_tail(self, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """The end of the server's output."""
        return self.log.tail(self._log_start, max_bytes)

    def describe_exit(self) -> str:
        """``exited with code 1`` or ``was killed by SIGKILL``, with the last line of its log."""
        code = self.exit_code()
        line = last_line(self.log_tail())
        last = f": {line}" if line else " without output"
        if code is not None and code < 0:
            return f"was killed by {signal_name(-code)}{last}"
        return f"exited with code {code}{last}"

    def stop(self, *, gracefully: bool = True) -> ServerExit | None:
        """Send its stop signal and wait (only if ``gracefully``), then kill all remaining
        processes; None if it never started."""
        process = self._process
        if process is None:
            return None
        server = self.variant.server
        was_running = process.poll() is None
        started_ns = time.monotonic_ns()
        stopped_by = None
        if was_running and gracefully:
            process.send_signal(signal.Signals[server.stop_signal])
            was_running = _wait(process, server.stop_timeout_s)
            stopped_by = None if was_running else _stop_otherwise(process, server.stop_signal)
        stop_s = (time.monotonic_ns() - started_ns) / 1e9
        has_leftovers = self._has_leftovers()
        self.group.kill()
        process.kill()  # after an early interrupt, it may not be in the group yet
        code = process.wait()
        clean = was_running and not has_leftovers and code in server.clean_exit_codes
        name = signal_name(-code) if code < 0 else None
        return ServerExit(code if code >= 0 else None, name, clean, round(stop_s, 3), stopped_by)

    def _has_leftovers(self) -> bool:
        """Whether processes of the group outlive the first one by more than 0.5 s."""
        until = time.monotonic() + 0.5
        while self.group.pids():
            if time.monotonic() > until:
                return True
            time.sleep(POLL_S)
        return False


def _stop_otherwise(process: subprocess.Popen[bytes], stop_signal: str) -> str:
    """Try the other usual signals on a server that ignored its own; returns the one that worked, or
    SIGKILL, which is left to the caller."""
    for name in OTHER_SIGNALS:
        if name != stop_signal:
            process.send_signal(signal.Signals[name])
            if _wait(process, OTHER_SIGNAL_S):
                return name
    return "SIGKILL"


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def require_system(variant: ServerVariant) -> None:
    """Raise ServerError if system packages are missing, with the command that installs them."""
    missing = missing_packages(variant.needs)
    if missing:
        raise ServerError(
            f"{variant.id} needs the system package{'s' if len(missing) > 1 else ''} "
            f"{', '.join(missing)}",
            f"as root run `{install_command(missing)}`",
            step="start",
        )


def settings_of(
    variant: ServerVariant,
    context: LaunchContext,
    command: Sequence[str],
    variables: Mapping[str, str],
    environment: Environment,
) -> ServerSettings:
    """The settings known at the start; backlog and keep-alive are measured later."""
    kind, user_server = variant.variant, variant.server.user_server
    return ServerSettings(
        command=tuple(command),
        user_command=user_server.command if user_server is not None else None,
        folder=str(user_server.working_folder) if user_server is not None else None,
        setup=user_server.setup if user_server is not None else (),
        teardown=user_server.teardown if user_server is not None else (),
        ready_path=user_server.ready_path if user_server is not None else None,
        stop_signal=user_server.stop_signal if user_server is not None else None,
        scripts=scripts_in(command),
        requirements=variant.server.requirements,
        system_packages=tuple(needed.package for needed in variant.needs),
        added_arguments=variant.arguments,
        config_file=str(variant.config) if variant.config is not None else None,
        workers=context.workers if kind.uses_workers else None,
        threads=context.threads if kind.uses_threads else None,
        backlog=None,
        keepalive=None,
        environment=without_secrets(variables),
        versions=Versions(
            server=environment.version,
            python=environment.python_version,
            packages=installed_packages(environment.bin.parent),
        ),
    )


def installed_packages(folder: Path) -> dict[str, str]:
    """Name and version of each distribution in a virtual environment, by its metadata folders."""
    packages = {}
    for metadata in folder.glob("lib/*/site-packages/*.dist-info"):
        name, _, version = metadata.name.removesuffix(".dist-info").partition("-")
        packages[name.replace("_", "-").lower()] = version
    return dict(sorted(packages.items()))
