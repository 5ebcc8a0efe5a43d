"""An option that changes nothing is told, and refused by nobody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from wsgiload.cli import run

LOAD = ["load", "http://127.0.0.1:9/"]
SWEEP = ["sweep", "--servers", "waitress", "--limits", "none"]
OF_OPEN = [
    "--arrivals",
    "poisson",
    "--on-busy",
    "grow",
    "--max-connections",
    "9",
    "--max-pending",
    "5",
]
TOLD_OF_OPEN = ["--arrivals", "--on-busy", "--max-connections", "--max-pending"]


def remarked(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The options that a remark is about."""
    assert run([*words, "--dry-run"]) == 0
    lines = capsys.readouterr().err.splitlines()
    return [line.split()[1] for line in lines if "has no effect" in line]


@pytest.mark.parametrize("command", [LOAD, SWEEP])
def test_options_of_open_loops_are_told_in_a_closed_one(
    command: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert remarked([*command, "--connections", "8", *OF_OPEN], capsys) == TOLD_OF_OPEN


@pytest.mark.parametrize(
    "words",
    [
        [*LOAD, "--rate", "5"],
        [*LOAD, "--steps", "5@1s"],
        [*SWEEP, "--rates", "5"],
        SWEEP,
    ],
)
def test_think_time_is_told_in_an_open_loop(
    words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert remarked([*words, *OF_OPEN, "--think-time", "1s"], capsys) == ["--think-time"]


def test_of_two_caps_the_one_that_does_not_hold_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*LOAD, "--rate", "5", "--connections", "8", "--max-connections", "9"]
    assert remarked(words, capsys) == ["--connections"]


def test_what_is_for_tls_is_told_where_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--insecure", "--ca-file", __file__]
    assert remarked([*LOAD, *options], capsys) == ["--insecure", "--ca-file"]
    assert remarked(["load", "https://127.0.0.1:9/", *options], capsys) == []


def test_a_spin_is_told_where_no_send_has_an_instant(capsys: pytest.CaptureFixture[str]) -> None:
    closed = [*LOAD, "--connections", "8", "--spin", "60us"]
    assert remarked(closed, capsys) == ["--spin"]
    assert remarked([*closed, "--think-time", "1ms"], capsys) == []
    assert remarked([*LOAD, "--rate", "5", "--spin", "60us"], capsys) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["http://127.0.0.1:9/", "--http2"], True),
        (["http://127.0.0.1:9/", "--unix-socket", "/nowhere"], True),
        (["https://127.0.0.1:9/"], True),
        (["http://127.0.0.1:9/"], False),
    ],
)
def test_stamps_of_the_kernel_are_told_where_it_has_none(
    words: Sequence[str], told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["load", *words, "--rate", "5", "--receive-stamps"]
    assert remarked([*command, "kernel"], capsys) == ["--receive-stamps"] * told
    assert remarked([*command, "user"], capsys) == []


def test_nothing_is_told_quietly_or_of_a_configuration_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = [*LOAD, "--connections", "8"]
    assert remarked([*closed, *OF_OPEN, "--quiet"], capsys) == []
    (tmp_path / "wsgiload.toml").write_text('[load]\narrivals = "constant"\n')
    monkeypatch.chdir(tmp_path)
    assert remarked(closed, capsys) == []
