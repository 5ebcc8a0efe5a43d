"""``wsgiload servers``: lists, shows, installs and checks the catalogue servers."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from wsgiload.account import Account, account_of
from wsgiload.catalogue.bundled import script_text
from wsgiload.catalogue.contract import Profile
from wsgiload.catalogue.names import Catalogue, catalogue_rows, load_catalogue
from wsgiload.cli._completion import complete_servers
from wsgiload.cli._declared import FILE, FOLDER, described
from wsgiload.cli._help import Decorated, HelpfulCommand, option, together
from wsgiload.cli._options import json_option, trust_option
from wsgiload.cli._output import check_destinations, complain, print_exact, print_status, write_json
from wsgiload.environments.interpreter import AppInterpreter, bundled_app_interpreter
from wsgiload.environments.provision import installed_servers, provision_all
from wsgiload.environments.versions import find_version
from wsgiload.errors import EXIT_OK, EXIT_SERVER, WsgiloadError
from wsgiload.experiment.plan import ResourceLimits
from wsgiload.experiment.public_options import ServerOptions
from wsgiload.foreign_files import write_named
from wsgiload.limits import enter_scope
from wsgiload.report import print_checks, print_server, print_servers, terminal
from wsgiload.report.catalogue import markdown_catalogue
from wsgiload.serving.check import check_servers
from wsgiload.serving.check_store import read_checks, store_checks
from wsgiload.serving.launch import require_system


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def servers() -> None:
    """List, show, install and check servers."""


def _interpreter(
    python: str | None, python_version: str | None, account: Account | None = None
) -> AppInterpreter:
    if python_version is not None:
        return find_version(python_version, account)
    return bundled_app_interpreter(python, account)


def _python(function: Decorated) -> Decorated:
    python = option(
        "Server", "--python", help="Python interpreter for the servers.  [default: wsgiload's]"
    )
    version = option(
        "Server",
        "--python-version",
        help="Python version of the servers, such as 3.13. It must be installed.",
    )
    decorated: Decorated = python(version(function))
    return decorated


_names = click.argument("names", nargs=-1, shell_complete=complete_servers)
_from = together(
    option(
        "Server",
        "--servers-from",
        type=FOLDER,
        metavar="DIR",
        help=described(ServerOptions, "servers_from"),
    ),
    trust_option,
)
_everything = option(
    "Server",
    "--all",
    "everything",
    is_flag=True,
    help="Select all servers, including those that need a compiler or a system package.",
)


@servers.command("list", cls=HelpfulCommand, short_help="List all servers and variants.")
@_from
@_python
@json_option
def list_servers(
    servers_from: Path | None,
    python: str | None,
    python_version: str | None,
    json_file: str | None,
) -> None:
    """List all servers and variants, and whether they are installed."""
    catalogue = load_catalogue(further=servers_from)
    installed = installed_servers(catalogue.servers, _interpreter(python, python_version))
    rows = catalogue_rows(catalogue, installed)
    if json_file is not None:
        write_json(rows, json_file)
    else:
        print_servers(rows)


@servers.command(cls=HelpfulCommand, short_help="Show requirements and settings.")
@_names
@_from
def show(names: tuple[str, ...], servers_from: Path | None) -> None:
    """Show the requirements, variants, settings (with reasons) and `servers check` results of the
    servers NAMES (default: all)."""
    variants = load_catalogue(further=servers_from).select(names or ("all",))
    for variant in variants:
        print_server(variant, terminal())
    checked = [row for variant in variants for row in read_checks(variant)]
    if checked:
        print_checks(checked, terminal())


@servers.command(cls=HelpfulCommand, short_help="Print a server's start script.")
@click.argument("name")
def script(name: str) -> None:
    """Print the start script NAME.

    Servers without a suitable command line need a start script. The summary of a sweep names the
    start scripts of the best server.
    """
    print_exact(script_text(name))


@servers.command(cls=HelpfulCommand, short_help="Install servers.")
@_names
@_everything
@_from
@_python
def install(
    names: tuple[str, ...],
    everything: bool,
    servers_from: Path | None,
    python: str | None,
    python_version: str | None,
) -> int:
    """Install the servers NAMES (default: servers that need no system packages)."""
    chosen = load_catalogue(further=servers_from).select(_selection(names, everything))
    interpreter = _interpreter(python, python_version)
    outcomes = provision_all([variant.server for variant in chosen], interpreter, log=print_status)
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, WsgiloadError)]
    for outcome in outcomes.values():
        if not isinstance(outcome, WsgiloadError):
            took = f"installed in {outcome.seconds:.1f} s"
            click.echo(
                f"{outcome.server} {outcome.version} {took if outcome.built else 'already installed'}"
            )

    for variant in chosen:
        if isinstance(outcomes[variant.server.key], WsgiloadError):
            continue
        try:
            require_system(variant)
        except WsgiloadError as error:
            failures.append(error)
    for failure in failures:
        complain(str(failure))
    return EXIT_SERVER if failures else EXIT_OK


@servers.command(cls=HelpfulCommand, short_help="Test servers on this machine.")
@_names
@_everything
@_from
@option(
    "Server",
    "--profile",
    type=click.Choice(get_args(Profile)),
    default="tuned",
    help=described(ServerOptions, "profile"),
)
@_python
@option("Limits", "--user", help=described(ResourceLimits, "user"))
@json_option
@option(
    "Output", "--markdown", type=FILE, help="Write the table of servers as Markdown to this file."
)
def check(
    names: tuple[str, ...],
    everything: bool,
    servers_from: Path | None,
    profile: Profile,
    python: str | None,
    python_version: str | None,
    user: str | None,
    json_file: str | None,
    markdown: Path | None,
) -> int:
    """Test the servers NAMES (default: servers that need no system packages) on this machine.

    The tests cover responses, bodies, keep-alive, PEP 3333, the backlog, workers and shutdown.
    """
    check_destinations(json_file, markdown)
    catalogue: Catalogue = load_catalogue(further=servers_from)
    chosen = catalogue.select(_selection(names, everything))
    enter_scope("best-effort")
    interpreter = _interpreter(python, python_version, account_of(user))
    results = check_servers(chosen, interpreter, profile=profile, log=print_status)
    store_checks(chosen, results)

    if json_file is not None:
        write_json([result.to_dict() for result in results], json_file)
    else:
        print_checks(results, terminal())
    if markdown is not None:
        write_named(markdown, markdown_catalogue(catalogue, results).encode())
    return EXIT_OK if all(result.passed for result in results) else EXIT_SERVER


def _selection(names: tuple[str, ...], everything: bool) -> tuple[str, ...] | None:
    return ("all",) if everything else (names or None)
