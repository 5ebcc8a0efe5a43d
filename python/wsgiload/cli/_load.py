"""``wsgiload load``: drive a URL that already runs."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import Any, get_args

import click
import msgspec
from rich.console import Console

from wsgiload.analysis.alarms import alarms_of_load
from wsgiload.analysis.threshold import failed_thresholds, parse_threshold
from wsgiload.calibration.noise_floor import floor_of_plan
from wsgiload.cli._attach import attach_options, attached
from wsgiload.cli._options import (
    DURATION,
    ConfiguredCommand,
    load_options,
    output_options,
    request_of,
    request_options,
)
from wsgiload.cli._output import check_destinations, complain, tell, write_json
from wsgiload.cli._schedule import chosen_schedule, schedule_options
from wsgiload.cli._transport import chosen_transport, transport_options
from wsgiload.cli._without_effect import check_and_warn
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.errors import EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_SERVER, EXIT_THRESHOLD
from wsgiload.interrupts import instead_of_interrupts, uninterrupted
from wsgiload.loads.handle import Handle, Report
from wsgiload.loads.options import Level, LoadOptions, ReceiveStamps, load_plan
from wsgiload.loads.precision import precision_sentence, until_precise
from wsgiload.loads.schedule import LoadProfile
from wsgiload.loads.thresholds import require_of_generator
from wsgiload.report import print_load

# After Ctrl-C the generator has only to add up what it has.
STOP_TIMEOUT_S = 1.0


@click.command(cls=ConfiguredCommand)
@click.argument("url")
@schedule_options
@click.option(
    "--seed",
    type=click.IntRange(0, 2**64 - 1),
    default=0,
    show_default=True,
    help="Random seed.",
)
@load_options
@click.option(
    "--spin",
    type=DURATION,
    help="How long to busy-wait before a send.  [default: depends on the rate and the cores]",
)
@click.option(
    "--receive-stamps",
    type=click.Choice(get_args(ReceiveStamps)),
    help="Source of response timestamps.  [default: kernel in an open loop, user in a closed loop]",
)
@request_options
@transport_options
@attach_options
@output_options
@click.pass_context
def load(
    ctx: click.Context,
    /,
    url: str,
    threshold: tuple[str, ...],
    json_file: str | None,
    quiet: bool,
    dry_run: bool,
    **options: Any,
) -> int:
    """Generate load on URL. Latency is measured from the scheduled send time.

    With --rate, --ramp, --steps or --replay the load is an open loop: requests follow a schedule,
    whatever the server does. Otherwise it is a closed loop: each of the --connections users waits
    for its response before its next request.
    """
    check_destinations(json_file)
    thresholds = [parse_threshold(text) for text in threshold]
    schedule, duration_ns = chosen_schedule(ctx)
    plan = _plan(url, schedule, duration_ns, options)
    check_and_warn(ctx, plan, open_by="--rate")
    if dry_run:
        write_json(plan, json_file or "-")
        return EXIT_OK

    report, interrupted = _measure(plan, options, quiet, json_file)
    if report is None:
        complain("interrupted before the measurement; no report")
        return EXIT_INTERRUPTED
    if json_file != "-":
        with suppress(
            SystemExit, BrokenPipeError
        ):  # rich leaves so where nobody reads; the code is still ours to tell
            print_load(report.document, Console())

    if not quiet:
        _tell_connect_failures(report)
        for alarm in alarms_of_load(report.document):
            complain(f"{alarm.check}: {alarm.message}")
    if options["precision"] is not None:
        complain(precision_sentence(report.document, options["precision"]))
    failed = failed_thresholds(thresholds, [("", report.document)])
    for sentence in failed:
        complain(sentence)

    if interrupted:
        return EXIT_INTERRUPTED
    if report.document.outcomes.ok == 0 < report.document.outcomes.scheduled:
        return EXIT_SERVER
    if report.verdict.status == "invalid":
        return EXIT_INVALID
    return EXIT_THRESHOLD if failed else EXIT_OK


def _plan(
    url: str, schedule: Level | LoadProfile, duration_ns: int, options: dict[str, Any]
) -> LoadPlan:
    request = request_of(options)
    require_of_generator(options["check_threshold"])
    cap = options["max_connections"] or (None if _is_closed(schedule) else options["connections"])
    load = LoadOptions(
        duration_ns=duration_ns,
        warmup_ns=options["warmup"],
        arrivals=options["arrivals"],
        on_busy=options["on_busy"],
        max_connections=cap,
        max_pending=options["max_pending"],
        think_time_ns=options["think_time"],
        keepalive=options["keepalive"],
        timeout_ns=options["timeout"],
        deadline_ns=options["deadline"],
        threads=options["threads"],
        spin_window_ns=options["spin"],
        receive_stamps=options["receive_stamps"],
        check_thresholds=options["check_threshold"],
        transport=chosen_transport(options),
    )
    return msgspec.structs.replace(
        load_plan(url, request, load, schedule, options["seed"]),
        floor=floor_of_plan(load.keepalive),
        precision=until_precise(options["precision"], options["max_duration"]),
    )


def _is_closed(schedule: Level | LoadProfile) -> bool:
    return isinstance(schedule, Level) and schedule.rate_per_s is None


def _tell_connect_failures(report: Report) -> None:
    """The outcome says that connections were not made, and no more."""
    connections = report.document.connections
    failures = {} if connections is None else connections.failures
    for cause, count in failures.items():
        complain(f"{count} connections failed: {cause}")


def _measure(
    plan: LoadPlan, options: dict[str, Any], quiet: bool, json_file: str | None
) -> tuple[Report | None, bool]:
    """The report, written where it was asked for, and whether an interrupt cut it short; a further
    one waits so long."""
    with ExitStack() as until_written:
        with attached(options, plan.url) as observation:
            report, interrupted = _carry_out(plan, quiet)
            until_written.enter_context(uninterrupted())
        if report is not None and observation is not None:
            resources = observation.resources(report.document)
            report = Report(msgspec.structs.replace(report.document, resources=resources))
        # Before the table: nobody may be there to read that.
        if report is not None and json_file is not None:
            write_json(report.document, json_file)
    return report, interrupted


def _carry_out(plan: LoadPlan, quiet: bool) -> tuple[Report | None, bool]:
    """The report, and whether Ctrl-C cut it short; what was measured until then is kept."""
    came: list[bool] = []
    with Handle(plan) as handle:

        def stop() -> None:
            came.append(True)
            handle.stop()

        if not quiet:
            tell(f"driving {plan.url} …")
        # A second interrupt, such as that of a whole process group, must not cost the report.
        with instead_of_interrupts(stop):
            while not handle.wait(STOP_TIMEOUT_S):
                if came and not handle.wait(STOP_TIMEOUT_S):
                    return None, True
            return handle.result(), bool(came)
