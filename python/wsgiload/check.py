"""Proves that servers serve here: each property measured on a really launched server, none taken on trust."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wsgiload import launch, readiness
from wsgiload.bundled import BUNDLED, DEFAULT_APP, BundledApp
from wsgiload.catalogue import ServerVariant
from wsgiload.contract import LaunchContext
from wsgiload.cpus import available_cpus
from wsgiload.errors import WsgiloadError
from wsgiload.interpreter import AppInterpreter
from wsgiload.limits import Janitor, Limits, select_backend
from wsgiload.listen_queue import read_listen_queue
from wsgiload.plan import DEFAULT_TIMEOUT_NS, Request
from wsgiload.provision import Environment, provision
from wsgiload.readiness import Expectation
from wsgiload.serve import Place, Served, Service, serving
from wsgiload.units import NS_PER_S

READY_TIMEOUT_NS = 30 * NS_PER_S
# Enough to meet each of two workers, as good as surely.
REQUESTS = 20


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
    limits = Limits(server_cpus=available_cpus(), policy="best-effort")
    results = []
    with Janitor() as janitor:
        place = Place(limits, select_backend(limits), janitor)
        for found in chosen:
            log(f"checking {found.id}")
            result = CheckResult(found.id)
            try:
                environment = provision(found.server, interpreter, log=log)
                result.version = environment.version
                _check(found, environment, place, result)
            except WsgiloadError as error:
                result.failure = str(error)
            results.append(result)
    return results


def _check(found: ServerVariant, environment: Environment, place: Place, result: CheckResult) -> None:
    app, port, served = BUNDLED[DEFAULT_APP], launch.free_port(), Served()
    request = Request(path=app.path, expected_body=app.expected_body)
    with tempfile.NamedTemporaryFile(prefix="wsgiload-", suffix=".log") as log:
        expected = Expectation(request, READY_TIMEOUT_NS, DEFAULT_TIMEOUT_NS)
        service = Service(found, environment, expected, Path(log.name))
        context = _context(environment, app, port)
        try:
            with serving(f"check-{found.id}", service, place, context, served) as server:
                result.right_body = all(readiness.ask(port, request).problem is None for _ in range(REQUESTS))
                result.keepalive = readiness.keeps_connections(server, port, request, DEFAULT_TIMEOUT_NS)
                result.keepalive_as_claimed = result.keepalive == found.variant.keepalive
                queue = read_listen_queue(port)
                result.backlog = queue.backlog if queue else None
        finally:
            result.ready_s = None if served.ready_s is None else round(served.ready_s, 3)
            if served.ended is not None:
                result.clean_stop, result.stop_s = served.ended.clean, served.ended.stop_s


def _context(environment: Environment, app: BundledApp, port: int) -> Callable[[Path], LaunchContext]:
    return lambda scratch: LaunchContext(
        python=environment.python,
        bin=environment.bin,
        host=launch.HOST,
        port=port,
        app=app.app,
        app_dir=app.app_dir,
        scratch_dir=scratch,
        workers=2,
        threads=2,
        backlog=launch.usual_backlog(),
    )
