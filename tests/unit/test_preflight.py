"""The differences that a plan can detect, computed before the first trial."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace

import pytest

from wsgiload.analysis.preflight import Preflight, detectable_factor, preflight
from wsgiload.cli import run
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.plan import Experiment
from wsgiload.experiment.public_options import ServerOptions, SweepOptions
from wsgiload.experiment.settings import resolve_servers
from wsgiload.loads.public_options import LoadOptions
from wsgiload.report import preflight_lines
from wsgiload.statistics.effect import paired_effect, runs_needed

TWO = ("gunicorn-sync", "waitress")


def _experiment(rate: float, duration: float, runs: int, **others: object) -> Experiment:
    spec = SweepSpec(
        rates=[10 * rate, rate],
        servers=TWO,
        duration=duration,
        options=SweepOptions(runs=runs),
        **others,  # type: ignore[arg-type]
    )
    return experiment_of(spec)


def _preflight(experiment: Experiment) -> Preflight:
    return preflight(experiment, resolve_servers(experiment))


def test_a_sufficient_plan_names_the_difference_it_can_detect() -> None:
    result = _preflight(_experiment(200, 10, 6))
    assert (result.needed_duration_s, result.needed_runs) == (None, None)
    assert preflight_lines(result) == [
        "This plan can detect p99 differences of 23 % or more, given typical variation between "
        "runs (6 runs per server and load level)."
    ]


def test_a_short_plan_names_the_duration_needed() -> None:
    result = _preflight(_experiment(50, 10, 6))
    assert (result.expected_requests, result.needed_duration_s) == (500, 22)
    assert preflight_lines(result)[0] == (
        "This plan sends only about 500 of the 1,000 requests that p99 needs at the lowest rate. "
        "Use --duration 22s."
    )
    assert _preflight(_experiment(50, 22, 6)).needed_duration_s is None


@pytest.mark.parametrize("rate", [7.0, 100.0, 333.0])
def test_poisson_arrivals_need_a_longer_duration_than_constant_arrivals(
    rate: float,
) -> None:
    poisson = _preflight(_experiment(rate, 1, 6))
    constant = _preflight(_experiment(rate, 1, 6, load=LoadOptions(arrivals="constant")))
    assert constant.needed_duration_s == math.ceil(1000 / rate)
    assert poisson.needed_duration_s is not None
    assert poisson.needed_duration_s > 1000 / rate

    # The number of arrivals has a Poisson distribution: at most 0.4 % of loads have too few.
    expected = rate * poisson.needed_duration_s
    draw = random.Random(1)
    short = sum(draw.gauss(expected, math.sqrt(expected)) < 1000 for _ in range(10_000))
    assert short <= 40


def test_a_single_run_cannot_rank_servers_and_the_runs_needed_are_named() -> None:
    result = _preflight(_experiment(200, 10, 1))
    assert (result.factor, result.needed_runs) == (None, 6)
    # 2 servers x 2 rates x 6 runs, each with 13 s of load, 2 s of overhead and 5 s of settling.
    assert result.needed_s == 24 * 20
    assert preflight_lines(result) == [
        "This plan cannot rank servers: it has 1 run per server and load level, but a "
        "ranking needs at least 4. To detect p99 differences of 30 %, use --runs 6 (about 8 min)."
    ]


def test_a_plan_with_few_runs_names_the_difference_it_can_detect() -> None:
    [line] = preflight_lines(_preflight(_experiment(200, 10, 4)))
    assert re.fullmatch(
        r"This plan can detect p99 differences of 37 % or more, given typical variation between "
        r"runs \(4 runs per server and load level\)\. To detect 30 %, use --runs 6 \(about \d min\)\.",
        line,
    )


def test_one_server_needs_no_comparison() -> None:
    experiment = replace(_experiment(200, 10, 1), servers=TWO[:1])
    result = _preflight(experiment)
    assert (result.factor, result.needed_runs) == (None, None)
    assert preflight_lines(result) == []


def test_servers_with_different_apps_are_not_counted_as_pairs() -> None:
    spec = SweepSpec(
        rates=[200.0],
        servers=TWO[:1],
        server=ServerOptions(grid={"app": ["hello", "cpu"]}),
        options=SweepOptions(runs=1),
    )
    assert preflight_lines(_preflight(experiment_of(spec))) == []


def test_only_the_number_of_runs_of_a_closed_loop_is_checked() -> None:
    spec = SweepSpec(connections=[10], servers=TWO, options=SweepOptions(runs=4))
    assert preflight_lines(_preflight(experiment_of(spec))) == []
    short = replace(experiment_of(spec), runs=1)
    [line] = preflight_lines(_preflight(short))
    assert "cannot rank servers" in line and "--runs 6" in line


@pytest.mark.parametrize("servers", [2, 3, 8])
def test_the_runs_needed_detect_the_planned_difference_and_fewer_do_not(servers: int) -> None:
    pairs = servers * (servers - 1) // 2
    runs = runs_needed(pairs)
    factor = detectable_factor(runs, pairs)
    assert factor is not None
    assert factor <= 1.3

    if runs > 6:
        fewer = detectable_factor(runs - 1, pairs)
        assert fewer is not None
        assert fewer > 1.3


@pytest.mark.parametrize("runs", [5, 6, 10])
def test_the_detectable_difference_is_detected_about_half_the_time(runs: int) -> None:
    factor = detectable_factor(runs, 1)
    assert factor is not None
    draw = random.Random(runs)
    detected = 0
    for _ in range(1000):
        effect = paired_effect([draw.gauss(math.log(factor), 0.2) for _ in range(runs)])
        detected += effect.p < 0.05
    assert 0.4 < detected / 1000 < 0.65


def test_a_larger_spread_hides_larger_differences() -> None:
    noisy, typical = detectable_factor(6, 1, 0.4), detectable_factor(6, 1, 0.2)
    assert noisy is not None
    assert typical is not None
    assert noisy > typical > 1


def test_a_dry_run_prints_the_conclusions(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "--servers", ",".join(TWO), "--rates", "50", "--dry-run", "--json", "-"]
    assert run([*words, "--runs", "1"]) == 0
    duration, runs = json.loads(capsys.readouterr().out)["conclusions"]
    assert "--duration 22s" in duration
    assert "--runs 6" in runs

    assert run([*words, "--slo", "p99<50ms", "--duration", "22s"]) == 0
    [line] = json.loads(capsys.readouterr().out)["conclusions"]
    assert line.startswith("This plan can detect p99 differences")


def test_the_default_run_says_when_it_ends_and_what_it_separates(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [
        "sweep",
        "--servers",
        ",".join(TWO),
        "--rates",
        "1000,2000",
        "--dry-run",
        "--json",
        "-",
    ]
    assert run(words) == 0
    plan = json.loads(capsys.readouterr().out)
    [line] = plan["conclusions"]
    assert "until the best is known or tied within 10 %, for at most 5 min" in line
    assert re.search(r"separates differences of about \d+ % or more", line)
    assert (plan["estimated_seconds"], plan["is_sliced"]) == (300, True)

    assert run([*words, "--budget", "20s", "--margin", "5%"]) == 0
    [line] = json.loads(capsys.readouterr().out)["conclusions"]
    assert "at least 4 blocks are needed. Use --budget" in line


@pytest.mark.parametrize("fixed", [["--runs", "2"], ["--duration", "5s"], ["--compare"]])
def test_options_that_fix_the_trials_fix_the_design(
    fixed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(
            [
                "sweep",
                "--servers",
                ",".join(TWO),
                "--rates",
                "50",
                *fixed,
                "--dry-run",
                "--json",
                "-",
            ]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["budget_ns"] is None
