"""The JSON Schemas accept documents that follow the contract, and no others."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from wsgiload.documents.schema import NAMES, load_schema
from wsgiload.errors import UsageError

from .report_fixture import write_run


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "run")


def read_summary(run_dir: Path) -> Any:
    return json.loads((run_dir / "summary.json").read_text())


def errors(name: str, document: Any) -> list[str]:
    return [
        error.json_path for error in Draft202012Validator(load_schema(name)).iter_errors(document)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_each_schema_is_valid(name: str) -> None:
    Draft202012Validator.check_schema(load_schema(name))
    assert load_schema(name)["$id"] == f"urn:wsgiload:schema:{name}"


def test_an_unknown_schema_is_refused_by_name() -> None:
    with pytest.raises(
        UsageError, match="there is no schema 'load-9'; use one of load-1, summary-1"
    ):
        load_schema("load-9")


def test_a_summary_and_its_loads_are_accepted(run_dir: Path) -> None:
    assert errors("summary-1", read_summary(run_dir)) == []
    loads = sorted((run_dir / "load").iterdir())
    assert len(loads) == 23
    for path in loads:
        assert errors("load-1", json.loads(path.read_text())) == []


def test_a_closed_loop_summary_is_accepted(tmp_path: Path) -> None:
    assert errors("summary-1", read_summary(write_run(tmp_path / "run", closed_loop=True))) == []


def test_additional_keys_are_allowed_only_where_the_schema_says_so(run_dir: Path) -> None:
    summary = read_summary(run_dir)
    summary["experiment"]["keepalive"] = "on"
    summary["cells"][0]["limits"]["read_back"]["anything"] = 1
    assert errors("summary-1", summary) == []
    summary["cells"][0]["surprise"] = 1
    assert errors("summary-1", summary) == ["$.cells[0]"]


def test_missing_keys_and_wrong_outcomes_are_found(run_dir: Path) -> None:
    load = json.loads((run_dir / "load" / "waitress@1000#1.json").read_text())
    broken = copy.deepcopy(load)
    del broken["clock"]
    assert errors("load-1", broken) == ["$"]
    broken = copy.deepcopy(load)
    broken["outcomes"]["ok"] = 1.5
    broken["status_codes"]["abc"] = 1
    assert sorted(errors("load-1", broken)) == ["$.outcomes.ok", "$.status_codes"]


def test_shared_definitions_are_the_same_in_all_schemas() -> None:
    load, summary, capacity, *_ = (load_schema(name)["$defs"] for name in NAMES)
    shared = set(load) & set(summary)
    assert shared >= {
        *("Verdict", "Reason", "Rates", "Outcomes", "Distribution", "Bounds"),
        *("NotChecked", "Uncertainty", "QuantileUncertainty", "ResourceUse"),
    }
    assert all(load[name] == summary[name] for name in shared)

    assert {name for name in capacity if capacity[name] == summary.get(name)} >= {
        *("Verdict", "Reason", "CellFailure", "Recommendation"),
        *("RecommendedConfiguration", "NoRecommendation"),
    }
