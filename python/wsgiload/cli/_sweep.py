"""``wsgiload sweep``: measures and ranks servers at several load levels."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Unpack, cast, get_args

import click
from click.core import ParameterSource

from wsgiload.analysis.alarms import alarms_over_cells
from wsgiload.analysis.attempts import counted_attempts
from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.preflight import preflight
from wsgiload.analysis.threshold import (
    Threshold,
    failed_thresholds,
    parse_threshold,
    undecided_thresholds,
)
from wsgiload.capacity_search.rates import require_rates
from wsgiload.catalogue.contract import Interface, Profile
from wsgiload.cli._decide import code_of_answer
from wsgiload.cli._descriptions import described
from wsgiload.cli._dry_run import (
    require_importable_app,
    require_possible_intervention,
    resolved_plan,
)
from wsgiload.cli._experiment import sweep_spec_of
from wsgiload.cli._findings import finding_text
from wsgiload.cli._flags import SweepFlags
from wsgiload.cli._grid import GridCommand
from wsgiload.cli._help import MAX_U64, Port, WholeNumber, option
from wsgiload.cli._initial_rates import (
    closed_loops_line,
    require_possible_rates,
    with_initial_rates,
)
from wsgiload.cli._live import live_view
from wsgiload.cli._options import (
    ASSIGNMENT,
    COMMAND,
    CONNECTIONS,
    CPUS,
    DURATION,
    FILE,
    FOLDER,
    NAMES,
    RATES,
    SIZE,
    VARIABLE,
    duration_option,
    load_options,
    output_options,
    request_options,
    request_options_of,
    together,
    verbose_option,
)
from wsgiload.cli._output import check_destinations, complain, say, write_json
from wsgiload.cli._progress import Progress
from wsgiload.cli._recommend import print_recommendations, slo_option
from wsgiload.cli._without_effect import check_and_warn, warn_of_pythonpath
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from wsgiload.experiment.build import experiment_of
from wsgiload.experiment.plan import Experiment, ResourceLimits
from wsgiload.experiment.procedure import Method
from wsgiload.experiment.public_options import ServerOptions, SweepOptions
from wsgiload.experiment.settings import resolve_servers
from wsgiload.experiment.stored_secrets import Secrets
from wsgiload.experiment.variables import variables_of
from wsgiload.limits import enter_scope
from wsgiload.limits.model import Policy
from wsgiload.loads.options import DEFAULT_MAX_CONNECTIONS, load_plan
from wsgiload.loads.public_options import LoadOptions
from wsgiload.program import command_line
from wsgiload.report import preflight_lines, print_first_screen, print_sweep, terminal
from wsgiload.report.words import trial_words
from wsgiload.results.stored_plan import read_plan, require_same_plan
from wsgiload.results.summary import exit_code
from wsgiload.sweeps.sweep import SweepEvents, SweepResult, resume_sweep, run_sweep

_NOT_IN_PLAN = {
    "resume",
    "slo",
    "threshold",
    "json_file",
    "html",
    "quiet",
    "live",
    "verbose",
    "dry_run",
    "out",
    # May contain secrets, which a stored plan lacks; they must match its hashes.
    "env",
    "env_file",
    "header",
    "path",
    "body",
    "body_file",
    "targets",
    "sessions",
}

# Key in click's context: the function that adds an experiment file's description.
DESCRIPTION = "wsgiload.description"
# Key in click's context: the result, for commands that run a sweep.
RESULT = "wsgiload.result"

EXAMPLES = (
    "wsgiload sweep myapp:app --rates 500,1000,2000",
    "wsgiload sweep myapp:app --servers gunicorn,waitress --compare --slo 'p99<50ms'",
    "wsgiload sweep --command 'gunicorn -c gunicorn.conf.py myapp:app --bind {address}'",
)


def _server(field: str) -> str:
    return described(ServerOptions, field)


def _sweep(field: str) -> str:
    return described(SweepOptions, field)


def _limit(field: str) -> str:
    return described(ResourceLimits, field)


_level_options = together(
    option(
        "Load",
        "--rates",
        "-R",
        "--rate",
        "rates",
        type=RATES,
        help="Offered rates of an open loop in requests per second, as a list (500,1000) or a range (from:to:step).  [default: 1000,2000,3000; with --slo: determined by an initial closed loop]",
    ),
    option(
        "Load",
        "-c",
        "--connections",
        type=CONNECTIONS,
        help="Numbers of concurrent connections (users) in a closed loop, as a list or a range. Replaces --rates.",
    ),
    option("Load", "--warmup", type=DURATION, default="2s", help=described(LoadOptions, "warmup")),
    option(
        "Load",
        "--warmup-requests",
        type=WholeNumber(min=1),
        help=described(LoadOptions, "warmup_requests"),
    ),
    option(
        "Load",
        "--cooldown",
        type=DURATION,
        default="1s",
        help=described(LoadOptions, "cooldown"),
    ),
    option(
        "Load",
        "--seed",
        type=WholeNumber(0, MAX_U64),
        default=1,
        help="Random seed for arrivals and the order of trials.",
    ),
)

_server_options = together(
    option(
        "Server",
        "--servers",
        type=NAMES,
        help="Servers to measure, from `wsgiload servers list` or from tables [servers.NAME] in wsgiload.toml. alias=NAME runs NAME under an alias; NAME==VERSION runs another version.  [default: all servers in wsgiload.toml; if there are none, servers that need no system packages]",
    ),
    option("Server", "--servers-from", type=FOLDER, metavar="DIR", help=_server("servers_from")),
    option(
        "Server",
        "--command",
        multiple=True,
        type=COMMAND,
        metavar="[NAME=]COMMAND",
        help=_server("command"),
    ),
    option(
        "Server",
        "--server-args",
        multiple=True,
        type=ASSIGNMENT,
        metavar="NAME='ARGS'",
        help=_server("server_args"),
    ),
    option(
        "Server",
        "--server-config",
        multiple=True,
        type=ASSIGNMENT,
        metavar="NAME=FILE",
        help=_server("server_config"),
    ),
    option(
        "Server",
        "--env",
        multiple=True,
        type=VARIABLE,
        metavar="NAME=VALUE",
        help=_server("env"),
    ),
    option("Server", "--env-file", multiple=True, type=FILE, help=_server("env_file")),
    option(
        "Server",
        "--profile",
        type=click.Choice(get_args(Profile)),
        default="tuned",
        help=_server("profile"),
    ),
    option(
        "Server",
        "--interface",
        type=click.Choice(get_args(Interface)),
        default="wsgi",
        help=_server("interface"),
    ),
    option("Server", "--workers", type=WholeNumber(min=1), help=_server("workers")),
    option("Server", "--server-threads", type=WholeNumber(min=1), help=_server("server_threads")),
    option("Server", "--grid", multiple=True, metavar="NAME=A,B,...", help=_server("grid")),
    option("Server", "--app-name", help=_server("app_name")),
    option(
        "Request", "--path", help="Path of all requests.  [default: /, or the bundled app's path]"
    ),
    option(
        "Server", "--chdir", type=FOLDER, default=".", show_default=False, help=_server("chdir")
    ),
    option(
        "Server",
        "--pythonpath",
        type=FOLDER,
        multiple=True,
        metavar="DIR",
        help=_server("pythonpath"),
    ),
    option("Server", "--python", help=_server("python")),
    option("Server", "--python-version", help=_server("python_version")),
    option("Server", "--port", type=Port(1, 65_535), help=_server("port")),
    option(
        "Server", "--ready-timeout", type=DURATION, default="30s", help=_server("ready_timeout")
    ),
)

_limit_options = together(
    option("Limits", "--cpus", type=CPUS, default="1", help=_limit("cpus")),
    option("Limits", "--memory", type=SIZE, default="512MiB", help=_limit("memory_bytes")),
    option("Limits", "--pids", type=WholeNumber(min=1), default=512, help=_limit("pids")),
    option(
        "Limits",
        "--limits",
        type=click.Choice(get_args(Policy)),
        default="strict",
        help=_limit("policy"),
    ),
    option("Limits", "--server-cpus", help=_limit("server_cpus")),
    option("Limits", "--client-cpus", help=_limit("client_cpus")),
    option("Limits", "--user", help=_limit("user")),
)

_procedure_options = together(
    option("Procedure", "--runs", type=WholeNumber(1, 1000), help=_sweep("runs")),
    option("Procedure", "--compare", is_flag=True, help=_sweep("compare")),
    option("Procedure", "--budget", type=DURATION, help=_sweep("budget")),
    option(
        "Procedure",
        "--aggregate",
        type=click.Choice(get_args(Method)),
        default="interval",
        help=_sweep("aggregate"),
    ),
    option("Procedure", "--settle", type=DURATION, help=_sweep("settle")),
    option("Procedure", "--reruns", type=WholeNumber(0, 100), help=_sweep("reruns")),
    option(
        "Procedure",
        "--resume",
        type=FOLDER,
        metavar="RUN",
        help="Continue the interrupted experiment in run directory RUN with its stored plan.",
    ),
    option("Procedure", "--intervene", type=click.Choice(["cpu"]), help=_sweep("intervene")),
    option(
        "Procedure",
        "--sample-interval",
        type=DURATION,
        default="100ms",
        help=_sweep("sample_interval"),
    ),
)


@click.command(cls=GridCommand, examples=EXAMPLES)
@click.argument("app", required=False)
@_level_options
@duration_option()
@load_options(f"{DEFAULT_MAX_CONNECTIONS:,}")
@_server_options
@_limit_options
@_procedure_options
@slo_option
@option("Output", "--name", help=_sweep("name"))
@option(
    "Output",
    "-o",
    "--out",
    type=FOLDER,
    default=".wsgiload/runs",
    help="Directory in which to create run directories.",
)
@option("Output", "--html", type=FILE, help="Write a copy of the HTML report to this file.")
@verbose_option
@output_options
@request_options
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
    live: int | None,
    verbose: bool,
    dry_run: bool,
    resume: Path | None,
    **flags: Unpack[SweepFlags],
) -> int:
    """Measure and rank servers at several load levels.

    Each trial (one run of one server at one load level) uses new server processes in a new cgroup.

    APP is module:callable. It is imported from the directory --chdir by the interpreter --python.
    Without APP and --command, the bundled app hello is measured.
    """
    check_destinations(json_file, html)
    thresholds = [parse_threshold(text) for text in threshold]
    texts = tuple(parse_objective(slo).texts) if slo else ()
    has_rates = bool(flags["rates"] or flags["connections"])
    is_rateless = bool(texts) and resume is None and not has_rates
    experiment = _experiment(ctx, app, flags, texts, resume)

    if is_rateless:
        require_possible_rates(experiment)
    if resume is None:
        warn_of_pythonpath(ctx, app)
        check_and_warn(ctx, _sample_plan(experiment), open_by="--rates")
    if dry_run:
        conclusions = _conclusions_before_rates if is_rateless else _conclusions
        plan = resolved_plan(experiment, conclusions(experiment), is_rateless=is_rateless)
        write_json(plan, json_file or "-")
        require_importable_app(experiment)
        return EXIT_OK

    began_s = time.monotonic()
    enter_scope(experiment.limits.policy)
    with live_view("sweep", quiet=quiet, port=live) as view:
        events = SweepEvents() if quiet and not view.is_watching else Progress(view)
        if is_rateless:
            require_possible_intervention(experiment)
            experiment = with_initial_rates(experiment, events.message)
        if isinstance(events, Progress) and resume is None:
            _print_conclusions(experiment, events)
        result = (
            run_sweep(experiment, events, began_s)
            if resume is None
            else resume_sweep(resume, events, texts, _secrets(flags))
        )
        ctx.meta[RESULT] = result
        code = _print(result, thresholds, json_file, html, verbose=verbose)
        view.end(result.report, "no trial completed")
    recommendations = result.summary.recommendations or ()
    is_printed = json_file != "-" and not verbose
    code = print_recommendations(
        recommendations, code, is_printed=is_printed, aside=json_file == "-"
    )
    return code_of_answer(result.summary, code, ctx.obj or ())


def _experiment(
    ctx: click.Context,
    app: str | None,
    flags: SweepFlags,
    slo: tuple[str, ...],
    resume: Path | None,
) -> Experiment:
    """The experiment to run. On resume, it is the stored one, which the options must match."""
    if resume is None:
        experiment = replace(experiment_of(sweep_spec_of(app, flags, slo)), slo=slo)
        require_rates(experiment)
        describe: Callable[[Experiment], Experiment] | None = ctx.meta.get(DESCRIPTION)
        return experiment if describe is None else describe(experiment)
    stored = read_plan(resume, _secrets(flags))[0]
    given = _given_plan_options(ctx)
    if given:
        requested = experiment_of(sweep_spec_of(app, flags, slo))
        require_same_plan(stored, requested, _without(ctx, given, app, flags), given)
    return stored


def _without(
    ctx: click.Context, given: set[str], app: str | None, flags: SweepFlags
) -> Experiment | None:
    """The experiment without the given options; None if there is none."""
    usual = ctx.command.make_context(ctx.info_name, [], parent=ctx.parent).params
    without = {**flags, **{name: usual[name] for name in given if name in flags}}
    try:
        return experiment_of(
            sweep_spec_of(None if "app" in given else app, cast("SweepFlags", without), ())
        )
    except UsageError:
        return None


def _secrets(flags: SweepFlags) -> Secrets:
    """The options on the command line that restore the secrets of a stored plan."""
    return Secrets(
        request=request_options_of(flags, flags["path"]),
        variables=variables_of(dict(flags["env"]), flags["env_file"]),
    )


def _sample_plan(experiment: Experiment) -> LoadPlan:
    """The plan of one of the experiment's loads."""
    url, level = "http://127.0.0.1/", experiment.levels[0]
    return load_plan(url, experiment.request, experiment.load, level, experiment.seed)


