"""``wsgiload calibrate``: measures the noise floor of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from wsgiload.calibration.noise_floor import CalibrationPlan, calibrate
from wsgiload.cli._declared import DURATION, FILE, given_options
from wsgiload.cli._help import MAX_U64, WholeNumber, option, together
from wsgiload.cli._options import ConfiguredCommand
from wsgiload.cli._output import check_destinations, print_status, say, write_json
from wsgiload.cli._sweep import sweep
from wsgiload.errors import EXIT_INVALID, EXIT_OK
from wsgiload.experiment.plan import ResourceLimits
from wsgiload.host.cpus import CpuPlan, assign_cpus, available_cpus
from wsgiload.loads.build import LOAD_DEFAULTS, require_possible
from wsgiload.loads.options import Level, load_plan, settings_of
from wsgiload.loads.public_options import LoadOptions
from wsgiload.loads.reference_server import find_reference_server
from wsgiload.loads.request import Request
from wsgiload.report import print_calibration, terminal
from wsgiload.units import seconds_to_ns

_SHARED_WITH_SWEEP = {
    *("arrivals", "keepalive", "threads", "ambiguous_t", "ambiguous_d"),
    *("cpus", "server_cpus", "client_cpus", "json_file", "quiet", "config", "dry_run"),
}

EXAMPLES = (
    "wsgiload calibrate",
    "wsgiload calibrate --rate 3000 --duration 30s",
    "wsgiload calibrate --keepalive off --json floor.json",
)


@click.command(
    "calibrate",
    cls=ConfiguredCommand,
    examples=EXAMPLES,
    params=[param for param in sweep.params if param.name in _SHARED_WITH_SWEEP],
)
@together(
    option(
        "Load",
        "-R",
        "--rate",
        "rate",
        type=float,
        default=1000,
        help="Rate of the open loop, in requests per second.",
    ),
    option(
        "Load",
        *("-d", "-z", "--duration"),
        type=DURATION,
        default="10s",
        help="Duration of the measurement.",
    ),
    option(
        "Load",
        "--warmup",
        type=DURATION,
        default="2s",
        help="Duration of the warm-up before the measurement.",
    ),
    option(
        "Load",
        "--seed",
        type=WholeNumber(0, MAX_U64),
        default=1,
        help="Random seed for arrivals.",
    ),
    option(
        "Server",
        "--refsrv",
        type=FILE,
        help="Reference server binary.  [default: the local build, otherwise refsrv from PATH]",
    ),
)
def calibrate_command(
    refsrv: Path | None,
    rate: float,
    json_file: str | None,
    quiet: bool,
    dry_run: bool,
    **flags: Any,
) -> int:
    """Measure this machine's noise floor: the response times of a server that responds immediately.

    Later reports show the stored noise floor, but never subtract it. Two additional loads, with
    responses delayed by 1 ms and by 10 ms, show how far the median is from the true delay.
    """
    check_destinations(json_file)
    plan = _plan(refsrv, rate, flags)
    if dry_run:
        write_json(plan, json_file or "-")
        return EXIT_OK

    document, path = calibrate(plan, (lambda text: None) if quiet else print_status)
    if json_file != "-":
        print_calibration(document, terminal())
        say(f"stored in {path}")
    if json_file is not None:
        write_json(document, json_file)
    return EXIT_INVALID if document.verdict.status == "invalid" else EXIT_OK


def _plan(refsrv: Path | None, rate: float, flags: Mapping[str, Any]) -> CalibrationPlan:
    options = given_options(LoadOptions, flags).filled(LOAD_DEFAULTS)
    settings = settings_of(options, seconds_to_ns(flags["duration"]))
    program = find_reference_server(refsrv)
    level, seed = Level(rate_per_s=rate), flags["seed"]
    require_possible(load_plan("http://127.0.0.1/", Request(), settings, level, seed))
    return CalibrationPlan(
        program=program, load=settings, rate_per_s=rate, seed=seed, cpu_plan=_cpu_plan(flags)
    )


def _cpu_plan(flags: Mapping[str, Any]) -> CpuPlan:
    limits = given_options(ResourceLimits, flags)
    return assign_cpus(available_cpus(), flags["cpus"], limits.server_cpus, limits.client_cpus)
