"""Under one CPU no tuned server starts more processes than its budget, counted in the group it runs
in."""

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
USUAL = load_catalogue().select(None)


@pytest.mark.parametrize("found", USUAL, ids=lambda found: found.id)
def test_a_tuned_server_stays_within_the_budget_of_one_cpu(
    found: ServerVariant, tmp_path: Path
) -> None:
    try:
        backend = select_backend(LIMITS)
    except LimitsError as error:
        pytest.skip(str(error))
    environment = provision(found.server, bundled_app_interpreter(), log=lambda line: None)
    budget = budget_of(found, 1.0, "tuned")
    assert budget.workers == 1
    expected = Expectation(GREETING, 60_000_000_000, DEFAULT_TIMEOUT_NS)
    port, service = launch.free_port(), Service(found, environment, expected, tmp_path / "log")
    context = conformance_context(found, environment, port, "tuned", budget)
    with (
        Janitor() as janitor,
        serving("budget", service, Place(LIMITS, backend, janitor), context, Served()) as server,
    ):
        assert len(server.group.pids()) <= max_processes(found, budget)


def variant(name: str) -> ServerVariant:
    (found,) = load_catalogue().select([name])
    return found


@pytest.mark.parametrize(
    ("name", "cpus", "expected"),
    [
        ("gunicorn-gthread", 0.5, Budget(1, 4)),
        ("gunicorn-gthread", 1, Budget(1, 4)),
        ("gunicorn-gthread", 3.5, Budget(3, 4)),
        ("gunicorn-sync", 2, Budget(2, 1)),
        # One process: its threads are what others have as processes times threads.
        ("waitress", 3, Budget(1, 12)),
        ("wsgiref", 4, Budget(1, 1)),
    ],
)
def test_the_budget_follows_the_cpu_limit_and_not_the_host(
    name: str, cpus: float, expected: Budget
) -> None:
    assert budget_of(variant(name), cpus, "tuned") == expected


def test_the_stock_profile_sets_nothing_and_what_the_user_names_goes_first() -> None:
    found = variant("gunicorn-gthread")
    assert budget_of(found, 2, "stock") == Budget(None, None)
    assert budget_of(found.sized(5, 6), 2, "stock") == Budget(5, 6)
    assert budget_of(found.sized(5, None), 2, "tuned") == Budget(5, 4)
    assert budget_of(variant("waitress").sized(5, None), 2, "tuned") == Budget(1, 8)
