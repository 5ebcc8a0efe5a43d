"""The screen of ``sweep --dry-run``; other tests examine the complete plan."""

from __future__ import annotations

import pytest

from wsgiload.cli import run


def lines_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(["sweep", "--servers", "waitress,gunicorn-sync", *words, "--dry-run"]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_race_is_shown_on_one_screen(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(capsys, "--rates", "100,2000", "--cpus", "2", "--memory", "64M")
    assert "load: GET / at 100/s and 2,000/s" in lines
    assert "limits: 2 CPUs and 64 MiB, as far as they can be enforced" in lines
    assert any("for at most" in line for line in lines), "what can be concluded"
    assert {"waitress", "gunicorn-sync"} < {line.partition(" ")[0] for line in lines}
    assert len(lines) <= 24 and not any(line.startswith("trials") for line in lines)


def test_without_rates_it_says_how_they_will_be_determined(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = lines_of(capsys)
    assert "load: GET / at rates to be found" in lines
    assert any(line.startswith("A closed loop of 2 s per configuration") for line in lines)
    [conclusion] = [line for line in lines if line.startswith("Measures 2 servers")]
    assert conclusion.endswith("for at most 5 min."), "what differences depends on the rates"
    fixed = lines_of(capsys, "--runs", "2")
    assert not any(line.startswith("trials:") for line in fixed)


def test_a_fixed_design_has_a_number_of_trials(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(capsys, "--connections", "1", "--runs", "3", "--limits", "none")
    assert "load: GET / at 1 connection" in lines
    assert "limits: none" in lines
    assert "trials: 6, in random order" in lines


def test_a_secret_in_the_path_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(capsys, "--rates", "100", "--path", "/x?token=s3cret")
    assert not any("s3cret" in line for line in lines)
    assert any(line.startswith("load: GET /x?token=") for line in lines)
