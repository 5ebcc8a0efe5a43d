"""``wsgiload sweep --dry-run``: prints the resolved plan and imports the app. Starts no server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import msgspec

from wsgiload.account import account_of
from wsgiload.capacity_search.rates import SHARES
from wsgiload.catalogue.names import ServerVariant
from wsgiload.environments.provide import named_interpreters, needs_app
from wsgiload.experiment.estimate import experiment_s
from wsgiload.experiment.plan import Experiment, expand, plain
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits import Policy
from wsgiload.loads.options import Level
from wsgiload.report.command_line import to_paste
from wsgiload.results.record import Setting
from wsgiload.serving.groups import chosen_place
from wsgiload.sweeps.app_check import app_failure_of, app_interpreter, interpreters_of
from wsgiload.sweeps.intervene import further_runs, require_liftable
from wsgiload.sweeps.planned_settings import planned_settings
from wsgiload.sweeps.sweep import plan_cpus
from wsgiload.units import NS_PER_S


class PlannedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a server would be started."""

    command_line: str
    workers: int | None
    threads: int | None
    backlog: int | None
    keepalive: Literal["on", "off"] | None
    version: str | None
    environment: dict[str, str]


class AppPython(msgspec.Struct, frozen=True, kw_only=True):
    """The interpreter of the app; ``origin`` says how it was chosen."""

    executable: str
    version: str
    origin: str


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep would do, derived from its plan."""

    servers: tuple[str, ...]
    app_python: AppPython | None
    pythons: dict[str, str]
    cpu_plan: CpuPlan
    order: tuple[str, ...] | None
    settings: dict[str, PlannedSettings]
    intervention_runs: int
    load_seconds: float
    estimated_seconds: float
    conclusions: tuple[str, ...]


def resolved_plan(
    experiment: Experiment, conclusions: Sequence[str], *, is_rateless: bool
) -> object:
    """The resolved plan, each server's settings, the CPU assignment, and the minimum duration,
    including intervention runs.

    If the rates are determined first (``is_rateless``), rates and order are unknown; the estimate
    does not depend on them.
    """
    if is_rateless:
        levels = tuple(Level(rate_per_s=100.0 * share) for share in SHARES)
        experiment = replace(experiment, levels=levels)
    servers = resolve_servers(experiment)
    interpreters = named_interpreters(servers, account_of(experiment.limits.user))
    cpu_plan = require_possible_intervention(experiment)
    order = expand(experiment, tuple(servers))
    further = further_runs(order, experiment)
    cells = [*order, *further]

    resolved = DryRun(
        servers=tuple(servers),
        app_python=app_python_of(experiment, servers),
        pythons={name: interpreter.version for name, interpreter in interpreters.items()},
        cpu_plan=cpu_plan,
        order=None if is_rateless else tuple(cell.id for cell in order),
        settings=_planned_settings(experiment, servers),
        intervention_runs=len(further),
        load_seconds=_within_budget(
            sum(experiment.load_of(cell.run, cell.level).load_ns_at(cell.level) for cell in cells)
            / NS_PER_S,
            experiment,
        ),
        estimated_seconds=_within_budget(experiment_s(cells, experiment), experiment),
        conclusions=tuple(conclusions),
    )
    unknown = {"levels": None} if is_rateless else {}
    return plain(experiment.without_secrets()) | plain(resolved) | unknown


def require_importable_app(experiment: Experiment) -> None:
    """Import the app as a measurement would, within the limits that can be enforced here. Does
    nothing if the app may need a service, which only a measurement starts.

    Raises UsageError if the app does not exist, and AppImportError if the import fails.
    """
    needs_services = any(one.command for one in experiment.services.values())
    if experiment.bundled or experiment.app is None or needs_services:
        return
    interpreters = interpreters_of(experiment, resolve_servers(experiment))
    policy: Policy = "none" if experiment.limits.policy == "none" else "best-effort"
    _, limits = plan_cpus(replace(experiment.limits, policy=policy))
    with chosen_place(limits) as place:
        failure = app_failure_of(experiment, interpreters, place)
    if failure is not None:
        raise failure


def app_python_of(experiment: Experiment, servers: Mapping[str, ServerVariant]) -> AppPython | None:
    """The interpreter of the user's app; None for a bundled app, or if only the user's server
    commands choose it."""
    if experiment.bundled or not needs_app(servers):
        return None
    interpreter = app_interpreter(experiment)
    return AppPython(
        executable=str(interpreter.executable),
        version=interpreter.version,
        origin=interpreter.origin,
    )


def require_possible_intervention(experiment: Experiment) -> CpuPlan:
    """Raise UsageError for an intervention that could have no effect. Returns the CPU
    assignment."""
    cpu_plan, limits = plan_cpus(experiment.limits)
    if experiment.intervene is not None:
        require_liftable(limits, cpu_plan)
    return cpu_plan


def _planned_settings(
    experiment: Experiment, servers: Mapping[str, ServerVariant]
) -> dict[str, PlannedSettings]:
    planned = planned_settings(servers, Setting(experiment, *plan_cpus(experiment.limits)))
    return {
        name: PlannedSettings(
            command_line=to_paste(settings),
            workers=settings.workers,
            threads=settings.threads,
            backlog=settings.backlog,
            keepalive=settings.keepalive,
            version=settings.versions.server,
            environment=settings.environment,
        )
        for name, settings in planned.items()
    }


def _within_budget(seconds: float, experiment: Experiment) -> float:
    """The planned seconds; a race skips most of its plan."""
    if experiment.budget_ns is None:
        return seconds
    return min(seconds, experiment.budget_ns / NS_PER_S)
