"""Capacity searches with simulated trials: stored documents, verdicts and exit codes."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from rich.console import Console

from wsgiload.analysis.objective import parse_objective
from wsgiload.capacity_search.run import USUAL_RERUNS, CapacityPlan, CapacityResult, run_capacity
from wsgiload.capacity_search.trials import TrialPlan
from wsgiload.documents.capacity import CapacityResult as CapacityDocument
from wsgiload.documents.cell_result import CellFailure, CellResult
from wsgiload.documents.codec import read, to_plain
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.schema import load_schema
from wsgiload.documents.summary import Summary
from wsgiload.report import print_capacity
from wsgiload.results.store import RunDirectory

from .filled import filled_summary, rates, reason, verdict
from .test_capacity_result import result
from .test_summary import EXPERIMENT

MODULE = sys.modules["wsgiload.capacity_search.run"]

Outcome = Callable[[TrialPlan], CellResult]


@dataclass
class Trials:
    """Simulated trials; ``outcome`` returns their results or raises an exception."""

    directory: RunDirectory
    outcome: Outcome
    plans: list[TrialPlan] = field(default_factory=list)

    def app_of(self, server: str) -> None:
        """The app is unknown."""

    def carry_out(self, plan: TrialPlan) -> CellResult:
        self.plans.append(plan)
        return msgspec.structs.replace(
            self.outcome(plan),
            id=f"{plan.server}@{plan.level.text}#{plan.run}",
            rate=plan.level.rate_per_s,
            connections=plan.level.connections,
        )

    def write_summary(self, status: str) -> None:
        self.directory.write_summary(filled_summary({}, [], status=status))


@dataclass
class FinishedSearch:
    """A finished search and its files."""

    result: CapacityResult
    plans: list[TrialPlan]

    def stored(self, kind: Any, name: str) -> Any:
        return read(kind, self.result.run_dir / name)


RunSearch = Callable[..., FinishedSearch]


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSearch:
    """Return a function that runs a capacity search with simulated trials."""

    def run_search(
        outcome: Outcome, servers: tuple[str, ...] = ("waitress",), reruns: int = USUAL_RERUNS
    ) -> FinishedSearch:
        trials = Trials(RunDirectory(tmp_path, "n"), outcome)

        @contextmanager
        def server_trials(*_: object) -> Iterator[tuple[Trials, Mapping[str, int]]]:
            yield trials, dict.fromkeys(servers, 8)

        monkeypatch.setattr(MODULE, "server_trials", server_trials)
        monkeypatch.setattr(MODULE, "remove_stale_scratch", list)

        plan = CapacityPlan(
            replace(EXPERIMENT, levels=()),
            parse_objective(["p99<50ms"]),
            width=0.5,
            duration_s=1.0,
            reruns=reruns,
        )

        return FinishedSearch(run_capacity(plan), trials.plans)

    return run_search


def slow_above(rate_per_s: float) -> Outcome:
    """The outcomes of a server that is slow above this rate."""

    def outcome(plan: TrialPlan) -> CellResult:
        return result(p99_ms=10.0 if (plan.level.rate_per_s or 0.0) <= rate_per_s else 90.0)

    return outcome


def errors(document: CapacityDocument) -> list[str]:
    return [
        error.message
        for error in Draft202012Validator(load_schema("capacity-1")).iter_errors(to_plain(document))
    ]


def test_a_complete_search_is_complete_in_all_documents(search: RunSearch) -> None:
    finished = search(slow_above(100.0))
    document = finished.result.document
    assert errors(document) == []
    assert document == finished.stored(CapacityDocument, "capacity.json")
    assert {
        document.status,
        finished.stored(RunInfo, "run.json").status,
        finished.stored(Summary, "summary.json").status,
    } == {"complete"}
    assert document.servers[0].rate_per_s is not None


def test_an_interrupted_search_is_never_valid(search: RunSearch) -> None:
    def interrupted(plan: TrialPlan) -> CellResult:
        if plan.level.connections is None:
            raise KeyboardInterrupt
        return result()

    finished = search(interrupted, ("waitress", "wsgiref"))
    document = finished.result.document
    assert errors(document) == []
    assert document.status == finished.stored(RunInfo, "run.json").status == "interrupted"
    assert finished.result.exit_code == 130
    assert [server.verdict.status for server in document.servers] == ["invalid"] * 2

    output = io.StringIO()
    print_capacity(document, Console(file=output, width=160))
    assert " valid" not in output.getvalue()
    assert output.getvalue().count("invalid: method (unfinished)") == 2


def test_a_killed_search_leaves_a_readable_run(search: RunSearch, tmp_path: Path) -> None:
    run_infos = list[dict[str, Any]]()

    def read_run_info(plan: TrialPlan) -> CellResult:
        (run_dir,) = tmp_path.iterdir()
        run_infos.append(json.loads((run_dir / "run.json").read_text()))
        raise KeyboardInterrupt

    search(read_run_info)
    (run,) = run_infos
    assert run["status"] == "interrupted"
    assert run["plan"]["objective"]["thresholds"][0]["text"] == "p99<50ms"


def failed(step: str, blame: str) -> CellResult:
    """A failed trial."""
    failure = CellFailure(step=step, message=f"no {step}", log_tail="")
    failure_verdict = verdict("invalid", blame, reason("failure", "invalid", f"no {step}", 1))
    return result(failure=failure, verdict=failure_verdict, rate_result=None, resources=None)


@pytest.mark.parametrize(
    ("step", "blame", "trials", "code"),
    [
        ("readiness", "server", 1, 97),
        ("limits", "host", 1, 98),
        ("load", "client", 4, 98),
        ("load", "server", 1, 97),
    ],
)
def test_a_failure_has_the_blame_of_its_trial(
    search: RunSearch, step: str, blame: str, trials: int, code: int
) -> None:
    finished = search(lambda _: failed(step, blame))
    (server,) = finished.result.document.servers
    assert errors(finished.result.document) == []
    assert server.failure is not None
    assert (server.failure.step, server.verdict.blame) == (step, blame)
    assert (len(finished.plans), finished.result.exit_code) == (trials, code)


def test_a_later_failure_has_the_blame_of_its_trial(search: RunSearch) -> None:
    finished = search(lambda plan: result() if plan.level.connections else failed("limits", "host"))
    assert (len(finished.plans), finished.result.exit_code) == (2, 98)


def no_response(status: str, blame: str | None) -> CellResult:
    return result(status, blame, rate_result=rates(0.0))


@pytest.mark.parametrize(
    ("blame", "trials", "code"), [("client", 4, 98), ("host", 4, 98), ("server", 1, 97)]
)
def test_a_closed_loop_without_a_response_has_the_blame_of_its_trial(
    search: RunSearch, blame: str, trials: int, code: int
) -> None:
    finished = search(lambda _: no_response("invalid", blame))
    (server,) = finished.result.document.servers
    assert (server.verdict.blame, len(finished.plans), finished.result.exit_code) == (
        blame,
        trials,
        code,
    )
    assert [trial.discarded for trial in server.trials] == [True] * (trials - 1) + [False]


@pytest.mark.parametrize("reruns", [0, 2])
def test_a_trial_is_repeated_at_most_reruns_times(search: RunSearch, reruns: int) -> None:
    def invalid_outcome(plan: TrialPlan) -> CellResult:
        return result() if plan.level.connections else result("invalid", "host")

    finished = search(invalid_outcome, reruns=reruns)
    (server,) = finished.result.document.servers
    open_loop_plans = [plan for plan in finished.plans if plan.level.rate_per_s is not None]
    assert len(open_loop_plans) == 1 + reruns
    assert server.verdict.blame == "host"

    closed_loop_plans = search(lambda _: no_response("invalid", "host"), reruns=reruns).plans
    assert len(closed_loop_plans) == 1 + reruns


def test_an_invalid_closed_loop_is_repeated_and_does_not_affect_the_verdict(
    search: RunSearch,
) -> None:
    valid_outcome = slow_above(100.0)

    def invalid_at_first(plan: TrialPlan) -> CellResult:
        return (
            no_response("invalid", "client")
            if plan.level.connections and plan.run < 3
            else valid_outcome(plan)
        )

    finished = search(invalid_at_first)
    (server,) = finished.result.document.servers
    assert [trial.discarded for trial in server.trials[:4]] == [True, True, False, False]
    assert server.rate_per_s is not None
    assert "discarded" not in {reason.check for reason in server.verdict.reasons}
    assert "invalid and repeated" in server.trials[0].reason


def test_a_closed_loop_with_late_responses_still_gives_a_starting_rate(
    search: RunSearch,
) -> None:
    valid_outcome = slow_above(100.0)
    finished = search(
        lambda plan: (
            result("invalid", "host", check="steal")
            if plan.level.connections
            else valid_outcome(plan)
        )
    )

    assert [plan.level.connections for plan in finished.plans].count(8) == 1
