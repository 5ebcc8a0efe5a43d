"""Waits until a server gives a correct response (an open port is not sufficient), and probes
whether it keeps connections open."""

from __future__ import annotations

import hashlib
import http.client
import time
from dataclasses import dataclass

from wsgiload.environments.app_name import allowed_hosts
from wsgiload.errors import ServerError
from wsgiload.experiment.redaction import public_url
from wsgiload.host.memory_guard import NO_NEW_THREAD, process_limit_error
from wsgiload.limits.model import LimitedGroup
from wsgiload.loads.options import DEFAULT_TIMEOUT_NS
from wsgiload.loads.request import Request
from wsgiload.sampling.listen_queue import listener_pids
from wsgiload.serving.exchange import Connection, Response, ResponseTooLarge, UnfinishedResponse
from wsgiload.serving.launch import HOST, ServerProcess, require_local_port
from wsgiload.serving.wrong_response import (
    Progress,
    cause_of_exit,
    cause_of_silence,
    describe_response,
    exception_in,
    fix_of,
    lost_port,
)
from wsgiload.units import NS_PER_S

POLL_S = 0.02
# Applies if the remaining time is too short for any response.
MIN_RESPONSE_TIMEOUT_S = 0.1
# Wrong responses and refused processes are errors only after this time, because the server may
# still import its app. One that lacks a process still imports it while it uses this many cores.
PATIENCE_NS = 3 * NS_PER_S
IMPORTING_CORES = 0.5
STEP = "readiness"
# Failures in this step are the host's: another process took the port after it was chosen.
PORT_STEP = "port"
# A process may exit slightly after its port closes.
EXIT_DETECTION_S = 0.5


@dataclass(frozen=True, slots=True)
class Expectation:
    """The request that a server must answer correctly to count as ready, and the timeouts."""

    request: Request
    ready_timeout_ns: int
    response_timeout_ns: int


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One response of the server; ``problem`` is None if it is correct."""

    status: int | None
    problem: str | None
    # The connection was closed before the first byte of a response.
    is_closed: bool = False
    is_too_large: bool = False
    # The head arrived, but not the end of the body.
    is_unfinished: bool = False
    # The complete response, correct or not.
    response: Response | None = None


def ask(
    port: int, request: Request, timeout_s: float = DEFAULT_TIMEOUT_NS / NS_PER_S
) -> ProbeResult:
    """Send one request on a new connection."""
    try:
        connection = Connection((HOST, port), timeout_s)
    except OSError as error:
        require_local_port(error)
        return ProbeResult(None, f"{type(error).__name__}: {error}", is_closed=True)
    try:
        return _exchange(connection, request)
    finally:
        connection.close()


def _exchange(connection: Connection, request: Request) -> ProbeResult:
    try:
        response = connection.exchange(request)
    except (http.client.NotConnected, http.client.RemoteDisconnected, ConnectionError) as error:
        return ProbeResult(None, f"{type(error).__name__}: {error}", is_closed=True)
    except ResponseTooLarge as error:
        problem = f"{request.method} {public_url(request.path)} got {error}"
        return ProbeResult(error.status, problem, is_too_large=True)
    except UnfinishedResponse as error:
        problem = f"{request.method} {public_url(request.path)} got {error}"
        return ProbeResult(error.status, problem, is_unfinished=True)
    except (OSError, http.client.HTTPException) as error:
        return ProbeResult(None, f"{type(error).__name__}: {error}")
    is_correct = response.status in request.statuses and _is_correct(response.body, request)
    wrong = None if is_correct else describe_response(request, response)
    return ProbeResult(response.status, wrong, response=response)


def _is_correct(body: bytes, request: Request) -> bool:
    """Whether the body is correct. Ignores regular expressions, because the generator's syntax
    differs from Python's."""
    return (
        request.expected_body in (None, body)
        and request.expected_length in (None, len(body))
        and (request.expected_sha256 or "").lower() in ("", hashlib.sha256(body).hexdigest())
    )


def wait_until_ready(server: ServerProcess, port: int, expected: Expectation) -> float:
    """Poll until the response is correct; returns the elapsed seconds. Raises ServerError if the
    server ends, keeps giving wrong responses, lacks processes, or is not ready in time."""
    started_ns = time.monotonic_ns()
    failing = _Failing(server.group)
    progress = Progress(server, started_ns)
    while True:
        ended = _end_of(server, port, "while it started")
        if ended is not None:
            raise ended
        left_ns = started_ns + expected.ready_timeout_ns - time.monotonic_ns()
        probe = ask(
            port,
            expected.request,
            max(MIN_RESPONSE_TIMEOUT_S, min(left_ns, expected.response_timeout_ns) / NS_PER_S),
        )
        now_ns = time.monotonic_ns()
        progress.observe(now_ns, expected.ready_timeout_ns)
        if probe.problem is None:
            _require_listener_in_group(server, port)
            return (now_ns - started_ns) / NS_PER_S
        if failing.time_ns(now_ns, has_responded=probe.status is not None) > PATIENCE_NS:
            refused = out_of_processes(server, STEP)
            raise refused or _wrong_response(server, port, probe, expected.request)
        if now_ns - started_ns > expected.ready_timeout_ns:
            if probe.status is not None:
                raise _wrong_response(server, port, probe, expected.request)
            raise (
                out_of_processes(server, STEP)
                or _without_port(server, port)
                or _failed(server, *cause_of_silence(server, port, probe.problem, progress))
            )
        time.sleep(POLL_S)


