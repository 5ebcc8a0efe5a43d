"""Options that were given and change nothing, because the load is of another kind."""

from __future__ import annotations

import click
from click.core import ParameterSource

from wsgiload.cli._output import complain

_OF_OPEN_LOOPS = ("arrivals", "on_busy", "max_connections", "max_pending")
_OF_CLOSED_LOOPS = ("think_time",)
_OF_TLS = ("insecure", "ca_file")
_WITH_OWN_INSTANTS = (
    "over TLS, Unix sockets and HTTP/2, where answers are timed by the generator's own clock"
)


def tell_without_effect(ctx: click.Context, *, is_open: bool, open_by: str) -> None:
    """A remark for each of them, without --quiet; ``open_by`` is the command's flag for an open
    loop.

    They are not refused, so that one script can drive loads of both kinds; and a configuration file
    speaks to all of its loads, so only the command line counts.
    """
    names, why = (
        (_OF_CLOSED_LOOPS, "in an open loop, where a schedule says when requests are sent")
        if is_open
        else (_OF_OPEN_LOOPS, f"in a closed loop; {open_by} makes an open one")
    )
    remarks = [f"{_flag(name)} has no effect {why}" for name in names if _is_said(ctx, name)]
    is_tls = ctx.params.get("url", "").lower().startswith("https://")
    remarks += [
        f"{_flag(name)} has no effect without https://"
        for name in _OF_TLS
        if not is_tls and _is_said(ctx, name)
    ]
    if is_open and _is_said(ctx, "connections") and _is_said(ctx, "max_connections"):
        remarks.append("--connections has no effect beside --max-connections in an open loop")
    has_instants = is_open or any(_is_said(ctx, name) for name in ("think_time", "sessions"))
    if not has_instants and _is_said(ctx, "spin"):
        remarks.append("--spin has no effect in a closed loop without --think-time")
    asks_kernel = _is_said(ctx, "receive_stamps") and ctx.params["receive_stamps"] != "user"
    if asks_kernel and (is_tls or ctx.params.get("http2") or ctx.params.get("unix_socket")):
        remarks.append(f"--receive-stamps has no effect {_WITH_OWN_INSTANTS}")
    is_capped = any(_is_said(ctx, name) for name in ("connections", "max_connections"))
    if is_open and not is_capped and _is_said(ctx, "on_busy"):
        remarks.append(
            "--on-busy makes a difference only where the cap on connections is reached; --max-connections sets it"
        )
    for remark in [] if ctx.params["quiet"] else remarks:
        complain(remark)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _is_said(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
