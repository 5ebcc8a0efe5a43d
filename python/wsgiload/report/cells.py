"""A typed, read-only view of summary.json for the tables, the charts and the sentences.

Pure: it computes no statistics beyond medians over runs and knows nothing of terminals, SVG or
HTML.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from wsgiload.analysis.effective_limit import held_limit
from wsgiload.analysis.over_cells import last_attempts
from wsgiload.report import words
from wsgiload.report.words import Json

KEPT_UP_RATIO = 0.99
KEPT_UP_GOODPUT = 0.95

_POLICIES = {
    "grow": "a new connection when all are busy",
    "queue": "waits for a free connection when all are busy",
    "shed": "drops a request when all connections are busy",
}


LEGACY = " (legacy)"


def lookup(mapping: Json | None, *keys: str) -> Any:
    """The value under nested keys, or None as soon as one of them is missing or null."""
    value: Any = mapping
    for key in keys:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def label_of(raw: Json) -> str:
    """Server, variant and size as one name, without saying the variant twice; a legacy one says so
    wherever it is."""
    server, variant = str(raw["server"]), raw.get("variant")
    if raw.get("alias"):
        server = str(raw["alias"])
    elif variant and variant not in ("default", server) and not server.endswith(f"-{variant}"):
        server = f"{server}-{variant}"
    if raw.get("size"):
        server = f"{server}-{raw['size']}"
    return f"{server}{LEGACY}" if raw.get("legacy") else server


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of one server at one load."""

    raw: Json

    @property
    def id(self) -> str:
        return str(self.raw["id"])

    @property
    def label(self) -> str:
        return label_of(self.raw)

    @property
    def run(self) -> int:
        return int(self.raw["run"])

    @property
    def load(self) -> float:
        """Where the cell stands on the horizontal axis: offered rate per second, or connections."""
        rate = self.raw.get("rate")
        return float(rate if rate is not None else self.raw.get("connections") or 0)

    @property
    def status(self) -> str:
        """valid, warn, invalid, or failed where the server gave no result; a failure of others says
        nothing of it."""
        if self.raw.get("failure") is not None and lookup(self.raw, "verdict", "blame") == "server":
            return "failed"
        return str(lookup(self.raw, "verdict", "status") or "invalid")

    @property
    def usable(self) -> bool:
        return self.status in ("valid", "warn")

    @property
    def outcomes(self) -> Json | None:
        outcomes: Json | None = self.raw.get("outcomes")
        return outcomes

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(str(note) for note in self.raw.get("notes") or ())

    @property
    def ok_ratio(self) -> float | None:
        return words.ok_ratio(self.outcomes)

    @property
    def goodput_per_s(self) -> float | None:
        return self.number("rate_result", "goodput_per_s")

    def number(self, *keys: str) -> float | None:
        value = lookup(self.raw, *keys)
        return None if value is None else float(value)

    def resource(self, key: str) -> float | None:
        return self.number("resources", key)

    def held_limit(self, name: str) -> float | None:
        """``cpus``, in cores, or ``memory_bytes``, where that limit was set and holds."""
        return held_limit(self.raw.get("limits"), name)

    def bounds(self, probability: float) -> Json | None:
        """The headline quantile over all offered requests, when enough requests lie beyond it."""
        if not words.enough_requests(lookup(self.outcomes, "scheduled"), probability):
            return None
        bounds: Json | None = lookup(self.raw, "offered_quantiles_ns", f"{probability:g}")
        return bounds

    def quantile_words(self, probability: float) -> str:
        return words.format_bounds(self.bounds(probability), probability, self.outcomes)

    def upper_ns(self, probability: float) -> float | None:
        """The upper bound of the quantile: infinite when it was not met, None when it is not
        known."""
        if self.status == "failed":
            return math.inf
        bounds = self.bounds(probability)
        if bounds is None:
            return None
        return math.inf if bounds.get("high") is None else float(bounds["high"])

    def kept_up(self) -> bool:
        """Valid, at least 99 % of the requests answered correctly, and as fast as they were
        offered."""
        ratio, goodput, offered = self.ok_ratio, self.goodput_per_s, self._scheduled_per_s()
        if not self.usable or ratio is None or ratio < KEPT_UP_RATIO or goodput is None:
            return False
        return offered is None or goodput >= KEPT_UP_GOODPUT * offered

    def _scheduled_per_s(self) -> float | None:
        # Poisson arrivals differ by chance from rate times duration, so compare with what was
        # scheduled.
        scheduled, duration_s = lookup(self.outcomes, "scheduled"), self.raw.get("duration_s")
        if self.raw.get("rate") is None or scheduled is None or not duration_s:
            return None
        return float(scheduled / duration_s)

    def verdict_words(self) -> str:
        failure: Json | None = self.raw.get("failure")
        if failure is None:
            return words.verdict_words(self.raw.get("verdict"))
        said = words.failure_words(failure)
        return (
            said
            if self.status == "failed"
            else f"invalid: {lookup(self.raw, 'verdict', 'blame')}, {said}"
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """All cells of one run directory, in the order of the plan and not in the order they were run.

    Trials that were discarded and measured again are not among them; ``over_runs`` lists those.
    """

    experiment: Json
    cells: tuple[Cell, ...]
    labels: tuple[str, ...]
    loads: tuple[float, ...]

    @property
    def open_loop(self) -> bool:
        return bool(self.experiment.get("rates")) or any(
            cell.raw.get("rate") is not None for cell in self.cells
        )

    @property
    def is_of_sessions(self) -> bool:
        """The load is given in sessions per second; everything else counts requests."""
        return bool(self.experiment.get("sessions"))

    @property
    def load_heading(self) -> str:
        if not self.open_loop:
            return "connections"
        return "sessions/s" if self.is_of_sessions else "offered/s"

    @property
    def axis_label(self) -> str:
        if not self.open_loop:
            return "connections (closed loop)"
        return f"offered rate, {'sessions' if self.is_of_sessions else 'requests'} per second"

    @property
    def runs(self) -> int:
        return int(self.experiment.get("runs") or max((cell.run for cell in self.cells), default=0))

    def of(self, label: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.label == label)

    def at(self, label: str, load: float) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.label == label and cell.load == load)

    def held_limit(self, name: str) -> float | None:
        """What limited every server, as ``Cell.held_limit`` has it; cells that never got so far say
        nothing of it."""
        held = [cell.held_limit(name) for cell in self.cells if cell.raw.get("limits") is not None]
        return held[0] if held and None not in held else None

    def app_of(self, label: str) -> str | None:
        """What the server of this name serves; None of a run that was stored before there was a
        choice."""
        return next((cell.raw.get("app") for cell in self.of(label)), None)

    def load_words(self, load: float) -> str:
        """ "2,000/s", or "100 connections"."""
        return words.format_per_s(load) if self.open_loop else f"{load:,.0f} connections"


