"""Checks servers on this machine by measuring each declared property on a running server."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from wsgiload.catalogue.apps import conformance
from wsgiload.catalogue.budget import Budget, max_processes
from wsgiload.catalogue.contract import Framing, Profile
from wsgiload.catalogue.names import ServerVariant
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.provision import Environment, provision_all
from wsgiload.errors import WsgiloadError
from wsgiload.host.cpus import available_cpus
from wsgiload.limits import Limits
from wsgiload.loads.options import DEFAULT_TIMEOUT_NS
from wsgiload.loads.request import Request
from wsgiload.sampling.listen_queue import read_listen_queue
from wsgiload.scratch import remove_stale_scratch, scratch_folder
from wsgiload.serving import launch, readiness
from wsgiload.serving.concurrency import Concurrency
from wsgiload.serving.conformance import (
    GREETING,
    READY_TIMEOUT_NS,
    Send,
    conformance_context,
    forwarding,
    large_head_fault,
    measure_concurrency,
)
from wsgiload.serving.exchange import Connection, Response, exchange
from wsgiload.serving.groups import Place, chosen_place
from wsgiload.serving.launch import HOST, ServerProcess
from wsgiload.serving.lifecycle import Served, Service, serving
from wsgiload.serving.readiness import Expectation

CHECK_BUDGET = Budget(workers=2, threads=2)
RESPONSE_TIMEOUT_S = 10.0
BODY_REQUESTS = 20
# An access log of this many requests exceeds 8 KiB, the usual maximum of a write buffer.
QUIET_REQUESTS = 200
# More than single messages have, such as the greeting of a late worker.
MAX_QUIET_LINES = 20
# With Nagle's algorithm, the second write of a response waits for the client's delayed
# acknowledgement. Other delays of this length are rare.
STREAMED_RESPONSES, MAX_DELAYED_RATIO = 40, 0.2
DELAYED_ACK_NS = range(36_000_000, 50_000_000)
POSTED_BYTES = 1024**2
# Longer than any response of the app ``conformance``.
MAX_RESPONSE_BYTES = 2 * POSTED_BYTES
# Several, because the validator reports an unclosed response only when it is garbage-collected.
CONFORMING_REQUESTS = 5
NOT_CLOSED = b"Iterator garbage collected without being closed"
# It is random which worker responds, so send many concurrent requests repeatedly for up to this
# time.
WORKERS_TIMEOUT_S = 15.0
REQUESTS_AT_ONCE, MAX_REQUESTS_AT_ONCE = 8, 128


@dataclass(slots=True)
class CheckResult:
    """The results for one variant in one profile; None: not checked or not applicable."""

    server: str
    profile: Profile
    version: str | None = None
    python: str | None = None
    legacy: bool = False
    right_body: bool | None = None
    workers_met: int | None = None
    keepalive: bool | None = None
    keepalive_as_claimed: bool | None = None
    framing: Framing | None = None
    framing_as_claimed: bool | None = None
    echo: bool | None = None
    errors_passed: bool | None = None
    conforms: bool | None = None
    large_head: bool | None = None
    forwarded: bool | None = None
    backlog: int | None = None
    backlog_as_asked: bool | None = None
    quiet: bool | None = None
    delayed_ratio: float | None = None
    processes: int | None = None
    within_budget: bool | None = None
    clean_stop: bool | None = None
    ready_s: float | None = None
    stop_s: float | None = None
    capacity: Concurrency | None = None
    complaints: list[str] = field(default_factory=list)
    failure: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every required property was confirmed."""
        needed = [
            self.right_body,
            self.keepalive_as_claimed,
            self.framing_as_claimed,
            self.echo,
            self.errors_passed,
        ]
        needed += [self.backlog_as_asked, self.within_budget]
        # The stock profile describes a server's defaults; with them, some do not stop cleanly.
        needed += [self.clean_stop] if self.profile == "tuned" else []
        return self.failure is None and not self.complaints and all(needed)

    def to_dict(self) -> object:
        """The result as plain data for JSON."""
        return msgspec.to_builtins(self) | {"passed": self.passed}

    def record(self, holds: bool, complaint: str) -> bool:
        """Record a complaint if a property does not hold; returns ``holds``."""
        if not holds:
            self.complaints.append(complaint)
        return holds


