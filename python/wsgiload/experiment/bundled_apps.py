"""What a bundled app needs in an experiment: its request, and the server that it fetches from.

Starts nothing.
"""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from wsgiload.catalogue.bundled import BundledApp, bundled_app
from wsgiload.experiment.public_options import SupportingService
from wsgiload.loads.request import Request

# Below the ports that the kernel hands out to connections.
UPSTREAM_PORT = 18_917


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
    found: dict[str, str] = {}
    for own in map(bundled_app, names):
        if own.upstream is None or own.upstream.variable in variables:
            continue
        words = (sys.executable, str(own.upstream.program), str(UPSTREAM_PORT))
        services[own.name] = SupportingService(command=shlex.join(words), ready=UPSTREAM_PORT)
        found[own.upstream.variable] = f"127.0.0.1:{UPSTREAM_PORT}"
    return services, found
