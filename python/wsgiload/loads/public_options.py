"""The options of a load as users give them: frozen objects, named like the flags of the command
line, durations in seconds.

Each option is declared here once (``wsgiload.options``): flags, keys of configuration files,
variables, help and the generator's plan follow. The generator checks whether the plan is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Literal, get_args

from wsgiload.documents.load_plan import Arrivals, OnBusy, ReceiveStamps
from wsgiload.errors import UsageError, require
from wsgiload.loads.precision import parse_precision
from wsgiload.loads.request import (
    Request,
    Sessions,
    Targets,
    Transport,
    header_pairs,
    parse_headers,
    sessions_of,
    targets_of,
)
from wsgiload.loads.thresholds import parse_check_threshold
from wsgiload.options import DURATION, SEED, Command, Text, Whole, option

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
Keepalive = Literal["on", "off"] | int


def parse_keepalive(text: str) -> Keepalive:
    """``on``, ``off``, or the number of requests per connection."""
    if text == "on":
        return "on"
    if text == "off":
        return "off"
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise UsageError(
        f"invalid keep-alive {text!r}", "write on, off, or a number of requests per connection"
    )


def _parse_statuses(text: str) -> tuple[int, ...]:
    codes = [code.strip() for code in text.split(",")]
    if not all(code.isascii() and code.isdigit() and 100 <= int(code) <= 599 for code in codes):
        raise UsageError(f"{text!r} is not a list of status codes", "write it like 200 or 200,404")
    return tuple(int(code) for code in codes)


def _checked_precision(text: str) -> str:
    parse_precision(text)
    return text


KEEPALIVE = Text("on|off|K", parse_keepalive)
PRECISION = Text("precision", _checked_precision)
CHECK_THRESHOLD = Text("threshold of a check", parse_check_threshold)
_EXPERIMENTS: tuple[Command, ...] = ("sweep", "capacity")
STATUSES = Text("codes", _parse_statuses, lambda codes: ",".join(map(str, codes)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How requests are sent. Durations are in seconds.

    Args:
        warmup: Duration of the warm-up before the measurement. Default: 0 in a load; 2 s in a
            sweep, 0.5 s in a race.
        warmup_requests: Extend the warm-up to at least this many scheduled requests. Requires an
            open loop.
        cooldown: Duration of the cool-down after the measurement. Default: 0 in a load; 1 s in a
            sweep, 0.2 s in a race.
        arrivals: Inter-arrival distribution.
        on_busy: Action if the maximum number of connections is in use: queue the request (grow, or
            its synonym queue) or drop it (shed).
        max_connections: Maximum number of connections of an open loop. Default: 1,000 in a sweep;
            4,096 in a load, or fewer if there are not enough file descriptors or ports.
        max_pending: Maximum number of requests that wait for a connection; further requests are
            dropped. Default: 10 s worth of requests, at least 10 per connection.
        think_time: Mean pause of each user between a response and the next request. Ignored in an
            open loop.
        keepalive: Connection reuse: on, off, or the maximum number of requests per connection.
        timeout: Request timeout, including connection setup.
        deadline: Drop requests that are not sent within this time after their scheduled send time.
            Default: none.
        precision: Target precision (half-width of the 95 % CI), such as 5% (for p99) or p99.9:2%.
            The report states the duration needed for this precision.
        requests: Stop after this many requests, or earlier if the duration ends. Requires a closed
            loop.
        max_duration: Extend the measurement up to this duration until the target precision is
            reached. Requires --precision.
        threads: Number of generator threads.
        processes: Number of generator processes, which share one schedule. Each may open as many
            connections as the limit on file descriptors allows.
        seed: Random seed. Default: a new one for each load, stored in its report; 1 for a sweep.
        spin: Busy-wait time before each send. Default: depends on the rate and the idle cores.
        receive_stamps: Source of response timestamps: kernel (when data arrives), user (when the
            generator reads the data; includes its delays, but uses less CPU time), or sampled
            (user, plus kernel timestamps on one connection in 16). Default: kernel in an open loop,
            user in a closed loop.
        check_thresholds: Check thresholds to override, such as {"send-lag.warn": 0.02}; see
            docs/checks.md.
    """

    warmup: float | None = option(None, "Load", DURATION)
    warmup_requests: int | None = option(
        None, "Load", Whole(1), only=("sweep",), rare_in=("sweep",)
    )
    cooldown: float | None = option(None, "Load", DURATION, only=("sweep", "capacity"))
    arrivals: Arrivals = option("poisson", "Load", get_args(Arrivals))
    on_busy: OnBusy = option("grow", "Load", get_args(OnBusy))
    max_connections: int | None = option(None, "Load", Whole(1))
    max_pending: int | None = option(None, "Load", Whole(0), rare_in=_EXPERIMENTS)
    think_time: float = option(0.0, "Load", DURATION, only=("load", "sweep"), rare_in=_EXPERIMENTS)
    keepalive: Keepalive = option("on", "Load", KEEPALIVE)
    timeout: float = option(10.0, "Load", DURATION)
    deadline: float | None = option(None, "Load", DURATION)
    precision: str | None = option(
        None,
        "Load",
        PRECISION,
        only=("load", "sweep"),
        metavar="[QUANTILE:]PERCENT",
        rare_in=_EXPERIMENTS,
    )
    requests: int | None = option(None, "Load", Whole(1), "-n", "--requests", only=("load",))
    max_duration: float | None = option(None, "Load", DURATION, only=("load",))
    threads: int = option(1, "Load", int)
    processes: int = option(1, "Load", int, only=("load",))
    seed: int | None = option(None, "Load", SEED)
    spin: float | None = option(None, "Load", DURATION, only=("load",))
    receive_stamps: ReceiveStamps | None = option(
        None, "Load", get_args(ReceiveStamps), only=("load",)
    )
    check_thresholds: Mapping[str, float] = option(
        dict,
        "Procedure",
        CHECK_THRESHOLD,
        "--check-threshold",
        only=("load", "sweep"),
        metavar="CHECK.KEY=LIMIT",
        help="Override the threshold of a check, such as send-lag.warn=0.02 (repeatable). See "
        "docs/checks.md.",
        repeatable=True,
        collect=dict,
        rare_in=_EXPERIMENTS,
    )

    def filled(self, defaults: LoadOptions) -> LoadOptions:
        """The options, with a command's defaults for those that are not set."""
        names = ("warmup", "cooldown", "max_connections", "seed")
        missing = {name: getattr(defaults, name) for name in names if getattr(self, name) is None}
        return replace(self, **missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """The requests, and which response is correct.

    Args:
        path: Path of every request, if no URL contains it. Default: /.
        method: Request method.
        headers: Header fields.
        body: Request body.
        targets: File of weighted requests in vegeta's HTTP format, as JSON lines, or as a list of
            URLs (-: standard input).
        sessions: File of sessions (sequences of requests with think times and cookies). Rates are
            then in sessions per second.
        expect_status: Accepted status codes.
        expect_body: Expected body.
        expect_length: Expected length of the body, in bytes.
        expect_sha256: Expected SHA-256 hash of the body.
        expect_regex: Regular expression that must match within the first 1 MiB of the body.
    """

    path: str | None = option(
        None,
        "Request",
        only=("sweep", "capacity"),
        help="Path of all requests.  [default: /, or the bundled app's path]",
    )
    method: str = option("GET", "Request", str, "-X", "--method")
    headers: Headers = option(
        (),
        "Request",
        Text("name: value|@FILE", parse_headers),
        "-H",
        "--header",
        help="Header field 'Name: value', or @FILE with one header field per line (repeatable).",
        repeatable=True,
        collect=lambda given: tuple(field for fields in given for field in fields),
    )
    body: bytes | None = option(None, "Request", str, "-b", "--body")
    targets: Targets | None = option(
        None, "Request", "file", "--targets", "--urls-from-file", "targets"
    )
    sessions: Sessions | None = option(None, "Request", "file")
    expect_status: int | Sequence[int] = option((200,), "Request", STATUSES)
    expect_body: bytes | None = None  # --expect-body-file
    expect_length: int | None = option(None, "Request", Whole(0), rare_in=_EXPERIMENTS)
    expect_sha256: str | None = option(None, "Request", metavar="HEX", rare_in=_EXPERIMENTS)
    expect_regex: str | None = option(None, "Request", metavar="PATTERN", rare_in=_EXPERIMENTS)

    def request(self, path: str = "/", default_body: bytes | None = None) -> Request:
        """The request; path and expected body default to the app's."""
        self._require_one_kind()
        status = self.expect_status
        return Request(
            path=self.path or path,
            method=self.method,
            headers=header_pairs(self.headers),
            body=self.body,
            statuses=(status,) if isinstance(status, int) else tuple(status),
            expected_body=default_body if self.expect_body is None else self.expect_body,
            expected_length=self.expect_length,
            expected_sha256=self.expect_sha256,
            expected_regex=self.expect_regex,
            targets=targets_of(self.targets),
            sessions=sessions_of(self.sessions),
        )

    def _require_one_kind(self) -> None:
        """Targets and sessions have their own paths and bodies."""
        kinds = {"targets": self.targets, "sessions": self.sessions}
        parts = {"path": self.path, "body": self.body}
        flags = [f"--{name}" for name, value in (kinds | parts).items() if value is not None]
        is_mix = any(value is not None for value in kinds.values())
        require(
            not (is_mix and len(flags) > 1), f"{' and '.join(flags[:2])} are mutually exclusive"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """How connections reach the server.

    Args:
        unix_socket: Connect to this Unix socket instead of the URL's host.
        connect_to: Connect to HOST:PORT instead of the URL's host. The Host header and TLS still
            use the host name of the URL.
        source_addresses: Source addresses of the connections, used round-robin, such as
            127.0.0.2-127.0.0.50 or 127.0.0.0/24.
        http2: Use HTTP/2.
        streams: Maximum number of concurrent requests per connection, at most 250. Requires HTTP/2.
        http1_0: Use HTTP/1.0. Connections are reused if the server supports keep-alive, unless
            keepalive is off.
        insecure: Do not verify TLS certificates.
        ca_file: PEM file of trusted certificate authorities, used instead of the system's.
        client_cert: PEM file of a client certificate, for servers that require one.
        client_key: PEM file of the client certificate's key. Default: the file of --client-cert.
    """

    unix_socket: str | PathLike[str] | None = option(
        None, "Request", only=("load",), metavar="PATH"
    )
    connect_to: str | None = option(None, "Request", only=("load",), metavar="HOST:PORT")
    source_addresses: str | Sequence[str] = option((), "Request", only=("load",), metavar="LIST")
    http2: bool = option(False, "Request", bool, only=("load",))
    streams: int = option(1, "Request", int, only=("load",))
    http1_0: bool = option(False, "Request", bool, "--http1.0", "http1_0", only=("load",))
    insecure: bool = option(False, "Request", bool, "-k", "--insecure", only=("load",))
    ca_file: str | PathLike[str] | None = option(None, "Request", "file", only=("load",))
    client_cert: str | PathLike[str] | None = option(None, "Request", "file", only=("load",))
    client_key: str | PathLike[str] | None = option(None, "Request", "file", only=("load",))

    def transport(self) -> Transport:
        """The options as ``Transport``."""
        require(not (self.http2 and self.http1_0), "--http2 and --http1.0 are mutually exclusive")
        sources = self.source_addresses
        # Iterating over a string would yield its characters.
        listed = sources.split(",") if isinstance(sources, str) else sources
        return Transport(
            unix_socket=_path(self.unix_socket),
            connect_to=self.connect_to,
            source_addresses=tuple(part.strip() for part in listed if part.strip()),
            http2=self.http2,
            streams=self.streams,
            http1_0=self.http1_0,
            insecure=self.insecure,
            ca_file=_path(self.ca_file),
            client_cert=_path(self.client_cert),
            client_key=_path(self.client_key),
        )


def _path(path: str | PathLike[str] | None) -> str | None:
    return None if path is None else fspath(path)
