"""Targets, sessions and body checks, through Python and both command lines, against a target that
counts."""

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


def require_mix(told: Mapping[str, Any], target: CountingServer) -> None:
    """Both ends counted the same, request by request."""
    require_consistent_report(told)
    seen = Counter(
        (method, path, headers.get("x-kind"), body)
        for method, path, headers, body in target.requests
    )
    kinds = [
        ("GET", "/", None, b""),
        ("POST", "/order", "order", b"a=b"),
        ("GET", "/missing", None, b""),
    ]
    assert [row["name"] for row in told["targets"]] == ["GET /", "order", "GET /missing"]
    assert [row["scheduled"] for row in told["targets"]] == [row["ok"] for row in told["targets"]]
    assert {kind: row["ok"] for kind, row in zip(kinds, told["targets"], strict=True)} == dict(seen)
    assert told["targets"][0]["ok"] > told["targets"][1]["ok"] > told["targets"][2]["ok"] > 0


def test_a_file_of_targets_is_sent_by_its_weights(target: CountingServer, targets: Path) -> None:
    require_mix(loaded(target, targets), target)


def test_what_a_plan_says_can_be_given_instead_of_a_file(
    target: CountingServer, targets: Path
) -> None:
    plan = loaded(target, targets)["plan"]
    target.requests.clear()
    require_mix(loaded(target, plan["targets"]), target)
    misspelled = RequestOptions(targets=[{"request": {"url": "/"}, "wieght": 1}])
    with pytest.raises(wsgiload.UsageError, match="unknown field `wieght`"):
        wsgiload.load(target.url, rate=1, request=misspelled)


def loaded(target: CountingServer, targets: Any) -> Mapping[str, Any]:
    """The report of a short load of these targets."""
    return wsgiload.load(
        target.url,
        rate=500,
        duration=0.5,
        options=LoadOptions(seed=3),
        request=RequestOptions(targets=targets),
    ).to_dict()


def test_the_command_prints_a_row_for_each_request(
    command: Command, target: CountingServer, targets: Path
) -> None:
    done = command.run(
        "load",
        target.url,
        "-R",
        "500",
        "-d",
        "500ms",
        "--targets",
        str(targets),
        "--json",
        "out.json",
    )
    told = json.loads((command.folder / "out.json").read_text())
    assert done.code == expected_code(told)
    require_mix(told, target)
    for row in told["targets"]:
        assert any(
            row["name"] in line and str(row["scheduled"]) in line for line in done.out.splitlines()
        )


@needs_loadgen
def test_the_generator_alone_reads_the_same_files(
    target: CountingServer, targets: Path, tmp_path: Path
) -> None:
    words = [str(LOADGEN), target.url, "-R", "500", "-d", "500ms", "--seed", "3", "--quiet"]
    done = subprocess.run(
        [*words, "--targets", str(targets)], capture_output=True, text=True, check=False
    )
    told = json.loads(done.stdout)
    assert done.returncode == expected_code(told)
    require_mix(told, target)
    sessions = tmp_path / "sessions"
    sessions.write_text(SESSIONS)
    done = subprocess.run(
        [*words, "--sessions", str(sessions)], capture_output=True, text=True, check=False
    )
    assert json.loads(done.stdout)["sessions"]["completed"] > 0


def test_a_session_is_counted_as_a_whole(command: Command, target: CountingServer) -> None:
    (command.folder / "sessions").write_text(SESSIONS)
    done = command.run(
        "load",
        target.url,
        "-R",
        "100",
        "-d",
        "500ms",
        "--sessions",
        "sessions",
        "--json",
        "out.json",
    )
    told = json.loads((command.folder / "out.json").read_text())
    assert done.code == expected_code(told)
    require_consistent_report(told)
    sessions = told["sessions"]
    assert (
        sessions["started"]
        == sessions["completed"] + sessions["failed"] + sessions["unfinished"]
        > 20
    )
    assert (sessions["failed"], told["connections"]["opened"]) == (0, sessions["started"])
    assert [row["name"] for row in told["targets"]] == ["browse[1] GET /", "browse[2] GET /cart"]
    assert (
        sum(row["ok"] for row in told["targets"]) == target.response_count == told["outcomes"]["ok"]
    )
    assert f"sessions: started {sessions['started']}, completed {sessions['completed']}" in done.out
    durations = sessions["duration_ns"]
    assert durations["count"] == sessions["completed"]
    assert durations["min"] > told["response_time_ns"]["min"], "two requests take longer than one"
    assert "duration of completed sessions, including think times: p50 " in done.out


@pytest.mark.parametrize(
    ("right", "wrong"),
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
def test_a_body_can_be_checked_without_being_known(
    target: CountingServer, right: dict[str, Any], wrong: dict[str, Any]
) -> None:
    accepted, refused = (
        wsgiload.load(
            target.url,
            rate=200,
            duration=0.2,
            options=LoadOptions(arrivals="constant"),
            request=RequestOptions(**expected),
        ).outcomes
        for expected in (right, wrong)
    )
    assert accepted["ok"] == accepted["scheduled"] == 40
    assert (refused["bad_body"], refused["ok"]) == (40, 0)


@pytest.mark.parametrize(
    ("words", "says"),
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
def test_a_mistake_is_one_line_with_its_cause(
    command: Command, words: list[str], says: str
) -> None:
    files = {
        "wrong": "GET /\n--wieght 3\n",
        "good": TARGETS,
        "sessions": SESSIONS,
        "elsewhere": "GET http://h/\n",
    }
    for name, text in files.items():
        (command.folder / name).write_text(text)
    done = command.run("load", "http://127.0.0.1:9/", "-d", "100ms", *words)
    assert done.code == 2
    (complaint,) = done.messages
    assert says in complaint
