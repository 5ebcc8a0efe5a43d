"""``wsgiload load``: generates load against the URL of a running server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from wsgiload.analysis.threshold import (
    Threshold,
    failed_thresholds,
    parse_threshold,
    undecided_thresholds,
)
from wsgiload.attribution.host_disturbance import (
    HostCounters,
    host_counters,
    host_seconds,
    hypervisor_counters,
)
from wsgiload.calibration.noise_floor import floor_of_plan
from wsgiload.cli._decide import finding_text
from wsgiload.cli._declared import FILE, declared_options, given_options
from wsgiload.cli._help import WholeNumber, option
from wsgiload.cli._live import LiveView, live_view
from wsgiload.cli._live_frame import Stage
from wsgiload.cli._load_parts import (
    Attempts,
    attach_options,
    attached,
    chosen_schedule,
    longest_sentence,
    schedule_options,
)
from wsgiload.cli._options import (
    ConfiguredCommand,
    ambiguous_options,
    duration_option,
    output_options,
    request_options,
    request_options_of,
    verbose_option,
)
from wsgiload.cli._output import check_destinations, complain, print_status, say, write_json
from wsgiload.cli._without_effect import check_and_warn
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport
from wsgiload.errors import (
    EXIT_INTERRUPTED,
    EXIT_INVALID,
    EXIT_OK,
    EXIT_SERVER,
    EXIT_THRESHOLD,
    UsageError,
)
from wsgiload.experiment.public_options import SweepOptions
from wsgiload.experiment.redaction import public_url, show_values_of
from wsgiload.experiment.stored_secrets import public_plan, public_report
from wsgiload.findings.alarms import alarms_of_load
from wsgiload.interrupts import replacing_interrupts, uninterrupted
from wsgiload.loads.build import LOAD_DEFAULTS, LoadSpec, plan_of
from wsgiload.loads.drive import ProgressFile, require_listener
from wsgiload.loads.handle import Handle, Report
from wsgiload.loads.precision import parse_precision, precision_sentence
from wsgiload.loads.public_options import LoadOptions, TransportOptions
from wsgiload.report import print_load, print_load_screen, terminal, text_of, write_load
from wsgiload.results.load_attempts import Attempt, attempt_of, reported
from wsgiload.sampling.running_load import Observation, host_sampler, watched
from wsgiload.sampling.sampler import Sample, Sampler
from wsgiload.units import NS_PER_S

# The form in which the result is printed.
Form = Literal["answer", "tables", "none"]
# How often the load is checked for its end after Ctrl-C.
POLL_S = 1.0

# Of options whose default depends on the command.
DEFAULTS_IN_WORDS = {
    "warmup": "0s",
    "max_connections": "4,096, or fewer if there are not enough file descriptors or ports",
    "seed": "a new one for each load, stored in its report",
}

EXAMPLES = (
    "wsgiload load http://127.0.0.1:8000/ -R 500 -d 30s",
    "wsgiload load http://127.0.0.1:8000/ -c 20 --threshold 'p99<50ms'",
    "wsgiload load http://127.0.0.1:8000/ --ramp 100:2000@1m --json load.json",
)


@click.command(cls=ConfiguredCommand, examples=EXAMPLES)
@click.argument("url")
@schedule_options
@duration_option("10s, or the length of the schedule")
@declared_options(LOAD_DEFAULTS, "load", DEFAULTS_IN_WORDS)
@ambiguous_options
@option(
    "Procedure",
    "--reruns",
    type=WholeNumber(0, 100),
    default=0,
    help="Maximum number of reruns of a load that is disturbed by the host, or invalid because of the "
    "generator or the host. The least disturbed attempt is reported.",
)
@declared_options(SweepOptions(), "load")
@request_options("load")
@declared_options(TransportOptions(), "load")
@attach_options
@verbose_option
@output_options
@option("Output", "--html", type=FILE, help="Write the result as an HTML page to this file.")
@click.pass_context
def load(
    ctx: click.Context,
    /,
    url: str,
    threshold: tuple[str, ...],
    json_file: str | None,
    html: Path | None,
    quiet: bool,
    live: int | None,
    verbose: bool,
    dry_run: bool,
    **flags: Any,
) -> int:
    """Generate load against URL. Latency is measured from the scheduled send time.

    With --rate, --ramp, --steps or --replay, the load is an open loop: requests follow a schedule,
    regardless of how fast the server responds. Otherwise, it is a closed loop: each of the
    --connections users waits for a response before the next request.
    """
    check_destinations(json_file, html)
    thresholds = [parse_threshold(text) for text in threshold]
    plan = _plan(ctx, url, flags)
    show_values_of(flags["show"])
    shown = plan if flags["store_secrets"] else public_plan(plan)
    check_and_warn(ctx, plan, open_by="--rate")
    if flags["reruns"] and not quiet:
        print_status(longest_sentence(plan, flags["reruns"]))
    if dry_run:
        write_json(shown, json_file or "-")
        return EXIT_OK

    require_listener(plan)
    with live_view("load", quiet=quiet, port=live) as view:
        report, is_interrupted = _measure(plan, flags, view, Destinations(json_file, html))
        if report is None:
            complain("interrupted before the measurement; no report")
            return EXIT_INTERRUPTED
        form: Form = "none" if json_file == "-" else "tables" if verbose else "answer"
        # Before it is laid out, because a secret in two lines of a table is not recognized.
        measured = report.document if flags["store_secrets"] else public_report(report.document)
        _print(measured, form, flags["precision"], quiet=quiet)
        code = _judge(thresholds, measured)
        view.end(html, text_of(partial(print_load_screen, measured)))
    return EXIT_INTERRUPTED if is_interrupted else code


def _plan(ctx: click.Context, url: str, flags: Mapping[str, Any]) -> LoadPlan:
    schedule, duration = chosen_schedule(ctx, flags)
    options = given_options(LoadOptions, flags)
    spec = LoadSpec(
        url=url,
        schedule=schedule,
        connections=flags["connections"],
        duration=duration,
        load=options,
        request=request_options_of(flags),
        transport=given_options(TransportOptions, flags),
    )
    return msgspec.structs.replace(plan_of(spec), noise_floor=floor_of_plan(options.keepalive))


def _print(load: LoadReport, form: Form, precision: str | None, *, quiet: bool) -> None:
    """Print the summary or the tables to standard output, and causes, alarms and the precision to
    standard error."""
    if form == "tables":
        print_load(load, terminal())
    elif form == "answer":
        print_load_screen(load, terminal())
        say("details: repeat the load with --verbose or --html FILE")
    if not quiet:
        print_allowed_streams(load)
        _print_connect_failures(load)
        # The summary lists the alarms itself.
        for alarm in alarms_of_load(load) if form != "answer" else ():
            complain(finding_text(alarm.reason()))
    if precision is not None:
        complain(precision_sentence(load, parse_precision(precision)))


def print_allowed_streams(load: LoadReport) -> None:
    """Report that the server allows fewer streams than requested."""
    allowed = load.connections.allowed_streams if load.connections is not None else None
    if allowed is not None:
        complain(
            f"the server allows {allowed} concurrent streams per connection, fewer than --streams "
            f"{load.plan.streams}; use more connections for more concurrent requests"
        )


def _print_connect_failures(load: LoadReport) -> None:
    """Report why connections failed; the outcome only counts them."""
    failures = load.connections.failures if load.connections is not None else {}
    for cause, count in failures.items():
        complain(f"failed connections: {count:,} ({cause})")


def _judge(thresholds: list[Threshold], load: LoadReport) -> int:
    """Print failed and undecided thresholds, and return the exit code."""
    failed = failed_thresholds(thresholds, [("", load)])
    undecided = undecided_thresholds(thresholds, [("", load)])
    for sentence in (*failed, *undecided):
        complain(sentence)

    if load.outcomes.ok == 0 < load.outcomes.scheduled:
        return EXIT_SERVER
    if load.verdict.status == "invalid" or undecided:
        return EXIT_INVALID
    return EXIT_THRESHOLD if failed else EXIT_OK


@dataclass(frozen=True, slots=True)
class Destinations:
    """The files to which the report is written."""

    json: str | None
    html: Path | None

    def write(self, report: LoadReport, samples: Sequence[Sample]) -> None:
        """Write the report to the requested files."""
        if self.json is not None:
            write_json(report, self.json)
        if self.html is None:
            return
        try:
            write_load(self.html, report, samples)
        except OSError as error:
            raise UsageError(f"cannot write {self.html}: {error.strerror}") from error


def _measure(
    plan: LoadPlan, flags: Mapping[str, Any], view: LiveView, destinations: Destinations
) -> tuple[Report | None, bool]:
    """Generate the load and write the report. Returns the report, and whether the load was
    interrupted. Further interrupts are delayed until the report is written."""
    with ExitStack() as until_written:
        attempts = Attempts(flags["reruns"], view, until_written)
        attempts.make(partial(_attempt, plan, flags, view, until_written))
        view.stop()
        if not attempts.made:
            return None, attempts.is_interrupted
        chosen = reported(attempts.made) if flags["reruns"] else attempts.made[0]
        # Before the tables, because standard output may be closed.
        shown = chosen.report if flags["store_secrets"] else public_report(chosen.report)
        destinations.write(shown, chosen.samples)
    return Report(chosen.report), attempts.is_interrupted


def _attempt(
    plan: LoadPlan,
    flags: Mapping[str, Any],
    view: LiveView,
    until_written: ExitStack,
    number: int,
) -> tuple[Attempt | None, bool]:
    """Make one attempt. Returns it, or None if it has no report, and whether it was interrupted.
    Afterwards, interrupts are delayed."""
    with ExitStack() as sampling:
        observation = sampling.enter_context(attached(flags, plan.url))
        host = host_sampler() if flags["reruns"] and observation is None else None
        if host is not None:
            sampling.enter_context(host)
        report, is_interrupted = _carry_out(plan, view, observation)
        until_written.enter_context(uninterrupted())
    if report is None:
        return None, is_interrupted

    load, counters = report.document, _host_counters(plan, observation, host)
    seconds = host_seconds(load, counters) if counters is not None else None
    if observation is not None:
        load = msgspec.structs.replace(load, resources=observation.resources(load))
    samples = () if observation is None else observation.samples
    return attempt_of(load, number, seconds, samples), is_interrupted


def _host_counters(
    plan: LoadPlan, observation: Observation | None, host: Sampler | None
) -> HostCounters | None:
    """The CPU time that others used on the host, excluding an attached server's own use."""
    cpus = os.cpu_count() or 1
    if host is not None:
        return hypervisor_counters(host.samples, cpus)
    if observation is None or observation.sampler is None:
        return None
    if plan.processes > 1:  # the sampler takes other generators than this process for foreign
        return hypervisor_counters(observation.samples, cpus)
    return host_counters(observation.samples, observation.sampler.client, cpus)