class _Failing:
    """Since when a server has given wrong responses, or has done nothing although it needs a
    process that the limit refused."""

    def __init__(self, group: LimitedGroup) -> None:
        self._group = group
        self._since_ns: int | None = None
        self._polled_ns, self._used_ns = time.monotonic_ns(), 0

    def time_ns(self, now_ns: int, *, has_responded: bool) -> int:
        """For how long, after a poll without a correct response."""
        used_ns = self._group.read_counters().cpu_usage_ns or 0
        is_busy = used_ns - self._used_ns > IMPORTING_CORES * (now_ns - self._polled_ns)
        self._polled_ns, self._used_ns = now_ns, used_ns
        if not has_responded and (is_busy or not self._group.refused_processes()):
            self._since_ns = None
            return 0
        self._since_ns = self._since_ns or now_ns
        return now_ns - self._since_ns


def _failed(server: ServerProcess, cause: str, fix: str | None, step: str = STEP) -> ServerError:
    return ServerError(cause, fix, step=step, log_tail=server.log_tail())


def _end_of(server: ServerProcess, port: int, when: str) -> ServerError | None:
    """The error for a server that was OOM-killed or has exited; None while it runs."""
    kills = server.group.oom_kills()
    if kills:
        return out_of_memory(server, kills, when, STEP)
    if server.exit_code() is None:
        return None
    return (
        out_of_processes(server, STEP)
        or _without_port(server, port)
        or _failed(server, *cause_of_exit(server, port), step="start")
    )


def _without_port(server: ServerProcess, port: int) -> ServerError | None:
    """The error, which is not the server's, if another process took its port."""
    lost = lost_port(server, port)
    return None if lost is None else _failed(server, *lost, step=PORT_STEP)


def out_of_memory(server: ServerProcess, kills: int, when: str, step: str) -> ServerError:
    """The error for a server that was OOM-killed."""
    processes = "1 process" if kills == 1 else f"{kills} processes"
    return _failed(
        server,
        f"{server.variant.id} needs more memory than its limit: the kernel OOM-killed {processes} "
        f"{when}",
        "raise --memory, or lower the number of workers",
        step,
    )


def out_of_processes(server: ServerProcess, step: str) -> ServerError | None:
    """The error for a failed server whose limit on processes refused some, or whose user's limit
    did; None if neither did."""
    refused = server.group.refused_processes()
    if not refused:
        return _out_of_user_processes(server, step)
    times = "once" if refused == 1 else f"{refused} times"
    return _failed(
        server,
        f"{server.variant.id} needs more processes or threads than --pids allows: the kernel "
        f"refused one {times}",
        "raise --pids, or lower the number of workers or threads",
        step,
    )


def _out_of_user_processes(server: ServerProcess, step: str) -> ServerError | None:
    """As nothing counts what the user's limit refuses, the server's log must say so. The system's
    words for it are not enough, because they also stand for other errors."""
    error = process_limit_error(NO_NEW_THREAD) if NO_NEW_THREAD in server.log_tail() else None
    if error is None:
        return None
    cause = f"{server.variant.id} failed, because {error.cause}"
    return _failed(server, cause, error.fix, step)


def _wrong_response(
    server: ServerProcess, port: int, probe: ProbeResult, request: Request
) -> ServerError:
    """The error for a complete but wrong response, with its content and a fix."""
    log = server.log_tail()
    cause, fix = f"{server.variant.id}: {probe.problem}", "see the server's log"
    raised, user_server = exception_in(log), server.variant.server.user_server
    if probe.is_too_large:
        fix = "choose a path with shorter responses (--path)"
    elif probe.is_unfinished:
        fix = "choose a path whose responses end (--path), or raise --timeout if this one is slow"
    elif raised is not None and probe.status is not None and probe.status >= 500:
        cause += f"; its log contains {raised}"
    elif user_server is not None and user_server.ready_path == request.path:
        fix = f"correct ready_path of {user_server.option}, or see the server's log"
    elif probe.response is not None:
        hosts = [] if server.folder is None else allowed_hosts(server.folder)
        fix = fix_of(request, probe.response, hosts, lambda other: ask(port, other).response)
    return _failed(server, cause, fix)


def _require_listener_in_group(server: ServerProcess, port: int) -> None:
    """Raise ServerError if another program listens on the port and could have responded instead."""
    owners = listener_pids(port)
    if owners and not owners & set(server.group.pids()):
        raise _failed(
            server,
            f"port {port} is in use by process {', '.join(map(str, sorted(owners)))}, not by "
            f"{server.variant.id}",
            "end that process, or measure again",
            PORT_STEP,
        )


def keeps_connections(server: ServerProcess, port: int, request: Request, timeout_ns: int) -> bool:
    """Whether two requests get a response on one connection. Raises ServerError if the result is
    unknown: after a wrong or late response, or if the server accepts no more connections."""
    try:
        connection = Connection((HOST, port), timeout_ns / NS_PER_S)
    except OSError as error:
        require_local_port(error)
        raise _not_connected(server, port, error) from error
    try:
        for _ in range(2):
            probe = _exchange(connection, request)
            if probe.problem is None:
                continue
            if probe.is_closed:
                return False
            raise _wrong_response(server, port, probe, request)
        return True
    finally:
        connection.close()


def _not_connected(server: ServerProcess, port: int, error: OSError) -> ServerError:
    """The error for a server that gave a correct response but no longer accepts connections: how it
    exited, or that it stalled."""
    until = time.monotonic() + EXIT_DETECTION_S
    while time.monotonic() < until:
        ended = _end_of(server, port, "after its first response")
        if ended is not None:
            return ended
        time.sleep(POLL_S)
    return _failed(
        server,
        f"{server.variant.id} gave a correct response and then accepted no more connections "
        f"({error.strerror or error})",
        "see the end of its log; if it was only slow, raise --timeout",
    )
