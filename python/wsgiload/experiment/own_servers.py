"""The user's own servers in an experiment: read from the options, and what contradicts them.

Looks for their programs; starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wsgiload.catalogue.own import OwnServer, placeholders_of, require_runnable
from wsgiload.environments.own import find_own_program
from wsgiload.errors import UsageError
from wsgiload.experiment.grid import refuse_beside
from wsgiload.experiment.plan import Size
from wsgiload.experiment.public_options import ServerOptions


def own_servers_of(
    options: ServerOptions, folder: Path, variables: Mapping[str, str]
) -> tuple[OwnServer, ...]:
    """The servers that are started by commands of the user's own, in ``folder``. Raises UsageError
    for one that could not be started, or that would listen nobody knows where."""
    servers = tuple(OwnServer(name, command, folder) for name, command in options.command.items())
    for one in servers:
        require_runnable(one, options.port)
        find_own_program(one, variables)
    return servers


def require_compatible_with_own(
    app: str | None,
    named: Sequence[str],
    options: ServerOptions,
    sizes: Sequence[Size],
    own: Sequence[OwnServer],
) -> None:
    """Refuse what contradicts the user's own servers, or has no effect on them; ``named`` are the
    servers of ``--servers``."""
    if not own:
        return
    refuse_beside("--command", {"--grid app=": sizes[0].app}, "the command itself names the app")
    names = {one.name for one in own}
    of_catalogue = [name for name in named if (name.partition("=")[2] or name) not in names]
    if not of_catalogue:
        _refuse_without_effect(options, sizes, own)
    elif app is None and options.app_name is None:
        raise UsageError(
            f"--servers {of_catalogue[0]} with --command needs APP, or it would serve another app",
            "add your app, such as shop.wsgi:application, or omit --servers",
        )


def _refuse_without_effect(
    options: ServerOptions, sizes: Sequence[Size], own: Sequence[OwnServer]
) -> None:
    """Where only the user's own servers are measured: what only concerns those of the
    catalogue."""
    of_catalogue: Mapping[str, object] = {
        "--python": options.python,
        "--pythonpath": options.pythonpath or None,
        "--python-version": options.python_version,
        "--grid python=": sizes[0].python,
        "--grid profile=": sizes[0].profile,
    }
    fix = "omit it, or add servers of the catalogue with --servers"
    refuse_beside("--command without --servers", of_catalogue, fix)

    used = frozenset[str]().union(*(placeholders_of(one) for one in own))
    asked = {
        ("workers", "--workers"): sizes[0].workers,
        ("threads", "--server-threads"): sizes[0].threads,
    }
    for (placeholder, option), value in asked.items():
        if value is not None and placeholder not in used:
            raise UsageError(
                f"{option} has no effect: no --command has the placeholder {{{placeholder}}}",
                f"write {{{placeholder}}} where the command sets their number",
            )
