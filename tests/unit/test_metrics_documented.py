"""docs/metrics.md, docs/run-directory.md and the JSON Schemas match the types of the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wsgiload.documents.from_rust import plan_module
from wsgiload.documents.generate import DOCUMENTS, all_class_texts, metrics_page, schema_files
from wsgiload.results.store import INTERVAL_COLUMNS
from wsgiload.sampling.processes import CLIENT_COLUMNS, PROCESS_COLUMNS
from wsgiload.sampling.sampler import RESOURCE_COLUMNS, SERVICE_COLUMNS

ROOT = Path(__file__).parents[2]
METRICS = ROOT / "docs" / "metrics.md"
RUN_DIRECTORY = ROOT / "docs" / "run-directory.md"
SCHEMAS = ROOT / "python" / "wsgiload" / "documents" / "schema"


def section(title: str) -> str:
    parts = re.split(r"^##+ (.+)$", RUN_DIRECTORY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    return sections[title]


def documented(title: str) -> list[str]:
    return re.findall(r"^- `([^`]+)`:", section(title), flags=re.MULTILINE)


def test_the_page_is_current() -> None:
    assert METRICS.read_text(encoding="utf-8") == metrics_page(), "run `make schemas`"


@pytest.mark.parametrize("name", sorted(schema_files()))
def test_the_schemas_are_current(name: str) -> None:
    assert (SCHEMAS / name).read_text(encoding="utf-8") == schema_files()[name], (
        "run `make schemas`"
    )


def test_the_types_of_a_plan_are_those_of_the_generator() -> None:
    path = ROOT / "python" / "wsgiload" / "documents" / "load_plan.py"
    assert path.read_text(encoding="utf-8") == plan_module(), "run `make schemas`"


def test_there_is_a_schema_for_each_document_and_no_other() -> None:
    assert {path.stem for path in SCHEMAS.glob("*.json")} == set(DOCUMENTS)


@pytest.mark.parametrize("text", all_class_texts().values(), ids=lambda text: str(text.name))
def test_every_type_and_key_has_a_meaning(text: object) -> None:
    meanings = [text.meaning, *(field.meaning for field in text.fields.values())]  # type: ignore[attr-defined]
    assert all(len(meaning) > 3 and meaning.endswith(".") for meaning in meanings), meanings


def test_the_columns_of_the_csv_files_are_documented() -> None:
    assert documented("resources.csv") == list(RESOURCE_COLUMNS)
    assert documented("processes.csv") == list(PROCESS_COLUMNS)
    assert documented("client.csv") == list(CLIENT_COLUMNS)
    assert documented("services.csv") == list(SERVICE_COLUMNS)
    columns = re.findall(r"`([a-z0-9_]+)`", section("intervals.csv"))
    assert columns == list(INTERVAL_COLUMNS)
