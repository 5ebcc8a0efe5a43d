"""``wsgiload doctor``: lists what would disturb measurements on this machine."""

from __future__ import annotations

import click

from wsgiload.cli._help import HelpfulCommand
from wsgiload.cli._options import json_option
from wsgiload.cli._output import write_json
from wsgiload.doctor.checks import run_checks
from wsgiload.limits import enter_scope
from wsgiload.report import print_doctor


@click.command(cls=HelpfulCommand)
@json_option
def doctor(json_file: str | None) -> None:
    """List what would disturb measurements on this machine, and how to fix it."""
    enter_scope("best-effort")  # to check the limits that a sweep would have
    findings = run_checks()
    if json_file is not None:
        write_json(findings, json_file)
    else:
        print_doctor(findings)
