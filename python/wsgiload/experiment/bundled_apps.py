"""What a bundled app needs in an experiment: its request, and the server that it fetches from.

Starts nothing.
"""

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

# Below the ports that the kernel hands out to connections; the next free one is taken.
FIRST_UPSTREAM_PORT = 18_917
MOST_PORTS = 100
HOST = "127.0.0.1"


def request_of(own: BundledApp, request: Request) -> Request:
    """``request`` for this app: with the body that the app responds with, where it is to be sent
    one and none was given."""
    if own.body is None:
        return request
    is_usual = request.expected_body == own.expected_body
    if request.targets or request.sessions:  # each with a body of its own
        return replace(request, expected_body=None) if is_usual else request
    request = replace(request, method=own.method if request.method == "GET" else request.method)
    if request.body is None:
        return replace(request, body=own.body)
    if not is_usual:
        return request
    # By its hash: a body may hold secrets, and what is expected is stored.
    sha256 = hashlib.sha256(request.body).hexdigest()
    return replace(request, expected_body=None, expected_sha256=request.expected_sha256 or sha256)


def upstream_services(
    names: Sequence[str], variables: Mapping[str, str]
) -> tuple[dict[str, SupportingService], dict[str, str]]:
    """The services that these bundled apps fetch from, and the variables that say where they are;
    none where the user's variables say it."""
    services: dict[str, SupportingService] = {}
    addresses: dict[str, str] = {}
    for own in map(bundled_app, names):
        if own.upstream is None or own.upstream.variable in variables:
            continue
        port = _free_port()
        words = (sys.executable, str(own.upstream.program), str(port))
        services[own.name] = SupportingService(command=shlex.join(words), ready=port)
        addresses[own.upstream.variable] = f"{HOST}:{port}"
    return services, addresses


def _free_port() -> int:
    """A port that nothing listens on, such as another sweep's upstream."""
    for port in range(FIRST_UPSTREAM_PORT, FIRST_UPSTREAM_PORT + MOST_PORTS):
        with suppress(OSError), socket.create_server((HOST, port)):
            return port
    last = FIRST_UPSTREAM_PORT + MOST_PORTS - 1
    raise UsageError(
        f"the ports {FIRST_UPSTREAM_PORT} to {last} are in use",
        "start the upstream yourself, and name it with --env WSGILOAD_UPSTREAM=host:port",
    )
