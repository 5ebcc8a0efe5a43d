"""Check results: storage for ``servers show``, tables and Markdown."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from wsgiload.catalogue.names import ServerVariant, load_catalogue
from wsgiload.report import print_checks
from wsgiload.report.catalogue import markdown_catalogue
from wsgiload.serving.check import CheckResult
from wsgiload.serving.check_store import read_checks, store_checks
from wsgiload.serving.concurrency import Concurrency

CATALOGUE = load_catalogue()


def variant(name: str) -> ServerVariant:
    return CATALOGUE.select([name])[0]


def passing_result(name: str) -> CheckResult:
    """A result in which every check passed."""
    result = CheckResult(name, "tuned", version="1.2.3", python="3.11.7")
    result.right_body = result.keepalive_as_claimed = result.framing_as_claimed = result.echo = True
    result.errors_passed = result.backlog_as_asked = result.within_budget = result.clean_stop = True
    result.conforms = result.quiet = result.keepalive = True
    result.large_head = result.forwarded = True
    result.framing, result.backlog, result.processes, result.workers_met = "chunked", 1024, 3, 2
    result.capacity = Concurrency(150, 1024, 4, 150, 150)
    return result


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "cache"))


def test_every_check_must_pass() -> None:
    assert passing_result("waitress").passed
    for name in (
        "right_body",
        "keepalive_as_claimed",
        "echo",
        "clean_stop",
        "within_budget",
        "backlog_as_asked",
    ):
        result = passing_result("waitress")
        setattr(result, name, None)
        assert not result.passed, name

    with_complaint = passing_result("waitress")
    with_complaint.complaints.append("it wrote 9 bytes")
    assert not with_complaint.passed


def test_a_result_is_stored_until_the_lock_file_changes(tmp_path: Path) -> None:
    assert read_checks(variant("waitress")) == []
    store_checks([variant("waitress")], [passing_result("waitress")])
    store_checks([variant("cheroot")], [passing_result("cheroot")])

    (result,) = read_checks(variant("waitress"))
    assert (result.server, result.version, result.passed) == ("waitress", "1.2.3", True)
    assert result == passing_result("waitress")

    original = variant("waitress")
    changed = replace(original, server=replace(original.server, source=tmp_path / "waitress.py"))
    assert read_checks(changed) == []


def test_the_table_lists_failures_and_complaints() -> None:
    failed = CheckResult("bjoern", "tuned", failure="it needs libev-dev")
    wrong = passing_result("waitress")
    wrong.echo = wrong.record(False, "of 1 MiB posted, 3 bytes came back")

    stream = io.StringIO()
    print_checks([failed, wrong], Console(file=stream, width=200))

    assert "bjoern: it needs libev-dev" in stream.getvalue()
    assert "waitress: of 1 MiB posted, 3 bytes came back" in stream.getvalue()


def test_a_narrow_terminal_gets_the_number_of_passed_checks() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=True, color_system=None)
    print_checks([passing_result("waitress")], console)

    assert "11 of 11" in stream.getvalue()
    assert max(len(line) for line in stream.getvalue().splitlines()) <= 100


def test_the_page_has_a_row_per_server_and_reasons_for_refused_servers() -> None:
    legacy = passing_result("meinheld")
    legacy.legacy = True
    text = markdown_catalogue(CATALOGUE, [passing_result("waitress"), legacy])

    assert "| waitress | 1.2.3 | 3.11.7 | chunked |" in text
    assert "| meinheld (legacy) | 1.2.3 | 3.11.7 | chunked |" in text
    assert "- `gunicorn-eventlet`: gunicorn 26 removed" in text
    assert "`meinheld`, `meinheld-gunicorn`: each header field is limited" in text
    assert "`bjoern-processes`, `cheroot`, " in text
    assert ": no setting for trusted proxies" in text

    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
