"""Prints which of the given options have no effect, as the generator judges it."""

from __future__ import annotations

import click
from click.core import ParameterSource

from wsgiload.cli._output import complain
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.loads.generator import plan_warnings


def check_and_warn(ctx: click.Context, plan: LoadPlan, *, open_by: str) -> None:
    """Refuse a plan that cannot be carried out, and warn of options without effect on it.

    ``open_by`` is the command's flag for an open loop. They are not refused, so that one script can
    drive loads of both kinds. A configuration file is meant for all of its loads, so only options
    of the command line are warned of; nothing is printed with --quiet.
    """
    given = [name for name in ctx.params if _is_given(ctx, name)]
    warnings = plan_warnings(plan, given, open_by)
    for warning in () if ctx.params["quiet"] else warnings:
        complain(warning)


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