def _given_plan_options(ctx: click.Context) -> set[str]:
    """The options of the plan on the command line, which must match the stored one."""
    given = {
        name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    return given - _NOT_IN_PLAN


def _print(
    result: SweepResult,
    thresholds: list[Threshold],
    json_file: str | None,
    html: Path | None,
    *,
    verbose: bool,
) -> int:
    """Print the summary or the tables, write the requested files, and return the exit code."""
    summary = result.summary
    # Before the tables, because standard output may be closed.
    if json_file is not None:
        write_json(summary, json_file)
    if html is not None and result.report is not None:
        shutil.copyfile(result.report, html)

    if json_file != "-":
        if verbose:
            print_sweep(summary, terminal())
            for alarm in alarms_over_cells(counted_attempts(summary.cells)):
                say(finding_text(alarm.reason()))
        else:
            print_first_screen(summary, terminal())
            say(f"details: {command_line('report', '--verbose', result.run_dir)}")
        say(f"run directory: {result.run_dir}")
        if result.report is not None:
            say(f"report: {result.report}")

    cells = [(trial_words(cell.id), cell) for cell in counted_attempts(summary.cells)]
    failed = failed_thresholds(thresholds, cells)
    undecided = undecided_thresholds(thresholds, cells)
    for sentence in (*failed, *undecided):
        complain(sentence)
    code = exit_code(summary, thresholds_failed=bool(failed), thresholds_undecided=bool(undecided))
    if code == EXIT_INTERRUPTED:
        complain(f"interrupted; partial results are in {result.run_dir}")
    return code


def _print_conclusions(experiment: Experiment, events: Progress) -> None:
    """Print them with the number of trials, or at once for a race, which announces no number."""
    if experiment.budget_ns is None:
        events.conclusions = _conclusions(experiment)
        return
    for line in _conclusions(experiment):
        events.message(line)


def _conclusions(experiment: Experiment) -> list[str]:
    return preflight_lines(preflight(experiment, resolve_servers(experiment)))


def _conclusions_before_rates(experiment: Experiment) -> list[str]:
    """The conclusions that do not depend on the rates, which are not known yet."""
    if experiment.budget_ns is None:
        return []
    return [closed_loops_line(experiment), *_conclusions(experiment)]
