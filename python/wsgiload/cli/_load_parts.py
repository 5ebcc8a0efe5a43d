"""The parts of ``wsgiload load``: its schedule, the running server whose resource use is sampled,
and its reruns. If several schedules are set, the one with the highest precedence wins: command
line, environment, file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import click
from click.core import ParameterSource

from wsgiload.cli._declared import FILE, described
from wsgiload.cli._help import Parsed, WholeNumber, option, together
from wsgiload.cli._live import LiveView
from wsgiload.cli._options import RATE
from wsgiload.cli._output import complain
from wsgiload.doctor.settle import settle, watch_host
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.errors import UsageError, WsgiloadError
from wsgiload.experiment.procedure import SETTLE_BEFORE_RERUN_NS
from wsgiload.interrupts import uninterrupted
from wsgiload.limits.attach import Attached, attach_cgroup, attach_pid
from wsgiload.loads.options import Level
from wsgiload.loads.recording import read_recording
from wsgiload.loads.schedule import LoadProfile, Replay, parse_ramp, parse_steps
from wsgiload.report import words
from wsgiload.results.load_attempts import Attempt, max_duration_s, needs_repeat
from wsgiload.sampling.running_load import Observation, observing

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


attach_options = together(
    option(
        "Server",
        "--attach-cgroup",
        metavar="PATH",
        help="Sample the resource use of this cgroup, such as a container's.",
    ),
    option(
        "Server",
        "--attach-pid",
        type=WholeNumber(min=1),
        help="Sample the resource use of this process's cgroup.",
    ),
)


@contextmanager
def attached(flags: Mapping[str, Any], url: str) -> Iterator[Observation | None]:
    """Observe the server that the options select; None if they select none."""
    target = _target(flags["attach_cgroup"], flags["attach_pid"])
    if target is None:
        yield None
        return
    with observing(target, url) as observation:
        yield observation


def _target(path: str | None, pid: int | None) -> Attached | None:
    if path is not None and pid is not None:
        raise UsageError("--attach-cgroup and --attach-pid are mutually exclusive")
    if path is not None:
        return attach_cgroup(path)
    return attach_pid(pid) if pid is not None else None


def longest_sentence(plan: LoadPlan, reruns: int) -> str:
    """A sentence on the maximum duration of the load with its reruns."""
    whole = words.format_span(max_duration_s(plan, reruns))
    attempts = words.plural(1 + reruns, "attempt")
    return f"if the host disturbs the load: up to {attempts}, {whole} in total"


@dataclass(slots=True)
class Attempts:
    """The attempts so far. After each attempt, ``until_written`` delays interrupts, so that no
    result is lost."""

    reruns: int
    view: LiveView
    until_written: ExitStack
    made: list[Attempt] = field(default_factory=list)
    is_interrupted: bool = False

    def make(self, attempt: Callable[[int], tuple[Attempt | None, bool]]) -> None:
        """Make attempts until one is undisturbed or the maximum number is reached.

        ``attempt`` takes its number. It returns the attempt, or None if there is no report, and
        whether it was interrupted.
        """
        self._add(*attempt(1))
        while self._may_repeat():
            try:
                self._wait()
                self._add(*attempt(len(self.made) + 1))
            except KeyboardInterrupt:
                self._keep(is_interrupted=True)
            except WsgiloadError as error:
                complain(f"the load could not be repeated: {error}")
                self._keep(is_interrupted=False)
                return

    def _add(self, attempt: Attempt | None, is_interrupted: bool) -> None:
        self.made += [attempt] if attempt is not None else []
        self.is_interrupted = is_interrupted

    def _keep(self, *, is_interrupted: bool) -> None:
        self.is_interrupted = is_interrupted
        self.until_written.enter_context(uninterrupted())

    def _may_repeat(self) -> bool:
        is_left = 0 < len(self.made) <= self.reruns
        return is_left and not self.is_interrupted and needs_repeat(self.made)

    def _wait(self) -> None:
        """Wait until the host is quiet; can be interrupted."""
        self.until_written.close()
        last, number = self.made[-1], len(self.made) + 1
        why = last.disturbance or "every attempt was disturbed"
        self.view.print_line(
            f"{why}; repeating the load (attempt {number} of at most {1 + self.reruns})"
        )
        settle(SETTLE_BEFORE_RERUN_NS, lambda: watch_host(None))
