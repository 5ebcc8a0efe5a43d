"""The figures of a study's results to which its claims refer. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import TypeAlias

from wsgiload import CellResult, LoadReport, Summary
from wsgiload.analysis.attempts import counted_attempts, is_discarded
from wsgiload.report.run_files import RunFiles, read_load_reports
from wsgiload.statistics.effect import MIN_RUNS, Effect, mean_interval, paired_effect

Runs: TypeAlias = Mapping[int, CellResult]
Figure: TypeAlias = Callable[[CellResult], float | None]
Bounds: TypeAlias = tuple[float, float]
Words: TypeAlias = Callable[[float], str]

NS_PER_MS = 1e6
MIN_INTERVALS = 3
BYTES_PER_MB = 1e6


@dataclass(frozen=True, slots=True)
class Results:
    """The valid runs by server, app and load."""

    cells: tuple[CellResult, ...]
    is_open: bool
    loads: Mapping[str, LoadReport]
    # The identifiers of all planned cells in the order of the runs.
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, summary: Summary, loads: Mapping[str, LoadReport]) -> Results:
        """The runs of a summary, without failed and discarded ones; ``loads`` by cell."""
        cells = tuple(cell for cell in counted_attempts(summary.cells) if _is_counted(cell))
        is_open = any(cell.rate is not None for cell in cells)
        return cls(cells, is_open, loads, summary.order)

    def runs(self, server: str, load: float, app: str | None = None) -> Runs:
        """The runs of a server at a load."""
        return {cell.run: cell for cell in self._of(server, app) if load_of(cell) == load}

    def highest(self, servers: Sequence[str], app: str | None = None) -> float | None:
        """The highest load at which all of these servers have a run."""
        loads = [{load_of(cell) for cell in self._of(server, app)} for server in servers]
        return max(set.intersection(*loads), default=None) if loads else None

    def missing(self, servers: Sequence[str], app: str | None = None) -> list[str]:
        """The servers without any run."""
        return [server for server in servers if not any(self._of(server, app))]

    def settings(self, servers: Sequence[str], name: str) -> set[str]:
        """The values of a setting in the runs of these servers, as the runs recorded them."""
        cells = (cell for server in servers for cell in self._of(server, None))
        values = (getattr(cell.settings, name, None) for cell in cells)
        return {"unknown" if value is None else str(value) for value in values}

    def variation(self, cell: CellResult) -> float | None:
        """The standard deviation of the throughput between intervals, relative to the mean."""
        load = self.loads.get(cell.id)
        intervals = [] if load is None else [one for one in load.intervals if one.length_ns]
        rates = [one.ok / one.length_ns for one in intervals]
        if len(rates) < MIN_INTERVALS or not any(rates):
            return None
        return stdev(rates) / fmean(rates)

    def at(self, load: float) -> str:
        """The load in words."""
        return f"at {load:,g}/s" if self.is_open else f"at {load:,g} connections"

    def places(self) -> Mapping[str, float]:
        """The relative position of each cell within its run, from 0 (first) to 1 (last), by its
        place in the plan."""
        runs: dict[str, list[str]] = {}
        for place in self.order:
            runs.setdefault(place.rpartition("#")[2], []).append(place)
        return {
            place: index / max(1, len(places) - 1)
            for places in runs.values()
            for index, place in enumerate(places)
        }

    def _of(self, server: str, app: str | None) -> Iterator[CellResult]:
        for cell in self.cells:
            if _name(cell) == server and app in (None, (cell.app or "").partition(":")[0]):
                yield cell


def load_of(cell: CellResult) -> float:
    """The rate, or the number of connections."""
    return float(cell.rate if cell.rate is not None else cell.connections or 0)


def _name(cell: CellResult) -> str:
    if cell.alias is not None:
        return cell.alias
    return cell.server if cell.variant in (None, "default") else f"{cell.server}-{cell.variant}"


def _is_counted(cell: CellResult) -> bool:
    """Whether a run counts. Failures of the server are results; disturbances by others are
    excluded."""
    return cell.failure is None and not is_discarded(cell)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure over runs, each of which is one observation, with a 95 % interval if there are
    enough runs."""

    middle: float
    bounds: Bounds | None
    words: Words

    @property
    def text(self) -> str:
        """The figure with its interval."""
        if self.bounds is None:
            return self.words(self.middle)
        low, high = map(self.words, self.bounds)
        return f"{self.words(self.middle)} [{low}, {high}]"


