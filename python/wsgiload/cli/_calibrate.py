"""``wsgiload calibrate``: the noise floor of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from wsgiload.calibration.run import CalibrationPlan, calibrate
from wsgiload.cli._options import ConfiguredCommand, together
from wsgiload.cli._output import check_destinations, tell, write_json
from wsgiload.cli._sweep import sweep
from wsgiload.errors import EXIT_INVALID, EXIT_OK
from wsgiload.experiment.plan import plain
from wsgiload.host.cpus import assign_cpus, available_cpus, parse_cpu_list
from wsgiload.loads.options import LoadOptions
from wsgiload.loads.reference_server import find_reference_server
from wsgiload.report import print_calibration

_AS_IN_SWEEP = {
    *(
        "duration",
        "warmup",
        "arrivals",
        "keepalive",
        "threads",
        "ambiguous_t",
        "ambiguous_d",
        "seed",
    ),
    *("cpus", "server_cpus", "client_cpus", "json_file", "quiet", "config", "dry_run"),
}


@click.command(
    "calibrate",
    cls=ConfiguredCommand,
    params=[param for param in sweep.params if param.name in _AS_IN_SWEEP],
)
@together(
    click.option(
        "-R",
        "--rate",
        "rate",
        type=float,
        default=1000.0,
        show_default=True,
        help="Offered rate per second.",
    ),
    click.option(
        "--refsrv",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Reference server binary.  [default: the one built here, else from PATH]",
    ),
)
def calibrate_command(
    refsrv: Path | None,
    rate: float,
    json_file: str | None,
    quiet: bool,
    dry_run: bool,
    **options: Any,
) -> int:
    """Measure this machine's noise floor: response times of a server that responds immediately.

    It is kept in the cache and shown beside what is measured later; nothing is ever subtracted. Two
    more loads, whose responses are held for 1 and 10 ms, show how far the median is off.
    """
    check_destinations(json_file)
    cores = [
        parse_cpu_list(text) if (text := options[name]) else None
        for name in ("server_cpus", "client_cpus")
    ]
    plan = CalibrationPlan(
        program=find_reference_server(refsrv),
        load=LoadOptions(
            duration_ns=options["duration"],
            warmup_ns=options["warmup"],
            arrivals=options["arrivals"],
            keepalive=options["keepalive"],
            threads=options["threads"],
        ),
        rate_per_s=rate,
        seed=options["seed"],
        cpu_plan=assign_cpus(available_cpus(), options["cpus"], cores[0], cores[1]),
    )
    if dry_run:
        write_json(plain(plan), json_file or "-")
        return EXIT_OK
    document, path = calibrate(plan, (lambda text: None) if quiet else tell)
    if json_file != "-":
        print_calibration(document, Console())
        click.echo(f"stored in {path}")
    if json_file is not None:
        write_json(document, json_file)
    return EXIT_INVALID if document.verdict.status == "invalid" else EXIT_OK
