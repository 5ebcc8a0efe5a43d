"""Why a server that was started gives no answer: the nearest known cause, and a fix for it.

More time is suggested only for a server that is alive, still works, and shows no other cause.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from wsgiload.errors import UsageError
from wsgiload.sampling.listen_queue import listener_pids, listening_ports
from wsgiload.serving.launch import HOST, ServerProcess, require_free_port
from wsgiload.serving.log import last_line
from wsgiload.serving.wrong_response import exception_in
from wsgiload.units import NS_PER_S

_IN_USE = re.compile(r"^.*(?:address|connection)(?: is)?(?: already)? in use.*$", re.I | re.M)
# A cause is searched in this much of the log's end: a backtrace may follow it.
SEARCHED_BYTES = 64 << 10
# A server that puts itself into the background listens soon after its first process exited.
BACKGROUND_S, POLL_S = 1.0, 0.05
# More processes end while a server starts only if it restarts them.
MANY_ENDED = 3
# A server that uses less CPU time does not load anything.
MIN_WORKING_SHARE = 0.05

CauseAndFix = tuple[str, str]


@dataclass(slots=True)
class Progress:
    """What a starting server has done so far: its processes, CPU time and output."""

    server: ServerProcess
    started_ns: int
    seen: set[int] = field(default_factory=set)
    half: tuple[int, int | None, int] | None = None

    def observe(self, now_ns: int, timeout_ns: int) -> None:
        """Note the processes, and once the CPU time and the length of the output at half time."""
        self.seen.update(self.server.group.pids())
        if self.half is None and now_ns - self.started_ns > timeout_ns / 2:
            self.half = self._reading(now_ns)

    @property
    def ended(self) -> int:
        """How many of its processes have ended."""
        return len(self.seen.difference(self.server.group.pids()))

    def is_working(self, now_ns: int) -> bool:
        """Whether it has used CPU time or written something since half time."""
        if self.half is None:
            return True
        (then_ns, then_cpu_ns, then_bytes), (_, cpu_ns, read_bytes) = self.half, self._reading(0)
        used_ns = 0 if cpu_ns is None or then_cpu_ns is None else cpu_ns - then_cpu_ns
        return read_bytes > then_bytes or used_ns > MIN_WORKING_SHARE * (now_ns - then_ns)

    def _reading(self, now_ns: int) -> tuple[int, int | None, int]:
        return now_ns, self.server.group.read_counters().cpu_usage_ns, self.server.log.mark()


def cause_of_exit(server: ServerProcess, port: int) -> CauseAndFix:
    """Why the first process exited."""
    log = server.log_tail(SEARCHED_BYTES)
    in_use = _IN_USE.search(log)
    if in_use is not None:
        return _in_use(server, in_use[0])
    if server.exit_code() == 0 and _has_background(server, port):
        return (
            f"{server.variant.id} put itself into the background: its first process exited with "
            "code 0, and others continue",
            "start it in the foreground, without --daemon, --daemonize or &",
        )
    raised = exception_in(log)
    logged = f"; its log contains {raised}" if raised and raised != last_line(log) else ""
    return f"{server.variant.id} {server.describe_exit()}{logged}", "see the end of its log"


def _has_background(server: ServerProcess, port: int) -> bool:
    """Whether a process continues or listens after the first one exited."""
    until = time.monotonic() + BACKGROUND_S
    while time.monotonic() < until:
        if listener_pids(port) != set():
            return True
        time.sleep(POLL_S)
    return bool(server.group.pids())


def lost_port(server: ServerProcess, port: int) -> CauseAndFix | None:
    """Whether another process took the port after it was chosen for this server."""
    owners = listener_pids(port) or set()
    is_logged = _IN_USE.search(server.log_tail(SEARCHED_BYTES)) is not None
    if not is_logged or owners & set(server.group.pids()):
        return None
    try:
        require_free_port(port)
    except UsageError as error:
        return f"{server.variant.id} {error.cause}", "end that process, or measure again"
    return None


def _in_use(server: ServerProcess, line: str) -> CauseAndFix:
    return (
        f"{server.variant.id} cannot listen, because another process uses its address: "
        f"{line.strip()}",
        "end the other process, or let the command listen on {address}",
    )


def cause_of_silence(
    server: ServerProcess, port: int, problem: str | None, progress: Progress
) -> CauseAndFix:
    """Why the server, which is alive, gave no response before its time was over."""
    name, now_ns = server.variant.id, time.monotonic_ns()
    waited = f"within {(now_ns - progress.started_ns) / NS_PER_S:.2g} s"
    log = server.log_tail(SEARCHED_BYTES)
    if (in_use := _IN_USE.search(log)) is not None:
        return _in_use(server, in_use[0])
    if progress.ended >= MANY_ENDED:
        why = exception_in(log) or last_line(log)
        logged = f"; its log contains {why}" if why else ""
        return (
            f"the processes of {name} end and are restarted ({progress.ended} ended {waited})"
            f"{logged}",
            "see its log for why they end",
        )
    if (raised := exception_in(log)) is not None:
        cause = f"{name} gave no response {waited}; its log contains {raised}"
        return cause, "see its log"

    if listener_pids(port) == set():
        return _not_listening(server, port, waited, progress.is_working(now_ns))
    if progress.is_working(now_ns):
        cause = f"{name} listens, but gave no correct response {waited} ({problem})"
        return cause, "raise --ready-timeout and --timeout, or see its log"
    return (
        f"{name} listens on port {port}, but sends no response and uses no CPU: it waits for "
        f"something ({problem} {waited})",
        "see its log; check what the app waits for while it is imported or in this request",
    )


def _not_listening(server: ServerProcess, port: int, waited: str, is_working: bool) -> CauseAndFix:
    name = server.variant.id
    others = sorted(listening_ports(server.group.pids()))
    if others:
        return (
            f"{name} listens on port {', '.join(map(str, others))} instead of {port}",
            f"let its command listen on {{address}} ({HOST}:{port} in this run)",
        )
    last = last_line(server.log_tail())
    logged = f"; the last line of its log is: {last}" if last else "; its log is empty"
    if is_working:
        cause = f"{name} is still starting: it opened no port {waited}{logged}"
        return cause, "raise --ready-timeout"
    return (
        f"{name} is alive, but opened no port {waited} and uses no CPU{logged}",
        "check that its command starts a server on {address}, and what it waits for",
    )
