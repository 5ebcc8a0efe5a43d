"""A synthetic run directory of a capacity search.

The real search algorithm runs on the synthetic servers of ``report_fixture``. One trial is invalid
and repeated; one server never meets the objective.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from wsgiload._loadgen import Histogram
from wsgiload.analysis.objective import Objective, parse_objective
from wsgiload.capacity_search.result import JudgedTrial, ServerSearch, server_result
from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.cell_result import CellResult
from wsgiload.documents.codec import encode
from wsgiload.documents.load_report import Reason, Verdict
from wsgiload.documents.summary import Summary
from wsgiload.procedures.capacity import Outcome, Plan, capacity

from .report_fixture import DURATION_S, make_cell, read_summary, store_summary, write_run

SLO = ("p99<20ms",)
SERVERS = ("waitress", "gunicorn-gthread", "wsgiref")
# Goodput of the closed loops, which only sets where the searches start.
GUESS_PER_S = {"waitress": 2_900.0, "gunicorn-gthread": 3_300.0, "wsgiref": 1_300.0}
_INVALID_TRIAL = 3
BUDGET_S = 12.0 * DURATION_S


def write_search(directory: Path, servers: Sequence[str] = SERVERS, url: str | None = None) -> Path:
    """Write the run directory of a search and return it; a search of a URL has no summary."""
    objective = parse_objective(SLO)
    states = [_SyntheticSearch(directory, server, objective).run() for server in servers]

    document = CapacityResult(
        schema_version=1,
        status="complete",
        slo=tuple(objective.texts),
        arrivals="poisson",
        keepalive="on",
        budget_s=BUDGET_S,
        width=0.05,
        url=url,
        servers=tuple(server_result(state, 0.05) for state in states),
        recommendations=(),
        run_dir=str(directory),
    )

    directory.mkdir(exist_ok=True, parents=True)
    (directory / "capacity.json").write_text(encode(document), encoding="utf-8")

    if url is None:
        _write_summary(directory, [trial.cell for state in states for trial in state.trials])
    return directory


def _write_summary(directory: Path, cells: Sequence[CellResult]) -> None:
    """Write the summary of the open-loop trials, with the experiment facts of a synthetic run."""
    synthetic = read_summary(write_run(directory / "other"))
    facts = msgspec.structs.replace(
        synthetic.experiment,
        rates=tuple(sorted({cell.rate for cell in cells if cell.rate is not None})),
        servers=tuple(dict.fromkeys(cell.server for cell in cells)),
    )

    open_loop_cells = tuple(cell for cell in cells if cell.rate is not None)
    summary = Summary(
        schema_version=1,
        status="complete",
        experiment=facts,
        order=tuple(cell.id for cell in open_loop_cells),
        seed=1,
        cells=open_loop_cells,
    )
    store_summary(directory, summary)


class _SyntheticSearch:
    """The search of one server; its trials are synthetic cells."""

    def __init__(self, directory: Path, server: str, objective: Objective) -> None:
        self.directory, self.server, self.objective = directory, server, objective
        self.state = ServerSearch(server, app="hello")
        self.runs: dict[float, int] = {}

    def run(self) -> ServerSearch:
        guess = self._measure(GUESS_PER_S[self.server])
        closed = msgspec.structs.replace(guess, rate=None, connections=8, id=f"{self.server}@c8#1")
        self.state.trials.append(JudgedTrial(closed, None, None))

        guess_per_s = GUESS_PER_S[self.server]
        plan = Plan(guess_per_s, guess_per_s / 32, 16 * guess_per_s, 0.05, BUDGET_S, DURATION_S)
        steps = capacity(plan)
        next_trial = next(steps)
        while True:
            if len(self.state.trials) == _INVALID_TRIAL and self.server == "waitress":
                self._add_invalid_trial(next_trial.rate_per_s)

            cell = self._measure(next_trial.rate_per_s)

            judgement = self.objective.judge(cell)
            self.state.trials.append(JudgedTrial(cell, next_trial.phase, judgement))
            try:
                next_trial = steps.send(Outcome(self.objective.count(cell), DURATION_S))
            except StopIteration as ended:
                self.state.result = ended.value
                return self.state

    def _add_invalid_trial(self, rate_per_s: float) -> None:
        """Add an invalid trial, which the search repeats."""
        message = "the hypervisor took 4 % of the CPU time"
        reason = Reason(
            check="arrival-count", level="invalid", message=message, value=0.04, limit=0.01
        )
        verdict = Verdict(status="invalid", blame="host", reasons=(reason,))
        cell = msgspec.structs.replace(self._measure(rate_per_s), verdict=verdict)
        judgement = self.objective.judge(cell)
        self.state.trials.append(JudgedTrial(cell, "bracket", judgement, is_discarded=True))

    def _measure(self, rate_per_s: float) -> CellResult:
        rate = round(rate_per_s)
        run = self.runs[rate] = self.runs.get(rate, 0) + 1
        cell, load = make_cell(self.server, rate, run)
        path = self.directory / "load" / f"{cell['id']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(load), encoding="utf-8")
        return msgspec.convert(_with_rate(cell, rate_per_s), CellResult)


def _with_rate(cell: dict[str, Any], rate_per_s: float) -> dict[str, Any]:
    """The cell at an unrounded rate, with the histogram of exponential response times."""
    times, ok = cell["response_time_ns"], cell["outcomes"]["ok"]
    scale_ns = times["quantiles"]["0.99"] / math.log(100)
    values = [round(-scale_ns * math.log((place + 0.5) / ok)) for place in range(ok)]
    hdr_v2 = base64.b64encode(Histogram.from_values(values).to_hdr_v2()).decode()
    return cell | {"rate": rate_per_s, "response_time_ns": times | {"hdr_v2": hdr_v2}}
