"""With a limit of one CPU, no tuned server starts more processes than its budget allows, counted in
its cgroup. The budget depends on the CPU limit, the profile and the user's options."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.catalogue.budget import Budget, budget_of, max_processes
from wsgiload.catalogue.names import ServerVariant, load_catalogue
from wsgiload.environments.interpreter import bundled_app_interpreter
from wsgiload.environments.provision import provision
from wsgiload.errors import LimitsError
from wsgiload.limits import Janitor, Limits, select_backend
from wsgiload.loads.options import DEFAULT_TIMEOUT_NS
from wsgiload.serving import launch
from wsgiload.serving.conformance import GREETING, conformance_context
from wsgiload.serving.groups import Place
from wsgiload.serving.lifecycle import Served, Service, serving
from wsgiload.serving.readiness import Expectation

pytestmark = [pytest.mark.servers, pytest.mark.limits, pytest.mark.timeout(600)]

LIMITS = Limits(cpus=1.0, memory_bytes=512 * 1024**2, pids=512)
DEFAULT_VARIANTS = load_catalogue().select(None)


@pytest.mark.parametrize("variant", DEFAULT_VARIANTS, ids=lambda variant: variant.id)
def test_a_tuned_server_stays_within_the_budget_of_one_cpu(
    variant: ServerVariant, tmp_path: Path
) -> None:
    try:
        backend = select_backend(LIMITS)
    except LimitsError as error:
        pytest.skip(str(error))

    environment = provision(variant.server, bundled_app_interpreter(), log=lambda line: None)
    budget = budget_of(variant, 1.0, "tuned")
    assert budget.workers == 1

    expected = Expectation(GREETING, 60_000_000_000, DEFAULT_TIMEOUT_NS)
    service = Service(variant, environment, expected, tmp_path / "log")
    context = conformance_context(variant, environment, launch.free_port(), "tuned", budget)
    with (
        Janitor() as janitor,
        serving("budget", service, Place(LIMITS, backend, janitor), context, Served()) as server,
    ):
        assert len(server.group.pids()) <= max_processes(variant, budget)


def variant_named(name: str) -> ServerVariant:
    (variant,) = load_catalogue().select([name])
    return variant


@pytest.mark.parametrize(
    ("name", "cpus", "expected"),
    [
        ("gunicorn-gthread", 0.5, Budget(1, 4)),
        ("gunicorn-gthread", 1, Budget(1, 4)),
        ("gunicorn-gthread", 3.5, Budget(3, 4)),
        ("gunicorn-sync", 2, Budget(2, 1)),
        # One process, so its threads replace processes times threads.
        ("waitress", 3, Budget(1, 12)),
        ("wsgiref", 4, Budget(1, 1)),
    ],
)
def test_the_budget_depends_on_the_cpu_limit_and_not_on_the_host(
    name: str, cpus: float, expected: Budget
) -> None:
    assert budget_of(variant_named(name), cpus, "tuned") == expected


def test_the_stock_profile_has_no_budget_and_user_options_have_precedence() -> None:
    gthread = variant_named("gunicorn-gthread")
    assert budget_of(gthread, 2, "stock") == Budget(None, None)
    assert budget_of(gthread.sized(5, 6), 2, "stock") == Budget(5, 6)
    assert budget_of(gthread.sized(5, None), 2, "tuned") == Budget(5, 4)
    assert budget_of(variant_named("waitress").sized(5, None), 2, "tuned") == Budget(1, 8)