def read_sweep(summary: Json) -> Sweep:
    """The view of one summary.json."""
    experiment: Json = summary.get("experiment") or {}
    cells = [Cell(raw) for raw in last_attempts(summary["cells"])]
    planned = [str(name) for name in experiment.get("servers") or ()]
    labels = sorted(
        {cell.label for cell in cells}, key=lambda label: (_place(label, planned), label)
    )
    cells.sort(key=lambda cell: (labels.index(cell.label), cell.load, cell.run))
    return Sweep(
        experiment, tuple(cells), tuple(labels), tuple(sorted({cell.load for cell in cells}))
    )


def _place(label: str, planned: list[str]) -> int:
    name = label.removesuffix(LEGACY)
    return planned.index(name) if name in planned else len(planned)


def finite_median(values: list[float | None]) -> float | None:
    """The median over runs with a value; None when it is infinite or when no run has one."""
    known = [value for value in values if value is not None]
    middle = median(known) if known else math.inf
    return middle if math.isfinite(middle) else None


def median_upper_ns(cells: tuple[Cell, ...], probability: float) -> float | None:
    """The median over runs of a headline quantile; invalid runs stand for nothing and do not
    enter."""
    return finite_median([cell.upper_ns(probability) for cell in cells if cell.status != "invalid"])


def median_of(cells: tuple[Cell, ...], *keys: str) -> float | None:
    """The median over the usable runs of one number of the cells."""
    return finite_median([cell.number(*keys) for cell in cells if cell.usable])


def conditions(experiment: Json, cell: Json | None = None) -> str:
    """What every title must say: arrivals, connection policy, duration, number of runs."""
    profile = experiment.get("profile")
    varied = not isinstance(profile, str)
    parts = (
        [f"{'each' if varied else profile} profile{' as its name says' if varied else ''}"]
        if profile
        else []
    )
    parts += ["each app as its name says"] if isinstance(experiment.get("app"), list) else []
    parts += [_arrivals(experiment), _connections(experiment)]
    duration_s = (cell or {}).get("duration_s", experiment.get("duration_s"))
    warmup_s = (cell or {}).get("warmup_s", experiment.get("warmup_s"))
    measured = f"{words.format_seconds(duration_s)} measured"
    parts.append(
        f"{measured} after {words.format_seconds(warmup_s)} warm-up" if warmup_s else measured
    )
    parts.append(
        f"run {cell['run']}" if cell else words.plural(int(experiment.get("runs") or 1), "run")
    )
    return " · ".join(parts)


def _arrivals(experiment: Json) -> str:
    if not experiment.get("rates"):
        return "closed loop"
    arrivals = {"poisson": "Poisson arrivals", "constant": "constant arrivals"}.get(
        str(experiment.get("arrivals")), f"{experiment.get('arrivals')} arrivals"
    )
    return f"{arrivals} of sessions" if experiment.get("sessions") else arrivals


def _connections(experiment: Json) -> str:
    keepalive = experiment.get("keepalive")
    policy = _POLICIES.get(str(experiment.get("on_busy")), "connection policy not recorded")
    if not experiment.get("rates"):
        policy = "one request at a time on each connection"
    if isinstance(keepalive, list):
        return f"{policy}, keep-alive as in the name"
    if keepalive in (None, "on", True):
        return policy
    if keepalive in ("off", False):
        return "a new connection per request"
    return f"{policy}, {keepalive} requests per connection"
