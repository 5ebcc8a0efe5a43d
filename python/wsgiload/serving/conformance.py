"""Launches a variant with the app ``conformance``, which exposes every checked property."""

from __future__ import annotations

from collections.abc import Callable
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
