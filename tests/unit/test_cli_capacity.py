"""``wsgiload capacity``: invalid options, the plan of a dry run, and objectives of a sweep."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from wsgiload.cli import run
from wsgiload.cli._decide import say_longer_search

DRY_RUN = ["capacity", "--slo", "p99<50ms", "--dry-run"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["capacity"], "add one, such as --slo 'p99<50ms'"),
        (["capacity", "--slo", "goodput>=100"], "it must get worse as the load increases"),
        (
            [*DRY_RUN, "--url", "http://127.0.0.1:1/", "--servers", "waitress"],
            "--servers does not apply to a running server (--url); omit --servers",
        ),
        (
            [*DRY_RUN, "--url", "http://127.0.0.1:1/", "app:app"],
            "APP does not apply to a running server (--url); omit APP",
        ),
        (
            [*DRY_RUN, "--url", "http://127.0.0.1:1/", "--server-cpus", "0"],
            "--server-cpus does not apply to a running server (--url); omit --server-cpus",
        ),
        (
            [*DRY_RUN, "--url", "http://127.0.0.1:1/", "--memory", "512MiB"],
            "--memory does not apply to a running server (--url); omit --memory",
        ),
        (
            [*DRY_RUN, "--url", "http://127.0.0.1:1/", "--client-cpus", "999"],
            "--client-cpus names 999, but only",
        ),
        (
            [*DRY_RUN, "--servers", "waitress", "--client-cpus", "999"],
            "--client-cpus names 999, but only",
        ),
        ([*DRY_RUN, "--url", "gopher://127.0.0.1/"], "'gopher://127.0.0.1/' is not an http(s) URL"),
        ([*DRY_RUN, "--width", "0.1%"], "--width must be between 0.5% and 50%, not 0.1%"),
        ([*DRY_RUN, "--threshold", "p99<1s"], "unknown figure 'p99'; choose one of capacity"),
    ],
)
def test_invalid_options_are_rejected(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    assert message in capsys.readouterr().err


def test_the_plan_contains_the_search_and_its_duration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = "--servers gunicorn-gthread --grid workers=1,2 threads=4 --width 3%"
    assert run([*DRY_RUN, *options.split()]) == 0

    plan = json.loads(capsys.readouterr().out)
    assert plan["servers"] == ["gunicorn-gthread-w1-t4", "gunicorn-gthread-w2-t4"]
    assert (plan["width"], plan["budget_s"], plan["duration_s"]) == (0.03, None, None)
    assert plan["experiment"]["load"]["warmup"] == 1.0
    assert plan["estimated_seconds"] == 2 * 240

    assert run([*DRY_RUN, *options.split(), "--budget", "6m"]) == 0
    assert json.loads(capsys.readouterr().out)["estimated_seconds"] == 360


def test_a_budget_that_is_too_short_is_rejected_with_one_that_suffices(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [*DRY_RUN, "--servers", "waitress,wsgiref", "--budget"]
    assert run([*options, "10s"]) == 2
    error = capsys.readouterr().err
    assert "--budget is too short for a capacity search on 2 servers" in error

    assert run([*options, error.split("--budget ")[-1].split()[0].rstrip(".")]) == 0


def test_a_recommendation_without_rates_determines_them_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["sweep", "--servers", "waitress", "--slo", "p99<50ms", "--dry-run", "--json", "-"]
    for options, is_known in (
        ([], False),
        (["--rates", "100"], True),
    ):
        assert run([*arguments, *options]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert (plan["levels"] is not None) == (plan["order"] is not None) == is_known
        assert plan["estimated_seconds"] > 0


def test_a_comparison_for_an_objective_takes_six_runs_by_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["sweep", "--servers", "waitress", "--slo", "p99<50ms", "--dry-run", "--json", "-"]
    for options, expected in ((["--compare"], 6), (["--runs", "2"], 2)):
        assert run([*arguments, *options]) == 0
        assert json.loads(capsys.readouterr().out)["runs"] == expected


def test_an_objective_needs_an_open_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            [
                "sweep",
                "--servers",
                "waitress",
                "--slo",
                "p99<50ms",
                "-c",
                "10",
                "--dry-run",
                "--json",
                "-",
            ]
        )
        == 2
    )
    assert "a closed loop has none; use --rates" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [*DRY_RUN, "--servers", "waitress"],
        [*DRY_RUN, "--url", "http://127.0.0.1:1/"],
        ["sweep", "--servers", "waitress", "--slo", "p99<50ms", "--dry-run", "--json", "-"],
    ],
    ids=["capacity", "a URL", "sweep"],
)
def test_sessions_are_rejected_if_a_closed_loop_comes_first(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop").write_text("[browse]\nGET /\n")
    with_sessions = [*arguments, "--sessions", str(tmp_path / "shop")]

    assert run(with_sessions) == 2
    assert "sweep session rates instead: wsgiload sweep --rates" in capsys.readouterr().err

    if arguments[0] == "sweep":
        assert run([*with_sessions, "--rates", "10"]) == 0


def test_a_search_of_a_url_is_named_after_its_setting_or_host(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = [*DRY_RUN, "--url", "http://127.0.0.1:8000/"]
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["experiment"]["name"] == "capacity-127.0.0.1-8000"
    monkeypatch.setenv("WSGILOAD_NAME", "my shop")
    assert run(arguments) == 0
    assert json.loads(capsys.readouterr().out)["experiment"]["name"] == "capacity-my-shop"


def test_an_open_search_ends_with_the_whole_command_that_would_decide_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["capacity", "--slo", "p99<50ms", "--servers", "waitress", "--budget", "4m"]
    say_longer_search(240.0, arguments)

    line = capsys.readouterr().err.partition("to decide, run: ")[2]
    command, time = line.split("  # ")
    assert (shlex.split(command)[-2:], time) == (["--budget", "16m"], "about 16 min\n")
    words = shlex.split(command)
    assert run([*words[words.index("capacity") :], "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["budget_s"] == 960.0
