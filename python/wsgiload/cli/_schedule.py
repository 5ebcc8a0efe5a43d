"""The schedule that ``wsgiload load`` was asked for. Of several, the one that was said nearest to
the user holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from wsgiload.cli._options import DURATION, Parsed, together
from wsgiload.errors import UsageError
from wsgiload.loads.options import Level
from wsgiload.loads.schedule import (
    LoadProfile,
    Replay,
    measured_ns,
    parse_ramp,
    parse_steps,
    read_trace,
)

_SCHEDULES = ("rate", "ramp", "steps", "replay")
_FAR = 3
_NEARNESS = {
    ParameterSource.COMMANDLINE: 0,
    ParameterSource.ENVIRONMENT: 1,
    ParameterSource.DEFAULT_MAP: 2,
}

schedule_options = together(
    click.option(
        "-R",
        "-q",
        "--rate",
        "--qps",
        "rate",
        type=float,
        help="Open loop at this rate per second.",
    ),
    click.option(
        "--ramp",
        type=Parsed("from:to[@time]", parse_ramp),
        help="Open loop with a linear ramp over the measurement, or over TIME and then constant.",
    ),
    click.option(
        "--steps",
        type=Parsed("rate@time,...", parse_steps),
        help="Open loop with one rate after another; their sum is the duration.",
    ),
    click.option(
        "--replay",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Open loop that replays a trace: one arrival per line, in seconds from the start.",
    ),
    click.option(
        "--replay-speed",
        type=float,
        default=1.0,
        show_default=True,
        help="Replay speed factor; 2 replays twice as fast.",
    ),
    click.option(
        "-c",
        "--connections",
        type=click.IntRange(min=1),
        help="Closed loop: number of users. Open loop: maximum number of connections.",
    ),
    click.option(
        "--max-duration",
        type=DURATION,
        help="With --precision: double the duration until the precision is reached, up to this limit.",
    ),
    click.option(
        "--warmup",
        type=DURATION,
        default="0s",
        show_default=True,
        help="Load before the measurement.",
    ),
)


def chosen_schedule(ctx: click.Context) -> tuple[Level | LoadProfile, int]:
    """What is offered, and how long it is measured."""
    options: dict[str, Any] = ctx.params
    name = _nearest(ctx)
    _refuse_senseless(ctx, name)
    match name:
        case None:
            schedule: Level | LoadProfile = Level(connections=options["connections"] or 1)
        case "rate":
            schedule = Level(rate_per_s=options["rate"])
        case "replay":
            schedule = Replay(read_trace(options["replay"]), options["replay_speed"])
        case _:
            schedule = options[name]
    profile = None if isinstance(schedule, Level) else schedule
    return schedule, measured_ns(_given_ns(ctx, name, profile), profile, options["warmup"])


def _given_ns(ctx: click.Context, name: str | None, profile: LoadProfile | None) -> int | None:
    """The duration asked for. A file's usual one is not meant for steps that the command line asks
    for."""
    distance = _distance(ctx, "duration")
    is_meant = distance < _FAR and (name is None or distance <= _distance(ctx, name))
    has_own = profile is not None and profile.own_length_ns is not None
    given_ns: int = ctx.params["duration"]
    return given_ns if is_meant or not has_own else None


def _distance(ctx: click.Context, name: str) -> int:
    source = ctx.get_parameter_source(name)
    return _NEARNESS.get(source, _FAR) if source else _FAR


def _nearest(ctx: click.Context) -> str | None:
    given = [name for name in _SCHEDULES if ctx.params[name] is not None]
    nearest = min((_distance(ctx, name) for name in given), default=_FAR)
    names = [name for name in given if _distance(ctx, name) == nearest]
    if len(names) > 1:
        flags = " and ".join(f"--{name}" for name in names)
        raise UsageError(
            f"{flags} were both given" if len(names) == 2 else f"{flags} were all given", "give one"
        )
    return names[0] if names else None


def _refuse_senseless(ctx: click.Context, name: str | None) -> None:
    if name != "replay" and _distance(ctx, "replay_speed") == 0:
        raise UsageError("--replay-speed was given without a trace", "add --replay FILE")
    if name == "replay" and _distance(ctx, "arrivals") == 0:
        raise UsageError(
            "--arrivals was given with --replay",
            "leave it out; the trace says when requests arrive",
        )
