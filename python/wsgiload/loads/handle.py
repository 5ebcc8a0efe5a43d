"""One load from Python: start it, wait for it, read its report. Python touches no single request.

Blocks only where it says so; the interpreter stays free for other threads while a load runs, and
Ctrl-C works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from types import TracebackType
from typing import Any, Self

import msgspec

from wsgiload._loadgen import Histogram, LoadHandle, check_plan
from wsgiload.documents.codec import decode, encode, to_plain
from wsgiload.documents.histograms import histogram_of
from wsgiload.documents.load_plan import LoadPlan, PrecisionTarget
from wsgiload.documents.load_report import Distribution, LoadReport, Verdict
from wsgiload.errors import LoadError, UsageError
from wsgiload.loads.mix import Mix, sessions_of, targets_of
from wsgiload.loads.options import (
    Arrivals,
    Keepalive,
    Level,
    LoadOptions,
    OnBusy,
    ReceiveStamps,
    load_plan,
)
from wsgiload.loads.precision import parse_precision, until_precise
from wsgiload.loads.request import Request, header_pairs
from wsgiload.loads.schedule import (
    LoadProfile,
    Ramp,
    Replay,
    Steps,
    measured_ns,
    read_trace,
    trace_of,
)
from wsgiload.loads.thresholds import check_thresholds_of, require_of_generator
from wsgiload.loads.transport import Transport
from wsgiload.units import NS_PER_S

EXIT_TIMEOUT_S = 2.0


class Report:
    """The report of one load. ``document`` is all of it, typed; the rest are views of it."""

    __slots__ = ("_document",)

    def __init__(self, document: LoadReport) -> None:
        self._document = document

    @property
    def document(self) -> LoadReport:
        """The whole report, typed and frozen."""
        return self._document

    def to_dict(self) -> Mapping[str, Any]:
        """The whole report as plain data, as documented in ``docs/metrics.md``."""
        return to_plain(self._document)

    @property
    def verdict(self) -> Verdict:
        """Whether the figures stand."""
        return self._document.verdict

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How the arrivals of the measure phase ended; ``scheduled`` is the sum of the rest."""
        return to_plain(self._document.outcomes)

    @property
    def rate(self) -> Mapping[str, float | None]:
        """Requests per second over the measure window: offered, sent, achieved, goodput."""
        return to_plain(self._document.rate)

    @property
    def response_time(self) -> Histogram | None:
        """Intended send to last byte of correct responses, in nanoseconds; None when there was
        none."""
        return histogram_of(self._document.response_time_ns)

    @property
    def service_time(self) -> Histogram | None:
        """Actual send to last byte of correct responses, in nanoseconds; excludes waiting to
        send."""
        return histogram_of(self._document.service_time_ns)

    @property
    def send_lag(self) -> Histogram | None:
        """The generator's own delay, in nanoseconds."""
        return histogram_of(self._document.send_lag_ns)

    def histogram(self, name: str) -> Histogram | None:
        """The histogram behind one of the distributions of the report, such as
        ``receive_delay_ns``; None where nothing was measured."""
        distribution: object = getattr(self._document, name, None)
        if distribution is not None and not isinstance(distribution, Distribution):
            raise UsageError(f"{name!r} is not a distribution of a report")
        return histogram_of(distribution)

    def __repr__(self) -> str:
        return (
            f"<Report {self.verdict.status}: {self.outcomes['ok']} of "
            f"{self.outcomes['scheduled']} ok>"
        )


