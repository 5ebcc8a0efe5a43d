"""Every check and alarm has one record, which ``wsgiload explain`` and the documentation print."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.cli import run
from wsgiload.cli._explain import every_finding
from wsgiload.cli.reference import PAGES, page

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_of_the_documentation_are_current(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert text == page(text), "run `make schemas`"


def test_each_record_says_when_it_fires_and_what_to_do() -> None:
    for one in every_finding().values():
        assert one.examines and one.premise.endswith(".") and one.fix, one.name
        # A clause that the affected trials complete, or one that follows servers' names.
        ends = ("in", "during", "before", "")
        assert (one.sighting or "").rpartition(" ")[2] in ends, one.name
        assert not (one.consequence or "").endswith("."), one.name


def test_a_record_is_explained_with_its_thresholds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "send-lag"]) == 0
    lines = capsys.readouterr().out.splitlines()
    starts = ["send-lag", "", "Tests", "Fires when", "Consequence", "Fix"]
    assert [line.partition(":")[0] for line in lines[:6]] == starts
    assert "Threshold: --check-threshold send-lag.warn=0.05" in lines


def test_without_a_name_all_records_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain"]) == 0
    names = [line.split(" ")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == list(every_finding())
    # One of each: the generator, a sweep, an alarm, a capacity search, an audit.
    assert {"send-lag", "kernel-drops", "nagle-delay", "not-met", "missing-run"} <= set(names)


@pytest.mark.parametrize(("name", "fix"), [("sendlag", "did you mean send-lag"), ("#", "lists")])
def test_an_unknown_name_is_refused(
    name: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", name]) == 2
    assert fix in capsys.readouterr().err
