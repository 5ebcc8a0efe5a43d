"""User-defined check thresholds go to the generator's plan or to the orchestrator's checks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import wsgiload
from wsgiload import LoadOptions
from wsgiload.cli import run
from wsgiload.errors import UsageError
from wsgiload.loads.thresholds import (
    ORCHESTRATOR_THRESHOLDS,
    of_generator,
    of_orchestrator,
    parse_check_threshold,
)


def test_thresholds_are_split_between_generator_and_orchestrator() -> None:
    texts = (
        "send-lag.warn=0.02",
        "app-calls.warn=0.5",
        "send-lag.invalid=0.5",
        "kernel-drops.warn=9",
    )
    thresholds = dict(parse_check_threshold(text) for text in texts)
    assert of_generator(thresholds) == {"send-lag": {"warn": 0.02, "invalid": 0.5}}
    assert of_orchestrator(thresholds) == {
        "app-calls": {"warn": 0.5, "invalid": 0.0001},
        "kernel-drops": {"warn": 9.0},
    }
    assert of_orchestrator({}) == ORCHESTRATOR_THRESHOLDS
    assert ORCHESTRATOR_THRESHOLDS["app-calls"]["warn"] == 0.0, "the defaults are unchanged"


def test_thresholds_from_the_command_line_are_in_the_plan_of_a_load(
    capsys: pytest.CaptureFixture[str],
) -> None:
    thresholds = "--check-threshold send-lag.warn=0.02 --check-threshold client-cpu.invalid=0.9"
    assert run(["load", "http://127.0.0.1:9/", *thresholds.split(), "--dry-run"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["thresholds"] == {"send-lag": {"warn": 0.02}, "client-cpu": {"invalid": 0.9}}


@pytest.mark.parametrize("by", ["key", "variable"])
def test_thresholds_from_the_settings_are_in_the_plan_of_a_sweep(
    by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    limits = ["send-lag.warn=0.02", "client-cpu.invalid=0.9"]
    if by == "key":
        Path("wsgiload.toml").write_text(f"check_threshold = {json.dumps(limits)}\n")
    else:
        monkeypatch.setenv("WSGILOAD_CHECK_THRESHOLD", "\n".join(limits))
    assert run(["sweep", "--servers", "wsgiref", "--dry-run", "--json", "-"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["load"]["check_thresholds"] == {"send-lag.warn": 0.02, "client-cpu.invalid": 0.9}


def test_a_sweep_rejects_unknown_thresholds_before_it_starts() -> None:
    with pytest.raises(UsageError, match="the check C99 has no thresholds"):
        wsgiload.sweep(servers=["wsgiref"], load=LoadOptions(check_thresholds={"C99.warn": 1}))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"send-lag": 1}, "'send-lag' is not a threshold; write it like send-lag.warn"),
        (
            {"send-lag.warn": float("nan")},
            "the threshold send-lag.warn must be 0 or more, not nan",
        ),
        ({"kernel-drops.invalid": 1}, "kernel-drops has no threshold 'invalid'; choose warn"),
        ({"kernel-drops.warn": 1}, "only `wsgiload sweep` runs the check kernel-drops"),
        ({"send-lag.wran": 1}, "send-lag has no threshold wran"),
    ],
)
def test_an_invalid_threshold_in_python_is_a_usage_error(
    limits: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        wsgiload.start("http://127.0.0.1:9/", rate=1, options=LoadOptions(check_thresholds=limits))
