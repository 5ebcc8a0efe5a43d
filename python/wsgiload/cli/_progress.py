"""The progress of ``wsgiload sweep`` and ``capacity`` on standard error: one line per trial and, on
a terminal, the live view below them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from wsgiload.analysis.absence import enough_requests
from wsgiload.attribution.intervention import Half
from wsgiload.capacity_search.result import JudgedTrial, ServerSearch
from wsgiload.capacity_search.run import CapacityEvents
from wsgiload.capacity_search.trials import TrialPlan
from wsgiload.cli._live import LiveView
from wsgiload.cli._live_frame import Stage
from wsgiload.cli._output import print_status
from wsgiload.documents.cell_result import CellResult
from wsgiload.experiment.plan import Cell
from wsgiload.procedures.capacity import Phase
from wsgiload.report.words import (
    SEARCH_PHASES,
    format_bounds,
    format_measured_per_s,
    format_per_s,
    format_span,
    plural,
    quantile_name,
    trial_words,
    verdict_words,
)
from wsgiload.sampling.running_load import RunningLoad
from wsgiload.sweeps.outlook import Outlook, standing_words
from wsgiload.sweeps.raced import NextLaunch
from wsgiload.sweeps.sweep import SweepEvents
from wsgiload.units import level_words


class Progress(SweepEvents):
    """Prints the events of a sweep and updates the live view."""

    def __init__(self, view: LiveView | None = None) -> None:
        self.conclusions: Sequence[str] = ()
        """Which conclusions the plan allows; printed before the first trial."""
        self._view = view or LiveView()
        self.is_watching = self._view.is_watching
        self._print_line = self._view.print_line
        self._heading: str | None = None
        self._outlook = Outlook()
        self._left_s: float | None = None
        self._left_since_ns = 0
        self._state: object = None

    def message(self, text: str) -> None:
        self._print_line(text)

    def planned(self, count: int, seconds: float, longest_seconds: float) -> None:
        self._expect(seconds)
        text = f"{plural(count, 'trial')}, about {format_span(seconds)}"
        if longest_seconds > seconds:
            text += f"; up to {format_span(longest_seconds)} on a busy host"
        for line in (text, *self.conclusions):
            self._print_line(line)

    def estimated(self, seconds: float) -> None:
        self._expect(seconds)

    def _expect(self, seconds: float) -> None:
        self._left_s, self._left_since_ns = seconds, time.monotonic_ns()

    def outlook(self, outlook: Outlook) -> None:
        self._outlook = outlook

    def cell_started(self, cell: Cell, place: int, count: int) -> None:
        self._heading = f"[{place:>{len(str(count))}}/{count}] {trial_words(cell.id)}"
        if self._view.is_plain:
            print_status(f"{self._heading} … ", is_whole=False)
        outlook = self._outlook
        upcoming = trial_words(outlook.upcoming.id) if outlook.upcoming is not None else None
        self._show(self._heading, upcoming, outlook.standing)

    def _show(self, what: str, upcoming: str | None = None, standing: str | None = None) -> None:
        self._view.show(Stage(what, upcoming, self._left_s, self._left_since_ns, standing))

    def cell_ended(self, summary: CellResult, place: int, count: int) -> None:
        heading, self._heading = self._heading, None
        text = _result_words(summary)
        if text is None:
            return
        if not self._view.is_plain:
            self._print_line(f"{heading} … {text}")
            return
        self._view.print_page_line(f"{heading} … {text}")
        print_status(f"{text} (about {format_span(self._left_s)} left)" if self._left_s else text)

    def launch_started(self, launch: NextLaunch) -> None:
        self._expect(launch.left_s)
        block, server = launch.cells[0].run, launch.cells[0].server
        if launch.state is not self._state:
            self._state = launch.state
            if block > 1:
                words = standing_words(launch.state)
                self._print_line(f"after {plural(block - 1, 'block')}: {words}")
        self._heading = f"[block {block}] {server}"
        standing = standing_words(launch.state) if block > 1 else None
        self._show(self._heading, None, standing)

    def launch_ended(self, results: Sequence[CellResult]) -> None:
        heading, self._heading = self._heading, None
        by_level = sorted(results, key=lambda one: one.rate or one.connections or 0.0)
        levels = [
            f"{text} at {level_words(one.rate, one.connections)}"
            for one in by_level
            if (text := _result_words(one, only_invalid=True)) is not None
        ]
        self._print_line(f"{heading} … {'; '.join(levels)}")

    def intervention_started(self, cell: Cell, half: Half) -> None:
        how = "with its CPU limit" if half == "limited" else "without its CPU limit"
        self._show(f"{trial_words(cell.id)}, {how}")

    def load_started(self, load: RunningLoad) -> None:
        self._view.load_started(load)

    def load_ended(self) -> None:
        self._view.load_ended()

    def ended(self) -> None:
        self._view.stop()
        if self._heading is None:
            return
        text = f"{self._heading} … interrupted"
        if self._view.is_plain:
            print_status("interrupted")
            self._view.print_page_line(text)
        else:
            self._print_line(text)


def _result_words(summary: CellResult, *, only_invalid: bool = False) -> str | None:
    """The result of a cell in words, with its verdict; None if it has none."""
    failure, outcomes = summary.failure, summary.outcomes
    if failure is not None:
        return f"failed: {failure.message}"
    if outcomes is None or summary.verdict is None:
        return None
    quantile = 0.99 if enough_requests(outcomes.scheduled, 0.99) else 0.5
    bounds = (summary.offered_quantiles_ns or {}).get(str(quantile))
    figure = format_bounds(bounds, quantile, outcomes)
    words = f"{quantile_name(quantile)} {figure}"
    if only_invalid and summary.verdict.status != "invalid":
        return words
    return f"{words}, {verdict_words(summary.verdict)}"


class CapacityProgress(CapacityEvents):
    """Prints the events of a search and updates the live view."""

    def __init__(self, view: LiveView | None = None) -> None:
        self._view = view or LiveView()
        self.is_watching = self._view.is_watching
        self._print_line = self._view.print_line
        self._expected_s = 0.0
        self._since_ns = 0

    def message(self, text: str) -> None:
        self._print_line(text)

    def planned(self, servers: int, seconds: float) -> None:
        self._expected_s, self._since_ns = seconds, time.monotonic_ns()
        self._print_line(
            f"capacity search on {plural(servers, 'server')}, at most {format_span(seconds)}"
        )

    def trial_started(self, state: ServerSearch, plan: TrialPlan, phase: Phase | None) -> None:
        step = SEARCH_PHASES[phase or "initial"]
        where = _where(plan.server, plan.level.rate_per_s, plan.level.connections)
        what = f"{where}, trial {len(state.trials) + 1}, {step}"
        upcoming = "depends on this trial"
        stage = Stage(what, upcoming, self._expected_s, self._since_ns, _standing(state))
        self._view.show(stage)

    def trial_ended(self, state: ServerSearch, trial: JudgedTrial) -> None:
        where = _where(state.server, trial.cell.rate, trial.cell.connections)
        step = SEARCH_PHASES[trial.phase or "initial"]
        outcome = _outcome_words(trial)
        self._print_line(f"{where}, trial {len(state.trials)}, {step}: {outcome}")

    def load_started(self, load: RunningLoad) -> None:
        self._view.load_started(load)

    def load_ended(self) -> None:
        self._view.load_ended()


def _where(server: str, rate_per_s: float | None, connections: int | None) -> str:
    """``waitress at 320/s``."""
    if rate_per_s is not None:
        return f"{server} at {format_per_s(rate_per_s)}"
    return f"{server} at {plural(connections or 0, 'connection')}"


def _standing(state: ServerSearch) -> str | None:
    """``met up to 320/s, missed at 400/s and above``; None before any trial is judged."""
    judged = [
        (trial.cell.rate, trial.judgement.met)
        for trial in state.trials
        if not trial.is_discarded and trial.judgement is not None
    ]
    met = [rate for rate, is_met in judged if is_met is True and rate is not None]
    missed = [rate for rate, is_met in judged if is_met is False and rate is not None]
    words = [f"met up to {format_per_s(max(met))}"] if met else []
    words += [f"missed at {format_per_s(min(missed))} and above"] if missed else []
    return ", ".join(words) or None


def _outcome_words(trial: JudgedTrial) -> str:
    """The outcome of a trial in words."""
    cell, judgement = trial.cell, trial.judgement
    verdict = "" if cell.verdict is None else verdict_words(cell.verdict)
    if cell.failure is not None:
        return f"failed: {cell.failure.message}"
    if judgement is None and trial.is_discarded:
        return f"{verdict}; repeating"
    if judgement is None:
        goodput = None if cell.rate_result is None else cell.rate_result.goodput_per_s
        return f"goodput {format_measured_per_s(goodput)}; the search starts below it"
    if trial.is_inconclusive:
        return f"inconclusive ({judgement.why}); repeating"
    return f"{judgement.why if judgement.met is None else 'met' if judgement.met else 'missed'}, {verdict}"
