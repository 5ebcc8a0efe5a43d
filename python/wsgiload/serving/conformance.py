"""Launches a variant with the app ``conformance``, which exposes every checked property, such as
large request heads and the header fields of a proxy."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wsgiload.catalogue.apps import conformance
from wsgiload.catalogue.budget import Budget
from wsgiload.catalogue.bundled import APPS_FOLDER
from wsgiload.catalogue.contract import LaunchContext, Profile
from wsgiload.catalogue.names import ServerVariant
from wsgiload.environments.provision import Environment
from wsgiload.loads.options import DEFAULT_TIMEOUT_NS
from wsgiload.loads.request import Request
from wsgiload.scratch import scratch_folder
from wsgiload.serving import launch, readiness
from wsgiload.serving.concurrency import Concurrency, probe_concurrency
from wsgiload.serving.exchange import Response
from wsgiload.serving.groups import Place
from wsgiload.serving.lifecycle import Served, Service, serving
from wsgiload.serving.readiness import Expectation
from wsgiload.units import NS_PER_S

APPS = {"wsgi": "conformance:app", "asgi": "conformance_asgi:app"}
READY_TIMEOUT_NS = 60 * NS_PER_S
GREETING = Request(path=conformance.PATH, expected_body=conformance.EXPECTED_BODY)
# More than any probe opens at once.
MAX_CONNECTIONS = 1_000


def conformance_context(
    variant: ServerVariant, environment: Environment, port: int, profile: Profile, budget: Budget
) -> Callable[[Path], LaunchContext]:
    """A function from the scratch folder to the launch parameters with the app ``conformance``."""
    is_tuned = profile == "tuned"
    return lambda scratch: LaunchContext(
        python=environment.python,
        bin=environment.bin,
        host=launch.HOST,
        port=port,
        app=APPS[variant.variant.interface],
        app_dir=APPS_FOLDER,
        scratch_dir=scratch,
        workers=(budget.workers if variant.variant.uses_workers else 1)
        if is_tuned
        else variant.workers,
        threads=(budget.threads if variant.variant.uses_threads else 1)
        if is_tuned
        else variant.threads,
        backlog=launch.tuned_backlog() if is_tuned else None,
        max_connections=MAX_CONNECTIONS if is_tuned else None,
        profile=profile,
        version=environment.version,
    )


def measure_concurrency(
    variant: ServerVariant,
    environment: Environment,
    place: Place,
    profile_and_budget: tuple[Profile, Budget],
) -> Concurrency:
    """The concurrency of a variant, measured on a separate launch, because the probe leaves the
    server busy."""
    (profile, budget), port, served = (
        profile_and_budget,
        launch.free_port(),
        Served(gracefully=False),
    )
    with scratch_folder() as folder:
        expected = Expectation(GREETING, READY_TIMEOUT_NS, DEFAULT_TIMEOUT_NS)
        service = Service(variant, environment, expected, folder / "server.log")
        context = conformance_context(variant, environment, port, profile, budget)
        with serving(f"concurrency-{variant.id}", service, place, context, served) as server:
            keeps = readiness.keeps_connections(server, port, GREETING, DEFAULT_TIMEOUT_NS)
            return probe_concurrency((launch.HOST, port), keeps_connections=keeps)


HEAD_BYTES = 32 << 10
# The size of the request line and the other fields, with the longest port.
_REST_BYTES = len("GET /cookie HTTP/1.1\r\nHost: 127.0.0.1:65535\r\nCookie: \r\n\r\n")
_START = "session="
COOKIE = ("Cookie", _START + "a" * (HEAD_BYTES - _REST_BYTES - len(_START)))
FORWARDED = (
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-For", "192.0.2.7"),
    ("X-Forwarded-Host", "shop.example"),
)

# Sends a request for a path with these header fields.
Send = Callable[[str, tuple[tuple[str, str], ...]], Response]


def large_head_fault(send: Send) -> str | None:
    """What is wrong with the response to a head of 32 KiB; None if the app receives all of it."""
    try:
        response = send("/cookie", (COOKIE,))
    except (OSError, http.client.HTTPException) as error:
        return f"it closed the connection on a request head of 32 KiB ({type(error).__name__})"
    if response.status != 200:
        return f"it rejected a request head of 32 KiB with status {response.status}"
    if response.body != COOKIE[1].encode():
        received, sent = len(response.body), len(COOKIE[1])
        return f"only {received:,} of the {sent:,} bytes of a cookie reached the app"
    return None


@dataclass(frozen=True, slots=True)
class Forwarding:
    """What an app receives of a request that came through a proxy on this host."""

    scheme: str
    lost: tuple[str, ...]


def forwarding(send: Send) -> Forwarding:
    """The scheme that the app sees, and the forwarded fields that it does not receive as sent."""
    text = send("/forwarded", FORWARDED).body.decode(errors="replace")
    scheme, *arrived = text.split("\n")
    arrived += [""] * (len(FORWARDED) - len(arrived))
    lost = (
        name
        for (name, value), received in zip(FORWARDED, arrived, strict=False)
        if value != received
    )
    return Forwarding(scheme, tuple(lost))
