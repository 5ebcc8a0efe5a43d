"""Storage of results: the raw results as JSON, and a page with their tables."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.generators import ROOT
from bench.host import processor_maker
from bench.plan import SECTIONS

RESULTS = ROOT / "bench" / "results"
_SECTION_NAMES = {
    "closed": "closed-loop",
    "syscalls": "system-calls",
    "memory": "memory",
    "open": "open-loop",
    "accuracy": "accuracy",
    "sampler": "sampler",
}


def readable_name(results: Mapping[str, Any], sections: Iterable[str]) -> str:
    """Date, processor and sections, as in ``2026-11-24-amd-closed-loop``; the commit is in the
    file."""
    chosen = set(sections)
    names = [name for section, name in _SECTION_NAMES.items() if section in chosen]
    parts = ["all-sections"] if chosen == set(SECTIONS) else names

    if results.get("awake"):
        parts = [*parts, "cores-awake"]
    if results["quick"]:
        parts = [*parts, "quick"]
    return "-".join([results["date"], processor_maker(results["host"]), *parts])


def new_path(directory: Path, name: str) -> Path:
    """A path for results of this name that does not exist yet."""
    names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    paths = (directory / f"{one}.json" for one in names)
    return next(path for path in paths if not path.exists())


def write(path: Path, results: Mapping[str, Any], page: str) -> None:
    """Write the results to ``path``, and the page next to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {name: value for name, value in results.items() if name != "runs"}
    # One run per line, so results can be compared and searched as text.
    runs = ",\n".join(json.dumps(run) for run in results["runs"])
    path.write_text(f'{json.dumps(facts, indent=1)[:-2]},\n "runs": [\n{runs}\n]}}\n')
    path.with_suffix(".md").write_text(page)
