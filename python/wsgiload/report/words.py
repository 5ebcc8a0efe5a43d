"""Numbers and verdicts as words: durations, rates, sizes, shares and quantile bounds. Pure.

An unknown number is an en dash, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from wsgiload.analysis.absence import (
    Absence,
    Kind,
    enough_requests,
    has_few_effective,
    is_infinite,
    min_requests,
)
from wsgiload.documents.cell_result import CellFailure
from wsgiload.documents.load_report import (
    Bounds,
    GeneratorUsage,
    Outcomes,
    QuantileUncertainty,
    Reason,
    Verdict,
)
from wsgiload.documents.summary import Summary
from wsgiload.units import duration_words, three_digits

MISSING = "–"
NOT_MEASURED = "not measured"

# The steps of a capacity search.
SEARCH_PHASES = {
    "initial": "closed loop",
    "bracket": "approach",
    "measure": "near the capacity",
}
_SIZE_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def format_duration_ns(duration_ns: float | None) -> str:
    """12_345_678 becomes "12.3 ms"."""
    return MISSING if duration_ns is None else duration_words(duration_ns)


def format_seconds(duration_s: float | None) -> str:
    """A planned duration without trailing zeros: 10 becomes "10 s", 0.25 becomes "250 ms", 0.0005
    becomes "500 µs"."""
    if duration_s is None:
        return MISSING
    if not float(duration_s).is_integer():
        duration_s = float(f"{duration_s:.3g}")  # a duration that was derived from a budget
    if 0 < duration_s < 0.001:
        return f"{duration_s * 1e6:g} µs"
    return f"{duration_s * 1000:g} ms" if 0 < duration_s < 1 else f"{duration_s:g} s"


def format_span(duration_s: float) -> str:
    """An approximate duration: "40 s", "12 min", "2 h 5 min"."""
    if duration_s < 100:
        return f"{duration_s:.0f} s"
    minutes = round(duration_s / 60)
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"


def format_count(value: float | None) -> str:
    """An integer with thousands separators."""
    return MISSING if value is None else f"{round(value):,}"


def format_rate(per_s: float | None) -> str:
    """A rate per second without its unit, with three significant digits if it is below 100."""
    if per_s is None:
        return MISSING
    if float(per_s).is_integer() or per_s >= 100:
        return f"{round(per_s):,}"
    return three_digits(per_s)


def format_per_s(per_s: float | None) -> str:
    """A rate with its unit: "2,000/s"."""
    return MISSING if per_s is None else f"{format_rate(per_s)}/s"


def format_measured_rate(per_s: float | None) -> str:
    """A measured rate without its unit, with three significant digits: "4,730"."""
    if per_s is None or per_s < 1000:
        return format_rate(per_s)
    return three_digits(per_s)


def format_measured_per_s(per_s: float | None) -> str:
    """The same with its unit: "4,730/s"."""
    return MISSING if per_s is None else f"{format_measured_rate(per_s)}/s"


def format_bytes(size_bytes: float | None) -> str:
    """ "512 MiB" if that is exact, otherwise three significant digits: "48.3 MiB"."""
    if size_bytes is None:
        return MISSING
    for unit_bytes, unit in _SIZE_UNITS:
        if size_bytes >= unit_bytes:
            exact = size_bytes % unit_bytes == 0
            return (
                f"{size_bytes // unit_bytes:,.0f} {unit}"
                if exact
                else f"{_size(size_bytes, unit_bytes)} {unit}"
            )
    return f"{size_bytes:.0f} B"


def _size(size_bytes: float, unit_bytes: int) -> str:
    size = size_bytes / unit_bytes
    return f"{size:,.0f}" if size >= 1000 else three_digits(size)  # 1,023 MiB, not 1.02 GiB


def format_ratio(ratio: float | None) -> str:
    """A share in percent. Only 1 is shown as 100 %, and only 0 as 0 %."""
    if ratio is None:
        return MISSING
    percent = ratio * 100
    if percent <= 0:
        return "0 %"
    if percent == 100:
        return "100 %"
    if percent < 0.1:
        return "< 0.001 %" if percent < 0.001 else f"{percent:.1g} %"
    decimals = 1
    while percent < 100 and decimals < 4 and float(f"{percent:.{decimals}f}") >= 100:
        decimals += 1
    text = f"{percent:.{decimals}f}"
    return "> 99.999 %" if percent < 100 and float(text) >= 100 else f"{text} %"


def format_cores(cores: float | None) -> str:
    """Used CPU cores with two decimals."""
    return MISSING if cores is None else f"{cores:.2f}"


def limits_words(cpus: float | None, memory_bytes: float | None) -> str:
    """ "2 CPUs and 512 MiB"; empty without limits."""
    limits = [f"{cpus:g} CPU{'' if cpus == 1 else 's'}"] if cpus is not None else []
    limits += [format_bytes(memory_bytes)] if memory_bytes is not None else []
    return join_words(limits) if limits else ""


def format_factor(factor: float) -> str:
    """A factor: "3.1" below ten, "14" from ten."""
    return f"{factor:.1f}" if factor < 9.95 else f"{factor:,.0f}"


def format_cpu_list(cpus: object) -> str:
    """CPU numbers, given as "0-1" or [0, 1]."""
    if cpus is None:
        return "any"
    if isinstance(cpus, Sequence) and not isinstance(cpus, str):
        return ",".join(str(cpu) for cpu in cpus)
    return str(cpus)


_CELL_ID = re.compile(r"(?P<server>.+)@(?P<level>[^@#]+)#(?P<run>\d+)(?:\.(?P<attempt>\d+))?")


def trial_words(cell_id: str) -> str:
    """ "waitress@500#1.2" becomes "waitress at 500/s, run 1, attempt 2"."""
    match = _CELL_ID.fullmatch(cell_id)
    if match is None:
        return cell_id
    attempt = f", attempt {match['attempt']}" if match["attempt"] else ""
    return f"{match['server']} at {_level_words(match['level'])}, run {match['run']}{attempt}"


def attempt_words(cell_id: str) -> str:
    """The same with the number of a first attempt, too: "waitress at 500/s, run 1, attempt 1"."""
    match = _CELL_ID.fullmatch(cell_id)
    is_first = match is not None and match["attempt"] is None
    return trial_words(cell_id) + (", attempt 1" if is_first else "")


def _level_words(level: str) -> str:
    """ "500/s", or "100 connections"."""
    if level.startswith("c") and level[1:].isdigit():
        return plural(int(level[1:]), "connection")
    return format_per_s(float(level))


def plural(count: int, noun: str) -> str:
    """ "1 run", "6 runs"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


