"""``wsgiload.sweep``: the headline command as a function."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from wsgiload.contract import Profile
from wsgiload.errors import UsageError
from wsgiload.mix import Mix, sessions_of, targets_of
from wsgiload.plan import (
    DEFAULT_MAX_CONNECTIONS,
    Arrivals,
    Experiment,
    Level,
    LoadOptions,
    Request,
    ResourceLimits,
    Size,
)
from wsgiload.sweep import SweepEvents, SweepResult, bundled_request, run_sweep
from wsgiload.units import NS_PER_S


def sweep(
    app: str | None = None,
    *,
    rates: Sequence[float] | None = None,
    connections: Sequence[int] | None = None,
    servers: Sequence[str] | None = None,
    profile: Profile = "tuned",
    workers: Sequence[int] | None = None,
    server_threads: Sequence[int] | None = None,
    path: str | None = None,
    headers: Mapping[str, str] | None = None,
    targets: Mix | None = None,
    sessions: Mix | None = None,
    duration: float = 10.0,
    warmup: float = 2.0,
    cooldown: float = 1.0,
    runs: int = 1,
    seed: int = 1,
    arrivals: Arrivals = "poisson",
    chdir: str | Path = ".",
    python: str | None = None,
    limits: ResourceLimits | None = None,
    out: str | Path = ".wsgiload/runs",
    events: SweepEvents | None = None,
) -> SweepResult:
    """Measure ``servers`` serving ``app`` (``module:callable``; without it the bundled ``hello``).

    One of ``rates`` (requests per second, open loop) and ``connections`` (users, closed loop) gives the levels;
    durations are seconds. ``targets`` or ``sessions``, as in ``load``, take the place of ``path``. Every combination of
    ``workers`` and ``server_threads`` that makes a difference to a server is measured; the profile sizes what is not
    given. Blocks. Raises UsageError for what cannot be used; a server that fails is a cell with a failure, see
    ``SweepResult.summary``.
    """
    if rates and connections:
        raise UsageError("rates and connections were both given", "give rates for an open loop, or connections")
    bundled = bundled_request("hello") if app is None else None
    levels = [Level(rate_per_s=float(rate)) for rate in rates or ([] if connections else [1000, 2000, 3000])]
    levels += [Level(connections=count) for count in connections or ()]
    experiment = Experiment(
        name=(app or "hello").replace(":", "-"),
        app=bundled[0] if bundled else str(app),
        app_dir=bundled[1] if bundled else Path(chdir).resolve(),
        request=Request(
            path=path or "/",
            headers=tuple((headers or {}).items()),
            expected_body=bundled[3] if bundled else None,
            targets=targets_of(targets),
            sessions=sessions_of(sessions),
        ),
        load=LoadOptions(
            duration_ns=round(duration * NS_PER_S),
            warmup_ns=round(warmup * NS_PER_S),
            cooldown_ns=round(cooldown * NS_PER_S),
            arrivals=arrivals,
            max_connections=DEFAULT_MAX_CONNECTIONS,
        ),
        levels=tuple(levels),
        servers=None if servers is None else tuple(servers),
        profile=profile,
        sizes=tuple(itertools.starmap(Size, itertools.product(workers or (None,), server_threads or (None,)))),
        runs=runs,
        seed=seed,
        limits=limits or ResourceLimits(),
        bundled=app is None,
        python=python,
        out=Path(out),
    )
    return run_sweep(experiment, events)
