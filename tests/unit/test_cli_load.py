"""``wsgiload load`` with canned reports: exit codes, output files and repeated loads."""

from __future__ import annotations

import base64
import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Self

import msgspec
import pytest
from msgspec.structs import replace

from wsgiload import LoadReport, Reason, Report, Verdict
from wsgiload.attribution.host_disturbance import HostSeconds
from wsgiload.cli import _load, _load_parts, run
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.documents.load_report import Outcomes

from .load_report_fixture import healthy_report

URL = "http://127.0.0.1:9/"
MET, NOT_MET = "goodput>=1", "goodput>=1000000000"


class CannedHandle:
    """A fake load with a canned report that can simulate Ctrl-C."""

    report: LoadReport
    is_interrupted = False
    finishes_in_time = True
    stop_timeout_s = 1.0

    def __init__(self, plan: LoadPlan, progress: object = None) -> None:
        self.stopped = False

    def wait(self, timeout: float | None = None) -> bool:
        if self.is_interrupted and not self.stopped:
            # A terminal and a supervisor may send both at once.
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
        return self.finishes_in_time

    def stop(self) -> None:
        self.stopped = True

    def result(self) -> Report:
        return Report(self.report)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> type[CannedHandle]:
    class Handle(CannedHandle):
        report = healthy_report()

    monkeypatch.setattr(_load, "Handle", Handle)
    monkeypatch.setattr(_load, "require_listener", lambda plan: None)
    return Handle


def make_invalid(canned: type[CannedHandle]) -> None:
    reason = Reason(check="send-lag", level="invalid", message="late", value=1.0, limit=0.5)
    verdict = Verdict(status="invalid", blame="client", reasons=(reason,))
    canned.report = replace(canned.report, verdict=verdict)


@pytest.mark.parametrize(
    ("invalid", "threshold", "interrupted", "code"),
    [
        (False, MET, False, 0),
        (False, NOT_MET, False, 99),
        (True, MET, False, 98),
        (True, NOT_MET, False, 98),
        (False, MET, True, 130),
        (True, NOT_MET, True, 130),
    ],
)
def test_the_exit_code_is_the_first_of_130_98_99_that_applies(
    canned: type[CannedHandle],
    capsys: pytest.CaptureFixture[str],
    invalid: bool,
    threshold: str,
    interrupted: bool,
    code: int,
) -> None:
    if invalid:
        make_invalid(canned)
    canned.is_interrupted = interrupted

    assert run(["load", URL, "-R", "5", "--threshold", threshold, "--json", "-"]) == code

    output = capsys.readouterr()
    assert json.loads(output.out) == report_as_json(canned)
    assert ("threshold goodput>=1000000000 failed" in output.err) == (threshold == NOT_MET)


def refuse_all_requests(canned: type[CannedHandle]) -> None:
    scheduled = canned.report.outcomes.scheduled
    canned.report = replace(
        canned.report, outcomes=outcomes(scheduled=scheduled, refused=scheduled)
    )


def outcomes(**counts: int) -> Outcomes:
    return Outcomes(**dict.fromkeys(Outcomes.__struct_fields__, 0) | counts)


def report_as_json(canned: type[CannedHandle]) -> Any:
    return json.loads(msgspec.json.encode(canned.report))


@pytest.mark.parametrize("invalid", [False, True])
def test_no_correct_response_takes_precedence_with_exit_code_97(
    canned: type[CannedHandle], invalid: bool
) -> None:
    refuse_all_requests(canned)
    if invalid:
        make_invalid(canned)
    assert run(["load", URL, "-R", "5", "--quiet", "--threshold", NOT_MET]) == 97


def test_a_load_without_scheduled_requests_does_not_blame_the_server(
    canned: type[CannedHandle],
) -> None:
    canned.report = replace(canned.report, outcomes=outcomes())
    assert run(["load", URL, "-R", "5", "--quiet"]) == 0


