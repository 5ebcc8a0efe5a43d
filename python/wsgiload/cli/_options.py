"""Options that several commands share, and a command class that also reads them from configuration
files and the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from wsgiload import foreign_files
from wsgiload.account import trust_folder
from wsgiload.catalogue.user_server import parse_command
from wsgiload.cli._descriptions import described
from wsgiload.cli._flags import LoadFlags, RequestFlags, SendingFlags
from wsgiload.cli._header import parse_headers
from wsgiload.cli._help import HelpfulCommand, Option, Port, WholeNumber, option
from wsgiload.cli._tables import server_tables, service_tables
from wsgiload.cli.config import Configuration, TomlValue, read_configuration
from wsgiload.documents.load_plan import Arrivals, OnBusy
from wsgiload.errors import UsageError
from wsgiload.experiment.public_options import (
    ServerCommand,
    ServerOptions,
    SupportingService,
    SweepOptions,
)
from wsgiload.experiment.variables import parse_variable
from wsgiload.loads.options import parse_keepalive
from wsgiload.loads.precision import parse_precision
from wsgiload.loads.public_options import LoadOptions, RequestOptions
from wsgiload.loads.thresholds import parse_check_threshold
from wsgiload.units import (
    NS_PER_S,
    parse_connections,
    parse_cpus,
    parse_duration_ns,
    parse_rate,
    parse_rates,
    parse_size_bytes,
)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

AMBIGUOUS_T = "-t is ambiguous (threads in wrk, timeout in oha and hey, duration in locust); use --threads, --timeout or --duration"
DASHED_BODY = "-D is ambiguous (body file in some tools, duration in others); use --body, --body-file or --duration"


# Read before the other options, because it decides which files may be read.
TRUST_FLAG = "--trust-folder"

# Keys in click's context for the tables [servers] and [services].
_SERVERS = "wsgiload.servers"
_SERVICES = "wsgiload.services"


class Parsed(click.ParamType[Any]):
    """A value parsed by our own parser, whose UsageError becomes a click error."""

    envvar_list_splitter = "\n"  # header fields contain spaces

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse text; return a parsed value unchanged."""
        if isinstance(value, bool | dict | list):  # only from a configuration file
            self.fail(f"{value!r} is not a valid value", param, ctx)
        if not isinstance(value, str | int | float):
            return value
        try:
            return self.parse(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


def _seconds(text: str) -> float:
    return parse_duration_ns(text) / NS_PER_S


def _checked_precision(text: str) -> str:
    parse_precision(text)
    return text


DURATION = Parsed("duration", _seconds)
SIZE = Parsed("size", parse_size_bytes)
CPUS = Parsed("cpus", parse_cpus)
RATE = Parsed("rate", parse_rate)
RATES = Parsed("rates", parse_rates)
CONNECTIONS = Parsed("connections", parse_connections)
KEEPALIVE = Parsed("on|off|K", parse_keepalive)
CHECK_THRESHOLD = Parsed("threshold of a check", parse_check_threshold)
PRECISION = Parsed("precision", _checked_precision)
HEADER = Parsed("name: value|@FILE", parse_headers)
COMMAND = Parsed("[name=]command", parse_command)
ASSIGNMENT = Parsed("name=value", lambda text: _assignment(text))
VARIABLE = Parsed("name=value", parse_variable)
STATUSES = Parsed("codes", lambda text: tuple(int(code) for code in _whole_numbers(text)))
NAMES = Parsed(
    "names", lambda text: tuple(name.strip() for name in text.split(",") if name.strip())
)
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"{text!r} is not NAME=VALUE", "write it like gunicorn=…")
    return name.strip().lower(), value.strip()


def _whole_numbers(text: str) -> list[str]:
    codes = [code.strip() for code in text.split(",")]
    if not all(code.isascii() and code.isdigit() and 100 <= int(code) <= 599 for code in codes):
        raise UsageError(f"{text!r} is not a list of status codes", "write it like 200 or 200,404")
    return codes


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


def together(*options: Option[Any]) -> Option[Any]:
    """Combine options into one decorator; the help lists them in this order."""

    def decorate(function: Decorated) -> Decorated:
        for add in reversed(options):
            function = add(function)
        return function

    return decorate


trust_option = option(
    "Output",  # beside --config: it also decides whose settings are followed
    TRUST_FLAG,
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, param, value: trust_folder(value),
    help=described(ServerOptions, "trust_folder"),
)


def _load(field: str, default: str | None = None) -> str:
    return described(LoadOptions, field, default)


def _request(field: str) -> str:
    return described(RequestOptions, field)


