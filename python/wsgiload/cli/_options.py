"""Options that several commands share, and a command class that also reads them from configuration
files and the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from wsgiload import foreign_files
from wsgiload.account import trust_folder
from wsgiload.cli._declared import DURATION, FILE, declared_options, described, given_options
from wsgiload.cli._help import HelpfulCommand, Option, Parsed, Port, option, together
from wsgiload.cli.config import (
    Configuration,
    TomlValue,
    read_configuration,
    server_tables,
    service_tables,
)
from wsgiload.errors import UsageError
from wsgiload.experiment.public_options import ServerCommand, ServerOptions, SupportingService
from wsgiload.loads.public_options import RequestOptions
from wsgiload.options import Command
from wsgiload.units import parse_connections, parse_rate, parse_rates

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

AMBIGUOUS_T = "-t is ambiguous (threads in wrk, timeout in oha and hey, duration in locust); use --threads, --timeout or --duration"
DASHED_BODY = "-D is ambiguous (body file in some tools, duration in others); use --body, --body-file or --duration"


# Read before the other options, because it decides which files may be read.
TRUST_FLAG = "--trust-folder"

# Keys in click's context for the tables [servers] and [services].
_SERVERS = "wsgiload.servers"
_SERVICES = "wsgiload.services"


RATE = Parsed("rate", parse_rate)
RATES = Parsed("rates", parse_rates)
CONNECTIONS = Parsed("connections", parse_connections)
NAMES = Parsed(
    "names", lambda text: tuple(name.strip() for name in text.split(",") if name.strip())
)


class ConfiguredCommand(HelpfulCommand):
    """A command that also reads its options from the environment (``WSGILOAD_*``) and from
    configuration files."""

    def __init__(self, *arguments: Any, **attributes: Any) -> None:
        settings = attributes.setdefault("context_settings", {}) or {}
        settings.update({"auto_envvar_prefix": "WSGILOAD", "help_option_names": ["-h", "--help"]})
        attributes["context_settings"] = settings
        super().__init__(*arguments, **attributes)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the files first, because they contain the defaults."""
        if ctx.resilient_parsing:  # completion in a shell
            return super().parse_args(ctx, args)
        trust_folder(TRUST_FLAG in args)
        configuration = self.configuration_of(ctx, args)
        own = options_by_name(self)
        ctx.default_map = {
            own[name].name or "": as_click_takes(value, own[name])
            for name, value in configuration.defaults.items()
        }
        ctx.meta[_SERVERS] = _own_servers(configuration)
        ctx.meta[_SERVICES] = _services(configuration)
        return super().parse_args(ctx, args)

    def configuration_of(self, ctx: click.Context, args: list[str]) -> Configuration:
        """The content of the configuration files for this command."""
        folder = Path(_value_of("--chdir", args) or ".")
        explicit = _value_of("--config", args) or os.environ.get("WSGILOAD_CONFIG")
        return read_configuration(
            folder,
            Path(explicit) if explicit else None,
            self.name or "",
            lambda: {**_options_of_siblings(ctx), self.name or "": _option_names(self)},
        )


def _own_servers(configuration: Configuration) -> dict[str, ServerCommand]:
    """The tables of all files. A table replaces one of the same name in a lower-precedence file."""
    servers: dict[str, ServerCommand] = {}
    for path, tables in configuration.servers:
        servers |= server_tables(tables, str(path))
    return servers


def _services(configuration: Configuration) -> dict[str, SupportingService]:
    services: dict[str, SupportingService] = {}
    for path, tables in configuration.services:
        services |= service_tables(tables, str(path))
    return services


def configured_services() -> Mapping[str, SupportingService]:
    """The supporting services in the configuration files of the current command."""
    services: Mapping[str, SupportingService] = click.get_current_context().meta.get(_SERVICES, {})
    return services


def configured_servers() -> Mapping[str, ServerCommand]:
    """The user's own servers in the configuration files of the current command."""
    servers: Mapping[str, ServerCommand] = click.get_current_context().meta.get(_SERVERS, {})
    return servers


def as_click_takes(value: TomlValue, option: click.Option) -> TomlValue:
    """Convert a value from a file for click: a list becomes comma-separated text, unless the option
    is repeatable."""
    if option.multiple:
        return value if isinstance(value, list) else [value]
    return ",".join(map(str, value)) if isinstance(value, list) else value


def options_by_name(command: click.Command) -> dict[str, click.Option]:
    """Options by their name in a configuration file: the parameter's name if a flag has it,
    otherwise the name of the longest flag. A file cannot say that it is trusted."""
    options = [
        param
        for param in command.params
        if isinstance(param, click.Option) and TRUST_FLAG not in param.opts
    ]
    return {_file_name_of(option): option for option in options}


def _file_name_of(option: click.Option) -> str:
    names = [flag.lstrip("-").replace("-", "_") for flag in option.opts]
    return option.name if option.name in names else max(names, key=len)


