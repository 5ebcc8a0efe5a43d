"""Placeholders in probe requests and in imported traffic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wsgiload.documents.load_plan import RequestPlan, WeightedRequest
from wsgiload.errors import UsageError
from wsgiload.loads.har import targets_of_har
from wsgiload.loads.request import Request, targets_of


def test_a_probe_sends_the_values_of_the_first_request() -> None:
    request = Request(
        path="/orders/{{seq:7}}?literal={{{{",
        method="POST",
        headers=(("X-Number", "{{seq:7}}"),),
        body=b'{"id": {{seq:7}}}',
    )
    first = request.first

    assert first.path == "/orders/7?literal={{"
    assert first.headers == (("X-Number", "7"),)
    assert first.body == b'{"id": 7}'


def test_placeholders_of_the_first_target_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("id,name\n3,ada b\n")
    file = tmp_path / "shop.targets"
    file.write_text("GET /u/{{csv:users.csv:id}}/{{csv:users.csv:name}}\n")
    first = Request(targets=targets_of(file)).first
    assert first.path == "/u/3/ada%20b", "the table is beside the file"


def test_a_binary_body_is_sent_unchanged() -> None:
    body = b"\xff{{seq:1}}"
    assert Request(method="POST", body=body).first.body == body


def test_an_unknown_placeholder_is_a_one_line_error() -> None:
    target = WeightedRequest(request=RequestPlan(url="/{{sequence}}"))
    with pytest.raises(UsageError, match=r"\{\{sequence\}\} is unknown; use") as caught:
        _ = Request(targets=(target,)).first
    assert "\n" not in str(caught.value)


def test_braces_in_recorded_traffic_are_not_placeholders(tmp_path: Path) -> None:
    request = {
        "method": "POST",
        "url": "http://h/?q={{7*7}}",
        "headers": [{"name": "X-Template", "value": "{{user}}"}],
        "postData": {"text": "Dear {{name}}"},
    }
    har = json.dumps({"log": {"entries": [{"request": request, "response": {"status": 200}}]}})
    file = tmp_path / "recorded.targets"
    file.write_text(targets_of_har(har.encode()).text)
    first = Request(targets=targets_of(file)).first

    assert first.path == "/?q={{7*7}}"
    assert first.headers == (("X-Template", "{{user}}"),)
    assert first.body == b"Dear {{name}}"
