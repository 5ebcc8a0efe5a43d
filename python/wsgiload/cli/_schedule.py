"""The schedule of ``wsgiload load``. If several are set, the one with the highest precedence wins:
command line, environment, configuration file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource

from wsgiload.cli._declared import FILE
from wsgiload.cli._descriptions import described
from wsgiload.cli._help import Parsed, WholeNumber, option, together
from wsgiload.cli._options import RATE
from wsgiload.cli._output import complain
from wsgiload.errors import UsageError
from wsgiload.loads.options import Level
from wsgiload.loads.recording import read_recording
from wsgiload.loads.schedule import LoadProfile, Replay, parse_ramp, parse_steps

_SCHEDULES = ("rate", "ramp", "steps", "replay")
_FAR = 3
_NEARNESS = {
    ParameterSource.COMMANDLINE: 0,
    ParameterSource.ENVIRONMENT: 1,
    ParameterSource.DEFAULT_MAP: 2,
}

schedule_options = together(
    option(
        "Load",
        "-R",
        "-q",
        "--rate",
        "--qps",
        "rate",
        type=RATE,
        help="Rate of the open loop, in requests per second.",
    ),
    option(
        "Load",
        "--ramp",
        type=Parsed("from:to[@time]", parse_ramp),
        help="Linear ramp of the open loop's rate over TIME (default: the whole measurement); the rate then stays at TO.",
    ),
    option(
        "Load",
        "--steps",
        type=Parsed("rate@time,...", parse_steps),
        help="Consecutive rates of the open loop. The sum of the times is the duration.",
    ),
    option(
        "Load",
        "--replay",
        type=FILE,
        help="Trace (one arrival per line, in seconds from the start) or access log to replay as an "
        "open loop (-: standard input).",
    ),
    option(
        "Load",
        "--replay-speed",
        type=float,
        default=1.0,
        help=described(Replay, "speed"),
    ),
    option(
        "Load",
        "-c",
        "--connections",
        type=WholeNumber(min=1),
        help="Number of users of a closed loop (default: 1). In an open loop, the same as --max-connections.",
    ),
)


def chosen_schedule(
    ctx: click.Context, flags: Mapping[str, Any]
) -> tuple[Level | LoadProfile, float | None]:
    """The schedule and the duration in seconds; None: the duration of the schedule."""
    name = _nearest(ctx)
    _refuse_contradictions(ctx, name)
    schedule = _schedule(ctx, name, flags)
    profile = None if isinstance(schedule, Level) else schedule
    return schedule, _duration(ctx, flags, name, profile)


def _schedule(
    ctx: click.Context, name: str | None, flags: Mapping[str, Any]
) -> Level | LoadProfile:
    by_name = {"ramp": flags["ramp"], "steps": flags["steps"]}
    if name == "rate":
        return Level(rate_per_s=flags["rate"])
    if name == "replay" and flags["replay"] is not None:
        recording = read_recording(flags["replay"])
        if not ctx.params["quiet"]:
            for note in recording.notes:
                complain(note)
        return Replay.of(recording, flags["replay_speed"])
    profile = by_name.get(name or "")
    return profile or Level(connections=flags["connections"] or 1)


def _duration(
    ctx: click.Context, flags: Mapping[str, Any], name: str | None, profile: LoadProfile | None
) -> float | None:
    """The duration in seconds. The one of a configuration file does not apply to steps from the
    command line."""
    distance = _distance(ctx, "duration")
    applies = distance < _FAR and (name is None or distance <= _distance(ctx, name))
    has_length = profile is not None and profile.length_ns is not None
    return flags["duration"] if applies or not has_length else None


def _distance(ctx: click.Context, name: str) -> int:
    source = ctx.get_parameter_source(name)
    return _NEARNESS.get(source, _FAR) if source else _FAR


def _nearest(ctx: click.Context) -> str | None:
    given = [name for name in _SCHEDULES if ctx.params[name] is not None]
    nearest = min((_distance(ctx, name) for name in given), default=_FAR)
    names = [name for name in given if _distance(ctx, name) == nearest]
    if len(names) > 1:
        flags = " and ".join(f"--{name}" for name in names)
        raise UsageError(f"{flags} are mutually exclusive")
    return names[0] if names else None


def _refuse_contradictions(ctx: click.Context, name: str | None) -> None:
    if name != "replay" and _distance(ctx, "replay_speed") == 0:
        raise UsageError("--replay-speed requires --replay", "add --replay FILE")
    if name == "replay" and _distance(ctx, "arrivals") == 0:
        raise UsageError("--arrivals has no effect with --replay", "omit it")
