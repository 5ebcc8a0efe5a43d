"""``wsgiload capacity``: the largest rate that holds an objective, per server."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import click
from click.core import ParameterSource
from rich.console import Console

from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.threshold import (
    CAPACITY_FIGURES,
    Threshold,
    failed_thresholds,
    parse_threshold,
)
from wsgiload.capacity_search.result import Course, JudgedTrial, exit_code, is_unfinished
from wsgiload.capacity_search.run import CapacityEvents, CapacityPlan, CapacityResult, run_capacity
from wsgiload.capacity_search.search import Goal
from wsgiload.capacity_search.trials import require_closed_loop
from wsgiload.cli._experiment import experiment_of
from wsgiload.cli._grid import GridCommand
from wsgiload.cli._options import DURATION, Parsed, together
from wsgiload.cli._output import check_destinations, complain, tell, write_json
from wsgiload.cli._recommend import tell_recommendations
from wsgiload.cli._sweep import sweep
from wsgiload.documents.capacity import ServerCapacity
from wsgiload.environments.provide import named_interpreters
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from wsgiload.experiment.plan import plain
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import available_cpus, named_cores
from wsgiload.limits import enter_scope
from wsgiload.loads.handle import require_possible
from wsgiload.loads.options import Level, load_plan
from wsgiload.report import print_capacity
from wsgiload.report.words import format_per_s, format_span, verdict_words
from wsgiload.sweeps.sweep import plan_cpus

NARROWEST, WIDEST = 0.005, 0.5
# A confirmation's trials are so many times as long: 120 s where a trial has the usual 30 s.
CONFIRM_FACTOR = 4

_AS_IN_SWEEP = {
    *(
        "app",
        "servers",
        "profile",
        "workers",
        "server_threads",
        "grid",
        "app_name",
        "path",
        "chdir",
        "python",
    ),
    *(
        "python_version",
        "warmup",
        "cooldown",
        "seed",
        "port",
        "ready_timeout",
        "sample_interval",
        "name",
    ),
    *("cpus", "memory", "pids", "limits", "server_cpus", "client_cpus"),
    *(
        "arrivals",
        "keepalive",
        "on_busy",
        "max_connections",
        "max_pending",
        "timeout",
        "deadline",
        "threads",
    ),
    *("ambiguous_t", "ambiguous_d"),
    *("method", "header", "body", "body_file", "targets", "sessions"),
    *("expect_status", "expect_body_file", "expect_length", "expect_sha256", "expect_regex"),
    *("out", "json_file", "quiet", "config", "dry_run"),
}
# What belongs to a server that is launched, and not to a URL.
_OF_SERVERS = (
    *(
        "servers",
        "workers",
        "server_threads",
        "grid",
        "app_name",
        "python",
        "python_version",
        "path",
        "port",
    ),
    "server_cpus",
)
# The same, with a default: only what was said for this search is a contradiction.
_LIMITS_OF_SERVERS = ("cpus", "memory", "pids")


def _parse_width(text: str) -> float:
    try:
        width = float(text.removesuffix("%")) * (0.01 if text.endswith("%") else 1.0)
    except ValueError:
        width = math.nan
    if not NARROWEST <= width <= WIDEST:
        raise UsageError(f"{text!r} is not a width from 0.5% to 50%", "write it like 2%")
    return width


class _Progress(CapacityEvents):
    """One line per trial, on standard error."""

    def message(self, text: str) -> None:
        tell(text)

    def planned(self, servers: int, seconds: float) -> None:
        whom = "1 server" if servers == 1 else f"{servers} servers"
        tell(f"searching {whom}: about {format_span(seconds)}, if it takes as many trials as usual")

    def trial_ended(self, course: Course, trial: JudgedTrial) -> None:
        cell, judgement = trial.cell, trial.judgement
        if cell.failure is not None or cell.verdict is None or cell.rate_result is None:
            reason = "no result" if cell.failure is None else cell.failure.message
            tell(f"{cell.id}: failed: {reason}")
            return

        verdict = verdict_words(cell.verdict)
        if judgement is None and trial.is_discarded:
            tell(f"{cell.id}: a closed loop, repeated: {verdict}")
            return
        if judgement is None:
            goodput = format_per_s(cell.rate_result.goodput_per_s)
            tell(f"{cell.id}: closed loop: {goodput}; searching below that")
            return

        word = {True: "met", False: "missed", None: "repeated"}[judgement.met]
        outcome = f"{word}, {verdict}" if judgement.met is not None else f"{word}: {judgement.why}"
        tell(f"{cell.id} {trial.phase}: {outcome}")


@click.command(
    cls=GridCommand, params=[param for param in sweep.params if param.name in _AS_IN_SWEEP]
)
@together(
    click.option(
        "--slo",
        multiple=True,
        help="Objective, such as 'p99<50ms' or 'error_rate<0.1%' (repeatable).",
    ),
    click.option(
        "--slo-strict",
        is_flag=True,
        help="Allow 1 failure in 100,000 requests instead of 1 in 1,000 (RFC 9411).",
    ),
    click.option("--url", help="Search a server that is already running."),
    click.option(
        "-d",
        "-z",
        "--duration",
        type=DURATION,
        default="30s",
        show_default=True,
        help="Duration of each trial.",
    ),
    click.option(
        "--trials",
        type=click.IntRange(1, 99),
        default=6,
        show_default=True,
        help="Maximum number of trials at one rate.",
    ),
    click.option(
        "--width",
        type=Parsed("share", _parse_width),
        default="2%",
        show_default=True,
        help="Stop when the bounds are within this share of each other.",
    ),
    click.option(
        "--confirmations",
        type=click.IntRange(0, 99),
        default=6,
        show_default=True,
        help="Fresh trials at the found rate; five of six must meet the objective.",
    ),
    click.option(
        "--confirm-duration",
        type=DURATION,
        help="Duration of each confirmation.  [default: four times --duration]",
    ),
    click.option(
        "--settle",
        type=DURATION,
        default="30s",
        show_default=True,
        help="Maximum wait for a quiet host before repeating an invalid trial.",
    ),
    click.option(
        "--threshold",
        multiple=True,
        help="Threshold, such as 'capacity>=1000'; exit code 99 if it fails.",
    ),
)
def capacity(
    app: str | None,
    threshold: tuple[str, ...],
    json_file: str | None,
    quiet: bool,
    dry_run: bool,
    **options: Any,
) -> int:
    """Find the largest rate that meets --slo, per server, and confirm it with fresh trials.

    APP is as for `wsgiload sweep`; without APP, the bundled app hello. With --url the search uses a
    running server; its limits are unknown and it is not restarted between trials.
    """
    check_destinations(json_file)
    thresholds = [parse_threshold(text, CAPACITY_FIGURES) for text in threshold]
    plan = _plan(app, options)
    if dry_run:
        write_json(_dry_run(plan), json_file or "-")
        return EXIT_OK
    if plan.url is None:
        enter_scope(plan.experiment.limits.policy)
    result = run_capacity(plan, CapacityEvents() if quiet else _Progress())
    return _tell(result, thresholds, json_file)


def _plan(app: str | None, options: dict[str, Any]) -> CapacityPlan:
    objective = parse_objective(options["slo"], strict=options["slo_strict"])
    url = options["url"]
    if url is not None:
        _require_url_alone(app, options)
    fixed: dict[str, Any] = {"rates": None, "connections": None, "think_time": 0}
    fixed |= {
        "runs": 1,
        "compare": False,
        "reruns": 0,
        "aggregate": "interval",
        "settle": 0,
        "warmup_requests": None,
        "intervene": None,
    }
    experiment = experiment_of(app, options | fixed)
    require_closed_loop(experiment)
    experiment = replace(experiment, levels=(), name=f"capacity-{experiment.name}")
    if url is not None:
        experiment = (
            experiment if options["name"] else replace(experiment, name=f"capacity-{_host(url)}")
        )
        named_cores(experiment.limits.client_cpus, available_cpus(), "client")
        experiment = replace(experiment, request=replace(experiment.request, expected_body=None))
        require_possible(
            load_plan(
                url, experiment.request, experiment.load, Level(rate_per_s=1.0), experiment.seed
            )
        )
    return CapacityPlan(
        experiment=experiment,
        objective=objective,
        goal=Goal(
            width=options["width"], trials=options["trials"], confirmations=options["confirmations"]
        ),
        confirm_duration_ns=options["confirm_duration"] or CONFIRM_FACTOR * options["duration"],
        url=url,
        settle_ns=options["settle"],
    )


def _require_url_alone(app: str | None, options: dict[str, Any]) -> None:
    if urlsplit(options["url"]).scheme not in ("http", "https"):
        raise UsageError(
            f"{options['url']!r} is no URL to drive", "write it like http://127.0.0.1:8000/"
        )
    given = ["APP"] if app is not None else []
    source_of = click.get_current_context().get_parameter_source
    names = [name for name in _OF_SERVERS if options[name]]
    names += [name for name in _LIMITS_OF_SERVERS if source_of(name) is ParameterSource.COMMANDLINE]
    given += [f"--{name.replace('_', '-')}" for name in names]
    if given:
        raise UsageError(
            f"--url and {given[0]} were both given",
            "--url measures a running server; omit {option}",
        )


def _host(url: str) -> str:
    return urlsplit(url).netloc.replace(":", "-").replace("[", "").replace("]", "")


def _dry_run(plan: CapacityPlan) -> object:
    """The resolved plan, and how long it will take if it takes as many trials as usual."""
    found = {} if plan.url is not None else resolve_servers(plan.experiment)
    pythons = {
        asked: interpreter.version for asked, interpreter in named_interpreters(found).items()
    }
    servers = list(found) or ["url"]
    cpu_plan = None if plan.url is not None else plain(plan_cpus(plan.experiment.limits)[0])
    return plain(plan) | {
        "servers": servers,
        "pythons": pythons,
        "cpu_plan": cpu_plan,
        "estimated_seconds": plan.estimated_s(len(servers)),
    }


def _holds(server: ServerCapacity, thresholds: list[Threshold]) -> bool:
    return all(threshold.holds(server) for threshold in thresholds)


def _tell(result: CapacityResult, thresholds: list[Threshold], json_file: str | None) -> int:
    document = result.document
    if json_file != "-":
        print_capacity(document, Console())
        click.echo(f"run: {result.run_dir}")
        tell_recommendations(document.recommendations, EXIT_OK)
    if json_file is not None:
        write_json(document, json_file)
    searched = [(server.server, server) for server in document.servers if not is_unfinished(server)]
    failed = failed_thresholds(thresholds, searched)
    for sentence in failed:
        complain(sentence)
    code = exit_code(
        result.status,
        document.servers,
        [name for name, server in searched if not _holds(server, thresholds)],
    )
    if code == EXIT_INTERRUPTED:
        complain(f"interrupted; what was finished is in {result.run_dir}")
    return code
