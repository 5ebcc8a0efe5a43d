"""Warns of options and variables without effect."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
from click.core import ParameterSource

from wsgiload.cli._output import complain
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.loads.build import plan_warnings


def check_and_warn(ctx: click.Context, plan: LoadPlan, *, open_by: str) -> None:
    """Raise UsageError for a plan that cannot be carried out, and warn of options without effect on
    it.

    ``open_by`` is the command's flag for an open loop. Options without effect are not refused, so
    that one script can run open and closed loops. A configuration file applies to many loads, so
    warnings concern only the command line. With --quiet, nothing is printed.
    """
    given = [name for name in ctx.params if _is_given(ctx, name)]
    warnings = plan_warnings(plan, given, open_by)
    for warning in () if ctx.params["quiet"] else warnings:
        complain(warning)


def warn_of_pythonpath(ctx: click.Context, app: str | None) -> None:
    """Warn that ``PYTHONPATH`` is not passed to the app, and suggest equivalent options."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [one for one in named if one and Path(one).is_dir()]
    given = ctx.params
    is_imported = app is not None and bool(given["servers"] or not given["command"])
    if not is_imported or not folders or given["pythonpath"] or given["quiet"]:
        return
    words = shlex.join(word for folder in folders for word in ("--pythonpath", folder))
    complain(f"PYTHONPATH is not passed to APP; add its directories with {words}")


def _is_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
