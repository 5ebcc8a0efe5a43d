"""A typed, read-only view of summary.json for the tables, the charts and the sentences.

Pure: it computes no statistics beyond medians over runs and knows nothing of terminals, SVG or
HTML.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

import msgspec

from wsgiload.analysis.absence import Absence, absence_of, enough_requests
from wsgiload.analysis.attempts import counted_attempts
from wsgiload.analysis.effective_limit import effective_limit
from wsgiload.analysis.ranking import SUSTAINED_GOODPUT, SUSTAINED_RATIO
from wsgiload.documents.cell_result import CellResult, ServiceUse
from wsgiload.documents.load_report import Bounds, Distribution, Outcomes, Rates
from wsgiload.documents.resources import ResourceUse
from wsgiload.documents.summary import ExperimentFacts, Summary
from wsgiload.report import words
from wsgiload.sampling.resources import NOTHING_SAMPLED

_ARRIVALS = {"poisson": "Poisson arrivals", "constant": "constant arrivals"}
_POLICIES = {
    "grow": "a new connection when all connections are busy",
    "queue": "requests queued when all connections are busy",
    "shed": "requests dropped when all connections are busy",
}
# Placeholders for cells without measured figures.
_NO_RATES = Rates(offered_per_s=None, sent_per_s=None, achieved_per_s=None, goodput_per_s=None)


LEGACY = " (legacy)"
# The quantile that servers are ranked by.
HEADLINE = 0.99


def label_of(result: CellResult) -> str:
    """Server, variant, version and size as one name, without repeating the variant. Legacy servers
    are marked."""
    server, variant = result.server, result.variant
    if result.alias:
        server = result.alias
    elif variant and variant not in ("default", server) and not server.endswith(f"-{variant}"):
        server = f"{server}-{variant}"
    if result.pinned_version and not result.alias:
        server = f"{server}-{result.pinned_version}"
    if result.size:
        server = f"{server}-{result.size}"
    return f"{server}{LEGACY}" if result.legacy else server


def quantile_ns(distribution: Distribution | None, probability: float) -> int | None:
    """A quantile of the correct responses; None without one."""
    return None if distribution is None else distribution.quantiles.get(f"{probability:g}")


def outcome_counts(outcomes: Outcomes) -> dict[str, int]:
    """The counts by kind, ``scheduled`` first."""
    return msgspec.structs.asdict(outcomes)


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of one server at one load level."""

    result: CellResult

    @property
    def id(self) -> str:
        return self.result.id

    @property
    def label(self) -> str:
        return label_of(self.result)

    @property
    def run(self) -> int:
        return self.result.run

    @property
    def load(self) -> float:
        """The load level: offered rate per second, or connections."""
        rate = self.result.rate
        return float(rate if rate is not None else self.result.connections or 0)

    @property
    def status(self) -> str:
        """valid, warn, invalid or failed. A failure that is not the server's counts as the
        verdict's status."""
        verdict = self.result.verdict
        if verdict is None:
            return "invalid"
        if self.result.failure is not None and verdict.blame == "server":
            return "failed"
        return verdict.status

    @property
    def blame(self) -> str:
        """Who made the cell invalid; "None" if unknown."""
        return str(None if self.result.verdict is None else self.result.verdict.blame)

    @property
    def usable(self) -> bool:
        return self.status in ("valid", "warn")

    @property
    def outcomes(self) -> Outcomes | None:
        return self.result.outcomes

    @property
    def scheduled(self) -> int | None:
        """Offered requests."""
        return None if self.outcomes is None else self.outcomes.scheduled

    @property
    def rates(self) -> Rates:
        """Rates of the measurement; each None if it was not measured."""
        return self.result.rate_result or _NO_RATES

    @property
    def used(self) -> ResourceUse:
        """The server's resource use; each figure None if it was not measured."""
        return self.result.resources or NOTHING_SAMPLED

    def service(self, name: str) -> ServiceUse | None:
        """The resource use of a supporting service."""
        return next((one for one in self.result.services if one.name == name), None)

    @property
    def ok_ratio(self) -> float | None:
        return words.ok_ratio(self.outcomes)

    @property
    def goodput_per_s(self) -> float | None:
        return self.rates.goodput_per_s

    @property
    def cpu_limit(self) -> float | None:
        """The CPU limit in cores, if it was enforced."""
        return effective_limit(self.result.limits, "cpus")

    @property
    def memory_limit_bytes(self) -> float | None:
        """The memory limit, if it was enforced."""
        return effective_limit(self.result.limits, "memory_bytes")

    def bounds(self, probability: float) -> Bounds | None:
        """The quantile over all scheduled requests, if enough requests lie beyond it."""
        if not enough_requests(self.scheduled, probability):
            return None
        return (self.result.offered_quantiles_ns or {}).get(f"{probability:g}")

    def absence(self, probability: float) -> Absence | None:
        """Why the quantile is absent; None if it has a value."""
        return absence_of(self.result, probability)

    def low_ns(self, probability: float) -> int | None:
        """The lower bound of the quantile, if known."""
        bounds = self.bounds(probability)
        return None if bounds is None else bounds.low

    def quantile_words(self, probability: float) -> str:
        """The quantile as text. p99, which servers are ranked by, is also shown with too few
        requests, marked as imprecise."""
        bounds = self.bounds(probability)
        is_rough = bounds is None and probability == HEADLINE
        if is_rough:
            bounds = (self.result.offered_quantiles_ns or {}).get(f"{probability:g}")
        text = words.format_bounds(bounds, probability, self.outcomes)
        return words.rough(text, is_rough=is_rough)

    def upper_ns(self, probability: float) -> float | None:
        """The upper bound of the quantile: infinite if the quantile was not met or the server
        failed, None if it is unknown."""
        if self.status == "failed":
            return math.inf
        bounds = self.bounds(probability)
        if bounds is None:
            return None
        return math.inf if bounds.high is None else float(bounds.high)

    def sustained(self) -> bool:
        """Whether the server sustained the load: usable, at least 99 % correct responses, and
        goodput of at least 95 % of the scheduled rate."""
        ratio, goodput, offered = self.ok_ratio, self.goodput_per_s, self._scheduled_per_s()
        if not self.usable or ratio is None or ratio < SUSTAINED_RATIO or goodput is None:
            return False
        return offered is None or goodput >= SUSTAINED_GOODPUT * offered

    def _scheduled_per_s(self) -> float | None:
        # The number of Poisson arrivals differs by chance from rate times duration.
        scheduled, duration_s = self.scheduled, self.result.duration_s
        if self.result.rate is None or scheduled is None or not duration_s:
            return None
        return scheduled / duration_s

    def verdict_words(self) -> str:
        failure = self.result.failure
        if failure is None:
            return words.verdict_words(self.result.verdict)
        failed = words.failure_words(failure)
        return failed if self.status == "failed" else f"invalid: {self.blame}, {failed}"


