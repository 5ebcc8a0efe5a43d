"""``wsgiload.sweep`` and ``wsgiload.resume``: the headline command as functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from wsgiload.analysis.objective import parse_objective
from wsgiload.capacity_search.rates import require_rates
from wsgiload.catalogue.bundled import DEFAULT_APP, bundled_app
from wsgiload.catalogue.contract import Profile
from wsgiload.errors import UsageError
from wsgiload.experiment.grid import (
    OF_ONE_APP,
    ONE_OF_THEM,
    OWN_INTERPRETER,
    apps_of,
    parse_sizes,
    refuse_beside,
)
from wsgiload.experiment.plan import Experiment, ResourceLimits, Size
from wsgiload.experiment.procedure import Method, usual_procedure
from wsgiload.experiment.settings import runs_to_compare
from wsgiload.loads.mix import Mix, sessions_of, targets_of
from wsgiload.loads.options import DEFAULT_MAX_CONNECTIONS, Arrivals, Level, LoadOptions
from wsgiload.loads.precision import parse_precision
from wsgiload.loads.request import Request, header_pairs
from wsgiload.loads.thresholds import check_thresholds_of
from wsgiload.sweeps.sweep import SweepEvents, SweepResult, resume_sweep, run_sweep
from wsgiload.units import NS_PER_S

# The values of each factor.
Grid = Mapping[str, Sequence[str | int]]


def sweep(
    app: str | None = None,
    *,
    rates: Sequence[float] | None = None,
    connections: Sequence[int] | None = None,
    servers: Sequence[str] | None = None,
    profile: Profile = "tuned",
    grid: Grid | None = None,
    path: str | None = None,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    statuses: Sequence[int] = (200,),
    expected_body: bytes | None = None,
    expected_length: int | None = None,
    expected_sha256: str | None = None,
    expected_regex: str | None = None,
    targets: Mix | None = None,
    sessions: Mix | None = None,
    duration: float = 10.0,
    warmup: float = 2.0,
    warmup_requests: int | None = None,
    cooldown: float = 1.0,
    runs: int | None = None,
    compare: bool = False,
    aggregate: Method = "interval",
    slo: Sequence[str] = (),
    settle: float | None = None,
    reruns: int | None = None,
    seed: int = 1,
    arrivals: Arrivals = "poisson",
    check_thresholds: Mapping[str, float] | None = None,
    precision: str | None = None,
    chdir: str | Path = ".",
    python: str | None = None,
    limits: ResourceLimits | None = None,
    intervene: Literal["cpu"] | None = None,
    sample_interval: float = 0.1,
    out: str | Path = ".wsgiload/runs",
    events: SweepEvents | None = None,
) -> SweepResult:
    """Measure ``servers`` serving ``app`` (``module:callable``; without it the bundled ``hello``).

    One of ``rates`` (requests per second, open loop) and ``connections`` (users, closed loop) gives
    the levels; durations are seconds. ``targets`` or ``sessions``, as in ``load``, take the place
    of ``path``; a correct response is defined as in ``load``; for ``hello`` it is the app's body.

    ``grid`` works like ``--grid``: each server is measured in every combination that applies to it,
    such as ``{"workers": [1, 2], "threads": [1, 4], "keepalive": ["on", "off"]}``. Its factors are
    ``workers``, ``threads``, ``profile``, ``keepalive``, ``python`` (installed versions) and,
    without ``app``, ``app`` (bundled ones); the profile and the other arguments set everything
    else.

    ``runs`` defaults to 1; with ``compare`` to the number needed to compare these servers, at least
    6. ``slo``, such as ``["p99<50ms"]``, implies ``compare`` and recommends the setting that meets
    it at the largest rate (``recommendations`` of the summary). With several runs each trial waits
    up to ``settle`` seconds (120) for a quiet host and is repeated up to ``reruns`` times (3) if
    the generator or the host made it invalid. ``servers=["waitress", "alias=waitress"]`` measures
    one server under two names (an A/A test). ``intervene="cpu"`` repeats each cell in pairs with
    and without its CPU limit; ``sample_interval`` is the sampling interval of the server's
    resources. ``check_thresholds`` such as ``{"send-lag.warn": 0.02}`` change when a check speaks
    up. With ``precision``, such as ``"p99:5%"``, each cell reports in ``notes`` whether its run
    reached that precision.

    Blocks. Raises UsageError for invalid arguments; a failed server is a cell with a ``failure``,
    see ``SweepResult.summary``.
    """
    if rates and connections:
        raise UsageError(
            "rates and connections were both given", "give rates for an open loop, or connections"
        )
    asked: dict[str, object] = {
        "path": path,
        "targets": targets,
        "sessions": sessions,
        "expected_body": expected_body,
    }
    asked |= {
        "expected_length": expected_length,
        "expected_sha256": expected_sha256,
        "expected_regex": expected_regex,
    }
    sizes = _sizes(grid or {}, {"app": app, "python": python}, asked)
    names = apps_of(sizes)
    bundled = bundled_app(names[0] if names else DEFAULT_APP) if app is None else None
    levels = [
        Level(rate_per_s=float(rate))
        for rate in rates or ([] if connections else [1000, 2000, 3000])
    ]
    levels += [Level(connections=count) for count in connections or ()]
    experiment = Experiment(
        name=(app or "-".join(names) or DEFAULT_APP).replace(":", "-"),
        app=bundled.app if bundled else str(app),
        app_dir=bundled.app_dir if bundled else Path(chdir).resolve(),
        request=Request(
            path=path or "/",
            method=method,
            headers=header_pairs(headers or {}),
            body=body,
            statuses=tuple(statuses),
            expected_body=bundled.expected_body
            if bundled and expected_body is None
            else expected_body,
            expected_length=expected_length,
            expected_sha256=expected_sha256,
            expected_regex=expected_regex,
            targets=targets_of(targets),
            sessions=sessions_of(sessions),
        ),
        load=LoadOptions(
            duration_ns=round(duration * NS_PER_S),
            warmup_ns=round(warmup * NS_PER_S),
            warmup_requests=warmup_requests,
            cooldown_ns=round(cooldown * NS_PER_S),
            arrivals=arrivals,
            max_connections=DEFAULT_MAX_CONNECTIONS,
            check_thresholds=check_thresholds_of(check_thresholds or {}),
        ),
        levels=tuple(levels),
        servers=None if servers is None else tuple(servers),
        profile=profile,
        sizes=sizes,
        seed=seed,
        limits=limits or ResourceLimits(),
        precision=None if precision is None else parse_precision(precision),
        bundled=app is None,
        python=python,
        intervene=intervene,
        sample_interval_ns=round(sample_interval * NS_PER_S),
        slo=tuple(parse_objective(slo).texts) if slo else (),
        out=Path(out),
    )
    require_rates(experiment)
    runs = runs or (runs_to_compare(experiment) if compare or slo else 1)
    longest_ns = None if settle is None else round(settle * NS_PER_S)
    procedure = usual_procedure(runs, longest_ns, reruns, aggregate)
    return run_sweep(replace(experiment, runs=runs, procedure=procedure), events)


def _sizes(
    grid: Grid, own: Mapping[str, str | None], asked: Mapping[str, object]
) -> tuple[Size, ...]:
    """Every combination of the factors; apps and versions of Python stand with nothing of ``own``,
    and apps with nothing that is ``asked``."""
    sizes = parse_sizes(
        None, None, [f"{name}={','.join(map(str, values))}" for name, values in grid.items()]
    )
    if apps_of(sizes):
        refuse_beside("app in grid", {"app": own["app"]}, ONE_OF_THEM)
        refuse_beside("app in grid", asked, OF_ONE_APP)
    if "python" in grid:
        refuse_beside("python in grid", {"app": own["app"]}, OWN_INTERPRETER)
        refuse_beside("python in grid", {"python": own["python"]}, ONE_OF_THEM)
    return sizes


def resume(run_dir: str | Path, *, events: SweepEvents | None = None) -> SweepResult:
    """Go on with an interrupted sweep, in its order and from its stored plan. Raises UsageError
    where it cannot."""
    return resume_sweep(Path(run_dir), events)
