"""The requests of bundled apps, and the upstream services that they need. Starts nothing."""

from __future__ import annotations

import hashlib
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from wsgiload.catalogue.bundled import BundledApp, bundled_app
from wsgiload.errors import UsageError
from wsgiload.experiment.public_options import SupportingService
from wsgiload.loads.request import Request

# Below the ephemeral port range. If the port is in use, the next free one is used.
FIRST_UPSTREAM_PORT = 18_917
PORTS_TRIED = 100
HOST = "127.0.0.1"


def request_of(app: BundledApp, request: Request) -> Request:
    """The request with this app's method and body, unless the user set them. The app returns the
    request body, so a body from the user is also the expected one."""
    if app.body is None:
        return request
    is_usual = request.expected_body == app.expected_body
    if request.targets or request.sessions:  # each has its own body
        return replace(request, expected_body=None) if is_usual else request
    request = replace(request, method=app.method if request.method == "GET" else request.method)
    if request.body is None:
        return replace(request, body=app.body)
    if not is_usual:
        return request
    # Only a hash: the expectation is stored, and a body may contain secrets.
    sha256 = hashlib.sha256(request.body).hexdigest()
    return replace(request, expected_body=None, expected_sha256=request.expected_sha256 or sha256)


def upstream_services(
    names: Sequence[str], variables: Mapping[str, str]
) -> tuple[dict[str, SupportingService], dict[str, str]]:
    """The upstream services of these bundled apps, and the environment variables with their
    addresses. An upstream whose address the user sets is not started."""
    services: dict[str, SupportingService] = {}
    addresses: dict[str, str] = {}
    for app in map(bundled_app, names):
        if app.upstream is None or app.upstream.variable in variables:
            continue
        port = _free_port()
        words = (sys.executable, str(app.upstream.program), str(port))
        services[app.name] = SupportingService(command=shlex.join(words), ready=port)
        addresses[app.upstream.variable] = f"{HOST}:{port}"
    return services, addresses


def _free_port() -> int:
    """The first port without a listener; another sweep's upstream may use some of them."""
    for port in range(FIRST_UPSTREAM_PORT, FIRST_UPSTREAM_PORT + PORTS_TRIED):
        with suppress(OSError), socket.create_server((HOST, port)):
            return port
    last = FIRST_UPSTREAM_PORT + PORTS_TRIED - 1
    raise UsageError(
        f"the ports {FIRST_UPSTREAM_PORT} to {last} are in use",
        "start the upstream yourself, and name it with --env WSGILOAD_UPSTREAM=host:port",
    )