@dataclass(frozen=True, slots=True)
class Sweep:
    """All cells of one run directory, in the order of the plan, not in the order of execution.

    Discarded trials that were repeated are omitted; ``over_runs`` lists them.
    """

    experiment: ExperimentFacts
    cells: tuple[Cell, ...]
    labels: tuple[str, ...]
    loads: tuple[float, ...]
    # Pages ask for every label at every load.
    _by_label: Mapping[str, Mapping[float, list[Cell]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        by_label: dict[str, dict[float, list[Cell]]] = {}
        for cell in self.cells:
            by_label.setdefault(cell.label, {}).setdefault(cell.load, []).append(cell)
        object.__setattr__(self, "_by_label", by_label)

    @property
    def open_loop(self) -> bool:
        return bool(self.experiment.rates) or any(
            cell.result.rate is not None for cell in self.cells
        )

    @property
    def is_of_sessions(self) -> bool:
        """Whether the load is in sessions per second. All other figures count requests."""
        return bool(self.experiment.sessions)

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
        return self.experiment.runs

    def of(self, label: str) -> tuple[Cell, ...]:
        return tuple(cell for cells in self._by_label.get(label, {}).values() for cell in cells)

    def at(self, label: str, load: float) -> tuple[Cell, ...]:
        return tuple(self._by_label.get(label, {}).get(load, ()))

    @property
    def services(self) -> tuple[str, ...]:
        """The supporting services, by name."""
        names = (one.name for cell in self.cells for one in cell.result.services)
        return tuple(dict.fromkeys(names))

    @property
    def cpu_limit(self) -> float | None:
        """The CPU limit of all servers, in cores."""
        return self._limit_of_all(lambda cell: cell.cpu_limit)

    @property
    def memory_limit_bytes(self) -> float | None:
        """The memory limit of all servers."""
        return self._limit_of_all(lambda cell: cell.memory_limit_bytes)

    def _limit_of_all(self, limit: Callable[[Cell], float | None]) -> float | None:
        """The limit if it was enforced in every cell that got as far as applying limits."""
        enforced = [limit(cell) for cell in self.cells if cell.result.limits is not None]
        return enforced[0] if enforced and None not in enforced else None

    def app_of(self, label: str) -> str | None:
        """The app of this server; None in runs stored before apps could be selected."""
        return next((cell.result.app for cell in self.of(label)), None)

    def load_words(self, load: float) -> str:
        """ "2,000/s", or "100 connections"."""
        return words.format_per_s(load) if self.open_loop else f"{load:,.0f} connections"


def read_sweep(summary: Summary) -> Sweep:
    """The view of one summary.json."""
    experiment = summary.experiment
    cells = [Cell(result) for result in counted_attempts(summary.cells)]
    planned = list(experiment.servers)

    labels = sorted(
        {cell.label for cell in cells}, key=lambda label: (_place(label, planned), label)
    )
    places = {label: place for place, label in enumerate(labels)}
    cells.sort(key=lambda cell: (places[cell.label], cell.load, cell.run))
    loads = sorted({cell.load for cell in cells})
    return Sweep(experiment, tuple(cells), tuple(labels), tuple(loads))


def _place(label: str, planned: list[str]) -> int:
    name = label.removesuffix(LEGACY)
    return planned.index(name) if name in planned else len(planned)


def finite_median(values: list[float | None]) -> float | None:
    """The median over runs with a value; None if it is infinite or no run has a value."""
    known = [value for value in values if value is not None]
    middle = median(known) if known else math.inf
    return middle if math.isfinite(middle) else None


def median_upper_ns(cells: tuple[Cell, ...], probability: float) -> float | None:
    """The median over runs of a quantile's upper bound, without invalid runs."""
    return finite_median([cell.upper_ns(probability) for cell in cells if cell.status != "invalid"])


def median_of(cells: tuple[Cell, ...], figure: Callable[[Cell], float | None]) -> float | None:
    """The median over the usable runs of one figure of the cells."""
    return finite_median([figure(cell) for cell in cells if cell.usable])


def conditions(experiment: ExperimentFacts, cell: CellResult | None = None) -> str:
    """The conditions in every title: arrivals, connection policy, duration, number of runs."""
    measured_by = experiment if cell is None else cell
    parts = [
        *_varied(experiment),
        _arrivals(experiment),
        _connections(experiment),
        _durations(measured_by.duration_s, measured_by.warmup_s),
        _runs(experiment) if cell is None else f"run {cell.run}",
    ]
    return " · ".join(parts)


def _runs(experiment: ExperimentFacts) -> str:
    """The number of runs, or the budget of a race."""
    if experiment.budget_s is None:
        return words.plural(experiment.runs, "run")
    return f"race within {words.format_span(experiment.budget_s)}"


def _varied(experiment: ExperimentFacts) -> list[str]:
    """The profile, the grid, and the interface unless it is the default."""
    profile, app = experiment.profile, experiment.app
    parts = []
    if isinstance(profile, str):
        parts.append(f"{profile} profile")
    elif profile:
        parts.append("profile: see the server's name")
    if isinstance(app, tuple):
        parts.append("app: see the server's name")
    if experiment.interface == "asgi":
        parts.append("ASGI")
    return parts


def _durations(duration_s: float, warmup_s: float) -> str:
    measured = f"{words.format_seconds(duration_s)} measured"
    return f"{measured} after {words.format_seconds(warmup_s)} warm-up" if warmup_s else measured


def _arrivals(experiment: ExperimentFacts) -> str:
    if not experiment.rates:
        return "closed loop"
    arrivals = _ARRIVALS.get(experiment.arrivals or "", "arrivals not recorded")
    return arrivals.replace("arrivals", "session arrivals") if experiment.sessions else arrivals


def _connections(experiment: ExperimentFacts) -> str:
    keepalive = experiment.keepalive
    policy = _POLICIES.get(experiment.on_busy or "", "connection policy not recorded")
    if not experiment.rates:
        policy = "one request at a time per connection"

    if isinstance(keepalive, tuple):
        return f"{policy}, keep-alive: see the server's name"
    if keepalive in (None, "on"):
        return policy
    if keepalive == "off":
        return "a new connection per request"
    return f"{policy}, {keepalive} requests per connection"
