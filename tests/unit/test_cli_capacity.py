"""``wsgiload capacity`` refuses invalid options before anything starts, and prints its plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wsgiload.cli import run

QUICK = ["capacity", "--slo", "p99<50ms", "--dry-run"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["capacity"], "add one, such as --slo 'p99<50ms'"),
        (["capacity", "--slo", "goodput>=100"], "it must get worse as the load increases"),
        (
            [*QUICK, "--url", "http://127.0.0.1:1/", "--servers", "waitress"],
            "--servers does not apply to a running server (--url); omit --servers",
        ),
        (
            [*QUICK, "--url", "http://127.0.0.1:1/", "app:app"],
            "APP does not apply to a running server (--url); omit APP",
        ),
        (
            [*QUICK, "--url", "http://127.0.0.1:1/", "--server-cpus", "0"],
            "--server-cpus does not apply to a running server (--url); omit --server-cpus",
        ),
        (
            [*QUICK, "--url", "http://127.0.0.1:1/", "--memory", "512MiB"],
            "--memory does not apply to a running server (--url); omit --memory",
        ),
        (
            [*QUICK, "--url", "http://127.0.0.1:1/", "--client-cpus", "999"],
            "--client-cpus names 999, but only",
        ),
        (
            [*QUICK, "--servers", "waitress", "--client-cpus", "999"],
            "--client-cpus names 999, but only",
        ),
        ([*QUICK, "--url", "gopher://127.0.0.1/"], "'gopher://127.0.0.1/' is not an http(s) URL"),
        ([*QUICK, "--width", "0.1%"], "--width must be between 0.5% and 50%, not 0.1%"),
        ([*QUICK, "--threshold", "p99<1s"], "unknown figure 'p99'; choose one of capacity"),
    ],
)
def test_invalid_options_are_refused(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    assert says in capsys.readouterr().err


def test_the_plan_contains_the_search_and_its_duration(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        run(
            [
                *QUICK,
                "--servers",
                "gunicorn-gthread",
                "--grid",
                "workers=1,2",
                "threads=4",
                "--width",
                "5%",
            ]
        )
        == 0
    )
    plan = json.loads(capsys.readouterr().out)
    assert plan["servers"] == ["gunicorn-gthread-w1-t4", "gunicorn-gthread-w2-t4"]
    assert (plan["goal"]["width"], plan["goal"]["trials"], plan["goal"]["confirmations"]) == (
        0.05,
        6,
        6,
    )
    assert (
        plan["confirm_duration_ns"]
        == 4 * plan["experiment"]["load"]["duration_ns"]
        == 120_000_000_000
    )
    # 34 trials of 30 s and 6 of 120 s, each with 2 s of warm-up, 1 s of cool-down and a launch, of
    # two servers.
    assert plan["estimated_seconds"] == pytest.approx(2 * (34 * 35 + 6 * 125))


def test_a_recommendation_without_rates_determines_them_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["sweep", "--servers", "waitress", "--slo", "p99<50ms", "--dry-run"]
    for more, is_known in (
        ([], False),
        (["--rates", "100"], True),
        (["--warmup-requests", "1000"], False),
    ):
        assert run([*words, *more]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert (plan["levels"] is not None) == (plan["order"] is not None) == is_known
        assert plan["estimated_seconds"] > 0


def test_a_recommendation_takes_six_runs_by_default(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["sweep", "--servers", "waitress", "--slo", "p99<50ms", "--dry-run"]
    for more, expected in (([], 6), (["--runs", "2"], 2)):
        assert run([*words, *more]) == 0
        assert json.loads(capsys.readouterr().out)["runs"] == expected


def test_an_objective_is_refused_in_a_closed_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(["sweep", "--servers", "waitress", "--slo", "p99<50ms", "-c", "10", "--dry-run"]) == 2
    )
    assert "a closed loop has none; use --rates" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        [*QUICK, "--servers", "waitress"],
        [*QUICK, "--url", "http://127.0.0.1:1/"],
        ["sweep", "--servers", "waitress", "--slo", "p99<50ms", "--dry-run"],
    ],
    ids=["capacity", "a URL", "sweep"],
)
def test_sessions_are_refused_if_a_closed_loop_comes_first(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shop").write_text("[browse]\nGET /\n")
    given = [*words, "--sessions", str(tmp_path / "shop")]
    assert run(given) == 2
    assert "sweep session rates instead: wsgiload sweep --rates" in capsys.readouterr().err
    if words[0] == "sweep":
        assert run([*given, "--rates", "10"]) == 0


def test_a_search_of_a_url_is_named_by_its_option_or_its_host(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [*QUICK, "--url", "http://127.0.0.1:8000/"]
    for more, name in (
        ([], "capacity-127.0.0.1-8000"),
        (["--name", "my shop"], "capacity-my-shop"),
    ):
        assert run([*words, *more]) == 0
        assert json.loads(capsys.readouterr().out)["experiment"]["name"] == name