def _options_of_siblings(ctx: click.Context) -> dict[str, frozenset[str]]:
    """The option names of every command in this command's group, by command."""
    group = ctx.parent.command if ctx.parent else None
    if ctx.parent is None or not isinstance(group, click.Group):
        return {}
    siblings = {name: group.get_command(ctx.parent, name) for name in group.list_commands(ctx)}
    return {name: _option_names(command) for name, command in siblings.items() if command}


def _option_names(command: click.Command) -> frozenset[str]:
    return frozenset(options_by_name(command))


def _value_of(flag: str, args: Sequence[str]) -> str | None:
    """The value of a flag in unparsed arguments, before configuration files are read."""
    for place, word in enumerate(args):
        if word == flag and place + 1 < len(args):
            return args[place + 1]
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None


def _refuse(text: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None:
            raise click.UsageError(text, ctx)

    return callback


trust_option = option(
    "Output",  # beside --config: it also decides whose settings are followed
    TRUST_FLAG,
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, param, value: trust_folder(value),
    help=described(ServerOptions, "trust_folder"),
)


def request_options(command: Command) -> Option[Any]:
    """The options of the requests and of the correct response."""
    return together(
        declared_options(RequestOptions(), command),
        option("Request", "--body-file", type=FILE, help="File that contains the request body."),
        option(
            "Request",
            "--expect-body-file",
            type=FILE,
            help="File that contains the expected response body.",
            hidden=command != "load",
        ),
    )


def duration_option(default_words: str = "10s") -> Callable[[Decorated], Decorated]:
    """``--duration``; the help gives the default in these words."""
    return option(
        "Load",
        "-d",
        "-z",
        "--duration",
        type=DURATION,
        default="10s",
        show_default=False,
        help=f"Duration of the measurement.  [default: {default_words}]",
    )


ambiguous_options = together(
    click.option(
        "-t", "ambiguous_t", hidden=True, expose_value=False, callback=_refuse(AMBIGUOUS_T)
    ),
    click.option(
        "-D", "ambiguous_d", hidden=True, expose_value=False, callback=_refuse(DASHED_BODY)
    ),
)


json_option = option(
    "Output",
    "--json",
    "json_file",
    envvar="WSGILOAD_JSON",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write the result as JSON to FILE (default: standard output).",
)

verbose_option = option(
    "Output",
    "--verbose",
    is_flag=True,
    help="Show all tables, checks and notes instead of the summary.",
)

# The options of every measurement on its result.
report_options = (
    json_option,
    option(
        "Output", "--quiet", is_flag=True, help="Suppress progress and warnings on standard error."
    ),
    option(
        "Output",
        "--live",
        type=Port(0, 65_535),
        metavar="PORT",
        help="Serve a live page with the progress and the result at http://127.0.0.1:PORT (0: any free port).",
    ),
    option(
        "Output",
        "--config",
        type=click.Path(dir_okay=False),
        help="Configuration file to use instead of wsgiload.toml.",
        expose_value=False,
    ),
    trust_option,
    option(
        "Output",
        "--dry-run",
        is_flag=True,
        help="Show what would run without starting a server or a load; --json - prints a sweep's complete plan.",
    ),
)

output_options = together(
    option(
        "Output",
        "--threshold",
        multiple=True,
        help="Pass/fail condition on the result, such as 'p99<50ms', 'error_rate<0.1%' or 'goodput>=1000' (repeatable). The exit code is 99 if it fails, and 98 if the result is too uncertain to decide it.",
    ),
    *report_options,
)


def request_options_of(flags: Mapping[str, Any]) -> RequestOptions:
    """The request that the flags describe."""
    return given_options(
        RequestOptions,
        flags,
        body=read_body(flags["body"], flags["body_file"]),
        expect_body=read_file(flags["expect_body_file"]),
    )


def read_body(body: str | None, body_file: Path | None) -> bytes | None:
    """The request body of ``--body`` or ``--body-file``."""
    if body is not None and body_file is not None:
        raise UsageError("--body and --body-file are mutually exclusive")
    # The original bytes, even if they are not valid text.
    return body.encode(errors="surrogateescape") if body is not None else read_file(body_file)


def read_file(path: Path | None) -> bytes | None:
    """The content of a file; None without a path."""
    if path is None:
        return None
    try:
        return foreign_files.read_file(foreign_files.BODY, path)
    except FileNotFoundError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


class GridCommand(ConfiguredCommand):
    """Accepts several values after ``--grid``: ``--grid workers=1,2 threads=4,8``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat ``--grid`` before each of its values."""
        return super().parse_args(ctx, repeat_grid(args))


def repeat_grid(words: list[str]) -> list[str]:
    """Convert ``--grid a=1 b=2`` to ``--grid a=1 --grid b=2``. An app never contains an equals
    sign, so it is not mistaken for a value."""
    repeated: list[str] = []
    is_open = False
    for word in words:
        is_size = bool(re.fullmatch(r"[a-z]+=.*", word))
        if is_open and is_size and repeated[-1] != "--grid":
            repeated.append("--grid")
        is_open = word == "--grid" or (is_open and is_size)
        repeated.append(word)
    return repeated
