"""``wsgiload servers``: the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console

from wsgiload.catalogue.contract import Profile
from wsgiload.catalogue.names import PROFILES, Catalogue, catalogue_rows, load_catalogue
from wsgiload.cli._output import check_destinations, complain, tell, write_json
from wsgiload.environments.interpreter import AppInterpreter, bundled_app_interpreter
from wsgiload.environments.provision import installed_servers, provision_all
from wsgiload.environments.versions import find_version
from wsgiload.errors import EXIT_OK, EXIT_SERVER, WsgiloadError
from wsgiload.limits import enter_scope
from wsgiload.report import print_checks, print_server, print_servers
from wsgiload.report.catalogue import markdown_catalogue
from wsgiload.serving.check import check_servers
from wsgiload.serving.check_store import read_checks, store_checks
from wsgiload.serving.launch import require_system


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def servers() -> None:
    """The servers that can be measured: list, show, install, check."""


def _interpreter(python: str | None, python_version: str | None) -> AppInterpreter:
    return (
        bundled_app_interpreter(python) if python_version is None else find_version(python_version)
    )


def _python(function: Any) -> Any:
    named = click.option("--python", help="Interpreter of the servers.  [default: wsgiload's]")
    versioned = click.option(
        "--python-version", help="An installed interpreter by its version, such as 3.13."
    )
    return named(versioned(function))


_names = click.argument("names", nargs=-1)
_json = click.option(
    "--json", "json_file", is_flag=False, flag_value="-", metavar="[FILE]", help="Write JSON."
)
_everything = click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every server, those that need a compiler or a system package included.",
)


@servers.command("list")
@_python
@_json
def list_servers(python: str | None, python_version: str | None, json_file: str | None) -> None:
    """Every server and variant, and whether it is installed."""
    catalogue = load_catalogue()
    installed = installed_servers(catalogue.servers, _interpreter(python, python_version))
    rows = catalogue_rows(catalogue, installed)
    if json_file is not None:
        write_json(rows, json_file)
    else:
        print_servers(rows)


@servers.command()
@_names
def show(names: tuple[str, ...]) -> None:
    """What is known of NAMES: requirements, variants, why each setting is as it is, and what a
    check found here."""
    found = load_catalogue().select(names or ("all",))
    for one in found:
        print_server(one, Console())
    checked = [row for one in found for row in read_checks(one)]
    if checked:
        print_checks(checked, Console())


@servers.command()
@_names
@_everything
@_python
def install(
    names: tuple[str, ...], everything: bool, python: str | None, python_version: str | None
) -> int:
    """Make the environments of NAMES (default: those that need nothing of the system)."""
    chosen = load_catalogue().select(_selection(names, everything))
    interpreter = _interpreter(python, python_version)
    outcomes = provision_all([found.server for found in chosen], interpreter, log=tell)
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, WsgiloadError)]
    for name, outcome in outcomes.items():
        if not isinstance(outcome, WsgiloadError):
            how = (
                f"installed in {outcome.seconds:.1f} s"
                if outcome.built
                else "was installed already"
            )
            click.echo(f"{name} {outcome.version} {how}")
    for found in chosen:
        if isinstance(outcomes[found.server.name], WsgiloadError):
            continue
        try:
            require_system(found)
        except WsgiloadError as error:
            failures.append(error)
    for failure in failures:
        complain(str(failure))
    return EXIT_SERVER if failures else EXIT_OK


@servers.command()
@_names
@_everything
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="tuned",
    show_default=True,
    help="Equal budgets, or each server as it comes.",
)
@_python
@_json
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the table of the whole catalogue as Markdown.",
)
def check(
    names: tuple[str, ...],
    everything: bool,
    profile: Profile,
    python: str | None,
    python_version: str | None,
    json_file: str | None,
    markdown: Path | None,
) -> int:
    """Prove that NAMES serve here: responses, bodies, keep-alive, PEP 3333, backlog, workers, a clean
    stop."""
    check_destinations(json_file, markdown)
    catalogue: Catalogue = load_catalogue()
    chosen = catalogue.select(_selection(names, everything))
    enter_scope("best-effort")
    results = check_servers(chosen, _interpreter(python, python_version), profile=profile, log=tell)
    store_checks(chosen, results)

    if json_file is not None:
        write_json([result.to_dict() for result in results], json_file)
    else:
        print_checks(results, Console())
    if markdown is not None:
        markdown.write_text(markdown_catalogue(catalogue, results), encoding="utf-8")
    return EXIT_OK if all(result.passed for result in results) else EXIT_SERVER


def _selection(names: tuple[str, ...], everything: bool) -> tuple[str, ...] | None:
    return ("all",) if everything else (names or None)
