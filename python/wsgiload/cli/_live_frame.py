"""The content of the live view: the current and the next trial, and the running load. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wsgiload.analysis.absence import enough_requests
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.page_data import LiveFrame
from wsgiload.foreign_text import visible
from wsgiload.loads.drive import LoadProgress
from wsgiload.report.words import (
    MISSING,
    failures_by_kind,
    format_bytes,
    format_cores,
    format_count,
    format_duration_ns,
    format_measured_per_s,
    format_ratio,
    format_span,
    needed_requests,
    plural,
)
from wsgiload.sampling.running_load import LoadState, RunningLoad
from wsgiload.units import NS_PER_S

Row = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Stage:
    """The running stage of a measurement, without its load."""

    what: str
    upcoming: str | None = None
    left_s: float | None = None
    """Estimated remaining time of the whole measurement at ``since_ns``."""
    since_ns: int = 0
    standing: str | None = None


def rows(
    stage: Stage, running: RunningLoad | None, state: LoadState | None, now_ns: int
) -> list[Row]:
    """The label and text of each line."""
    progress = state.progress if state is not None else None
    doing = "starting" if running is None else _phase(progress, now_ns)
    lines = [("now", f"{stage.what}: {doing}"), ("next", _next(stage, now_ns))]
    if running is not None and state is not None:
        lines += _load_rows(running, state)
    if stage.standing is not None:
        lines.append(("standing", stage.standing))
    return lines


def _next(stage: Stage, now_ns: int) -> str:
    words = [stage.upcoming] if stage.upcoming is not None else []
    if stage.left_s is not None:
        left_s = stage.left_s - (now_ns - stage.since_ns) / NS_PER_S
        # Omit an estimate that was exceeded.
        words += [f"about {format_span(left_s)} left"] if left_s > 0 else []
    return ", ".join(words) or "the result"


def _phase(progress: LoadProgress | None, now_ns: int) -> str:
    """``measuring, 4 of 10 s``."""
    if progress is None or now_ns < progress.start_ns:
        return "starting the load"
    phases = (
        ("warming up", progress.start_ns, progress.measure_from_ns),
        ("measuring", progress.measure_from_ns, progress.measure_to_ns),
    )
    for name, from_ns, to_ns in phases:
        if now_ns < to_ns:
            passed_s, length_s = (now_ns - from_ns) / NS_PER_S, (to_ns - from_ns) / NS_PER_S
            return f"{name}, {passed_s:.0f} of {length_s:.3g} s"
    return "waiting for the last responses"


def _load_rows(running: RunningLoad, state: LoadState) -> Iterator[Row]:
    yield "rate", _rates(running.plan, state)
    yield "latency", _latency(state.progress)
    yield "failures", _failures(state.progress)
    if running.sampler is not None:
        yield "server", _usage(running, state)


def _rates(plan: LoadPlan, state: LoadState) -> str:
    achieved = f"achieved {format_measured_per_s(state.achieved_per_s)}"
    closed = plan.load.closed
    if closed is not None:
        users = closed.connections * plan.streams
        return f"{plural(users, 'user')} in a closed loop, {achieved}"
    return f"offered {format_measured_per_s(state.offered_per_s)}, {achieved}"


def _latency(progress: LoadProgress | None) -> str:
    if progress is None or not progress.ended:
        return MISSING
    if not enough_requests(progress.ended, 0.99):
        tail = f"p99 {needed_requests(0.99)}"
    else:
        tail = f"p99 {_quantile(progress.p99_ns)}"
    requests = plural(progress.ended, "request")
    return f"p50 {_quantile(progress.p50_ns)}, {tail} ({requests} so far)"


def _quantile(value_ns: int | None) -> str:
    return "infinite" if value_ns is None else format_duration_ns(value_ns)


def _failures(progress: LoadProgress | None) -> str:
    if progress is None or not progress.ended:
        return MISSING
    kinds = failures_by_kind(progress.outcomes)
    if not kinds:
        return "none"
    share = format_ratio(sum(kinds.values()) / progress.ended)
    return ", ".join(f"{name} {format_count(count)}" for name, count in kinds.items()) + (
        f" ({share})"
    )


def _usage(running: RunningLoad, state: LoadState) -> str:
    cpu = f"CPU {format_cores(state.cpu_cores)}"
    if running.cpus is None:
        cpu += " cores"
    else:
        cpu += f" of {running.cpus:g} {'core' if running.cpus == 1 else 'cores'}"
    memory = f"memory {format_bytes(state.memory_bytes)}"
    if running.memory_limit_bytes is not None:
        memory += f" of {format_bytes(running.memory_limit_bytes)}"
    return f"{cpu}, {memory}"


def frame_of(
    lines: Sequence[Row],
    stage: Stage,
    load: tuple[RunningLoad | None, LoadState | None],
    now_ns: int,
) -> LiveFrame:
    """The rows for the page, with the values for its charts."""
    running, state = load
    progress = state.progress if state is not None else None
    return LiveFrame(
        rows=tuple((label, visible(text)) for label, text in lines),
        trial=visible(stage.what),
        at_s=now_ns / NS_PER_S,
        offered_per_s=state.offered_per_s if state is not None else None,
        achieved_per_s=state.achieved_per_s if state is not None else None,
        p50_ns=progress.p50_ns if progress is not None else None,
        p99_ns=progress.p99_ns if progress is not None else None,
        cpu_cores=state.cpu_cores if state is not None else None,
        cpu_limit=running.cpus if running is not None else None,
    )
