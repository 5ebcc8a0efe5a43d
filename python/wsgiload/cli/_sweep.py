"""``wsgiload sweep``: the headline command."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console

from wsgiload.analysis.alarms import alarms_over_cells
from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.over_cells import last_attempts
from wsgiload.analysis.threshold import Threshold, failed_thresholds, parse_threshold
from wsgiload.capacity_search.rates import SHARES, find_levels, require_rates
from wsgiload.capacity_search.trials import require_closed_loop
from wsgiload.catalogue.names import PROFILES
from wsgiload.cli._experiment import experiment_of
from wsgiload.cli._grid import GridCommand
from wsgiload.cli._options import (
    CONNECTIONS,
    CPUS,
    DURATION,
    NAMES,
    RATES,
    SIZE,
    load_options,
    output_options,
    request_options,
    together,
)
from wsgiload.cli._output import check_destinations, complain, write_json
from wsgiload.cli._progress import Progress
from wsgiload.cli._recommend import slo_option, tell_recommendations
from wsgiload.cli._without_effect import check_and_warn
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.environments.provide import named_interpreters
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from wsgiload.experiment.estimate import experiment_s
from wsgiload.experiment.grid import apps_of
from wsgiload.experiment.plan import Experiment, expand, plain
from wsgiload.experiment.settings import resolve_servers
from wsgiload.host.cpus import CpuPlan
from wsgiload.limits import enter_scope
from wsgiload.loads.options import Level, load_plan
from wsgiload.report import print_sweep
from wsgiload.results.stored_plan import read_plan
from wsgiload.results.summary import exit_code
from wsgiload.sweeps.intervene import further_runs, require_liftable
from wsgiload.sweeps.sweep import SweepEvents, SweepResult, plan_cpus, resume_sweep, run_sweep

_SAYS_NOTHING_OF_THE_PLAN = {
    "resume",
    "slo",
    "threshold",
    "json_file",
    "html",
    "quiet",
    "dry_run",
    "out",
}


@click.command(cls=GridCommand)
@click.argument("app", required=False)
@together(
    click.option(
        "--rates",
        "-R",
        "--rate",
        "rates",
        type=RATES,
        help="Offered rates per second, a,b,c or from:to:step.  [default: 1000,2000,3000; with --slo measured first]",
    ),
    click.option(
        "-c", "--connections", type=CONNECTIONS, help="Users of a closed loop, instead of --rates."
    ),
    click.option(
        "--servers",
        type=NAMES,
        help="Servers (see `wsgiload servers list`); alias=NAME runs NAME under an alias.  [default: servers that need no system packages]",
    ),
    click.option(
        "--profile",
        type=click.Choice(PROFILES),
        default="tuned",
        show_default=True,
        help="tuned: equal budgets for all servers; stock: each server's defaults.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Processes of each server.  [default: by the profile]",
    ),
    click.option(
        "--server-threads",
        type=click.IntRange(min=1),
        help="Threads per server process.  [default: by the profile]",
    ),
    click.option(
        "--grid",
        multiple=True,
        metavar="NAME=A,B,...",
        help="What to combine: workers=1,2,4 threads=1,4,8 profile=tuned,stock keepalive=on,off, and of the bundled "
        "apps app=hello,cpu python=3.11,3.13.",
    ),
    click.option("--app-name", help="A bundled app instead of APP: hello, json1k, cpu or sleep."),
    click.option("--path", help="Path of every request.  [default: /]"),
    click.option(
        "--chdir",
        type=click.Path(file_okay=False, path_type=Path),
        default=".",
        help="Directory from which APP is imported.",
    ),
    click.option(
        "--python", help="Interpreter of APP.  [default: an active or local .venv, else wsgiload's]"
    ),
    click.option(
        "--python-version",
        help="Installed Python version for a bundled app, such as 3.13.",
    ),
    click.option(
        "--warmup",
        type=DURATION,
        default="2s",
        show_default=True,
        help="Load before each measurement.",
    ),
    click.option(
        "--warmup-requests",
        type=click.IntRange(min=1),
        help="Warm up for at least N scheduled requests (with --rates).",
    ),
    click.option(
        "--cooldown",
        type=DURATION,
        default="1s",
        show_default=True,
        help="Cool-down: load after each measurement.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 2**64 - 1),
        default=1,
        show_default=True,
        help="Random seed of the arrivals and the cell order.",
    ),
    click.option(
        "--port", type=click.IntRange(1, 65535), help="Port of the server.  [default: a free one]"
    ),
    click.option(
        "--ready-timeout",
        type=DURATION,
        default="30s",
        show_default=True,
        help="Maximum startup time of a server.",
    ),
    click.option(
        "--intervene",
        type=click.Choice(["cpu"]),
        help="Repeat each cell in pairs with and without its CPU limit: 6 pairs, or as many as --runs.",
    ),
    click.option(
        "--sample-interval",
        type=DURATION,
        default="100ms",
        show_default=True,
        help="Sampling interval of the server's resources.",
    ),
    click.option("--name", help="Name of the run directory.  [default: the app's]"),
)
@together(
    click.option(
        "--runs",
        type=click.IntRange(1, 1000),
        help="Repetitions, each with fresh processes, in random order.  [default: 1; with --compare 6 or more]",
    ),
    click.option(
        "--compare",
        is_flag=True,
        help="Use the number of runs needed to compare these servers, at least 6.",
    ),
    click.option(
        "--aggregate",
        type=click.Choice(["interval", "trim"]),
        default="interval",
        show_default=True,
        help="How runs are combined: mean with confidence interval, or additionally a trimmed mean.",
    ),
    click.option(
        "--settle",
        type=DURATION,
        help="Maximum wait for a quiet host before each trial.  [default: 0s with one run, else 2m]",
    ),
    click.option(
        "--reruns",
        type=click.IntRange(0, 100),
        help="How often to repeat a trial that the generator or the host made invalid.  [default: 0 with one run, else 3]",
    ),
    click.option(
        "--resume",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="RUN",
        help="Resume this interrupted run from its stored plan, in its order.",
    ),
)
@together(
    click.option(
        "--cpus",
        type=CPUS,
        default="1",
        show_default=True,
        help="CPU limit of the server, in cores.",
    ),
    click.option(
        "--memory",
        type=SIZE,
        default="512MiB",
        show_default=True,
        help="Memory limit of the server (swap disabled).",
    ),
    click.option(
        "--pids",
        type=click.IntRange(min=1),
        default=512,
        show_default=True,
        help="Maximum number of processes and threads of the server.",
    ),
    click.option(
        "--limits",
        type=click.Choice(["strict", "best-effort", "none"]),
        default="strict",
        show_default=True,
        help="What to do when a limit cannot be enforced.",
    ),
    click.option("--server-cpus", help="Cores of the server, such as 1 or 2-3."),
    click.option("--client-cpus", help="Cores of the load generator."),
)
@load_options
@request_options
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=".wsgiload/runs",
    show_default=True,
    help="Directory for run directories.",
)
@slo_option
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the report to this file.",
)
@output_options
@click.pass_context
def sweep(
    ctx: click.Context,
    /,
    app: str | None,
    slo: tuple[str, ...],
    threshold: tuple[str, ...],
    json_file: str | None,
    html: Path | None,
    quiet: bool,
    dry_run: bool,
    resume: Path | None,
    **options: Any,
) -> int:
    """Measure servers at increasing load, with a fresh process and fresh limits for each server and
    rate.

    APP is module:callable, imported from the current directory with the interpreter of an active or
    local .venv. Without APP, the bundled app hello is measured.
    """
    check_destinations(json_file, html)
    thresholds = [parse_threshold(text) for text in threshold]
    texts = tuple(parse_objective(slo).texts) if slo else ()
    options["compare"] = options["compare"] or bool(texts)
    if resume is None:
        experiment, asked = replace(experiment_of(app, options), slo=texts), None
        require_rates(experiment)
    else:
        experiment = read_plan(resume)[0]
        asked = experiment_of(app, options) if _asks_for_a_plan(ctx) else None
    is_rateless = (
        bool(texts) and resume is None and not (options["rates"] or options["connections"])
    )
    if is_rateless:
        _require_findable_rates(experiment)
    if resume is None:
        check_and_warn(ctx, _first_plan(experiment), open_by="--rates")
    if dry_run:
        write_json(_dry_run(experiment, is_rateless=is_rateless), json_file or "-")
        return EXIT_OK
    enter_scope(experiment.limits.policy)
    events = SweepEvents() if quiet else Progress()
    if is_rateless:
        require_possible_intervention(experiment)
        levels = find_levels(replace(experiment, name=f"{experiment.name}-rates"), events.message)
        experiment = replace(experiment, levels=levels)
    result = (
        run_sweep(experiment, events)
        if resume is None
        else resume_sweep(resume, events, asked, texts)
    )
    code = _tell(result, thresholds, json_file, html)
    recommendations = result.summary.recommendations or ()
    return tell_recommendations(recommendations, code, aside=json_file == "-")


def _first_plan(experiment: Experiment) -> LoadPlan:
    """The plan of one of its loads, for what holds of all of them."""
    level = experiment.levels[0] if experiment.levels else Level(rate_per_s=1.0)
    return load_plan(
        "http://127.0.0.1/", experiment.request, experiment.load, level, experiment.seed
    )


def require_possible_intervention(experiment: Experiment) -> CpuPlan:
    """Refuse an intervention that could change nothing, before anything is started; who gets which
    cores."""
    cpu_plan, limits = plan_cpus(experiment.limits)
    if experiment.intervene is not None:
        require_liftable(limits, cpu_plan)
    return cpu_plan


def _require_findable_rates(experiment: Experiment) -> None:
    """Refuse what no rates can be found for, before anything is started."""
    if len(apps_of(experiment.sizes)) > 1:
        raise UsageError(
            "--slo looks for the rates of one app, and --grid app= names several",
            "say which by --rates",
        )
    require_closed_loop(experiment)


def _asks_for_a_plan(ctx: click.Context) -> bool:
    """Whether anything on the command line says what to measure, so that it must agree with a
    stored plan."""
    said = {
        name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    return bool(said - _SAYS_NOTHING_OF_THE_PLAN)


def _tell(
    result: SweepResult, thresholds: list[Threshold], json_file: str | None, html: Path | None
) -> int:
    if json_file != "-":
        print_sweep(result.summary, Console())
        for alarm in alarms_over_cells(result.summary.cells):
            click.echo(f"{alarm.check}: {alarm.message}")
        click.echo(f"run: {result.run_dir}")
        if result.report is not None:
            click.echo(f"report: {result.report}")
    if json_file is not None:
        write_json(result.summary, json_file)
    if html is not None and result.report is not None:
        shutil.copyfile(result.report, html)
    failed = failed_thresholds(
        thresholds, [(cell.id, cell) for cell in last_attempts(result.summary.cells)]
    )
    for sentence in failed:
        complain(sentence)
    code = exit_code(result.summary, thresholds_failed=bool(failed))
    if code == EXIT_INTERRUPTED:
        complain(f"interrupted; what was finished is in {result.run_dir}")
    return code


def _dry_run(experiment: Experiment, *, is_rateless: bool) -> object:
    """The resolved plan, the cores of both sides, and how long it will take at least, further runs
    included; without rates and order where those are to be found first, which takes no longer at
    one rate than at another."""
    if is_rateless:
        experiment = replace(
            experiment, levels=tuple(Level(rate_per_s=100.0 * share) for share in SHARES)
        )
    found = resolve_servers(experiment)
    named = named_interpreters(found)
    cpu_plan = require_possible_intervention(experiment)
    order = expand(experiment, tuple(found))
    further = further_runs(order, experiment)
    plan = plain(experiment)
    unknown = {"levels": None, "order": None} if is_rateless else {}
    return plan | {
        "servers": list(found),
        "pythons": {asked: interpreter.version for asked, interpreter in named.items()},
        "cpu_plan": plain(cpu_plan),
        "order": [cell.id for cell in order],
        "intervention_runs": len(further),
        "load_seconds": sum(experiment.load.load_ns_at(cell.level) for cell in [*order, *further])
        / 1e9,
        "estimated_seconds": experiment_s([*order, *further], experiment),
        **unknown,
    }
