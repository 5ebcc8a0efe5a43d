"""Targets, sessions and body checks, from Python and both command lines, on a counting server."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import wsgiload
from wsgiload import LoadOptions, RequestOptions

from .command import Command
from .target import BODY, CountingServer
from .test_load import LOADGEN, expected_code, needs_loadgen, require_consistent_report

TARGETS = """\
GET /
--weight 3

POST /order
X-Kind: order
--body a=b
--name order

GET /missing
--expect-status 404
--weight 0.5
"""
SESSIONS = """\
[browse]
GET /
--think-time 1ms
GET /cart
"""


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    path = tmp_path / "shop.targets"
    path.write_text(TARGETS)
    return path


def require_equal_counts(report: Mapping[str, Any], target: CountingServer) -> None:
    """The report and the server have the same count of each kind of request."""
    require_consistent_report(report)
    seen = Counter(
        (method, path, headers.get("x-kind"), body)
        for method, path, headers, body in target.requests
    )

    kinds = [
        ("GET", "/", None, b""),
        ("POST", "/order", "order", b"a=b"),
        ("GET", "/missing", None, b""),
    ]
    assert [row["name"] for row in report["targets"]] == ["GET /", "order", "GET /missing"]
    assert [row["scheduled"] for row in report["targets"]] == [
        row["ok"] for row in report["targets"]
    ]
    assert {kind: row["ok"] for kind, row in zip(kinds, report["targets"], strict=True)} == dict(
        seen
    )
    assert report["targets"][0]["ok"] > report["targets"][1]["ok"] > report["targets"][2]["ok"] > 0


def test_targets_of_a_file_are_sent_according_to_their_weights(
    target: CountingServer, targets: Path
) -> None:
    require_equal_counts(load_targets(target, targets), target)


def test_the_targets_of_a_plan_replace_a_file(target: CountingServer, targets: Path) -> None:
    plan = load_targets(target, targets)["plan"]
    target.requests.clear()
    require_equal_counts(load_targets(target, plan["targets"]), target)

    misspelled = RequestOptions(targets=[{"request": {"url": "/"}, "wieght": 1}])
    with pytest.raises(wsgiload.UsageError, match="unknown field `wieght`"):
        wsgiload.load(target.url, rate=1, request=misspelled)


def load_targets(target: CountingServer, targets: Any) -> Mapping[str, Any]:
    """The report of a short load of these targets."""
    return wsgiload.load(
        target.url,
        rate=500,
        duration=0.5,
        options=LoadOptions(seed=3),
        request=RequestOptions(targets=targets),
    ).to_dict()


def test_the_command_prints_a_row_for_each_target(
    command: Command, target: CountingServer, targets: Path
) -> None:
    words = ("load", target.url, "-R", "500", "-d", "500ms", "--json", "out.json")
    result = command.run(*words, "--targets", str(targets))

    report = json.loads((command.folder / "out.json").read_text())
    assert result.code == expected_code(report)
    require_equal_counts(report, target)
    for row in report["targets"]:
        assert any(
            row["name"] in line and str(row["scheduled"]) in line
            for line in result.out.splitlines()
        )


@needs_loadgen
def test_the_generator_reads_the_same_files(
    target: CountingServer, targets: Path, tmp_path: Path
) -> None:
    words = [str(LOADGEN), target.url, "-R", "500", "-d", "500ms", "--seed", "3", "--quiet"]
    result = subprocess.run(
        [*words, "--targets", str(targets)], capture_output=True, text=True, check=False
    )

    report = json.loads(result.stdout)
    assert result.returncode == expected_code(report)
    require_equal_counts(report, target)

    sessions = tmp_path / "sessions"
    sessions.write_text(SESSIONS)
    result = subprocess.run(
        [*words, "--sessions", str(sessions)], capture_output=True, text=True, check=False
    )

    assert json.loads(result.stdout)["sessions"]["completed"] > 0


def test_sessions_are_counted_and_timed(command: Command, target: CountingServer) -> None:
    (command.folder / "sessions").write_text(SESSIONS)
    words = ("load", target.url, "-R", "100", "-d", "500ms", "--json", "out.json")
    result = command.run(*words, "--sessions", "sessions")

    report = json.loads((command.folder / "out.json").read_text())
    assert result.code == expected_code(report)
    require_consistent_report(report)

    sessions = report["sessions"]
    assert (
        sessions["started"]
        == sessions["completed"] + sessions["failed"] + sessions["unfinished"]
        > 20
    )
    assert (sessions["failed"], report["connections"]["opened"]) == (0, sessions["started"])
    assert [row["name"] for row in report["targets"]] == ["browse[1] GET /", "browse[2] GET /cart"]
    assert (
        sum(row["ok"] for row in report["targets"])
        == target.response_count
        == report["outcomes"]["ok"]
    )
    assert (
        f"sessions: started {sessions['started']}, completed {sessions['completed']}" in result.out
    )

    durations = sessions["duration_ns"]
    assert durations["count"] == sessions["completed"]
    assert durations["min"] > report["response_time_ns"]["min"], "two requests take longer than one"
    assert "duration of completed sessions, including think times: p50 " in result.out


@pytest.mark.parametrize(
    ("correct", "wrong"),
    [
        ({"expect_length": len(BODY)}, {"expect_length": len(BODY) + 1}),
        (
            {"expect_sha256": hashlib.sha256(BODY).hexdigest()},
            {"expect_sha256": hashlib.sha256(b"").hexdigest()},
        ),
        ({"expect_regex": r"^count\w+\n$"}, {"expect_regex": "^ed"}),
    ],
    ids=["length", "sha256", "regex"],
)
def test_bodies_are_checked_by_length_hash_or_pattern(
    target: CountingServer, correct: dict[str, Any], wrong: dict[str, Any]
) -> None:
    accepted, rejected = (
        wsgiload.load(
            target.url,
            rate=200,
            duration=0.2,
            options=LoadOptions(arrivals="constant"),
            request=RequestOptions(**expected),
        ).outcomes
        for expected in (correct, wrong)
    )

    assert accepted["ok"] == accepted["scheduled"] == 40
    assert (rejected["bad_body"], rejected["ok"]) == (40, 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--targets", "wrong"], "wrong:2: unknown option --wieght"),
        (["--targets", "absent"], "cannot read absent"),
        (
            ["--targets", "good", "--sessions", "good"],
            "--targets and --sessions are mutually exclusive",
        ),
        (["--targets", "good", "--body", "x"], "--targets and --body are mutually exclusive"),
        (["--targets", "good", "-X", "POST"], "omit the plan's"),
        (["--sessions", "sessions"], "sessions need an open loop"),
        (["--expect-regex", "("], "invalid regular expression"),
        (["--expect-sha256", "12"], "is not a SHA-256 hash"),
        (["--targets", "elsewhere"], "a load targets a single server"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_usage_error_is_one_line_with_its_cause(
    command: Command, words: list[str], message: str
) -> None:
    files = {
        "wrong": "GET /\n--wieght 3\n",
        "good": TARGETS,
        "sessions": SESSIONS,
        "elsewhere": "GET http://h/\n",
    }
    for name, text in files.items():
        (command.folder / name).write_text(text)

    result = command.run("load", "http://127.0.0.1:9/", "-d", "100ms", *words)
    assert result.code == 2
    (complaint,) = result.messages
    assert message in complaint