class Handle:
    """A load that runs. Use it as a context manager to be sure that it has stopped."""

    __slots__ = ("_inner", "_report")

    def __init__(self, plan: LoadPlan) -> None:
        try:
            self._inner = LoadHandle(encode(plan))
        except ValueError as error:
            raise UsageError(str(error)) from error
        self._report: Report | None = None

    def stop(self) -> None:
        """Ask the load to end now; its result holds what was measured, marked as interrupted."""
        self._inner.stop()

    def done(self) -> bool:
        """Whether the load has ended."""
        return self._inner.is_done()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end, no longer than ``timeout`` seconds; says whether it has ended."""
        return self._inner.wait(timeout)

    def result(self) -> Report:
        """Wait for the end and return the report. Ctrl-C stops the load and raises
        KeyboardInterrupt."""
        if self._report is None:
            self._report = Report(self._finish())
        return self._report

    def _finish(self) -> LoadReport:
        try:
            data = self._inner.result_json()
        except KeyboardInterrupt:
            self._inner.stop()
            self._inner.wait(1.0)
            raise
        except ValueError as error:
            raise UsageError(str(error)) from error
        except RuntimeError as error:
            raise LoadError(str(error)) from error
        return decode(LoadReport, data, "the load generator's report")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._inner.stop()
        # Bounded, because resolving a name cannot be interrupted; a stopped load does no harm.
        self._inner.wait(EXIT_TIMEOUT_S)


def require_possible(
    plan: LoadPlan, given: Sequence[str] = (), open_by: str = "--rate"
) -> list[str]:
    """Refuse a plan that the generator could not carry out; nothing is started.

    Returns a warning for each of the ``given`` options that has no effect on it; they are named
    like the flags, with underscores, and ``open_by`` is the flag that makes an open loop.
    """
    try:
        return check_plan(encode(plan), list(given), open_by)
    except ValueError as error:
        raise UsageError(str(error)) from error


def start(
    url: str,
    *,
    rate: float | None = None,
    ramp: tuple[float, float] | tuple[float, float, float] | None = None,
    steps: Sequence[tuple[float, float]] | None = None,
    replay: str | PathLike[str] | Sequence[float] | None = None,
    replay_speed: float = 1.0,
    connections: int | None = None,
    duration: float | None = None,
    precision: str | None = None,
    max_duration: float | None = None,
    warmup: float = 0.0,
    method: str = "GET",
    headers: Sequence[tuple[str, str]] | Mapping[str, str] = (),
    body: bytes | None = None,
    arrivals: Arrivals = "poisson",
    on_busy: OnBusy = "grow",
    max_connections: int | None = None,
    max_pending: int | None = None,
    think_time: float = 0.0,
    keepalive: Keepalive = "on",
    timeout: float = 10.0,
    deadline: float | None = None,
    statuses: Sequence[int] = (200,),
    expected_body: bytes | None = None,
    expected_length: int | None = None,
    expected_sha256: str | None = None,
    expected_regex: str | None = None,
    targets: Mix | None = None,
    sessions: Mix | None = None,
    threads: int = 1,
    seed: int = 0,
    spin: float | None = None,
    receive_stamps: ReceiveStamps | None = None,
    unix_socket: str | PathLike[str] | None = None,
    source_addresses: Sequence[str] = (),
    http2: bool = False,
    insecure: bool = False,
    ca_file: str | PathLike[str] | None = None,
    check_thresholds: Mapping[str, float] | None = None,
) -> Handle:
    """Start a load on ``url`` and return at once.

    With ``rate`` (requests per second) the load is open: arrivals follow a schedule, whatever the
    server does, and ``connections`` caps the connections. At most ``max_pending`` requests wait for
    a connection; more are dropped and counted. Default: 10 s of the rate, at least 10 per
    connection. In place of one rate, ``ramp`` is ``(from, to)`` or ``(from, to, seconds)``,
    ``steps`` are pairs ``(rate, seconds)``, and ``replay`` is a trace: a file, or offsets in
    seconds. Without any of them the load is closed: each of ``connections`` users waits for its
    response before its next request.

    ``unix_socket`` is connected to instead of the URL's host, and ``source_addresses`` are local
    addresses that connections come from in turn, such as ``["127.0.0.2-127.0.0.50"]``. Over
    ``https://`` the server's certificate is checked against ``ca_file`` or the system's
    authorities, unless ``insecure``.

    Durations are seconds. ``duration`` is 10 unless the schedule has a length of its own. With
    ``precision``, such as ``"p99:5%"``, a load with ``rate`` is measured 2, 4, 8 … times as long
    until it knows that quantile so well, but no longer than ``max_duration``; ``precision`` of the
    report says whether it does.

    ``spin`` is how long the generator busy-waits before a send; by
    default that depends on the rate and the cores. ``receive_stamps`` says whose instants of
    answers are reported: the ``"kernel"``'s, which is usual in an open loop, the generator's own
    (``"user"``), usual in a closed one, or ``"sampled"``: the generator's own, with the kernel's of
    one connection in sixteen for ``receive_delay_ns``.

    ``targets`` and ``sessions`` are a file (see ``docs/requests.md``) or entries as the plan has
    them; with sessions the schedule applies to sessions.

    ``check_thresholds`` such as ``{"send-lag.warn": 0.02}`` change when a check speaks up (see
    ``docs/checks.md``).
    """
    thresholds = check_thresholds_of(check_thresholds or {})
    require_of_generator(thresholds)
    profile = _profile(rate, ramp, steps, replay, replay_speed)
    is_open = rate is not None or profile is not None
    _require_effect(is_open, think_time, connections, max_connections, max_pending)
    request = Request(
        method=method,
        headers=header_pairs(headers),
        body=body,
        statuses=tuple(statuses),
        expected_body=expected_body,
        expected_length=expected_length,
        expected_sha256=expected_sha256,
        expected_regex=expected_regex,
        targets=targets_of(targets),
        sessions=sessions_of(sessions),
    )
    load = LoadOptions(
        duration_ns=measured_ns(None if duration is None else _ns(duration), profile, _ns(warmup)),
        warmup_ns=_ns(warmup),
        arrivals=arrivals,
        on_busy=on_busy,
        max_connections=connections if is_open and max_connections is None else max_connections,
        max_pending=max_pending,
        think_time_ns=_ns(think_time),
        keepalive=keepalive,
        timeout_ns=_ns(timeout),
        deadline_ns=None if deadline is None else _ns(deadline),
        threads=threads,
        spin_window_ns=None if spin is None else _ns(spin),
        receive_stamps=receive_stamps,
        check_thresholds=thresholds,
        transport=Transport(
            unix_socket=None if unix_socket is None else fspath(unix_socket),
            # A lone text would be taken letter by letter.
            source_addresses=(source_addresses,)
            if isinstance(source_addresses, str)
            else tuple(source_addresses),
            http2=http2,
            insecure=insecure,
            ca_file=None if ca_file is None else fspath(ca_file),
        ),
    )
    level = (
        Level(rate_per_s=rate)
        if rate is not None
        else Level(connections=1 if connections is None else connections)
    )
    plan = load_plan(url, request, load, profile or level, seed)
    return Handle(msgspec.structs.replace(plan, precision=_until(precision, max_duration)))


def _require_effect(
    is_open: bool,
    think_time: float,
    connections: int | None,
    max_connections: int | None,
    max_pending: int | None,
) -> None:
    """Refuse what would be ignored, as far as it can be told from a default."""
    if is_open and think_time:
        raise UsageError(
            "think_time was given for an open loop, where a schedule says when requests are sent",
            "leave it out, or give connections instead of a schedule",
        )
    if is_open and connections is not None and max_connections is not None:
        raise UsageError(
            "connections and max_connections were given for an open loop, where both cap the "
            "connections",
            "give one of them",
        )
    caps = {"max_connections": max_connections, "max_pending": max_pending}
    given = [name for name, value in caps.items() if value is not None]
    if given and not is_open:
        were, them = ("was", "it") if len(given) == 1 else ("were", "them")
        raise UsageError(
            f"{' and '.join(given)} {were} given for a closed loop, where each user has one "
            "connection",
            f"leave {them} out, or give rate, ramp, steps or replay",
        )


def _until(precision: str | None, max_duration: float | None) -> PrecisionTarget | None:
    if precision is not None and max_duration is None:
        raise UsageError(
            "precision was given without max_duration",
            "give the longest measurement in seconds, too",
        )
    asked = None if precision is None else parse_precision(precision)
    return until_precise(asked, None if max_duration is None else _ns(max_duration))


def _profile(
    rate: float | None,
    ramp: Sequence[float] | None,
    steps: Sequence[tuple[float, float]] | None,
    replay: str | PathLike[str] | Sequence[float] | None,
    replay_speed: float,
) -> LoadProfile | None:
    schedules = {"rate": rate, "ramp": ramp, "steps": steps, "replay": replay}
    given = [name for name, value in schedules.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{', '.join(given)} were given together", "give one of them")
    if replay is None and replay_speed != 1.0:
        raise UsageError("replay_speed was given without replay", "give the trace, too")
    if ramp is not None:
        if not _is_row(ramp, 2, 3):
            raise UsageError(f"{ramp!r} is no ramp", "give (from, to) or (from, to, seconds)")
        from_per_s, to_per_s, *seconds = ramp
        return Ramp(float(from_per_s), float(to_per_s), _ns(seconds[0]) if seconds else None)
    if steps is not None:
        if not (_is_row(steps, 1) and all(_is_row(one, 2, 2) for one in steps)):
            raise UsageError(f"{steps!r} are no steps", "give pairs of a rate and seconds")
        return Steps(tuple((float(of_step), _ns(seconds)) for of_step, seconds in steps))
    if replay is not None:
        offsets_ns = read_trace(replay) if isinstance(replay, str | PathLike) else trace_of(replay)
        return Replay(offsets_ns, replay_speed)
    return None


def load(url: str, **options: Any) -> Report:
    """Carry out a load and return its report; the options are those of ``start``. Blocks; Ctrl-C
    works."""
    with start(url, **options) as handle:
        return handle.result()


async def aload(url: str, **options: Any) -> Report:
    """Carry out a load without blocking the event loop; cancelling the task stops the load."""
    with start(url, **options) as handle:
        while not handle.done():
            await asyncio.sleep(0.05)
        return handle.result()


def _is_row(value: object, least: int, most: int | None = None) -> bool:
    """Whether it is a sequence of so many things, and no text."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return False
    return least <= len(value) and (most is None or len(value) <= most)


def _ns(seconds: float) -> int:
    if isinstance(seconds, str | bytes) or not 0 <= seconds < 1e7:
        raise UsageError(f"{seconds!r} is not a duration in seconds")
    return round(seconds * NS_PER_S)
