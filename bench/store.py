"""Where results are kept: the raw ones as JSON, and their tables beside them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.generators import ROOT

RESULTS = ROOT / "bench" / "results"


def new_path(directory: Path, parts: Sequence[str], commit: str | None) -> Path:
    """Where results of these parts and this state of the code go: never where some are already."""
    stem = "-".join([*parts, *([commit.replace(" ", "-")] if commit else [])])
    stems = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    return next(path for path in (directory / f"{one}.json" for one in stems) if not path.exists())


def write(path: Path, results: Mapping[str, Any], page: str) -> None:
    """The results at ``path``, the page under the same name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = json.dumps({name: value for name, value in results.items() if name != "runs"}, indent=1)
    # One run a line: results can be compared and searched as text.
    runs = ",\n".join(json.dumps(run) for run in results["runs"])
    path.write_text(f'{facts[:-2]},\n "runs": [\n{runs}\n]}}\n')
    path.with_suffix(".md").write_text(page)
