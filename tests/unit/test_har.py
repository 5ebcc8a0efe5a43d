"""Browser recordings (HAR files) imported as targets files."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from wsgiload.errors import UsageError
from wsgiload.loads.har import targets_of_har
from wsgiload.loads.request import targets_of

HOST = "http://shop.example"


def entry(
    url: str,
    method: str = "GET",
    status: int = 200,
    headers: dict[str, str] | None = None,
    post_data: dict[str, object] | None = None,
) -> dict[str, object]:
    fields = [{"name": name, "value": value} for name, value in (headers or {}).items()]
    request = {"method": method, "url": url, "headers": fields, "postData": post_data}
    return {"request": request, "response": {"status": status}, "time": 5}


def har(*entries: dict[str, object]) -> bytes:
    return json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()


def test_equal_requests_become_one_target_with_a_weight_and_a_status() -> None:
    imported = targets_of_har(
        har(
            entry(f"{HOST}/a?b=1", headers={"Accept": "*/*", "Host": "shop.example"}),
            entry(f"{HOST}/login", status=302),
            entry(f"{HOST}/a?b=1", status=304, headers={"Accept": "*/*", "If-None-Match": "x"}),
            entry(HOST, status=500, headers={":method": "GET"}),
        )
    )

    assert imported.text == (
        "GET /a?b=1\nAccept: */*\n--weight 2\n\nGET /login\n--expect-status 302\n\nGET /\n"
    )
    assert imported.notes == ()


def test_bodies_are_kept_byte_for_byte() -> None:
    binary = bytes(range(256))
    encoded: dict[str, object] = {"text": base64.b64encode(binary).decode(), "encoding": "base64"}
    imported = targets_of_har(
        har(
            entry(f"{HOST}/text", "POST", 201, {"A": "1"}, {"text": "a=1\nb=ü"}),
            entry(f"{HOST}/binary", "PUT", post_data=encoded),
            entry(f"{HOST}/empty", "POST", post_data={"mimeType": "text/plain"}),
        )
    )
    lines = [json.loads(line) for line in imported.text.splitlines() if line.startswith("{")]

    assert [base64.b64decode(line["body"]) for line in lines] == ["a=1\nb=ü".encode(), binary]
    assert (lines[0]["method"], lines[0]["url"], lines[0]["header"]) == (
        "POST",
        "/text",
        {"A": ["1"]},
    )
    assert "POST /empty\n" in imported.text


def test_a_load_can_read_the_imported_targets(tmp_path: Path) -> None:
    path = tmp_path / "shop.targets"
    imported = targets_of_har(
        har(
            entry(f"{HOST}/a", headers={"Accept": "*/*"}),
            entry(f"{HOST}/b", "POST", 303, {"Content-Type": "text/plain"}, {"text": "x"}),
            entry(f"{HOST}/a", headers={"Accept": "*/*"}),
        )
    )
    path.write_text(imported.text, encoding="utf-8")
    first, second = targets_of(path)

    assert (first.request.url, first.weight, first.request.check) == ("/a", 2.0, None)
    assert first.request.headers == (("Accept", "*/*"),)
    assert second.request.check is not None
    assert second.request.check.statuses == (303,)
    assert (second.request.method, second.request.body_base64) == ("POST", "eA==")


def test_other_hosts_and_secrets_are_reported() -> None:
    imported = targets_of_har(
        har(
            entry("data:image/png;base64,AA=="),
            entry(f"{HOST}/a", headers={"Cookie": "s=1", "authorization": "Bearer x"}),
            entry("https://cdn.example/lib.js"),
        )
    )

    assert imported.text == "GET /a\nCookie: s=1\nauthorization: Bearer x\n"
    assert imported.notes == (
        "skipped 2 of 3 entries: data: URL (1), to hosts other than shop.example (1)",
        "the targets contain secrets from the recording (authorization, cookie)",
    )


def test_form_fields_become_a_body() -> None:
    fields = [{"name": "a b", "value": "1&2"}, {"name": 'q"', "value": "ü"}]
    multipart = "multipart/form-data; boundary=xyz"
    imported = targets_of_har(
        har(
            entry(f"{HOST}/form", "POST", post_data={"params": fields}),
            entry(f"{HOST}/parts", "POST", post_data={"mimeType": multipart, "params": fields[1:]}),
        )
    )

    form, parts = map(json.loads, imported.text.split())
    assert base64.b64decode(form["body"]) == b"a+b=1%262&q%22=%C3%BC"
    assert base64.b64decode(parts["body"]).decode() == (
        '--xyz\r\nContent-Disposition: form-data; name="q%22"\r\n\r\nü\r\n--xyz--\r\n'
    )


def test_each_kind_of_entry_without_a_target_is_named() -> None:
    stream = entry(f"{HOST}/events", headers={"Accept": "text/event-stream"})
    upload = {
        "mimeType": "multipart/form-data; boundary=x",
        "params": [{"name": "photo", "fileName": "cat.png"}],
    }
    imported = targets_of_har(
        har(
            entry(HOST),
            entry("wss://shop.example/live", status=101),
            entry(f"{HOST}/live", status=101),
            entry("blob:http://shop.example/1"),
            entry("chrome-extension://abc/a.js"),
            stream,
            entry(f"{HOST}/photo", "POST", post_data=upload),
            {"time": 5},
        )
    )

    assert imported.text == "GET /\n"
    assert imported.notes == (
        "skipped 7 of 8 entries: WebSocket (2), blob: URL (1), event stream, which does not end"
        " (1), of a browser extension (1), with an uploaded file, which was not saved (1),"
        " without a request (1)",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GET /", "not a HAR file: JSON is malformed"),
        (b'{"log": {}}', "missing required field `entries`"),
        (har(entry("data:,")), "no HTTP request"),
        (har(entry("http://[", "GET")), "not a URL"),
        (
            har(entry(HOST, "POST", post_data={"text": "!", "encoding": "base64"})),
            "is not base64",
        ),
        (har(entry(HOST, headers={"A": "1\nB: 2"})), "characters that HTTP forbids"),
    ],
)
def test_an_invalid_recording_is_rejected(content: bytes, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        targets_of_har(content)
    assert message in str(raised.value)
