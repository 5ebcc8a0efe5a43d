"""Proves that servers serve here: each property measured on a really launched server, none taken on trust."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wsgiload import launch, readiness
from wsgiload.bundled import BUNDLED, DEFAULT_APP, BundledApp
from wsgiload.catalogue import ServerVariant
from wsgiload.contract import LaunchContext
from wsgiload.errors import WsgiloadError
from wsgiload.interpreter import AppInterpreter
from wsgiload.launch import ServerProcess
from wsgiload.limits import Janitor, LimitedGroup, Limits, select_backend
from wsgiload.listen_queue import read_listen_queue
from wsgiload.plan import Request
from wsgiload.provision import provision
from wsgiload.units import NS_PER_S

READY_TIMEOUT_NS = 30 * NS_PER_S


@dataclass(slots=True)
class CheckResult:
    """What was found of one variant; None where the check was not reached."""

    server: str
    version: str | None = None
    right_body: bool | None = None
    keepalive: bool | None = None
    keepalive_as_claimed: bool | None = None
    backlog: int | None = None
    clean_stop: bool | None = None
    ready_s: float | None = None
    stop_s: float | None = None
    failure: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every property holds."""
        return self.failure is None and bool(self.right_body and self.keepalive_as_claimed and self.clean_stop)

    def to_dict(self) -> dict[str, Any]:
        """One row of the table."""
        return asdict(self) | {"passed": self.passed}


def check_servers(
    chosen: Sequence[ServerVariant], interpreter: AppInterpreter, *, log: Callable[[str], None]
) -> list[CheckResult]:
    """Launch each variant once and check it; one that fails does not stop the others."""
    results = []
    with Janitor() as janitor:
        for found in chosen:
            log(f"checking {found.id}")
            result = CheckResult(found.id)
            try:
                _check(found, interpreter, janitor, result, log)
            except WsgiloadError as error:
                result.failure = str(error)
            results.append(result)
    return results


def _check(
    found: ServerVariant,
    interpreter: AppInterpreter,
    janitor: Janitor,
    result: CheckResult,
    log: Callable[[str], None],
) -> None:
    environment = provision(found.server, interpreter, log=log)
    result.version = environment.version
    app, port = BUNDLED[DEFAULT_APP], launch.free_port()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wsgiload-")))
        limits = Limits(policy="best-effort")
        group = select_backend(limits).create(limits, f"check-{found.id}")
        stack.callback(_close, group, janitor)
        janitor.watch(group)
        server = ServerProcess(found, group, scratch / "server.log")
        stack.callback(_stop, server, result)
        context = _context(environment.python, app, port, scratch)
        server.start(environment, context)
        janitor.watch(group)
        request = Request(path=app.path, expected_body=app.expected_body)
        result.ready_s = round(readiness.wait_until_ready(server, port, request, READY_TIMEOUT_NS), 3)
        result.right_body = all(readiness.ask(port, request).problem is None for _ in range(20))
        result.keepalive = readiness.keeps_connections(port, request)
        result.keepalive_as_claimed = result.keepalive == found.variant.keepalive
        queue = read_listen_queue(port)
        result.backlog = queue.backlog if queue else None


def _context(python: Path, app: BundledApp, port: int, scratch: Path) -> LaunchContext:
    return LaunchContext(
        python=python,
        bin=python.parent,
        host=launch.HOST,
        port=port,
        app=app.app,
        app_dir=app.app_dir,
        scratch_dir=scratch,
        workers=2,
        threads=2,
        backlog=launch.usual_backlog(),
    )


def _stop(server: ServerProcess, result: CheckResult) -> None:
    ended = server.stop()
    if ended is not None:
        result.clean_stop, result.stop_s = ended.clean, ended.stop_s


def _close(group: LimitedGroup, janitor: Janitor) -> None:
    group.close()
    janitor.release(group)
