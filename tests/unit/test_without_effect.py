"""An option without effect is a warning, not an error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from wsgiload.cli import run

LOAD = ["load", "http://127.0.0.1:9/"]
SWEEP = ["sweep", "--servers", "waitress", "--limits", "none"]
OPEN_LOOP_OPTIONS = "--arrivals poisson --on-busy grow --max-connections 9"
OPEN_LOOP_FLAGS = ["--arrivals", "--on-busy", "--max-connections"]


def ineffective_options(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The options that the warnings name."""
    assert run([*words, "--dry-run", "--json", "-"]) == 0
    lines = capsys.readouterr().err.splitlines()
    return [line.split()[1] for line in lines if "has no effect" in line]


@pytest.mark.parametrize(
    ("command", "further"), [(LOAD, ["--max-pending"]), (SWEEP, [])], ids=["load", "sweep"]
)
def test_open_loop_options_have_no_effect_in_a_closed_loop(
    command: Sequence[str], further: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*OPEN_LOOP_OPTIONS.split(), *(word for flag in further for word in (flag, "5"))]
    words = [*command, "--connections", "8", *options]
    assert ineffective_options(words, capsys) == OPEN_LOOP_FLAGS + further


@pytest.mark.parametrize(
    "words",
    [
        [*LOAD, "--rate", "5"],
        [*LOAD, "--steps", "5@1s"],
    ],
)
def test_think_time_has_no_effect_in_an_open_loop(
    words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ineffective_options(
        [*words, *OPEN_LOOP_OPTIONS.split(), "--think-time", "1s"], capsys
    ) == ["--think-time"]


def test_connections_has_no_effect_with_max_connections(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*LOAD, "--rate", "5", "--connections", "8", "--max-connections", "9"]
    assert ineffective_options(words, capsys) == ["--connections"]


def test_tls_options_have_no_effect_without_tls(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--insecure", "--ca-file", __file__]
    assert ineffective_options([*LOAD, *options], capsys) == ["--insecure", "--ca-file"]
    assert ineffective_options(["load", "https://127.0.0.1:9/", *options], capsys) == []


def test_spin_has_no_effect_without_scheduled_sends(capsys: pytest.CaptureFixture[str]) -> None:
    closed = [*LOAD, "--connections", "8", "--spin", "60us"]
    assert ineffective_options(closed, capsys) == ["--spin"]
    assert ineffective_options([*closed, "--think-time", "1ms"], capsys) == []
    assert ineffective_options([*LOAD, "--rate", "5", "--spin", "60us"], capsys) == []


@pytest.mark.parametrize(
    ("words", "has_warning"),
    [
        (["http://127.0.0.1:9/", "--http2"], True),
        (["http://127.0.0.1:9/", "--unix-socket", "/nowhere"], True),
        (["https://127.0.0.1:9/"], True),
        (["http://127.0.0.1:9/"], False),
    ],
)
def test_kernel_timestamps_have_no_effect_where_they_are_unavailable(
    words: Sequence[str], has_warning: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["load", *words, "--rate", "5", "--receive-stamps"]
    assert ineffective_options([*command, "kernel"], capsys) == ["--receive-stamps"] * has_warning
    assert ineffective_options([*command, "user"], capsys) == []


def test_quiet_and_configuration_files_cause_no_warning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = [*LOAD, "--connections", "8"]
    assert ineffective_options([*closed, *OPEN_LOOP_OPTIONS.split(), "--quiet"], capsys) == []
    (tmp_path / "wsgiload.toml").write_text('[load]\narrivals = "constant"\n')
    monkeypatch.chdir(tmp_path)
    assert ineffective_options(closed, capsys) == []
