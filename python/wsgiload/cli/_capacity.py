"""``wsgiload capacity``: finds the highest rate at which each server meets an objective."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.threshold import (
    CAPACITY_FIGURES,
    Threshold,
    failed_thresholds,
    parse_threshold,
    undecided_thresholds,
)
from wsgiload.capacity_search.result import exit_code, has_open_rate, is_unfinished
from wsgiload.capacity_search.run import (
    MAX_WARMUP_NS,
    USUAL_RERUNS,
    CapacityEvents,
    CapacityPlan,
    CapacityResult,
    run_capacity,
)
from wsgiload.capacity_search.trials import require_closed_loop
from wsgiload.cli._decide import print_recommendations, say_longer_search
from wsgiload.cli._declared import DURATION
from wsgiload.cli._dry_run import app_python_of, require_importable_app, spec_of
from wsgiload.cli._help import Parsed, WholeNumber, option, together
from wsgiload.cli._live import live_view
from wsgiload.cli._options import GridCommand, report_options
from wsgiload.cli._output import check_destinations, complain, say, write_json
from wsgiload.cli._progress import CapacityProgress
from wsgiload.cli._stored_runs import print_search
from wsgiload.cli._sweep import experiment_options
from wsgiload.cli._without_effect import warn_of_pythonpath
from wsgiload.documents.capacity import ServerCapacity
from wsgiload.environments.user_environment import named_interpreters
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, UsageError
from wsgiload.experiment.build import experiment_of
from wsgiload.experiment.plan import Experiment, plain
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import available_cpus, named_cores
from wsgiload.limits import enter_scope
from wsgiload.loads.build import require_possible
from wsgiload.loads.options import Level, load_plan, require_descriptors
from wsgiload.program import command_line
from wsgiload.sweeps.sweep import plan_cpus
from wsgiload.units import NS_PER_S, seconds_to_ns

MIN_WIDTH, MAX_WIDTH = 0.005, 0.5

# Options that apply only to launched servers, not to a URL.
_SERVER_OPTIONS = (
    *(
        "servers",
        "servers_from",
        "workers",
        "server_threads",
        "grid",
        "command",
        "server_args",
        "server_config",
        "env",
        "env_file",
        "app_name",
        "pythonpath",
        "python",
        "python_version",
        "path",
        "port",
        "user",
    ),
    "server_cpus",
)
# The same for options with defaults: only explicit values contradict --url.
_SERVER_LIMITS = ("cpus", "memory", "pids")

EXAMPLES = (
    "wsgiload capacity myapp:app --slo 'p99<50ms' --budget 10m",
    "wsgiload capacity myapp:app --servers gunicorn,waitress --slo 'p99<50ms' --cpus 2",
    "wsgiload capacity --url http://127.0.0.1:8000/ --slo 'p99<50ms'",
)


def _parse_width(text: str) -> float:
    try:
        width = float(text.removesuffix("%")) * (0.01 if text.endswith("%") else 1.0)
    except ValueError:
        width = math.nan
    if not MIN_WIDTH <= width <= MAX_WIDTH:
        raise UsageError(f"--width must be between 0.5% and 50%, not {text}", "write it like 2%")
    return width


@click.command(cls=GridCommand, examples=EXAMPLES)
@click.argument("app", required=False)
@experiment_options("capacity")
@together(
    option(
        "Procedure",
        "--slo",
        multiple=True,
        help="Objective, such as 'p99<50ms' or 'error_rate<0.1%' (repeatable).",
    ),
    option(
        "Procedure",
        "--slo-strict",
        is_flag=True,
        help="Allow 1 failure in 100,000 requests instead of 1 in 1,000 (RFC 9411).",
    ),
    option(
        "Server",
        "--url",
        help="Measure the running server at this URL instead of launching servers.",
    ),
    option(
        "Load",
        "-d",
        "-z",
        "--duration",
        type=DURATION,
        help="Duration of the measurement in each trial.  [default: as long as the budget allows]",
    ),
    option(
        "Procedure",
        "--width",
        type=Parsed("percent", _parse_width),
        default="5%",
        help="Stop when both ends of the 95 % confidence interval are within this percentage of the capacity.",
    ),
    option(
        "Procedure",
        "--budget",
        type=DURATION,
        help="Maximum duration of the whole search.  [default: 4 minutes per server]",
    ),
    option(
        "Procedure",
        "--settle",
        type=DURATION,
        default="30s",
        help="Maximum wait for an idle host before a rerun.",
    ),
    option(
        "Procedure",
        "--reruns",
        type=WholeNumber(0, 100),
        default=USUAL_RERUNS,
        help="Maximum number of reruns of a trial that is inconclusive because of the generator or "
        "the host, or that was disturbed and is close to the objective's threshold.",
    ),
    option(
        "Output",
        "--threshold",
        multiple=True,
        help="Pass/fail condition on the result, such as 'capacity>=1000' (repeatable). The exit code is 99 if it fails.",
    ),
    *report_options,
)
def capacity(
    app: str | None,
    threshold: tuple[str, ...],
    json_file: str | None,
    quiet: bool,
    live: int | None,
    verbose: bool,
    dry_run: bool,
    **flags: Any,
) -> int:
    """Find each server's capacity: the highest rate that meets --slo, with its interval.

    APP is module:callable, as for `wsgiload sweep`. Without APP and --command, the bundled app
    hello is measured. With --url, no limits are set, and the server is not restarted between
    trials.
    """
    check_destinations(json_file)
    thresholds = [parse_threshold(text, CAPACITY_FIGURES) for text in threshold]
    plan = _plan(app, flags)
    plan.require_enough_time()
    if dry_run:
        write_json(_dry_run(plan), json_file or "-")
        if plan.url is None:
            require_importable_app(plan.experiment)
        return EXIT_OK

    if plan.url is None:
        enter_scope(plan.experiment.limits.policy)
    with live_view("capacity", quiet=quiet, port=live) as view:
        events = CapacityEvents() if quiet and not view.is_watching else CapacityProgress(view)
        result = run_capacity(plan, events)
        view.stop()
        code = _print(result, thresholds, json_file, verbose=verbose)
        view.end(result.report)
    return code


def _plan(app: str | None, flags: Mapping[str, Any]) -> CapacityPlan:
    objective = parse_objective(flags["slo"], strict=flags["slo_strict"])
    return CapacityPlan(
        experiment=_shortened(_experiment(app, flags)),
        objective=objective,
        width=flags["width"],
        url=flags["url"],
        settle_ns=seconds_to_ns(flags["settle"]),
        budget_s=flags["budget"],
        duration_s=flags["duration"],
        reruns=flags["reruns"],
    )


def _experiment(app: str | None, flags: Mapping[str, Any]) -> Experiment:
    """The experiment of each trial, without its rate, which the search chooses."""
    url = flags["url"]
    if url is not None:
        _require_url_alone(app, url, flags)
    warn_of_pythonpath(click.get_current_context(), app)
    spec = spec_of(app, flags)
    if url is not None:  # ignore servers and services from configuration files
        spec = replace(spec, server=replace(spec.server, command={}), services={})
    options = replace(spec.options, runs=1, settle=0.0, reruns=0, budget=None)
    experiment = experiment_of(replace(spec, options=options))
    require_closed_loop(experiment)
    experiment = replace(experiment, levels=(), name=f"capacity-{experiment.name}")

    if url is not None:
        named_cores(experiment.limits.client_cpus, available_cpus(), "client")
        name = experiment.name if flags["name"] else f"capacity-{_host(url)}"
        request = replace(experiment.request, expected_body=None)
        experiment = replace(experiment, name=name, request=request)
    level = Level(rate_per_s=1.0)
    target_url = url or "http://127.0.0.1/"
    require_descriptors(experiment.load, level)
    require_possible(
        load_plan(target_url, experiment.request, experiment.load, level, experiment.seed)
    )
    return experiment


def _shortened(experiment: Experiment) -> Experiment:
    """The experiment with a shorter warm-up if there is no --warmup."""
    source = click.get_current_context().get_parameter_source("warmup")
    if source is ParameterSource.COMMANDLINE:
        return experiment
    warmup = min(experiment.load.warmup, MAX_WARMUP_NS / NS_PER_S)
    return replace(experiment, load=replace(experiment.load, warmup=warmup))


def _require_url_alone(app: str | None, url: str, flags: Mapping[str, Any]) -> None:
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"{url!r} is not an http(s) URL", "write it like http://127.0.0.1:8000/")
    source_of = click.get_current_context().get_parameter_source
    values = {name: value for name, value in flags.items() if name in _SERVER_OPTIONS}
    names = [name for name in _SERVER_OPTIONS if values[name]]
    names += [name for name in _SERVER_LIMITS if source_of(name) is ParameterSource.COMMANDLINE]
    given = ["APP"] if app is not None else []
    given += [f"--{name.replace('_', '-')}" for name in names]
    if given:
        raise UsageError(
            f"{given[0]} does not apply to a running server (--url)", f"omit {given[0]}"
        )


def _host(url: str) -> str:
    return urlsplit(url).netloc.replace(":", "-").replace("[", "").replace("]", "")


def _dry_run(plan: CapacityPlan) -> object:
    """The resolved plan, and its maximum duration."""
    variants = {} if plan.url is not None else resolve_servers(plan.experiment)
    interpreters = named_interpreters(variants)
    servers = list(variants) or ["url"]
    cpu_plan = None if plan.url is not None else plan_cpus(plan.experiment.limits)[0]
    return plain(plan.without_secrets()) | {
        "servers": servers,
        "app_python": plain(app_python_of(plan.experiment, variants)),
        "pythons": {name: interpreter.version for name, interpreter in interpreters.items()},
        "cpu_plan": plain(cpu_plan),
        "estimated_seconds": plan.estimated_s(len(servers)),
    }


def _print(
    result: CapacityResult, thresholds: list[Threshold], json_file: str | None, *, verbose: bool
) -> int:
    """Print the summary or the tables, write the requested JSON, and return the exit code."""
    document = result.document
    # Before the tables, because standard output may be closed.
    if json_file is not None:
        write_json(document, json_file)

    if json_file != "-":
        print_search(document, result.run_dir, verbose=verbose)
        if not verbose:
            say(f"details: {command_line('report', '--verbose', result.run_dir)}")
        say(f"run directory: {result.run_dir}")
        say(f"report: {result.report}")
        print_recommendations(document.recommendations, EXIT_OK, is_printed=not verbose)

    searched = [(one.server, one) for one in document.servers if not is_unfinished(one)]
    for sentence in failed_thresholds(thresholds, searched):
        complain(sentence)
    for sentence in undecided_thresholds(thresholds, searched):
        complain(sentence)
    undecided = [name for name, one in searched if not all(it.is_decided(one) for it in thresholds)]
    failed = [name for name, one in searched if not _meets(one, thresholds)]
    failed = [name for name in failed if name not in undecided]
    code = exit_code(result.status, document.servers, failed, undecided)
    is_open = code == EXIT_INVALID and any(
        name in undecided or has_open_rate(one) for name, one in searched
    )
    if is_open:
        say_longer_search(document.budget_s, click.get_current_context().obj or ())
    if code == EXIT_INTERRUPTED:
        complain(f"interrupted; partial results are in {result.run_dir}")
    return code


def _meets(server: ServerCapacity, thresholds: list[Threshold]) -> bool:
    return all(threshold.holds(server) for threshold in thresholds)
