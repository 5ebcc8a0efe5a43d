"""Builds the plan of one load from the user's options, and asks the generator what it says about
it. Starts nothing."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import msgspec

from wsgiload._loadgen import check_plan
from wsgiload.documents.codec import encode
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.errors import UsageError, require
from wsgiload.loads.options import Level, load_plan, settings_of
from wsgiload.loads.precision import parse_precision, until_precise
from wsgiload.loads.public_options import LoadOptions, RequestOptions, TransportOptions
from wsgiload.loads.schedule import LoadProfile, Replay, measured_ns
from wsgiload.loads.thresholds import require_of_generator
from wsgiload.units import seconds_to_ns

LOAD_DEFAULTS = LoadOptions(warmup=0.0, cooldown=0.0)

# Every JSON reader can represent smaller integers.
_SEEDS = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """The user's specification of one load; ``connections`` limits an open loop."""

    url: str
    schedule: Level | LoadProfile
    connections: int | None = None
    duration: float | None = None
    load: LoadOptions = field(default_factory=LoadOptions)
    request: RequestOptions = field(default_factory=RequestOptions)
    transport: TransportOptions = field(default_factory=TransportOptions)

    @property
    def is_open(self) -> bool:
        """Whether requests are sent on a schedule, without waiting for responses."""
        return not isinstance(self.schedule, Level) or self.schedule.rate_per_s is not None


def plan_of(spec: LoadSpec) -> LoadPlan:
    """The plan of the load."""
    require(spec.request.path is None, "the URL already has a path", "omit path")
    load = spec.load.filled(LOAD_DEFAULTS)
    if spec.is_open and load.max_connections is None:
        load = replace(load, max_connections=spec.connections)
    profile = None if isinstance(spec.schedule, Level) else spec.schedule
    requested_ns = None if spec.duration is None else seconds_to_ns(spec.duration)
    duration_ns = measured_ns(requested_ns, profile, seconds_to_ns(load.warmup or 0.0))

    settings = settings_of(load, duration_ns, spec.transport.transport())
    require_of_generator(settings.check_thresholds)
    precision = None if load.precision is None else parse_precision(load.precision)
    max_duration_ns = None if load.max_duration is None else seconds_to_ns(load.max_duration)
    request = _requests_of(spec).request()
    # Loads that run at the same time must not send at the same time.
    seed = secrets.randbelow(_SEEDS) if load.seed is None else load.seed
    plan = load_plan(spec.url, request, settings, spec.schedule, seed)
    return msgspec.structs.replace(plan, precision=until_precise(precision, max_duration_ns))


def _requests_of(spec: LoadSpec) -> RequestOptions:
    """The requests of a replayed access log, or else those of the options."""
    if not isinstance(spec.schedule, Replay) or not spec.schedule.targets:
        return spec.request
    options = (spec.request.targets, spec.request.sessions, spec.request.body)
    require(
        all(option is None for option in options),
        "an access log has its own requests",
        "omit --targets, --sessions and --body",
    )
    return replace(spec.request, targets=tuple(spec.schedule.targets))


def require_possible(plan: LoadPlan) -> None:
    """Raise UsageError for a plan that the generator cannot carry out; nothing is started."""
    plan_warnings(plan, ())


def plan_warnings(
    plan: LoadPlan, given: Collection[str], open_by: str = "--rate"
) -> tuple[str, ...]:
    """The generator's warnings about options that have no effect on this plan.

    ``given`` are the options that the user set, named like the flags with underscores: the plan of
    a closed loop does not contain the options of an open loop. ``open_by`` is the flag that selects
    an open loop. Raises UsageError like ``require_possible``.
    """
    try:
        return tuple(check_plan(encode(plan), list(given), open_by))
    except ValueError as error:
        raise UsageError(str(error)) from error
