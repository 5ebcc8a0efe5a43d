"""Stored documents are decoded as typed structs, encoded unchanged and migrated from version 1;
other content is rejected in one line."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

import wsgiload
from wsgiload._loadgen import LoadHandle
from wsgiload.documents.capacity import CapacityResult
from wsgiload.documents.codec import decode, encode, read, to_plain
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.renames import RENAMED_KEYS, RENAMED_VALUES
from wsgiload.documents.run_info import RunInfo
from wsgiload.documents.schema import load_schema
from wsgiload.documents.summary import Summary
from wsgiload.loads.mix import sessions_of, targets_of
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request
from wsgiload.loads.schedule import Ramp, Replay, Steps

VERSION_1 = Path(__file__).parent / "version_1"
OLD_NAMES = Path(__file__).parent / "version_2_old_names"
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
    ("kind", "name"),
    [(LoadReport, "load"), (Summary, "summary"), (CapacityResult, "capacity"), (RunInfo, "run")],
)
def test_version_1_is_migrated_to_valid_version_2(kind: type[Any], name: str) -> None:
    migrated = plain(read(kind, VERSION_1 / f"{name}.json"))
    assert migrated["schema_version"] == 2
    validator = Draft202012Validator(load_schema(f"{name}-2"))
    assert [error.json_path for error in validator.iter_errors(migrated)] == []
    assert plain(decode(kind, json.dumps(migrated), name)) == migrated


def test_checks_of_version_1_get_names_and_keep_their_codes() -> None:
    load = read(LoadReport, VERSION_1 / "load.json")
    lag = next(reason for reason in load.verdict.reasons if reason.code == "C4")
    assert lag.check == "send-lag"
    assert "send-lag" in load.plan.thresholds
    assert not any(name.startswith("C") for name in load.plan.thresholds)

    summary = read(Summary, VERSION_1 / "summary.json")
    assert summary.experiment.check_thresholds == {"send-lag.warn": 0.00001}
    run = read(RunInfo, VERSION_1 / "run.json")
    stored = json.loads(bytes(run.plan))
    assert stored["load"]["check_thresholds"] == [["send-lag.warn", 0.00001]]


def test_a_renamed_check_of_version_2_gets_its_current_name() -> None:
    summary = decode(Summary, (VERSION_1 / "summary.json").read_text(), "summary.json")
    [verdict, *_] = [cell.verdict for cell in summary.cells if cell.verdict is not None]
    [reason, *_] = verdict.reasons
    quoted = 'a message with "check":"settle"'
    stored = encode(
        msgspec.structs.replace(
            summary,
            cells=tuple(
                msgspec.structs.replace(
                    cell,
                    verdict=msgspec.structs.replace(
                        verdict,
                        reasons=(msgspec.structs.replace(reason, check="settle", message=quoted),),
                    ),
                )
                for cell in summary.cells
            ),
        ),
        indent=1,
    )

    assert '"check": "settle"' in stored
    for cell in decode(Summary, stored, "summary.json").cells:
        assert cell.verdict is not None
        [renamed] = cell.verdict.reasons
        assert (renamed.check, renamed.message) == ("host-not-idle", quoted)


def test_renamed_keys_of_version_1_keep_their_values() -> None:
    old = json.loads((VERSION_1 / "summary.json").read_text())
    summary = read(Summary, VERSION_1 / "summary.json")
    assert plain(summary)["cells"][0]["external_counts"] == old["cells"][0]["outside_counts"]
    assert summary.efficiency is not None
    points = [point.efficiency_per_s2 for point in summary.efficiency[0].points]
    assert points == [point["power_per_s2"] for point in old["power"][0]["points"]]
    assert summary.recommendations is not None
    assert summary.recommendations[0].no_recommendation is not None
    assert (
        summary.recommendations[0].no_recommendation.needs
        == old["recommendations"][0]["refused"]["settle"]
    )

    capacity = read(CapacityResult, VERSION_1 / "capacity.json")
    assert capacity.recommendations[1].recommended is not None
    assert capacity.recommendations[1].recommended.tied == ("waitress-t2",)
    load = read(LoadReport, VERSION_1 / "load.json")
    assert load.client is not None
    old_client = json.loads((VERSION_1 / "load.json").read_text())["client"]
    assert load.client.user_timestamps == old_client["own_instants"]
    assert load.client.stalls.responses == old_client["hiccups"]["answers"]


def names_in(value: Any) -> set[str]:
    """All keys and string values."""
    match value:
        case dict():
            return set(value).union(*map(names_in, value.values()))
        case list():
            return set().union(*map(names_in, value))
        case str():
            return {value}
    return set()


def values_of(value: Any) -> list[float]:
    """All numbers."""
    match value:
        case dict():
            return [number for item in value.values() for number in values_of(item)]
        case list():
            return [number for item in value for number in values_of(item)]
    return [] if value is None or isinstance(value, str) else [float(value)]


@pytest.mark.parametrize(
    ("kind", "name"), [(LoadReport, "load"), (Summary, "summary"), (CapacityResult, "capacity")]
)
def test_old_names_of_version_2_are_read(kind: type[Any], name: str) -> None:
    old = json.loads((OLD_NAMES / f"{name}.json").read_text())
    renamed = plain(read(kind, OLD_NAMES / f"{name}.json"))

    validator = Draft202012Validator(load_schema(f"{name}-2"))
    assert [error.json_path for error in validator.iter_errors(renamed)] == []
    assert not Counter(values_of(old)) - Counter(values_of(renamed))


def test_every_old_name_of_version_2_is_in_a_stored_document() -> None:
    stored = [json.loads(path.read_text()) for path in OLD_NAMES.iterdir()]
    tables = [*RENAMED_KEYS.values(), *RENAMED_VALUES.values()]
    assert {old for table in tables for old in table} <= names_in(stored)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "is not JSON"),
        ("[]", "is not a valid summary of a sweep"),
        ("{}", "is not a valid summary of a sweep"),
        ('{"schema_version": 1}', "is not a valid summary of a sweep"),
        ('{"schema_version": 2, "cells": []}', "is not a valid summary of a sweep"),
        ('{"schema_version": 3}', "has schema version 3, but this wsgiload reads only up to 2"),
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
    capacity = plain(read(CapacityResult, VERSION_1 / "capacity.json"))
    with pytest.raises(wsgiload.UsageError, match="unknown field `surprise`"):
        decode(CapacityResult, json.dumps(capacity | {"surprise": 1}), "capacity.json")
