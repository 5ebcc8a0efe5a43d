"""Ramps, steps and traces from the command line and from Python: plans and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

import wsgiload
from wsgiload import LoadOptions, Ramp, Replay, Steps, UsageError
from wsgiload.cli import run
from wsgiload.documents.load_plan import OpenLoop
from wsgiload.loads.schedule import measured_ns, parse_ramp, parse_steps
from wsgiload.units import NS_PER_S

URL = "http://127.0.0.1:9/"
POLICY = OpenLoop(arrivals="poisson", on_busy="grow", max_connections=None, max_pending=None)


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def dry_run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert run(["load", URL, *words, "--dry-run", "--json", "-"]) == 0, capsys.readouterr().err
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    return plan


def open_loop_of(plan: dict[str, Any]) -> OpenLoop:
    """The open loop of a plan, including its defaults."""
    return msgspec.convert(plan["load"]["open"], OpenLoop)


def trace(text: str, name: str = "trace.txt") -> str:
    Path(name).write_text(text)
    return name


# --- plans


@pytest.mark.parametrize(
    ("words", "key", "value", "measured_s"),
    [
        (["-R", "5"], "rate_per_s", 5, 10),
        (["--ramp", "10:30"], "ramp", {"from_per_s": 10, "to_per_s": 30, "over_ns": None}, 10),
        (
            ["--ramp", "10:30", "-d", "4s"],
            "ramp",
            {"from_per_s": 10, "to_per_s": 30, "over_ns": None},
            4,
        ),
        (
            ["--ramp", "0:2.5@3s"],
            "ramp",
            {"from_per_s": 0, "to_per_s": 2.5, "over_ns": 3 * NS_PER_S},
            3,
        ),
        (
            ["--steps", "10@2s,0@500ms"],
            "steps",
            [
                {"rate_per_s": 10, "duration_ns": 2 * NS_PER_S},
                {"rate_per_s": 0, "duration_ns": NS_PER_S // 2},
            ],
            2.5,
        ),
    ],
)
def test_a_schedule_is_one_key_of_the_plan_and_sets_its_duration(
    capsys: pytest.CaptureFixture[str], words: list[str], key: str, value: object, measured_s: float
) -> None:
    plan = dry_run(capsys, *words, "-c", "7", "--max-pending", "3")
    open_loop = {
        key: value,
        "arrivals": "poisson",
        "on_busy": "grow",
        "max_connections": 7,
        "max_pending": 3,
    }

    assert open_loop_of(plan) == msgspec.convert(open_loop, OpenLoop)
    assert plan["phases"]["measure_ns"] == measured_s * NS_PER_S


def test_a_trace_is_part_of_the_plan_and_replaces_arrivals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = trace("# two users\n0\n0.5\n1500ms\n")
    plan = dry_run(capsys, *f"--replay {file} --replay-speed 2 --warmup 250ms".split())

    replay = {"offsets_ns": [0, NS_PER_S // 2, 3 * NS_PER_S // 2], "speed": 2}
    policy = {"on_busy": "grow", "max_connections": None, "max_pending": None}
    assert open_loop_of(plan) == msgspec.convert({"replay": replay} | policy, OpenLoop)
    assert "arrivals" not in plan["load"]["open"]
    # Two gaps of 0.75 s on average: 2.25 s, or 1.125 s at twice the speed, including the warm-up.
    phases = {"warmup_ns": 250_000_000, "measure_ns": 875_000_000, "cooldown_ns": 0}
    assert plan["phases"] == phases | {"drain_ns": None}


@pytest.mark.parametrize(
    ("file", "words", "key", "measured_s"),
    [
        ('duration = "30s"\nrate = 5\n', ["--steps", "10@2s"], "steps", 2),
        ('duration = "30s"\n', ["--ramp", "1:2"], "ramp", 30),
        ('duration = "30s"\n', ["--ramp", "1:2@3s"], "ramp", 3),
        ('ramp = "1:2"\nduration = "30s"\n', ["-R", "5"], "rate_per_s", 30),
        ('steps = ["1@2s", "2@3s"]\n', [], "steps", 5),
        ('[load]\nsteps = "1@2s"\n', ["-d", "2s"], "steps", 2),
    ],
)
def test_the_source_with_the_highest_precedence_wins(
    capsys: pytest.CaptureFixture[str], file: str, words: list[str], key: str, measured_s: float
) -> None:
    Path("wsgiload.toml").write_text(file)
    plan = dry_run(capsys, *words)
    assert key in plan["load"]["open"]
    assert plan["phases"]["measure_ns"] == measured_s * NS_PER_S


def test_the_duration_of_a_schedule_is_the_default_duration() -> None:
    steps, at_once = Steps(((1.0, 5),)), Replay((7, 7))
    assert [measured_ns(None, profile, 0) for profile in (None, steps, at_once)] == [
        10 * NS_PER_S,
        5 * NS_PER_S,
        10 * NS_PER_S,
    ]
    assert measured_ns(3, steps, 0) == 3
    assert measured_ns(None, Replay((0, 10, 20)), 5 * NS_PER_S) == 25 * NS_PER_S


def test_offsets_from_python_are_in_seconds() -> None:
    replay = Replay([0, 0.25, 0.25, 1]).onto(POLICY).replay
    assert replay is not None
    assert replay.offsets_ns == (0, 250_000_000, 250_000_000, NS_PER_S)


def test_a_trace_from_a_file_keeps_every_nanosecond() -> None:
    """Offsets are seconds at the public boundary, and nanoseconds in the plan."""
    offsets_ns = (1, 86_399_999_999_999, 86_400_000_000_001)
    written = "\n".join(f"{offset_ns}ns" for offset_ns in offsets_ns)
    replay = Replay.from_file(trace(written)).onto(POLICY).replay
    assert replay is not None
    assert replay.offsets_ns == offsets_ns


# --- errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-R", "5", "--ramp", "1:2"], "--rate and --ramp are mutually exclusive"),
        (
            ["-R", "5", "--ramp", "1:2", "--steps", "1@1s"],
            "--rate and --ramp and --steps are mutually exclusive",
        ),
        (["--replay-speed", "2"], "--replay-speed requires --replay; add --replay FILE"),
        (
            ["-R", "5", "--replay-speed", "2"],
            "--replay-speed requires --replay; add --replay FILE",
        ),
        (
            ["--replay", "t", "--arrivals", "constant"],
            "--arrivals has no effect with --replay; omit it",
        ),
        (["--replay", "missing"], "cannot read missing: No such file or directory"),
        (["--ramp", "1000"], "'1000' is not a ramp; write it like 1000:3000 or 1000:3000@30s"),
        (["--ramp", "1:x"], "'1:x' is not a ramp"),
        (["--ramp", "1:nan"], "a rate must be 0 or more, not nan"),
        (["--ramp", "1:2@"], "'' is not a duration"),
        (["--steps", "10s:100"], "'10s:100' is not a step; write steps like 1000@10s,2000@10s"),
        (["--steps", "5@1s,"], "'' is not a step"),
        (
            ["--steps", "5@1s", "-d", "2s"],
            "the steps add up to 1s, but the measurement lasts 2s; omit --duration",
        ),
        (
            ["--ramp", "1:2@5s", "-d", "2s"],
            "the ramp (5s) is longer than the measurement (2s); increase --duration",
        ),
        (["--ramp", "0:0"], "the rate must be between 0 and 10,000,000 per second"),
    ],
)
def test_invalid_options_are_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert run(["load", URL, *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n1,5\n", "trace.txt: no line is from an access log or a trace"),
        (
            "0\n2\n1\n",
            'trace.txt: line 3: "1" is earlier than the offset above it; sort the lines by time',
        ),
        ("# nothing\n", "trace.txt: the trace is empty"),
    ],
)
def test_an_invalid_trace_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        Replay.from_file(trace(text))
    assert str(raised.value).startswith(message)


def test_a_warm_up_longer_than_the_trace_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["load", URL, "--replay", trace("0\n1\n"), "--warmup", "2s"]) == 2
    assert (
        "the warm-up covers the whole trace; nothing is left to measure" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"rate": 5, "schedule": Steps([(1, 1)])},
            "rate and schedule are mutually exclusive",
        ),
        (
            {"rate": 5, "options": LoadOptions(think_time=1)},
            "think_time applies only to a closed loop; omit it, or use connections",
        ),
        (
            {"schedule": Steps([(5, 1)]), "options": LoadOptions(think_time=1)},
            "think_time applies only to a closed loop",
        ),
        (
            {"rate": 5, "connections": 5, "options": LoadOptions(max_connections=9)},
            "connections and max_connections set the same cap in an open loop; give one",
        ),
        (
            {"connections": 5, "options": LoadOptions(max_pending=0)},
            "max_pending applies only to an open loop; omit it, or use rate or schedule",
        ),
        (
            {"options": LoadOptions(max_connections=5, max_pending=9)},
            "max_connections and max_pending apply only to an open loop; omit them",
        ),
        (
            {"schedule": Ramp(1, 2, over=20), "duration": 10},
            "plan: the ramp (20s) is longer than the measurement (10s); increase --duration",
        ),
        (
            {"schedule": Replay([11, 12]), "duration": 10},
            "plan: no arrival of the trace is within the measurement",
        ),
    ],
)
def test_python_refuses_invalid_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        wsgiload.start(URL, **arguments)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Replay([1, 0.5]), "a trace needs at least one offset, in seconds and in"),
        (lambda: Replay([]), "a trace needs at least one offset, in seconds and in"),
        (lambda: Replay([-1]), "a trace needs at least one offset, in seconds and in"),
        (lambda: Replay([0, float("inf")]), "a trace needs at least one offset"),
        (lambda: Replay([float("nan")]), "a trace needs at least one offset"),
        (
            lambda: Replay([0, 1], speed=float("inf")),
            "the replay speed must be positive, not inf",
        ),
        (lambda: Replay([0, 1], speed=0), "the replay speed must be positive, not 0"),
        (lambda: Steps([(-1, 1)]), "a rate must be 0 or more, not -1"),
        (lambda: Steps([]), "[] are not steps; write pairs of a rate and a number of seconds"),
        (lambda: Steps([cast(Any, (1,))]), "[(1,)] are not steps"),
        (lambda: Ramp(1, float("nan")), "a rate must be 0 or more, not nan"),
    ],
)
def test_an_invalid_schedule_is_refused_at_once(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        make()
    assert str(raised.value).startswith(message)


def test_ramps_and_steps_are_parsed() -> None:
    assert parse_ramp("1000:3000@1m") == Ramp(1000, 3000, 60.0)
    assert parse_steps("5@1s,2.5@200ms") == Steps(((5, 1.0), (2.5, 0.2)))
