"""docs/metrics.md explains every key that the schemas and the CSV files have, and no key that they
do not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wsgiload.documents.schema import load_schema
from wsgiload.sampling.processes import CLIENT_COLUMNS, PROCESS_COLUMNS

METRICS = Path(__file__).parents[2] / "docs" / "metrics.md"
INTERVAL_COLUMNS = "cell start_ns length_ns scheduled sent ok failed p50_ns p99_ns max_ns"
RESOURCE_COLUMNS = (
    "cell t_ns cpu_usage_ns cpu_user_ns cpu_system_ns nr_periods nr_throttled throttled_ns "
    "memory_bytes "
    "memory_anon_bytes memory_file_bytes oom_kill pids psi_cpu_some_ns psi_cpu_full_ns "
    "psi_memory_some_ns "
    "listen_queue listen_drops steal_ns psi_memory_full_ns psi_io_some_ns psi_io_full_ns "
    "memory_high "
    "run_queue_wait_ns host_busy_ns late_ns width_ns"
)


def section(title: str) -> str:
    parts = re.split(r"^##+ (.+)$", METRICS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    return found[title]


def documented(title: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", section(title), flags=re.MULTILINE)


def schema_objects() -> dict[str, list[str]]:
    objects = {}
    for name in ("load-1", "summary-1"):
        schema = load_schema(name)
        objects[name.partition("-")[0]] = list(schema["properties"])
        for part, definition in schema["$defs"].items():
            objects[part] = list(definition.get("properties", ()))
    return objects


@pytest.mark.parametrize("name", sorted(schema_objects()))
def test_every_key_is_documented_in_order(name: str) -> None:
    assert documented(name) == schema_objects()[name]


def test_every_documented_key_has_a_meaning() -> None:
    for line in METRICS.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            assert len(line.split("|")[2].strip()) > 3, line


def test_the_columns_of_the_csv_files_are_documented() -> None:
    assert documented("resources.csv") == RESOURCE_COLUMNS.split()
    assert documented("processes.csv") == list(PROCESS_COLUMNS)
    assert documented("client.csv") == list(CLIENT_COLUMNS)
    assert re.findall(r"`([a-z0-9_]+)`", section("intervals.csv"))[1:] == INTERVAL_COLUMNS.split()