MAX_NAMES = 3


def join_names(labels: Sequence[str]) -> str:
    """``a, b, c and 4 more``."""
    if len(labels) <= MAX_NAMES + 1:
        return join_words(labels)
    return f"{', '.join(labels[:MAX_NAMES])} and {len(labels) - MAX_NAMES} more"


def join_words(items: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return (
        items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""
    )


def quantile_name(probability: float) -> str:
    """0.999 becomes "p99.9"."""
    return f"p{probability * 100:.10g}"


def rough(text: str, *, is_rough: bool) -> str:
    """ "≈ 569 µs" for a quantile beyond which fewer than ten requests lie."""
    return f"≈ {text}" if is_rough and text != MISSING else text


def needed_requests(probability: float) -> str:
    """ "needs at least 10,000 requests": the number required to show a quantile."""
    return f"needs at least {format_count(min_requests(probability))} requests"


def may_be_shown(known: QuantileUncertainty | None, count: int | None, probability: float) -> bool:
    """Whether enough requests lie beyond a quantile to show it: effective requests if they are
    known, because correlated requests carry less information; otherwise all requests.

    ``known`` is the quantile's entry in ``uncertainty``.
    """
    return not has_few_effective(known) and enough_requests(count, probability)


# Why a quantile is absent, without figures, for several runs or servers.
ABSENT: dict[Kind, str] = {
    "not_measured": NOT_MEASURED,
    "too_few_requests": "too few requests",
    "too_few_effective_requests": "too few effective requests",
    "lower_bound": "only a lower bound is known: requests timed out",
    "infinite": "too many requests failed",
}


def absence_words(absence: Absence) -> str:
    """Why the quantile of one load is absent, after its name: "needs at least 1,000 requests, but
    only 899 were scheduled"."""
    needed, scheduled = needed_requests(absence.probability), format_count(absence.scheduled)
    if absence.kind == "too_few_requests":
        return f"{needed}, but only {scheduled} were scheduled"
    if absence.kind == "too_few_effective_requests":
        counted = (
            "fewer" if absence.effective is None else f"only {format_count(absence.effective)}"
        )
        return f"{needed}, but the {scheduled} requests are correlated and count as {counted}"
    return f"is unknown ({ABSENT[absence.kind]})"


def with_uncertainty(shown: str, known: QuantileUncertainty | None) -> str:
    """A quantile in words with its uncertainty: "18.4 ms (95 % CI 17.9 ms to 19.2 ms)"."""
    if known is None or shown == MISSING:
        return shown
    if known.reason == "below_noise_floor":
        return f"<= {shown} (upper bound, because it is close to the noise floor)"
    if known.interval_95_ns is None:
        return shown
    return f"{shown} (95 % CI {format_interval(known.interval_95_ns)})"


def failed_ratio(outcomes: Outcomes | None) -> float | None:
    """The share of the scheduled requests without a correct response."""
    ratio = ok_ratio(outcomes)
    return None if ratio is None else 1 - ratio


def failures_by_kind(outcomes: Outcomes) -> dict[str, int]:
    """The kinds of failed requests that occurred, the most frequent first."""
    counts = {
        name.replace("_", " "): count
        for name, count in msgspec.structs.asdict(outcomes).items()
        if name not in ("scheduled", "ok") and count
    }
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def ok_ratio(outcomes: Outcomes | None) -> float | None:
    """The share of the scheduled requests with a correct response."""
    if outcomes is None or not outcomes.scheduled:
        return None
    return outcomes.ok / outcomes.scheduled


def format_bounds(bounds: Bounds | None, probability: float, outcomes: Outcomes | None) -> str:
    """A headline quantile: "18.4 ms", ">= 1.00 s", or "infinite (0.7 % failed)"."""
    if bounds is None:
        return MISSING
    if bounds.high is None:
        if is_infinite(bounds, probability, outcomes):
            return f"infinite ({format_ratio(failed_ratio(outcomes))} failed)"
        return f">= {format_duration_ns(bounds.low)}"

    low, high = format_duration_ns(bounds.low), format_duration_ns(bounds.high)
    return high if low in (high, MISSING) else f"{low} to {high}"


def format_interval(interval: Sequence[float | None] | None) -> str:
    """A 95 % interval: "17.9 ms to 19.2 ms", or "from 17.9 ms, unbounded"."""
    if interval is None or interval[0] is None:
        return MISSING
    low = format_duration_ns(interval[0])
    return (
        f"from {low}, unbounded"
        if interval[1] is None
        else f"{low} to {format_duration_ns(interval[1])}"
    )


def status_words(summary: Summary) -> str:
    """ "interrupted: some cells were not measured, including all cells of gunicorn-sync", or "" for
    a complete sweep."""
    if summary.status == "complete":
        return ""
    absent = servers_without_cells(summary)
    among = f", including all cells of {join_words(absent)}" if absent else ""
    return f"{summary.status}: some cells were not measured{among}"


def servers_without_cells(summary: Summary) -> list[str]:
    """The planned servers of which an interrupted sweep measured no cell."""
    if summary.status == "complete":
        return []
    measured = {cell.id.partition("@")[0] for cell in summary.cells}
    return [server for server in summary.experiment.servers if server not in measured]


def verdict_words(verdict: Verdict | None) -> str:
    """ "valid", "warn (steal)", "invalid: client (send-lag, steal)"."""
    if verdict is None:
        return NOT_MEASURED
    status, checks = verdict.status, sorted({reason.check for reason in verdict.reasons})
    blamed = f"{status}: {verdict.blame}" if status == "invalid" and verdict.blame else status
    return f"{blamed} ({', '.join(checks)})" if checks and status != "valid" else blamed


def failure_words(failure: CellFailure) -> str:
    """ "failed: readiness: no correct response within 30 s"."""
    return f"failed: {failure.step}: {failure.message.strip()}"


# A smaller share would be rounded to 0.
_MIN_SHOWN_SHARE = 0.001

_SPIN_WORDS = {
    "off_at_this_rate": "no busy-waiting before sends, because at this rate it would use more than "
    "20 % of a core",
    "off_on_shared_cores": "no busy-waiting before sends, because the generator shares its cores",
}


def client_words(client: GeneratorUsage) -> str:
    """The generator's CPU use, its waits for a core, and the source of its timestamps."""
    waited_ns = client.run_queue_wait_ns
    waited = NOT_MEASURED if waited_ns is None else format_duration_ns(waited_ns)
    parts = (
        f"{format_duration_ns(client.cpu_per_request_ns)} CPU time per response",
        f"{format_ratio(client.busy_share)} busy (busiest thread)",
        f"run-queue wait {waited}",
        _stall_words(client),
        _timestamp_words(client),
    )
    return ", ".join(parts)


def _stall_words(client: GeneratorUsage) -> str:
    stalls = client.stalls
    if not stalls.count:
        return "no event-loop stalls"
    longest = format_duration_ns(stalls.longest_ns)
    return f"{plural(stalls.count, 'event-loop stall')} (longest {longest})"


def _timestamp_words(client: GeneratorUsage) -> str:
    if client.receive_stamps != "kernel":
        return "responses timestamped by the generator"
    text = "responses timestamped by the kernel"
    if not client.user_timestamps:
        return text
    return f"{text} ({format_count(client.user_timestamps)} by the generator)"


def pacing_words(client: GeneratorUsage) -> str | None:
    """Why the generator did not busy-wait as planned; None if it did."""
    parts = _spin_limits(client)
    if not parts and (spin_words := _SPIN_WORDS.get(client.spin.reason)):
        parts.append(spin_words)

    off_share = client.real_time_off_share or 0.0
    if off_share >= _MIN_SHOWN_SHARE:
        parts.append(
            f"real-time priority was off for {format_ratio(off_share)} of the load to avoid RT "
            "throttling (the kernel stops real-time tasks after 0.95 s of CPU time per second)"
        )
    return "; ".join(parts) or None


def _spin_limits(client: GeneratorUsage) -> list[str]:
    """What limited the busy-waiting."""
    parts = []
    if client.spin_off_share:
        off = f"off for {format_ratio(client.spin_off_share)} of the load"
        parts.append(f"busy-waiting before sends was {off} because the cores had no idle time")
    if curtailed := client.curtailed_spins:
        times = "once" if curtailed == 1 else f"{format_count(curtailed)} times"
        parts.append(
            f"busy-waiting before sends was cut short {times} to avoid RT throttling (a real-time "
            "thread that may not change its priority sleeps 7 % of the time)"
        )
    return parts


def reason_words(reason: Reason, remark: str = "") -> str:
    """One finding: the cause, the name of its check (for `wsgiload explain`), and the fix."""
    name = reason.check if reason.level == "warn" else f"{reason.check}, invalid"
    return with_fix(f"{reason.message.strip()} ({name}{remark})", reason.fix)


def with_fix(cause: str, fix: str | None) -> str:
    """The cause and the fix as two sentences."""
    if not fix:
        return cause
    end = "" if cause.endswith("…") else "."
    return f"{cause}{end} {fix[:1].upper()}{fix[1:]}"