@dataclass(frozen=True, slots=True)
class _Subject:
    """A running server and its launch parameters."""

    variant: ServerVariant
    server: ServerProcess
    port: int
    budget: Budget
    backlog: int | None
    profile: Profile


def check_servers(
    chosen: Sequence[ServerVariant],
    interpreter: AppInterpreter,
    *,
    profile: Profile = "tuned",
    log: Callable[[str], None],
) -> list[CheckResult]:
    """Launch and check each variant; a failure does not stop the others."""
    limits = Limits(server_cpus=available_cpus(), policy="best-effort", account=interpreter.account)
    environments = provision_all([variant.server for variant in chosen], interpreter, log=log)
    launch.raise_fd_limit()
    remove_stale_scratch()
    results = []
    with chosen_place(limits) as place:
        for variant in chosen:
            log(f"checking {variant.id}")
            result = CheckResult(variant.id, profile, legacy=variant.server.legacy)
            try:
                environment = environments[variant.server.key]
                if isinstance(environment, WsgiloadError):
                    raise environment
                result.version, result.python = environment.version, environment.python_version
                _check(variant, environment, place, result)
                result.capacity = measure_concurrency(
                    variant, environment, place, (profile, CHECK_BUDGET)
                )
            except WsgiloadError as error:
                result.failure = str(error)
            except (OSError, http.client.HTTPException) as error:
                result.failure = f"{type(error).__name__}: {error}"
            results.append(result)
    return results


def _check(
    variant: ServerVariant, environment: Environment, place: Place, result: CheckResult
) -> None:
    port, served = launch.free_port(), Served()
    with scratch_folder() as folder:
        expected = Expectation(GREETING, READY_TIMEOUT_NS, DEFAULT_TIMEOUT_NS)
        service = Service(variant, environment, expected, folder / "server.log")
        context = conformance_context(variant, environment, port, result.profile, CHECK_BUDGET)
        try:
            with serving(f"check-{variant.id}", service, place, context, served) as server:
                launched = context(Path())
                budget = Budget(launched.workers, launched.threads)
                subject = _Subject(variant, server, port, budget, launched.backlog, result.profile)
                for examine in PROPERTIES:
                    examine(subject, result)
        finally:
            result.ready_s = None if served.ready_s is None else round(served.ready_s, 3)
            if served.ended is not None:
                result.clean_stop, result.stop_s = served.ended.clean, served.ended.stop_s
                must_stop = result.profile == "tuned" and result.ready_s is not None
                result.record(
                    served.ended.clean or not must_stop, f"it did not stop cleanly: {served.ended}"
                )


def _request(port: int, method: str, path: str, body: bytes | None = None) -> Response:
    return _exchange(port, Request(path, method, body=body))


def _exchange(port: int, request: Request) -> Response:
    return exchange((HOST, port), request, RESPONSE_TIMEOUT_S, MAX_RESPONSE_BYTES)


def _check_bodies(subject: _Subject, result: CheckResult) -> None:
    responses = [
        readiness.ask(subject.port, GREETING, RESPONSE_TIMEOUT_S) for _ in range(BODY_REQUESTS)
    ]
    problems = [response.problem for response in responses if response.problem is not None]
    result.right_body = result.record(not problems, f"wrong response: {next(iter(problems), None)}")


def _check_workers(subject: _Subject, result: CheckResult) -> None:
    """Every worker must respond, because one worker's response says nothing about the others."""
    expected = subject.budget.workers or 1
    met: set[bytes] = set()
    until = time.monotonic() + WORKERS_TIMEOUT_S
    at_once = REQUESTS_AT_ONCE
    with ThreadPoolExecutor(MAX_REQUESTS_AT_ONCE) as pool:
        while time.monotonic() < until and (len(met) < expected or not met):
            met.update(
                pool.map(lambda _: _request(subject.port, "GET", "/worker").body, range(at_once))
            )
            # A front end may reuse one worker's connections until there are more concurrent
            # requests.
            at_once = min(2 * at_once, MAX_REQUESTS_AT_ONCE)
    result.workers_met = len(met)
    if not all(pid.isdigit() for pid in met):
        result.right_body = result.record(
            False, "under load, a response did not come from a worker"
        )
    result.record(len(met) >= expected, f"only {len(met)} of {expected} workers responded")


