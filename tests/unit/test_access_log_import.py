"""``wsgiload import access-log``: requests of an access log as a targets file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wsgiload._loadgen import read_targets
from wsgiload.errors import UsageError
from wsgiload.loads.recording import targets_of_access_log

LINE = '192.0.2.7 - - [25/Nov/2026:10:00:{second:02d} +0000] "{request} HTTP/1.1" {status} 512\n'


def write_log(tmp_path: Path, *requests: tuple[str, int]) -> Path:
    path = tmp_path / "access.log"
    path.write_text(
        "".join(
            LINE.format(second=second, request=request, status=status)
            for second, (request, status) in enumerate(requests)
        )
    )
    return path


def test_each_request_is_imported_once_with_its_count_and_statuses(tmp_path: Path) -> None:
    file = write_log(
        tmp_path,
        ("GET /items?page={{2}}", 200),
        ("GET /gone", 404),
        ("GET /items?page={{2}}", 200),
        ("GET /gone", 410),
    )

    imported = targets_of_access_log(file)

    targets = tmp_path / "shop.targets"
    targets.write_text(imported.text)
    plan = json.loads(read_targets(targets))
    entries = [
        (
            target["request"]["url"],
            target["weight"],
            (target["request"].get("check") or {}).get("statuses"),
        )
        for target in plan
    ]
    assert entries == [("/items?page={{{{2}}", 2.0, None), ("/gone", 2.0, [404, 410])]
    assert imported.notes == (), "targets files have no arrival times"


def test_a_request_with_a_missing_body_gets_a_note(tmp_path: Path) -> None:
    imported = targets_of_access_log(write_log(tmp_path, ("POST /cart", 201), ("GET /", 200)))

    [note] = imported.notes
    assert note.startswith("1 of 2 requests (POST, PUT or PATCH)")
    assert imported.text == "POST /cart\n--expect-status 201\n\nGET /\n"


def test_a_trace_is_rejected_with_the_replay_command(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_text("0\n0.5\n")

    with pytest.raises(UsageError) as error:
        targets_of_access_log(file)

    assert str(error.value) == (
        f"{file} contains arrival times without requests; "
        f"replay them with: wsgiload load URL --replay {file}"
    )
