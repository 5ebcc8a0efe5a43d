"""``--dry-run`` of ``wsgiload sweep`` and ``capacity``: converts their options to a plan, shows it,
and imports the app. Starts no server."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
from rich.console import Console
from rich.table import Table

from wsgiload.account import account_of
from wsgiload.capacity_search.rates import unknown_levels
from wsgiload.catalogue.names import ServerVariant, load_catalogue
from wsgiload.catalogue.pin import server_in
from wsgiload.catalogue.user_server import commands_by_name
from wsgiload.cli._declared import given_options
from wsgiload.cli._options import configured_servers, configured_services, request_options_of
from wsgiload.environments.user_environment import named_interpreters, needs_app
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec
from wsgiload.experiment.estimate import experiment_s
from wsgiload.experiment.grid import parse_grid
from wsgiload.experiment.plan import Experiment, ResourceLimits, expand, plain
from wsgiload.experiment.public_options import ServerCommand, ServerOptions, SweepOptions
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits import Policy
from wsgiload.loads.public_options import LoadOptions
from wsgiload.loads.request import Request
from wsgiload.report import words
from wsgiload.report.command_line import to_paste
from wsgiload.results.record import Setting
from wsgiload.serving.groups import chosen_place
from wsgiload.sweeps.app_check import app_failure_of, app_interpreter, interpreters_of
from wsgiload.sweeps.intervene import further_runs, require_liftable
from wsgiload.sweeps.planned_settings import planned_settings
from wsgiload.sweeps.sweep import plan_cpus
from wsgiload.units import NS_PER_S, level_words


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


def dry_run_of(experiment: Experiment, conclusions: Sequence[str], *, is_rateless: bool) -> DryRun:
    """Each server's settings, the CPU assignment, and the minimum duration, including intervention
    runs.

    If the rates are determined first (``is_rateless``), the order is unknown; the estimate does not
    depend on it.
    """
    if is_rateless:
        experiment = replace(experiment, levels=unknown_levels(experiment))
    servers = resolve_servers(experiment)
    interpreters = named_interpreters(servers, account_of(experiment.limits.user))
    cpu_plan = require_possible_intervention(experiment)
    order = expand(experiment, tuple(servers))
    further = further_runs(order, experiment)
    cells = [*order, *further]

    return DryRun(
        servers=tuple(servers),
        app_python=app_python_of(experiment, servers),
        pythons={name: interpreter.version for name, interpreter in interpreters.items()},
        cpu_plan=cpu_plan,
        order=None if is_rateless else tuple(cell.id for cell in order),
        settings=_planned_settings(experiment, servers),
        intervention_runs=len(further),
        load_seconds=_within_budget(
            sum(experiment.load_of(cell.level).load_ns_at(cell.level) for cell in cells) / NS_PER_S,
            experiment,
        ),
        estimated_seconds=_within_budget(experiment_s(cells, experiment), experiment),
        conclusions=tuple(conclusions),
    )


def plan_document(experiment: Experiment, planned: DryRun) -> object:
    """The complete plan; rates that are determined first are unknown."""
    unknown = {"levels": None} if planned.order is None else {}
    return plain(experiment.without_secrets()) | plain(planned) | unknown


def print_plan(experiment: Experiment, planned: DryRun, console: Console) -> None:
    """Print what would be measured on one screen."""
    for line in _plan_lines(experiment.without_secrets(), planned):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("server", "version", "workers", "threads"):
        table.add_column(heading, justify="right" if heading in {"workers", "threads"} else "left")
    for name, settings in planned.settings.items():
        sizes = (
            "–" if size is None else str(size) for size in (settings.workers, settings.threads)
        )
        table.add_row(name, settings.version or "–", *sizes)
    console.print(table)


def _plan_lines(experiment: Experiment, planned: DryRun) -> list[str]:
    python, cores = planned.app_python, planned.cpu_plan
    interpreter = f" (Python {python.version} of {python.executable})" if python else ""
    levels = [level_words(one.rate_per_s, one.connections) for one in experiment.levels]
    where = "rates to be found" if planned.order is None else words.join_words(levels)
    lines = [
        f"app: {experiment.app or experiment.name}{interpreter}",
        f"load: {_requests(experiment.request)} at {where}",
        f"limits: {_limits(experiment.limits)}",
        f"CPUs: {words.format_cpu_list(cores.server_cpus)} for a server, "
        f"{words.format_cpu_list(cores.client_cpus)} for the load",
        f"time: about {words.format_span(planned.estimated_seconds)}",
    ]
    if planned.order is not None and experiment.budget_ns is None:
        trials = len(planned.order) + planned.intervention_runs
        lines.append(f"trials: {trials}, in random order")
    return [*lines, *planned.conclusions, "complete plan: --dry-run --json -", ""]


def _requests(request: Request) -> str:
    if request.sessions:
        return words.plural(len(request.sessions), "session")
    if request.targets:
        return words.plural(len(request.targets), "target")
    return f"{request.method} {request.path}"


def _limits(limits: ResourceLimits) -> str:
    requested = words.limits_words(limits.cpus, limits.memory_bytes)
    if limits.policy == "none" or not requested:
        return "none"
    is_strict = limits.policy == "strict"
    return requested if is_strict else f"{requested}, as far as they can be enforced"


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


def spec_of(app: str | None, flags: Mapping[str, Any]) -> SweepSpec:
    """The sweep that APP and the options of ``wsgiload sweep`` or ``capacity`` describe."""
    if app is not None and flags["app_name"] is not None:
        raise UsageError(f"APP {app!r} and --app-name are mutually exclusive")
    commands, servers = _own_commands(flags, configured_servers())
    return SweepSpec(
        app=app,
        rates=flags.get("rates"),
        connections=flags.get("connections"),
        servers=servers,
        duration=flags["duration"],
        load=given_options(LoadOptions, flags),
        request=request_options_of(flags),
        server=given_options(
            ServerOptions, flags, command=commands, grid=parse_grid(flags["grid"])
        ),
        limits=given_options(ResourceLimits, flags),
        options=given_options(SweepOptions, flags),
        out=flags["out"],
        services=configured_services(),
    )


def _own_commands(
    flags: Mapping[str, Any], tables: Mapping[str, ServerCommand]
) -> tuple[dict[str, str | ServerCommand], tuple[str, ...] | None]:
    """The user's own servers to measure, and the other servers that --servers names.

    A table is measured if --servers names it, or if there is neither --servers nor --command. A
    --command with the name of a table replaces the table's command.
    """
    given, named = commands_by_name(flags["command"]), flags["servers"]
    selected = [server_in(name) for name in named or ()]
    _require_no_typo(selected, [*tables, *given], flags["servers_from"])
    chosen = [name for name in tables if name in selected]
    if named is None and not given:
        chosen = list(tables)
    commands: dict[str, str | ServerCommand] = {name: tables[name] for name in chosen}
    for name, command in given.items():
        table = tables.get(name)
        commands[name] = command if table is None else replace(table, command=command)
    others = tuple(name for name in named or () if name not in commands)
    return commands, None if named is None or (commands and not others) else others


def _require_no_typo(selected: Sequence[str], own: Sequence[str], folder: Path | None) -> None:
    """Raise UsageError for an unknown name that is similar to a table's name; the catalogue would
    suggest one of its servers instead."""
    for name in selected:
        close = difflib.get_close_matches(name, own, n=1)
        if close and name not in own and not load_catalogue(further=folder).has(name):
            raise UsageError(f"unknown server {name!r}", f"did you mean {close[0]}?")
