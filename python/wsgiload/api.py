"""The public functions: ``load``, ``aload``, ``start``, ``sweep`` and ``resume``.

Common settings are keyword arguments; all others are fields of frozen options objects, named like
the flags of the command line. Durations are in seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wsgiload.account import trusting_folder
from wsgiload.analysis.objective import parse_objective
from wsgiload.capacity_search.rates import require_possible_rates, require_rates, with_found_rates
from wsgiload.errors import UsageError, require
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import ResourceLimits
from wsgiload.experiment.public_options import ServerOptions, SupportingService, SweepOptions
from wsgiload.experiment.stored_secrets import Secrets
from wsgiload.loads.build import LoadSpec, plan_of
from wsgiload.loads.handle import Handle, Report
from wsgiload.loads.options import Level
from wsgiload.loads.public_options import LoadOptions, RequestOptions, TransportOptions
from wsgiload.loads.schedule import Ramp, Replay, Steps
from wsgiload.sweeps.sweep import SweepEvents, SweepResult, resume_sweep, run_sweep

POLL_S = 0.05


def load(
    url: str,
    *,
    rate: float | None = None,
    connections: int | None = None,
    duration: float | None = None,
    schedule: Ramp | Steps | Replay | None = None,
    options: LoadOptions | None = None,
    request: RequestOptions | None = None,
    transport: TransportOptions | None = None,
) -> Report:
    """Generate load against ``url`` and return the report. Blocks; Ctrl-C stops it.

    Args:
        url: ``http://`` or ``https://``, with path and query.
        rate: Requests per second. The load is then an open loop: requests follow a schedule,
            regardless of how fast the server responds.
        connections: Closed loop: number of users; each waits for its response before its next
            request. Open loop: maximum number of connections. Default: one user without ``rate``
            and ``schedule``.
        duration: Duration of the measurement in seconds. Default: that of the schedule, or 10.
        schedule: Varying rate of an open loop, instead of ``rate``: ``Ramp``, ``Steps`` or
            ``Replay``.
        options: How requests are sent: warm-up, arrivals, timeouts, threads, seed, ...
        request: What is sent, and which response is correct.
        transport: How connections reach the server: Unix socket, source addresses, TLS, HTTP/2.

    Raises:
        UsageError: An argument is invalid; nothing was started.
        LoadError: The load generator failed.
    """
    with start(
        url,
        rate=rate,
        connections=connections,
        duration=duration,
        schedule=schedule,
        options=options,
        request=request,
        transport=transport,
    ) as handle:
        return handle.result()


async def aload(
    url: str,
    *,
    rate: float | None = None,
    connections: int | None = None,
    duration: float | None = None,
    schedule: Ramp | Steps | Replay | None = None,
    options: LoadOptions | None = None,
    request: RequestOptions | None = None,
    transport: TransportOptions | None = None,
) -> Report:
    """``load`` without blocking the event loop; cancelling the task stops the load."""
    with start(
        url,
        rate=rate,
        connections=connections,
        duration=duration,
        schedule=schedule,
        options=options,
        request=request,
        transport=transport,
    ) as handle:
        while not handle.done():
            await asyncio.sleep(POLL_S)
        return handle.result()


def start(
    url: str,
    *,
    rate: float | None = None,
    connections: int | None = None,
    duration: float | None = None,
    schedule: Ramp | Steps | Replay | None = None,
    options: LoadOptions | None = None,
    request: RequestOptions | None = None,
    transport: TransportOptions | None = None,
) -> Handle:
    """Start a load against ``url`` and return immediately; the arguments are those of ``load``.

    The handle can stop the load and returns its report.
    """
    require(rate is None or schedule is None, "rate and schedule are mutually exclusive")
    closed_loop = Level(connections=1 if connections is None else connections)
    level = closed_loop if rate is None else Level(rate_per_s=rate)
    spec = LoadSpec(
        url=url,
        schedule=schedule or level,
        connections=connections,
        duration=duration,
        load=options or LoadOptions(),
        request=request or RequestOptions(),
        transport=transport or TransportOptions(),
    )
    _require_effect(spec)
    return Handle(plan_of(spec))


def _require_effect(spec: LoadSpec) -> None:
    """Raise UsageError for options that would be ignored; defaults are allowed."""
    load = spec.load
    require(
        not (spec.is_open and load.think_time),
        "think_time applies only to a closed loop",
        "omit it, or use connections instead of a schedule",
    )
    require(
        not spec.is_open or spec.connections is None or load.max_connections is None,
        "connections and max_connections set the same cap in an open loop",
        "give one",
    )
    require(
        load.precision is None or load.max_duration is not None,
        "precision needs max_duration (in seconds)",
    )
    caps = {"max_connections": load.max_connections, "max_pending": load.max_pending}
    given = [name for name, value in caps.items() if value is not None]
    if given and not spec.is_open:
        apply, them = ("applies", "it") if len(given) == 1 else ("apply", "them")
        raise UsageError(
            f"{' and '.join(given)} {apply} only to an open loop",
            f"omit {them}, or use rate or schedule",
        )


def sweep(
    app: str | None = None,
    *,
    rates: Sequence[float] | None = None,
    connections: Sequence[int] | None = None,
    servers: Sequence[str] | None = None,
    duration: float | None = None,
    load: LoadOptions | None = None,
    request: RequestOptions | None = None,
    server: ServerOptions | None = None,
    limits: ResourceLimits | None = None,
    options: SweepOptions | None = None,
    services: Mapping[str, SupportingService] | None = None,
    out: str | Path = ".wsgiload/runs",
    events: SweepEvents | None = None,
) -> SweepResult:
    """Measure servers that run ``app``, each launch with new server processes in a new cgroup.
    Blocks.

    Args:
        app: ``module:callable``. Default: the bundled app ``hello``.
        rates: Offered rates per second (open loop). Default: determined by short closed loops.
        connections: Numbers of concurrent connections (closed loop), instead of ``rates``.
        servers: Servers by name; ``["waitress", "alias=waitress"]`` measures one server under two
            names (an A/A test). Default: servers that need no system packages.
        duration: Duration of each measurement in seconds. Default: 10 in a fixed design; otherwise
            as long as p99 needs.
        load: How requests are sent. Defaults of a sweep: 2 s of warm-up, 1 s of cool-down, at most
            1,000 connections, seed 1.
        request: What is sent, and which response is correct. Default: those of a bundled app.
        server: How servers are set up: profile, workers, threads, grid, interpreter, ...
        limits: What a server may use.
        options: How trials are repeated and compared: runs, objective, ...
        services: What the servers need, such as a database, by name: started before the first
            server and stopped after the last, and sampled beside it.
        out: Parent directory of the run directories.
        events: Receives progress events.

    Raises:
        UsageError: An argument is invalid; nothing was started. A server that fails is a cell with
            a ``failure`` in ``SweepResult.summary``.
    """
    options = options or SweepOptions()
    objective = tuple(parse_objective(list(options.slo)).texts) if options.slo else ()
    spec = SweepSpec(
        app=app,
        rates=rates,
        connections=connections,
        servers=servers,
        duration=duration,
        load=load or LoadOptions(),
        request=request or RequestOptions(),
        server=server or ServerOptions(),
        limits=limits or ResourceLimits(),
        options=options,
        out=out,
        services=services or {},
    )
    with trusting_folder(spec.server.trust_folder):
        experiment = replace(experiment_of(spec), slo=objective)
        require_rates(experiment)
        if not rates and connections is None:
            require_possible_rates(experiment)
            experiment = with_found_rates(experiment, (events or SweepEvents()).message)
        return run_sweep(experiment, events)


def resume(
    run_dir: str | Path,
    *,
    request: RequestOptions | None = None,
    env: Mapping[str, str] | None = None,
    events: SweepEvents | None = None,
    trust_folder: bool = False,
) -> SweepResult:
    """Resume an interrupted sweep with its stored plan and cell order. ``request`` and ``env``
    contain the secrets that were not stored; ``trust_folder`` is that of ``ServerOptions``. Raises
    UsageError if the run cannot be resumed."""
    secrets = Secrets(request=request or RequestOptions(), variables=env or {})
    with trusting_folder(trust_folder):
        return resume_sweep(Path(run_dir), events, secrets=secrets)