request_options = together(
    option("Request", "-X", "--method", default="GET", help=_request("method")),
    option(
        "Request",
        "-H",
        "--header",
        "header",
        multiple=True,
        type=HEADER,
        help="Header field 'Name: value', or @FILE with one header field per line (repeatable).",
    ),
    option("Request", "-b", "--body", help=_request("body")),
    option("Request", "--body-file", type=FILE, help="File that contains the request body."),
    option(
        "Request", "--targets", "--urls-from-file", "targets", type=FILE, help=_request("targets")
    ),
    option("Request", "--sessions", type=FILE, help=_request("sessions")),
    option(
        "Request",
        "--expect-status",
        type=STATUSES,
        default="200",
        help=_request("expect_status"),
    ),
    option(
        "Request",
        "--expect-body-file",
        type=FILE,
        help="File that contains the expected response body.",
    ),
    option(
        "Request",
        "--expect-length",
        type=WholeNumber(min=0),
        help=_request("expect_length"),
    ),
    option("Request", "--expect-sha256", metavar="HEX", help=_request("expect_sha256")),
    option("Request", "--expect-regex", metavar="PATTERN", help=_request("expect_regex")),
    option(
        "Output",
        "--store-secrets",
        is_flag=True,
        help=described(SweepOptions, "store_secrets"),
    ),
    option(
        "Output",
        "--show",
        multiple=True,
        metavar="NAME",
        help=described(SweepOptions, "show"),
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


def load_options(max_connections: str) -> Option[Any]:
    """The options of a load; the help of ``--max-connections`` gives the default in these words."""
    return together(
        option(
            "Load",
            "--arrivals",
            type=click.Choice(get_args(Arrivals)),
            default="poisson",
            help=_load("arrivals"),
        ),
        option("Load", "--keepalive", type=KEEPALIVE, default="on", help=_load("keepalive")),
        option(
            "Load",
            "--on-busy",
            type=click.Choice(get_args(OnBusy)),
            default="grow",
            help=_load("on_busy"),
        ),
        option(
            "Load",
            "--max-connections",
            type=WholeNumber(min=1),
            help=_load("max_connections", max_connections),
        ),
        option("Load", "--max-pending", type=WholeNumber(min=0), help=_load("max_pending")),
        option("Load", "--think-time", type=DURATION, default="0s", help=_load("think_time")),
        option("Load", "--timeout", type=DURATION, default="10s", help=_load("timeout")),
        option("Load", "--deadline", type=DURATION, help=_load("deadline")),
        option(
            "Load",
            "--precision",
            type=PRECISION,
            metavar="[QUANTILE:]PERCENT",
            help=f"{_load('precision')} The report states the duration needed for this precision.",
        ),
        option("Load", "--threads", type=int, default=1, help=_load("threads")),
        option(
            "Procedure",
            "--check-threshold",
            multiple=True,
            type=CHECK_THRESHOLD,
            metavar="CHECK.KEY=LIMIT",
            help="Override the threshold of a check, such as send-lag.warn=0.02 (repeatable). See docs/checks.md.",
        ),
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

output_options = together(
    option(
        "Output",
        "--threshold",
        multiple=True,
        help="Pass/fail condition on the result, such as 'p99<50ms', 'error_rate<0.1%' or 'goodput>=1000' (repeatable). The exit code is 99 if it fails, and 98 if the result is too uncertain to decide it.",
    ),
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
        help="Print the complete plan without starting a server or a load.",
    ),
)


def request_options_of(flags: RequestFlags, path: str | None = None) -> RequestOptions:
    """The request that the flags describe."""
    return RequestOptions(
        path=path,
        method=flags["method"],
        headers=tuple(field for fields in flags["header"] for field in fields),
        body=read_body(flags["body"], flags["body_file"]),
        targets=flags["targets"],
        sessions=flags["sessions"],
        expect_status=flags["expect_status"],
        expect_body=read_file(flags["expect_body_file"]),
        expect_length=flags["expect_length"],
        expect_sha256=flags["expect_sha256"],
        expect_regex=flags["expect_regex"],
    )


def sending_options_of(flags: SendingFlags) -> LoadOptions:
    """How requests are sent, from the options that all commands share."""
    return LoadOptions(
        warmup=flags["warmup"],
        arrivals=flags["arrivals"],
        on_busy=flags["on_busy"],
        max_connections=flags["max_connections"],
        max_pending=flags["max_pending"],
        keepalive=flags["keepalive"],
        timeout=flags["timeout"],
        deadline=flags["deadline"],
        threads=flags["threads"],
        seed=flags["seed"],
    )


def load_options_of(flags: LoadFlags) -> LoadOptions:
    """How requests are sent, in commands whose load the user chooses."""
    return replace(
        sending_options_of(flags),
        think_time=flags["think_time"],
        precision=flags["precision"],
        check_thresholds=dict(flags["check_threshold"]),
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