def _check_keepalive(subject: _Subject, result: CheckResult) -> None:
    declared = subject.variant.variant.keeps_connections(subject.profile)
    kept = readiness.keeps_connections(subject.server, subject.port, GREETING, DEFAULT_TIMEOUT_NS)
    result.keepalive = kept
    does = "keeps" if kept else "does not keep"
    result.keepalive_as_claimed = result.record(
        kept == declared, f"it {does} connections alive, but its file declares the opposite"
    )


def _check_framing(subject: _Subject, result: CheckResult) -> None:
    declared = subject.variant.variant.frames(subject.profile)
    response = _request(subject.port, "GET", "/stream")
    if (response.headers.get("Transfer-Encoding") or "").lower() == "chunked":
        result.framing = "chunked"
    else:
        result.framing = (
            "close" if response.headers.get("Content-Length") is None else "content-length"
        )
    complaint = (
        f"if the app sets no Content-Length, its framing is {result.framing}, but its file "
        f"declares {declared}"
    )
    as_declared = result.record(result.framing == declared, complaint)
    whole = result.record(
        response.body == b"".join(conformance.STREAM), "a streamed body was changed"
    )
    response = _request(subject.port, "GET", "/")
    length = response.headers.get("Content-Length")
    kept = result.record(
        length == str(len(response.body)),
        f"the app's Content-Length was replaced by {length or 'none'}",
    )
    result.framing_as_claimed = as_declared and whole and kept


def _check_delays(subject: _Subject, result: CheckResult) -> None:
    """A response of several writes must not wait for a delayed acknowledgement."""
    result.delayed_ratio = delayed_ratio((HOST, subject.port), Request("/stream"))
    known = subject.variant.variant.delays_writes
    is_delayed = result.delayed_ratio > MAX_DELAYED_RATIO
    if subject.profile == "tuned":
        delayed = (
            f"{100 * result.delayed_ratio:.0f} % of the responses of several writes took 36 to "
            "50 ms (set TCP_NODELAY)"
        )
        prompt = f"no response of several writes is delayed, but its file says {known!r}"
        result.record(is_delayed == (known is not None), delayed if is_delayed else prompt)


def delayed_ratio(address: tuple[str, int], request: Request) -> float:
    """The share of responses that took as long as a delayed acknowledgement, on one connection if
    the server keeps it: the kernel acknowledges the first segments of a connection at once."""
    delayed, connection = 0, Connection(address, RESPONSE_TIMEOUT_S)
    try:
        for _ in range(STREAMED_RESPONSES):
            begun_ns = time.monotonic_ns()
            try:
                connection.exchange(request, MAX_RESPONSE_BYTES)
            except (http.client.NotConnected, http.client.RemoteDisconnected, ConnectionError):
                connection.close()
                connection = Connection(address, RESPONSE_TIMEOUT_S)
                continue
            delayed += time.monotonic_ns() - begun_ns in DELAYED_ACK_NS
    finally:
        connection.close()
    return delayed / STREAMED_RESPONSES


