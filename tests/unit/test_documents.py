"""Stored documents are decoded as typed structs, and encoded unchanged; other content
is rejected in one line."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

import wsgiload
from wsgiload._loadgen import LoadHandle
from wsgiload.documents.codec import decode, encode, read, to_plain
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request, sessions_of, targets_of
from wsgiload.loads.schedule import Ramp, Replay, Steps

FUZZED_RUN = Path(__file__).parents[1] / "fuzz" / "run"
LOAD = LoadSettings(duration_ns=200_000_000, keep_flights=10)


class OkHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), OkHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def plain(document: msgspec.Struct) -> Any:
    return json.loads(msgspec.json.encode(document))


TARGETS = [{"request": {"url": "/a"}, "weight": 3.0}, {"request": {"url": "/b"}}]
SESSIONS = [{"name": "s", "steps": [{"request": {"url": "/a"}, "think_time_ns": 1000}]}]


def test_a_report_without_diagnostics_keeps_the_key(url: str) -> None:
    handle = LoadHandle(encode(load_plan(url, Request(), LOAD, Level(connections=2), seed=1)))
    report = decode(LoadReport, handle.result_json(), "the report")

    without_diagnostics = msgspec.structs.replace(report, diagnostics=())

    assert json.loads(encode(without_diagnostics))["diagnostics"] == []


@pytest.mark.parametrize(
    ("request_", "load", "schedule"),
    [
        (Request(), LOAD, Level(rate_per_s=200.0)),
        (Request(), LOAD, Level(connections=2)),
        (Request(targets=targets_of(TARGETS)), LOAD, Ramp(50.0, 100.0)),
        (Request(sessions=sessions_of(SESSIONS)), LOAD, Steps([(100.0, 0.2)])),
        (Request(), LOAD, Replay([0, 0.05, 0.1])),
    ],
    ids=["open", "closed", "targets", "sessions", "replay"],
)
def test_a_real_report_is_encoded_unchanged(
    url: str, request_: Request, load: LoadSettings, schedule: Any
) -> None:
    plan = load_plan(url, request_, load, schedule, seed=1)
    assert msgspec.json.decode(encode(plan), type=LoadPlan) == plan

    handle = LoadHandle(encode(plan))
    encoded = handle.result_json()
    report = decode(LoadReport, encoded, "the report")
    assert report.outcomes.ok > 0
    assert json.loads(encode(report)) == json.loads(encoded) == to_plain(report)


def test_the_views_of_a_report_match_its_document(url: str) -> None:
    report = wsgiload.load(url, rate=200, duration=0.2)
    document = report.document
    assert document.response_time_ns is not None
    assert report.response_time is not None
    assert report.response_time.count == document.response_time_ns.count == report.outcomes["ok"]
    assert report.rate["offered_per_s"] == document.rate.offered_per_s
    assert report.verdict is document.verdict
    with pytest.raises(AttributeError):
        document.measured_ns = 0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "is not JSON"),
        ("[]", "is not a valid summary of a sweep"),
        ("{}", "is not a valid summary of a sweep"),
        ('{"schema_version": 1}', "is not a valid summary of a sweep"),
        ('{"schema_version": 1, "cells": []}', "is not a valid summary of a sweep"),
        ('{"schema_version": 2}', "has schema version 2, but this wsgiload reads only up to 1"),
    ],
)
def test_other_content_is_rejected_in_one_line_with_the_file_name(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "summary.json"
    path.write_text(text)
    with pytest.raises(wsgiload.UsageError, match=message) as raised:
        read(Summary, path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unknown_key_is_rejected(tmp_path: Path) -> None:
    run = plain(read(RunInfo, FUZZED_RUN / "run.json"))
    with pytest.raises(wsgiload.UsageError, match="unknown field `surprise`"):
        decode(RunInfo, json.dumps(run | {"surprise": 1}), "run.json")
