"""Names of stored benchmark results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.plan import SECTIONS
from bench.store import new_path, readable_name, write


def results(**more: Any) -> dict[str, Any]:
    host = {"cpu_model": "Some(R) Processor CPU @ 2.00GHz"}
    return {"date": "2026-11-22", "host": host, "quick": False, **more}


@pytest.mark.parametrize(
    ("sections", "more", "name"),
    [
        (["closed"], {}, "2026-11-22-some-closed-loop"),
        (["accuracy", "open"], {}, "2026-11-22-some-open-loop-accuracy"),
        (
            ["closed", "syscalls"],
            {"awake": True},
            "2026-11-22-some-closed-loop-system-calls-cores-awake",
        ),
        (SECTIONS, {"quick": True}, "2026-11-22-some-all-sections-quick"),
        (["sampler"], {"host": {"cpu_model": None}}, "2026-11-22-unknown-sampler"),
    ],
)
def test_names_contain_date_processor_and_sections(
    sections: list[str], more: dict[str, Any], name: str
) -> None:
    assert readable_name(results(**more), sections) == name


def test_results_never_overwrite_other_results(tmp_path: Path) -> None:
    names = []
    for number in range(4):
        path = new_path(tmp_path, readable_name(results(), ["closed"]))
        write(path, {"commit_time": None, "runs": [{"round": number}]}, f"page {number}\n")
        names.append(path.name.removeprefix("2026-11-22-some-closed-loop"))

    assert names == [".json", "-2.json", "-3.json", "-4.json"]
    assert [path.read_text() for path in sorted(tmp_path.glob("*.md"))] == [
        "page 1\n",
        "page 2\n",
        "page 3\n",
        "page 0\n",
    ]