def _check_echo(subject: _Subject, result: CheckResult) -> None:
    posted = bytes(range(256)) * (POSTED_BYTES // 256)
    response = _request(subject.port, "POST", "/echo", posted)
    arrived = response.status == 200 and response.body == posted
    result.echo = result.record(
        arrived,
        f"a 1 MiB POST was echoed as {len(response.body)} bytes with status {response.status}",
    )


def _check_errors(subject: _Subject, result: CheckResult) -> None:
    expected = {
        "/missing": (404, conformance.MISSING_BODY),
        "/broken": (500, conformance.BROKEN_BODY),
    }
    passed = True
    for path, (status, text) in expected.items():
        response = _request(subject.port, "GET", path)
        complaint = (
            f"the app's {status} response was sent as {response.status} with "
            f"{len(response.body)} bytes"
        )
        passed &= result.record((response.status, response.body) == (status, text), complaint)
    result.errors_passed = passed


def _check_conformance(subject: _Subject, result: CheckResult) -> None:
    if not subject.variant.server.serves_apps:
        return
    bodies = [_request(subject.port, "GET", "/conforms").body for _ in range(CONFORMING_REQUESTS)]
    wrong = [
        body.decode(errors="replace").strip()[:200]
        for body in bodies
        if body != conformance.CONFORMING_BODY
    ]
    if NOT_CLOSED in subject.server.log.read():
        wrong.append("PEP 3333 violation: close() of the app's response was not called")
    known, complaint = subject.variant.variant.deviation, (wrong or [""])[0]
    result.conforms = not wrong
    # A known deviation is not a complaint, unless it no longer exists.
    as_known = result.conforms if known is None else known in complaint
    result.record(
        as_known,
        complaint if known is None else f"the known deviation {known!r} is fixed; update its file",
    )


def _sender(subject: _Subject) -> Send:
    return lambda path, headers: _exchange(subject.port, Request(path, headers=headers))


def _check_large_head(subject: _Subject, result: CheckResult) -> None:
    known, fault = subject.variant.variant.head_limit, large_head_fault(_sender(subject))
    result.large_head = fault is None
    # In the stock profile, the server's default limit is not a fault.
    if subject.profile == "tuned":
        limited = f"it accepts a request head of 32 KiB, but its file says {known!r}"
        result.record((fault is None) == (known is None), fault or limited)


def _check_forwarded(subject: _Subject, result: CheckResult) -> None:
    """Every server must pass the header fields to the app; servers that trust a proxy must also set
    the scheme."""
    if not subject.variant.server.serves_apps:
        return
    forwarded, known = forwarding(_sender(subject)), subject.variant.variant.no_trusted_proxies
    is_trusted = forwarded.scheme == "https"
    result.forwarded = is_trusted and not forwarded.lost
    if subject.profile == "tuned":
        result.record(not forwarded.lost, f"the app did not get {' and '.join(forwarded.lost)}")
        says = "that it is trusted" if known is None else repr(known)
        complaint = (
            f"with X-Forwarded-Proto: https the app sees {forwarded.scheme or 'no scheme'}, but "
            f"its file says {says}"
        )
        result.record(is_trusted == (known is None), complaint)


def _check_backlog(subject: _Subject, result: CheckResult) -> None:
    queue = read_listen_queue(subject.port)
    result.backlog = queue.backlog // queue.sockets if queue else None
    requested = subject.backlog
    complaint = f"its listen backlog is {result.backlog} instead of {requested}"
    result.backlog_as_asked = result.record(
        requested is None or result.backlog == requested, complaint
    )


def _check_quiet(subject: _Subject, result: CheckResult) -> None:
    before = subject.server.log.mark()
    for _ in range(QUIET_REQUESTS):
        readiness.ask(subject.port, GREETING, RESPONSE_TIMEOUT_S)
    lines = subject.server.log.read(before).decode(errors="replace").splitlines()
    result.quiet = len(lines) <= MAX_QUIET_LINES
    complaint = (
        f"it logged {len(lines)} lines for {QUIET_REQUESTS} requests, such as "
        f"{' '.join(lines[:1])[:100]!r}"
    )
    result.record(result.quiet or subject.profile == "stock", complaint)


def _check_processes(subject: _Subject, result: CheckResult) -> None:
    result.processes = len(subject.server.group.pids())
    limit = max_processes(subject.variant, subject.budget)
    result.within_budget = subject.profile == "stock" or result.record(
        result.processes <= limit,
        f"it runs {result.processes} processes instead of at most {limit}",
    )


# Checks that make a server log, such as an error of the app, must follow the check of its log.
PROPERTIES: tuple[Callable[[_Subject, CheckResult], None], ...] = (
    _check_bodies,
    _check_quiet,
    _check_keepalive,
    _check_framing,
    _check_delays,
    _check_errors,
    _check_conformance,
    _check_backlog,
    _check_echo,
    _check_forwarded,
    _check_large_head,
    _check_workers,
    _check_processes,
)
