"""Where results are kept: the raw ones as JSON, and their tables beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.generators import ROOT

RESULTS = ROOT / "bench" / "results"


def write(path: Path, results: Mapping[str, Any], page: str) -> None:
    """The results at ``path``, the page under the same name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = json.dumps({name: value for name, value in results.items() if name != "runs"}, indent=1)
    # One run a line: results can be compared and searched as text.
    runs = ",\n".join(json.dumps(run) for run in results["runs"])
    path.write_text(f'{facts[:-2]},\n "runs": [\n{runs}\n]}}\n')
    path.with_suffix(".md").write_text(page)