def as_factor(value: float) -> str:
    return f"{_rounded(value, 2)}×"


def as_share(value: float) -> str:
    return f"{_rounded(value * 100, 1)} %"


def as_count(value: float) -> str:
    return _rounded(value, 0)


def as_tenths(value: float) -> str:
    return _rounded(value, 1)


def as_hundredths(value: float) -> str:
    return _rounded(value, 2)


def _rounded(value: float, decimals: int) -> str:
    """With at most three significant digits and at most this many decimals."""
    rounded = float(f"{value:.3g}")
    whole_digits = len(f"{abs(rounded):.0f}")
    return f"{rounded:,.{max(0, min(decimals, 3 - whole_digits))}f}"


def ratio_of(one: Runs, other: Runs, figure: Figure) -> Estimate:
    """The ratio over the runs that both have."""
    pairs = [(figure(one[run]), figure(other[run])) for run in sorted(one.keys() & other.keys())]
    logarithms = [math.log(a / b) for a, b in pairs if a and b]
    # A run without any response has no ratio, but an interval must not ignore it.
    if len(logarithms) >= MIN_RUNS and not any(0 in pair for pair in pairs):
        return factor_of(logarithms)
    first, second = median_of(one, figure) or 0.0, median_of(other, figure) or math.inf
    return Estimate(first / second, None, as_factor)


def factor_of(logarithms: Sequence[float]) -> Estimate:
    """The factor that corresponds to paired differences of logarithms."""
    effect: Effect = paired_effect(logarithms)
    return Estimate(effect.factor, effect.bounds, as_factor)


def mean_of(runs: Runs, figure: Figure, words: Words) -> Estimate | None:
    """The geometric mean of a positive figure; None if no run has it."""
    known = [math.log(value) for cell in runs.values() if (value := figure(cell))]
    if len(known) < MIN_RUNS:
        return Estimate(math.exp(fmean(known)), None, words) if known else None
    interval = mean_interval(known)
    low, high = interval.mean - interval.half_95, interval.mean + interval.half_95
    return Estimate(math.exp(interval.mean), (math.exp(low), math.exp(high)), words)


def goodput(cell: CellResult) -> float | None:
    """Correct responses per second."""
    return None if cell.rate_result is None else cell.rate_result.goodput_per_s


def mean_ms(cell: CellResult) -> float | None:
    times = cell.response_time_ns
    return None if times is None or times.mean is None else times.mean / NS_PER_MS


def max_ms(cell: CellResult) -> float | None:
    times = cell.response_time_ns
    return None if times is None or times.max is None else times.max / NS_PER_MS


def memory_mb(cell: CellResult) -> float | None:
    peak = None if cell.resources is None else cell.resources.memory_peak_bytes
    return None if peak is None else peak / BYTES_PER_MB


def cores(cell: CellResult) -> float | None:
    return None if cell.resources is None else cell.resources.cpu_cores_peak


def median_of(runs: Runs, figure: Figure) -> float | None:
    known = [value for cell in runs.values() if (value := figure(cell)) is not None]
    return median(known) if known else None


def failed_share(runs: Runs) -> Estimate | None:
    """The share of failed requests, with each run as one observation because its requests are
    correlated. None if no request ended."""
    outcomes = [cell.outcomes for cell in runs.values() if cell.outcomes is not None]
    ended = [(one.scheduled - one.unfinished, one.ok) for one in outcomes]
    return share_of([1 - ok / count for count, ok in ended if count])


def share_of(shares: Sequence[float]) -> Estimate | None:
    """The mean of the shares of the runs, from 0 to 1; None without runs."""
    if len(shares) < MIN_RUNS:
        return Estimate(fmean(shares), None, as_share) if shares else None
    interval = mean_interval(shares)
    low, high = interval.mean - interval.half_95, interval.mean + interval.half_95
    return Estimate(interval.mean, (max(0.0, low), min(1.0, high)), as_share)


def loads_of(files: RunFiles) -> Mapping[str, LoadReport]:
    """The load reports of a run, by cell."""
    return read_load_reports(files.directory, [cell.id for cell in files.summary.cells])
