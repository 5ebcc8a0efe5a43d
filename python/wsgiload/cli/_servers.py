"""``wsgiload servers``: the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from wsgiload.catalogue import Catalogue, catalogue_rows, load_catalogue
from wsgiload.check import check_servers
from wsgiload.cli._output import complain, write_json
from wsgiload.errors import EXIT_OK, EXIT_SERVER, ProvisionError
from wsgiload.interpreter import AppInterpreter, bundled_app_interpreter, find_app_interpreter
from wsgiload.provision import install_all, installed_servers
from wsgiload.report import print_checks, print_server, print_servers


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def servers() -> None:
    """The servers that can be measured: list, show, install, check."""


def _interpreter(python: str | None) -> AppInterpreter:
    return bundled_app_interpreter() if python is None else find_app_interpreter(Path.cwd(), python)


_python = click.option("--python", help="Interpreter of the servers.  [default: wsgiload's]")
_names = click.argument("names", nargs=-1)
_json = click.option("--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="Write JSON.")


@servers.command("list")
@_python
@_json
def list_servers(python: str | None, json_file: str | None) -> None:
    """Every server and variant, and whether it is installed."""
    catalogue = load_catalogue()
    installed = installed_servers(catalogue.servers, _interpreter(python))
    rows = catalogue_rows(catalogue, installed)
    if json_file is not None:
        write_json(rows, json_file)
    else:
        print_servers(rows)


@servers.command()
@_names
def show(names: tuple[str, ...]) -> None:
    """What is known of NAMES: requirements, variants, and why each setting is as it is."""
    for found in load_catalogue().select(names or ("all",)):
        print_server(found, Console())


@servers.command()
@_names
@click.option("--all", "everything", is_flag=True, help="Every server, those that need a compiler included.")
@_python
def install(names: tuple[str, ...], everything: bool, python: str | None) -> int:
    """Make the environments of NAMES (default: those that need no compiler)."""
    catalogue = load_catalogue()
    chosen = catalogue.servers_named(_selection(names, everything))
    outcomes = install_all(chosen, _interpreter(python), log=lambda text: click.echo(text, err=True))
    for name, outcome in outcomes.items():
        if isinstance(outcome, ProvisionError):
            complain(str(outcome))
        else:
            how = f"installed in {outcome.seconds:.1f} s" if outcome.built else "was installed already"
            click.echo(f"{name} {outcome.version} {how}")
    return EXIT_SERVER if any(isinstance(outcome, ProvisionError) for outcome in outcomes.values()) else EXIT_OK


@servers.command()
@_names
@click.option("--all", "everything", is_flag=True, help="Every server, those that need a compiler included.")
@_python
@_json
def check(names: tuple[str, ...], everything: bool, python: str | None, json_file: str | None) -> int:
    """Prove that NAMES serve here: right answers, keep-alive as claimed, a clean stop."""
    catalogue: Catalogue = load_catalogue()
    chosen = catalogue.select(_selection(names, everything))
    results = check_servers(chosen, _interpreter(python), log=lambda text: click.echo(text, err=True))
    rows: list[dict[str, Any]] = [result.to_dict() for result in results]
    if json_file is not None:
        write_json(rows, json_file)
    else:
        print_checks(rows, Console())
    return EXIT_OK if all(result.passed for result in results) else EXIT_SERVER


def _selection(names: tuple[str, ...], everything: bool) -> tuple[str, ...] | None:
    return ("all",) if everything else (names or None)
