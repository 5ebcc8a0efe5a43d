"""Warnings about options that were given and have no effect. They are the generator's."""

from __future__ import annotations

import click
from click.core import ParameterSource

from wsgiload.cli._output import complain
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.loads.generator import plan_warnings
from wsgiload.loads.options import knows_names

_OF_OPEN_LOOPS = ("arrivals", "on_busy", "max_connections", "max_pending")
_OF_CLOSED_LOOPS = ("think_time",)
_OF_TLS = ("insecure", "ca_file")


def warn_without_effect(ctx: click.Context, plan: LoadPlan, open_by: str) -> None:
    """Print a warning for each of them, without --quiet; ``open_by`` is the command's flag for an
    open loop. Refuses a plan that the generator could not carry out.

    They are not refused, so that one script can drive loads of both kinds; and a configuration file
    is meant for all of its loads, so only the command line counts.
    """
    given = {
        name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    warnings = plan_warnings(plan, given, open_by)
    if not knows_names():
        warnings = _warnings(plan, given, open_by)
    for warning in () if ctx.params["quiet"] else warnings:
        complain(warning)


def _warnings(plan: LoadPlan, given: set[str], open_by: str) -> tuple[str, ...]:
    """What an extension says that can warn; this goes when no other is in use."""
    is_open = plan.load.open is not None
    names = _OF_CLOSED_LOOPS if is_open else _OF_OPEN_LOOPS
    why = "in an open loop" if is_open else f"in a closed loop; {open_by} makes an open one"
    warnings = [f"{_flag(name)} has no effect {why}" for name in names if name in given]

    is_tls = plan.url.lower().startswith("https://")
    ignored = [] if is_tls else [name for name in _OF_TLS if name in given]
    warnings += [f"{_flag(name)} has no effect without https://" for name in ignored]

    if is_open and {"connections", "max_connections"} <= given:
        warnings.append(
            "--connections has no effect in an open loop when --max-connections is given"
        )
    if is_open and "on_busy" in given and not {"connections", "max_connections"} & given:
        warnings.append(
            "--on-busy has an effect only at the cap on connections; --max-connections sets it"
        )
    if "spin" in given and not is_open and not {"think_time", "sessions"} & given:
        warnings.append("--spin has no effect in a closed loop without --think-time")
    if "receive_stamps" in given and plan.receive_stamps != "user" and not _is_stamped(plan):
        warnings.append(
            "--receive-stamps has no effect over TLS, Unix sockets, HTTP/2 and hyper: the "
            "generator's own clock is used there"
        )
    return tuple(warnings)


def _is_stamped(plan: LoadPlan) -> bool:
    """Whether the kernel's receive timestamps can be had."""
    is_tls = plan.url.lower().startswith("https://")
    return not is_tls and plan.http_version == "http1" and plan.unix_socket is None


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