def test_an_unwritable_destination_is_rejected_before_the_load(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(_load, "Handle", None)
    assert run(["load", URL, "-R", "5", "--json", str(tmp_path / "gone" / "out.json")]) == 2
    assert (
        capsys.readouterr().err
        == f"wsgiload: directory {tmp_path / 'gone'} does not exist; create it, or choose another\n"
    )


@pytest.mark.parametrize("name", ["http://127.0.0.1:9/", "localhost:8000", "[::1]:80/app.json"])
def test_a_url_is_not_accepted_as_a_file_name(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["load", "-R", "5", "--json", name, URL]) == 2
    assert f" would write a file named {name!r}; " in capsys.readouterr().err


def test_a_directory_is_rejected_as_a_destination(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for path in (str(tmp_path), f"{tmp_path}/new/"):
        assert run(["load", URL, "-R", "5", "--json", path]) == 2
        assert "it is a directory; name a file" in capsys.readouterr().err


def test_a_file_name_may_contain_a_time_of_day(
    canned: type[CannedHandle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run-12:30.json"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs" / "at-16:11").mkdir(parents=True)

    for name in ("logs/at-16:11/out.json", "./run-16:11"):
        assert run(["load", URL, "-R", "5", "--quiet", "--json", name]) == 0
        assert (tmp_path / name).is_file()

    assert run(["load", URL, "-R", "5", "--quiet", "--json", str(file)]) == 0
    assert json.loads(file.read_text()) == report_as_json(canned)


def test_a_body_keeps_its_original_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["load", URL, "-R", "5", "--dry-run", "--quiet"]
    arguments += ["--body", os.fsdecode(b"\xff\xc3\xa9")]
    assert run([*arguments, "--store-secrets"]) == 0
    assert base64.b64decode(json.loads(capsys.readouterr().out)["body_base64"]) == b"\xff\xc3\xa9"


def test_a_url_that_is_not_utf8_is_rejected_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["load", URL + os.fsdecode(b"\xff"), "-R", "5"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is not UTF-8; percent-encode its characters" in line


def test_a_warning_is_not_a_failure(canned: type[CannedHandle]) -> None:
    warning = Verdict(status="warn", blame="host", reasons=())
    canned.report = replace(canned.report, verdict=warning)
    assert run(["load", URL, "-R", "5", "--quiet"]) == 0


def test_with_json_in_a_file_stdout_has_the_table(
    canned: type[CannedHandle], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["load", URL, "-R", "5", "--quiet", "--json", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text()) == report_as_json(canned)
    output = capsys.readouterr()
    assert "response time" in output.out
    assert output.err == "", "--quiet hides progress"


def test_an_interrupted_load_without_results_has_no_report(
    canned: type[CannedHandle], capsys: pytest.CaptureFixture[str]
) -> None:
    canned.is_interrupted, canned.finishes_in_time = True, False
    assert run(["load", URL, "-R", "5", "--quiet"]) == 130
    assert capsys.readouterr().err == "wsgiload: interrupted before the measurement; no report\n"


def test_a_disturbed_load_is_repeated_and_its_maximum_duration_announced(
    canned: type[CannedHandle],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disturbed_s = iter([4.0, 0.0])
    monkeypatch.setattr(_load, "host_seconds", lambda *_: HostSeconds(next(disturbed_s), {}))
    monkeypatch.setattr(_load_parts, "settle", lambda *_: None)

    arguments = ["load", URL, "-R", "5", "-d", "10s", "--warmup", "0s", "--reruns", "2"]
    assert run([*arguments, "--json", "-"]) == 0

    output = capsys.readouterr()
    announcement = "if the host disturbs the load: up to 3 attempts, 84 s in total"
    assert output.err.splitlines()[0] == announcement
    assert "disturbed 4 of 10 s; repeating the load (attempt 2 of at most 3)" in output.err

    attempts = json.loads(output.out)["attempts"]
    assert [(attempt["reported"], attempt["disturbed_s"]) for attempt in attempts] == [
        (False, 4),
        (True, 0),
    ]

    assert run([*arguments, "--dry-run"]) == 0
    assert capsys.readouterr().err == f"{announcement}\n"


def test_a_load_without_reruns_is_not_repeated(
    canned: type[CannedHandle], capsys: pytest.CaptureFixture[str]
) -> None:
    make_invalid(canned)
    assert run(["load", URL, "-R", "5", "--json", "-"]) == 98
    output = capsys.readouterr()
    assert "attempts" not in json.loads(output.out)
    assert "attempt" not in output.err


def test_the_processes_of_a_load_are_not_taken_for_those_of_others() -> None:
    observation: Any = SimpleNamespace(samples=(), sampler=SimpleNamespace(client=()))
    known = []
    for processes in (1, 2):
        plan = replace(healthy_report().plan, processes=processes)
        counters = _load._host_counters(plan, observation, None)
        assert counters is not None
        known.append(counters.busy is not None)
    assert known == [True, False]
