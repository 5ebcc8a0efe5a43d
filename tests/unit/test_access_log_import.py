"""``wsgiload import access-log``: the requests of a log as a targets file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wsgiload._loadgen import read_targets
from wsgiload.errors import UsageError
from wsgiload.loads.access_log import targets_of_access_log

LINE = '192.0.2.7 - - [25/Nov/2026:10:00:{second:02d} +0000] "{request} HTTP/1.1" {status} 512\n'


def log(tmp_path: Path, *requests: tuple[str, int]) -> Path:
    file = tmp_path / "access.log"
    file.write_text(
        "".join(
            LINE.format(second=second, request=request, status=status)
            for second, (request, status) in enumerate(requests)
        )
    )
    return file


def test_each_request_is_imported_once_with_its_count_and_statuses(tmp_path: Path) -> None:
    file = log(
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
    found = [
        (one["request"]["url"], one["weight"], (one["request"].get("check") or {}).get("statuses"))
        for one in plan
    ]
    assert found == [("/items?page={{{{2}}", 2.0, None), ("/gone", 2.0, [404, 410])]
    assert imported.notes == (), "a targets file has no arrival times"


def test_a_request_that_lacks_its_body_has_a_note(tmp_path: Path) -> None:
    imported = targets_of_access_log(log(tmp_path, ("POST /cart", 201), ("GET /", 200)))
    [note] = imported.notes
    assert note.startswith("1 of 2 requests (POST, PUT or PATCH)")
    assert imported.text == "POST /cart\n--expect-status 201\n\nGET /\n"


def test_a_trace_is_refused_with_the_command_that_replays_it(tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_text("0\n0.5\n")
    with pytest.raises(UsageError) as refused:
        targets_of_access_log(file)
    assert str(refused.value) == (
        f"{file} contains arrival times without requests; "
        f"replay them with: wsgiload load URL --replay {file}"
    )
