"""What the options of ``wsgiload sweep``, and of the commands that share them, ask for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from wsgiload.catalogue.bundled import DEFAULT_APP, bundled_app
from wsgiload.cli._grid import sizes_of
from wsgiload.cli._options import request_of
from wsgiload.errors import UsageError
from wsgiload.experiment.grid import apps_of
from wsgiload.experiment.plan import Experiment, ResourceLimits
from wsgiload.experiment.procedure import usual_procedure
from wsgiload.experiment.settings import runs_to_compare
from wsgiload.host.cpus import parse_cpu_list
from wsgiload.loads.options import DEFAULT_MAX_CONNECTIONS, Level, LoadOptions

DEFAULT_RATES = (1000.0, 2000.0, 3000.0)


def experiment_of(app: str | None, options: dict[str, Any]) -> Experiment:
    """What APP and the options ask for."""
    if app is not None and options["app_name"] is not None:
        raise UsageError(
            f"both APP {app!r} and --app-name {options['app_name']!r} were given",
            "give one of them",
        )
    sizes = sizes_of(app, options)
    names = apps_of(sizes) or [options["app_name"] or DEFAULT_APP]
    app_dir: Path = options["chdir"].resolve()
    path, bundled_body = options["path"] or "/", None
    is_bundled = app is None
    if app is None:
        own = bundled_app(names[0])
        app, app_dir, path, bundled_body = (
            own.app,
            own.app_dir,
            options["path"] or own.path,
            own.expected_body,
        )
    elif not app_dir.is_dir():
        raise UsageError(
            f"there is no folder {options['chdir']}", "name the folder of the app with --chdir"
        )
    experiment = Experiment(
        name=_name(options["name"] or ("-".join(names) if len(names) > 1 else app)),
        app=app,
        app_dir=app_dir,
        request=request_of(options, path, bundled_body),
        load=_load_options(options),
        levels=_levels(options["rates"], options["connections"]),
        servers=options["servers"],
        profile=options["profile"],
        sizes=sizes,
        runs=options["runs"] or 1,
        seed=options["seed"],
        limits=_limits(options),
        bundled=is_bundled,
        python=options["python"],
        python_version=_python_version(options, is_bundled),
        port=options["port"],
        ready_timeout_ns=options["ready_timeout"],
        sample_interval_ns=options["sample_interval"],
        intervene=options.get("intervene"),
        precision=options.get("precision"),
        out=options["out"],
    )
    # Commands that repeat trials in a way of their own have no such options.
    runs = options["runs"] or (runs_to_compare(experiment) if options.get("compare") else 1)
    settle_ns, reruns = options.get("settle"), options.get("reruns")
    procedure = usual_procedure(runs, settle_ns, reruns, options.get("aggregate", "interval"))
    return replace(experiment, runs=runs, procedure=procedure)


def _python_version(options: dict[str, Any], is_bundled: bool) -> str | None:
    version: str | None = options["python_version"]
    if version is not None and options["python"] is not None:
        raise UsageError("--python and --python-version were both given", "give one of them")
    if version is not None and not is_bundled:
        raise UsageError(
            "--python-version is for the bundled apps", "name your app's interpreter with --python"
        )
    return version


def _load_options(options: dict[str, Any]) -> LoadOptions:
    return LoadOptions(
        duration_ns=options["duration"],
        warmup_ns=options["warmup"],
        warmup_requests=options.get("warmup_requests"),
        cooldown_ns=options["cooldown"],
        arrivals=options["arrivals"],
        on_busy=options["on_busy"],
        max_connections=options["max_connections"] or DEFAULT_MAX_CONNECTIONS,
        max_pending=options["max_pending"],
        think_time_ns=options["think_time"],
        keepalive=options["keepalive"],
        timeout_ns=options["timeout"],
        deadline_ns=options["deadline"],
        threads=options["threads"],
        check_thresholds=options.get("check_threshold", ()),
    )


def _levels(
    rates: tuple[float, ...] | None, connections: tuple[int, ...] | None
) -> tuple[Level, ...]:
    if rates is not None and connections is not None:
        raise UsageError(
            "--rates and --connections were both given",
            "give --rates for an open loop or --connections for a closed one; --max-connections caps an open loop",
        )
    if connections is not None:
        return tuple(Level(connections=count) for count in connections)
    return tuple(Level(rate_per_s=rate) for rate in rates or DEFAULT_RATES)


def _limits(options: dict[str, Any]) -> ResourceLimits:
    return ResourceLimits(
        cpus=options["cpus"],
        memory_bytes=options["memory"],
        pids=options["pids"],
        policy=options["limits"],
        server_cpus=parse_cpu_list(options["server_cpus"]) if options["server_cpus"] else None,
        client_cpus=parse_cpu_list(options["client_cpus"]) if options["client_cpus"] else None,
    )


def _name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.") or "sweep"
