"""``wsgiload sweep``: measures and ranks servers at several load levels."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from wsgiload.analysis.attempts import counted_attempts
from wsgiload.analysis.objective import parse_objective
from wsgiload.analysis.preflight import preflight
from wsgiload.analysis.threshold import (
    Threshold,
    failed_thresholds,
    parse_threshold,
    undecided_thresholds,
)
from wsgiload.capacity_search.rates import (
    closed_loops_line,
    require_possible_rates,
    require_rates,
    with_found_rates,
)
from wsgiload.cli._completion import complete_apps, complete_runs, complete_servers
from wsgiload.cli._decide import code_of_answer, finding_text, print_recommendations
from wsgiload.cli._declared import DURATION, FILE, FOLDER, declared_options
from wsgiload.cli._dry_run import (
    dry_run_of,
    plan_document,
    print_plan,
    require_importable_app,
    require_possible_intervention,
    spec_of,
)
from wsgiload.cli._help import Option, option, together
from wsgiload.cli._live import live_view
from wsgiload.cli._options import (
    CONNECTIONS,
    NAMES,
    RATES,
    GridCommand,
    ambiguous_options,
    output_options,
    request_options,
    request_options_of,
    verbose_option,
)
from wsgiload.cli._output import check_destinations, complain, say, write_json
from wsgiload.cli._progress import Progress
from wsgiload.cli._without_effect import check_and_warn, warn_of_pythonpath
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_OK, UsageError
from wsgiload.experiment.build import SWEEP_DEFAULTS, experiment_of
from wsgiload.experiment.plan import Experiment, ResourceLimits
from wsgiload.experiment.public_options import ServerOptions, SweepOptions
from wsgiload.experiment.settings import resolve_servers
from wsgiload.experiment.stored_secrets import Secrets
from wsgiload.experiment.variables import variables_of
from wsgiload.findings.over_cells import alarms_over_cells
from wsgiload.limits import enter_scope
from wsgiload.loads.options import DEFAULT_MAX_CONNECTIONS, load_plan
from wsgiload.loads.public_options import LoadOptions
from wsgiload.options import Command
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

EXAMPLES = (
    "wsgiload sweep myapp:app --rates 500,1000,2000",
    "wsgiload sweep myapp:app --servers gunicorn,waitress --compare --slo 'p99<50ms'",
    "wsgiload sweep --command 'gunicorn -c gunicorn.conf.py myapp:app --bind {address}'",
)


_level_options = together(
    option(
        "Load",
        "--rates",
        "-R",
        "--rate",
        "rates",
        type=RATES,
        help="Offered rates of an open loop in requests per second, as a list (500,1000) or a range (from:to:step).  [default: determined by a short closed loop of each server]",
    ),
    option(
        "Load",
        "-c",
        "--connections",
        type=CONNECTIONS,
        help="Numbers of concurrent connections (users) in a closed loop, as a list or a range. Replaces --rates.",
    ),
)


# The defaults of the phases depend on the design.
_PHASES = {"warmup": "2s, 0.5s in a race", "cooldown": "1s, 0.2s in a race"}


def _load_defaults(command: Command) -> LoadOptions:
    if command == "sweep":
        return replace(SWEEP_DEFAULTS, warmup=None, cooldown=None)
    return SWEEP_DEFAULTS


def experiment_options(command: Command) -> Option[Any]:
    """The options that ``wsgiload sweep`` and ``capacity`` share."""
    return together(
        declared_options(
            _load_defaults(command),
            command,
            {"max_connections": f"{DEFAULT_MAX_CONNECTIONS:,}", "seed": "1", **_PHASES},
        ),
        ambiguous_options,
        option(
            "Server",
            "--servers",
            type=NAMES,
            shell_complete=complete_servers,
            help="Servers to measure, from `wsgiload servers list` or from tables [servers.NAME] in wsgiload.toml. alias=NAME runs NAME under an alias; NAME==VERSION runs another version.  [default: all servers in wsgiload.toml; if there are none, servers that need no system packages]",
        ),
        declared_options(ServerOptions(), command),
        declared_options(ResourceLimits(), command),
        declared_options(SweepOptions(), command),
        option(
            "Output",
            "-o",
            "--out",
            type=FOLDER,
            default=".wsgiload/runs",
            help="Directory in which to create run directories.",
        ),
        verbose_option,
        request_options(command),
    )


@click.command(cls=GridCommand, examples=EXAMPLES)
@click.argument("app", required=False, shell_complete=complete_apps)
@_level_options
@option(
    "Load",
    "-d",
    "-z",
    "--duration",
    type=DURATION,
    help="Duration of the measurement.  [default: as long as the quantile needs; 10s with --runs or --compare]",
)
@experiment_options("sweep")
@option(
    "Procedure",
    "--resume",
    type=FOLDER,
    shell_complete=complete_runs,
    metavar="RUN",
    help="Continue the interrupted experiment in run directory RUN with its stored plan.",
)
@option("Output", "--html", type=FILE, help="Write a copy of the HTML report to this file.")
@output_options
@click.pass_context
def sweep(
    ctx: click.Context,
    /,
    app: str | None,
    threshold: tuple[str, ...],
    json_file: str | None,
    html: Path | None,
    quiet: bool,
    live: int | None,
    verbose: bool,
    dry_run: bool,
    resume: Path | None,
    **flags: Any,
) -> int:
    """Measure and rank servers at several load levels.

    Each launch uses new server processes in a new cgroup. In a race, the default, one launch is
    measured at several load levels; otherwise, each trial has a launch of its own.

    APP is module:callable. It is imported from the directory --chdir by the interpreter --python.
    Without APP and --command, the bundled app hello is measured.
    """
    check_destinations(json_file, html)
    thresholds = [parse_threshold(text) for text in threshold]
    texts = tuple(parse_objective(flags["slo"]).texts) if flags["slo"] else ()
    flags["slo"] = texts
    is_rateless = resume is None and not (flags["rates"] or flags["connections"])
    experiment = _experiment(ctx, app, flags, resume)

    if is_rateless:
        require_possible_rates(experiment)
    if resume is None:
        warn_of_pythonpath(ctx, app)
        check_and_warn(ctx, _sample_plan(experiment), open_by="--rates")
    if dry_run:
        conclusions = _conclusions_before_rates if is_rateless else _conclusions
        planned = dry_run_of(experiment, conclusions(experiment), is_rateless=is_rateless)
        if json_file is None:
            print_plan(experiment, planned, terminal())
        else:
            write_json(plan_document(experiment, planned), json_file)
        require_importable_app(experiment)
        return EXIT_OK

    arguments = ctx.obj or ()
    enter_scope(experiment.limits.policy)
    with live_view("sweep", quiet=quiet, port=live) as view:
        events = SweepEvents() if quiet and not view.is_watching else Progress(view)
        if is_rateless:
            require_possible_intervention(experiment)
            experiment = with_found_rates(experiment, events.message)
            # The command that decides measures the same.
            rates = ",".join(f"{level.rate_per_s:g}" for level in experiment.levels)
            arguments = (*arguments, "--rates", rates)
        if isinstance(events, Progress) and resume is None:
            _print_conclusions(experiment, events)
        result = (
            run_sweep(experiment, events)
            if resume is None
            else resume_sweep(resume, events, texts, _secrets(flags))
        )
        code = _print(result, thresholds, json_file, html, verbose=verbose)
        view.end(result.report, "no trial completed")
    recommendations = result.summary.recommendations or ()
    is_printed = json_file != "-" and not verbose
    code = print_recommendations(
        recommendations, code, is_printed=is_printed, aside=json_file == "-"
    )
    return code_of_answer(result.summary, code, arguments if resume is None else None)


def _experiment(
    ctx: click.Context,
    app: str | None,
    flags: Mapping[str, Any],
    resume: Path | None,
) -> Experiment:
    """The experiment to run. On resume, it is the stored one, which the options must match."""
    if resume is None:
        experiment = replace(experiment_of(spec_of(app, flags)), slo=flags["slo"])
        require_rates(experiment)
        describe: Callable[[Experiment], Experiment] | None = ctx.meta.get(DESCRIPTION)
        return experiment if describe is None else describe(experiment)
    stored = read_plan(resume, _secrets(flags))[0]
    given = _given_plan_options(ctx)
    if given:
        requested = experiment_of(spec_of(app, flags))
        require_same_plan(stored, requested, _without(ctx, given, app, flags), given)
    return stored


def _without(
    ctx: click.Context, given: set[str], app: str | None, flags: Mapping[str, Any]
) -> Experiment | None:
    """The experiment without the given options; None if there is none."""
    usual = ctx.command.make_context(ctx.info_name, [], parent=ctx.parent).params
    without = {**flags, "slo": (), **{name: usual[name] for name in given if name in flags}}
    try:
        return experiment_of(spec_of(None if "app" in given else app, without))
    except UsageError:
        return None


def _secrets(flags: Mapping[str, Any]) -> Secrets:
    """The options on the command line that restore the secrets of a stored plan."""
    return Secrets(
        request=request_options_of(flags),
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
    first = closed_loops_line(experiment)
    if experiment.budget_ns is None:
        return [first]
    outlook = replace(preflight(experiment, resolve_servers(experiment)), factor=None)
    return [first, *preflight_lines(outlook)]
