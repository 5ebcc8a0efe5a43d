"""The options of a load as users give them: frozen objects, named like the flags of the command
line, durations in seconds.

Their docstrings define the options: the command line takes its help from them. The generator
checks whether the plan is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath

from wsgiload.documents.load_plan import Arrivals, OnBusy, ReceiveStamps
from wsgiload.errors import require
from wsgiload.loads.mix import Sessions, Targets, sessions_of, targets_of
from wsgiload.loads.options import Keepalive, LoadSettings
from wsgiload.loads.request import Request, header_pairs
from wsgiload.loads.thresholds import check_thresholds_of
from wsgiload.loads.transport import Transport
from wsgiload.units import seconds_to_ns

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How requests are sent. Durations are in seconds.

    Args:
        warmup: Duration of the warm-up before the measurement.
        warmup_requests: Extend the warm-up to at least this many scheduled requests. Requires an
            open loop.
        cooldown: Duration of the cool-down after the measurement.
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
        requests: Stop after this many requests, or earlier if the duration ends. Requires a closed
            loop.
        max_duration: Extend the measurement up to this duration until the target precision is
            reached.
        threads: Number of generator threads.
        seed: Random seed. Default: a new one for each load, stored in its report; 1 for a sweep.
        spin: Busy-wait time before each send. Default: depends on the rate and the idle cores.
        receive_stamps: Source of response timestamps: kernel (when data arrives), user (when the
            generator reads the data; includes its delays, but uses less CPU time), or sampled
            (user, plus kernel timestamps on one connection in 16). Default: kernel in an open loop,
            user in a closed loop.
        check_thresholds: Check thresholds to override, such as {"send-lag.warn": 0.02}; see
            docs/checks.md.
    """

    warmup: float | None = None
    warmup_requests: int | None = None
    cooldown: float | None = None
    arrivals: Arrivals = "poisson"
    on_busy: OnBusy = "grow"
    max_connections: int | None = None
    max_pending: int | None = None
    think_time: float = 0.0
    keepalive: Keepalive = "on"
    timeout: float = 10.0
    deadline: float | None = None
    precision: str | None = None
    requests: int | None = None
    max_duration: float | None = None
    threads: int = 1
    seed: int | None = None
    spin: float | None = None
    receive_stamps: ReceiveStamps | None = None
    check_thresholds: Mapping[str, float] = field(default_factory=dict)

    def filled(self, defaults: LoadOptions) -> LoadOptions:
        """The options, with a command's defaults for those that are not set."""
        names = ("warmup", "cooldown", "max_connections", "seed")
        missing = {name: getattr(defaults, name) for name in names if getattr(self, name) is None}
        return replace(self, **missing)

    def settings(self, duration_ns: int, transport: Transport | None = None) -> LoadSettings:
        """The options as ``LoadSettings``, with times in nanoseconds."""
        return LoadSettings(
            duration_ns=duration_ns,
            warmup_ns=seconds_to_ns(self.warmup or 0.0),
            warmup_requests=self.warmup_requests,
            cooldown_ns=seconds_to_ns(self.cooldown or 0.0),
            arrivals=self.arrivals,
            on_busy=self.on_busy,
            max_connections=self.max_connections,
            max_pending=self.max_pending,
            think_time_ns=seconds_to_ns(self.think_time),
            keepalive=self.keepalive,
            timeout_ns=seconds_to_ns(self.timeout),
            deadline_ns=_optional_ns(self.deadline),
            threads=self.threads,
            spin_window_ns=_optional_ns(self.spin),
            receive_stamps=self.receive_stamps,
            check_thresholds=check_thresholds_of(self.check_thresholds),
            transport=transport or Transport(),
        )


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

    path: str | None = None
    method: str = "GET"
    headers: Headers = ()
    body: bytes | None = None
    targets: Targets | None = None
    sessions: Sessions | None = None
    expect_status: int | Sequence[int] = (200,)
    expect_body: bytes | None = None
    expect_length: int | None = None
    expect_sha256: str | None = None
    expect_regex: str | None = None

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

    unix_socket: str | PathLike[str] | None = None
    connect_to: str | None = None
    source_addresses: str | Sequence[str] = ()
    http2: bool = False
    streams: int = 1
    http1_0: bool = False
    insecure: bool = False
    ca_file: str | PathLike[str] | None = None
    client_cert: str | PathLike[str] | None = None
    client_key: str | PathLike[str] | None = None

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


def _optional_ns(seconds: float | None) -> int | None:
    return None if seconds is None else seconds_to_ns(seconds)
