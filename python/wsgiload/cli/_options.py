"""Options that several commands share, and the command class that layers configuration below
them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from wsgiload.cli.config import read_defaults
from wsgiload.errors import UsageError
from wsgiload.loads.mix import sessions_of, targets_of
from wsgiload.loads.options import parse_keepalive
from wsgiload.loads.precision import parse_precision
from wsgiload.loads.request import Request, parse_header
from wsgiload.loads.thresholds import parse_check_threshold
from wsgiload.units import (
    parse_connections,
    parse_cpus,
    parse_duration_ns,
    parse_rates,
    parse_size_bytes,
)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option = Callable[[Decorated], Decorated]

AMBIGUOUS_T = "-t means threads in wrk, timeout in oha and hey, duration in locust; use --threads, --timeout or --duration"
DASHED_BODY = "-D is a body file in some tools and a duration in others; use --body, --body-file or --duration"


class Parsed(click.ParamType[Any]):
    """A value read by one of our own parsers, whose complaint becomes click's."""

    envvar_list_splitter = "\n"  # of a header field, spaces are a part

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse text; a value that is already parsed stays."""
        if isinstance(value, bool | dict | list):  # only a configuration file says such things
            self.fail(f"{value!r} is not valid here", param, ctx)
        if not isinstance(value, str | int | float):
            return value
        try:
            return self.parse(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


DURATION = Parsed("duration", parse_duration_ns)
SIZE = Parsed("size", parse_size_bytes)
CPUS = Parsed("cpus", parse_cpus)
RATES = Parsed("rates", parse_rates)
CONNECTIONS = Parsed("connections", parse_connections)
KEEPALIVE = Parsed("on|off|K", parse_keepalive)
CHECK_THRESHOLD = Parsed("threshold of a check", parse_check_threshold)
PRECISION = Parsed("precision", parse_precision)
HEADER = Parsed("name: value", parse_header)
STATUSES = Parsed("codes", lambda text: tuple(int(code) for code in _whole_numbers(text)))
NAMES = Parsed(
    "names", lambda text: tuple(name.strip() for name in text.split(",") if name.strip())
)


def _whole_numbers(text: str) -> list[str]:
    codes = [code.strip() for code in text.split(",")]
    if not all(code.isascii() and code.isdigit() and 100 <= int(code) <= 599 for code in codes):
        raise UsageError(f"{text!r} is not a list of status codes", "write it like 200 or 200,404")
    return codes


class ConfiguredCommand(click.Command):
    """A command whose options also come from the environment (``WSGILOAD_*``) and from
    configuration files."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        settings = options.setdefault("context_settings", {}) or {}
        settings.update({"auto_envvar_prefix": "WSGILOAD", "help_option_names": ["-h", "--help"]})
        options["context_settings"] = settings
        super().__init__(*arguments, **options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the files first, because they are the defaults."""
        folder = Path(_value_of("--chdir", args) or ".")
        explicit = _value_of("--config", args) or os.environ.get("WSGILOAD_CONFIG")
        group = ctx.parent.command if ctx.parent else None
        siblings = group.commands if isinstance(group, click.Group) else {}
        options = {name: _option_names(command) for name, command in siblings.items()}
        options[self.name or ""] = _option_names(self)
        defaults = read_defaults(
            folder, Path(explicit) if explicit else None, self.name or "", options
        )
        own = _options_by_name(self)
        ctx.default_map = {
            own[name].name or "": _as_click_takes(value, own[name])
            for name, value in defaults.items()
        }
        return super().parse_args(ctx, args)


def _as_click_takes(value: Any, option: click.Option) -> Any:
    """A file's value: a list is written as on the command line, unless the option may be
    repeated."""
    if option.multiple:
        return value if isinstance(value, list) else [value]
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _options_by_name(command: click.Command) -> dict[str, click.Option]:
    """Options by their name in a configuration file: that of the longest flag, with underscores."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    return {max(option.opts, key=len).lstrip("-").replace("-", "_"): option for option in options}


def _option_names(command: click.Command) -> frozenset[str]:
    return frozenset(_options_by_name(command))


def _value_of(flag: str, args: Sequence[str]) -> str | None:
    """The value of a flag that decides where the other values come from."""
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
    """Several options as one decorator, in this order in the help."""

    def decorate(function: Decorated) -> Decorated:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


request_options = together(
    click.option("-X", "--method", default="GET", show_default=True, help="Request method."),
    click.option(
        "-H",
        "--header",
        "header",
        multiple=True,
        type=HEADER,
        help="Header field 'Name: value' (repeatable).",
    ),
    click.option("-b", "--body", help="Request body."),
    click.option(
        "--body-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File with the request body.",
    ),
    click.option(
        "--targets",
        "--urls-from-file",
        "targets",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File of weighted requests (vegeta's format with options; see docs/requests.md).",
    ),
    click.option(
        "--sessions",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File of sessions: sequences of requests with think times and cookies. The rate is then in sessions per second.",
    ),
    click.option(
        "--expect-status",
        type=STATUSES,
        default="200",
        show_default=True,
        help="Accepted status codes.",
    ),
    click.option(
        "--expect-body-file",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Expected body: exactly this file.",
    ),
    click.option(
        "--expect-length",
        type=click.IntRange(min=0),
        help="Expected body length in bytes.",
    ),
    click.option("--expect-sha256", metavar="HEX", help="Expected SHA-256 hash of the body."),
    click.option(
        "--expect-regex",
        metavar="PATTERN",
        help="Regular expression that the body must match within its first MiB.",
    ),
)

load_options = together(
    click.option(
        "-d",
        "-z",
        "--duration",
        type=DURATION,
        default="10s",
        show_default=True,
        help="Duration of the measurement.",
    ),
    click.option(
        "--arrivals",
        type=click.Choice(["poisson", "constant"]),
        default="poisson",
        show_default=True,
        help="Inter-arrival distribution.",
    ),
    click.option(
        "--keepalive",
        type=KEEPALIVE,
        default="on",
        show_default=True,
        help="Connection reuse: Connection reuse: on, off, or the number of requests per connection.",
    ),
    click.option(
        "--on-busy",
        type=click.Choice(["grow", "queue", "shed"]),
        default="grow",
        show_default=True,
        help="What to do with a request when every connection is busy.",
    ),
    click.option(
        "--max-connections",
        type=click.IntRange(min=1),
        help="Maximum number of connections of an open loop.",
    ),
    click.option(
        "--max-pending",
        type=click.IntRange(min=0),
        help="Maximum number of requests waiting for a connection; more are dropped.  [default: 10 s of the rate, at least 10 per connection]",
    ),
    click.option(
        "--think-time",
        type=DURATION,
        default="0s",
        show_default=True,
        help="Mean think time of the users of a closed loop.",
    ),
    click.option(
        "--timeout",
        type=DURATION,
        default="10s",
        show_default=True,
        help="Request timeout, including the connect.",
    ),
    click.option(
        "--deadline",
        type=DURATION,
        help="Deadline from the scheduled send time; a request that misses it while waiting is dropped.",
    ),
    click.option(
        "--precision",
        type=PRECISION,
        metavar="[QUANTILE:]PERCENT",
        help="Target precision (half-width of the 95 % CI) of p99 or another quantile, such as 5% or p99.9:2%; reports the duration it needs.",
    ),
    click.option(
        "--check-threshold",
        multiple=True,
        type=CHECK_THRESHOLD,
        metavar="CHECK.KEY=LIMIT",
        help="When a check speaks up, such as send-lag.warn=0.02; see docs/checks.md. May be repeated.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1, 256),
        default=1,
        show_default=True,
        help="Generator threads.",
    ),
    click.option(
        "-t", "ambiguous_t", hidden=True, expose_value=False, callback=_refuse(AMBIGUOUS_T)
    ),
    click.option(
        "-D", "ambiguous_d", hidden=True, expose_value=False, callback=_refuse(DASHED_BODY)
    ),
)

output_options = together(
    click.option(
        "--threshold",
        multiple=True,
        help="Objective such as 'p99<50ms', 'error_rate<0.1%', 'goodput>=1000'; exit code 99 when it fails.",
    ),
    click.option(
        "--json",
        "json_file",
        envvar="WSGILOAD_JSON",
        is_flag=False,
        flag_value="-",
        metavar="[FILE]",
        help="Write the result as JSON, to standard output by default.",
    ),
    click.option("--quiet", is_flag=True, help="No progress on standard error."),
    click.option(
        "--config",
        type=click.Path(dir_okay=False),
        help="Configuration file instead of wsgiload.toml.",
        expose_value=False,
    ),
    click.option("--dry-run", is_flag=True, help="Print the resolved plan and start nothing."),
)


def request_of(
    options: dict[str, Any], path: str = "/", bundled_body: bytes | None = None
) -> Request:
    """What the request options ask for; ``bundled_body`` is right where no other body is."""
    mixes = [name for name in ("targets", "sessions") if options[name] is not None]
    own = [name for name in ("path", "body", "body_file") if options.get(name) is not None]
    for first, second in itertools.combinations([*mixes, *own] if mixes else [], 2):
        if first in mixes:
            flags = [f"--{name.replace('_', '-')}" for name in (first, second)]
            raise UsageError(f"{flags[0]} and {flags[1]} were both given", "give one of them")
    expected_body = read_file(options["expect_body_file"])
    return Request(
        path=path,
        method=options["method"],
        headers=tuple(options["header"]),
        body=read_body(options["body"], options["body_file"]),
        statuses=options["expect_status"],
        expected_body=bundled_body if expected_body is None else expected_body,
        expected_length=options["expect_length"],
        expected_sha256=options["expect_sha256"],
        expected_regex=options["expect_regex"],
        targets=targets_of(options["targets"]),
        sessions=sessions_of(options["sessions"]),
    )


def read_body(body: str | None, body_file: Path | None) -> bytes | None:
    """The request body of ``--body`` or ``--body-file``."""
    if body is not None and body_file is not None:
        raise UsageError("--body and --body-file were both given", "give one of them")
    # The bytes that were typed, whatever text they are.
    return body.encode(errors="surrogateescape") if body is not None else read_file(body_file)


def read_file(path: Path | None) -> bytes | None:
    """A file's content, None without a file."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