def _carry_out(
    plan: LoadPlan, view: LiveView, observation: Observation | None
) -> tuple[Report | None, bool]:
    """Run the load. Returns the report, and whether the load was interrupted; the report then
    contains the results so far."""
    interrupts: list[bool] = []
    with ExitStack() as watching:
        progress = watching.enter_context(_watched(plan, observation, view))
        handle = watching.enter_context(Handle(plan, progress))

        def stop() -> None:
            interrupts.append(True)
            handle.stop()

        if view.is_plain:
            print_status(f"sending load to {public_url(plan.url)} …")
        # A second interrupt, such as one sent to the process group, must not lose the report.
        with replacing_interrupts(stop):
            while not handle.wait(POLL_S):
                if interrupts and not handle.wait(handle.stop_timeout_s):
                    return None, True
            return handle.result(), bool(interrupts)


@contextmanager
def _watched(
    plan: LoadPlan, observation: Observation | None, view: LiveView
) -> Iterator[ProgressFile | None]:
    """Show this load in the view."""
    phases = plan.phases
    length_s = (phases.warmup_ns + phases.measure_ns + phases.cooldown_ns) / NS_PER_S
    view.show(Stage(f"sending load to {public_url(plan.url)}", None, length_s, time.monotonic_ns()))
    sampler = observation.sampler if observation is not None else None
    limits = observation.limits if observation is not None else (None, None)
    with watched(view, plan, sampler, limits) as progress:
        yield progress
