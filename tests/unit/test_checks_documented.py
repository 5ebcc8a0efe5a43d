"""docs/checks.md lists exactly the existing thresholds with their defaults."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from wsgiload.loads.thresholds import ORCHESTRATOR_THRESHOLDS

ROOT = Path(__file__).parents[2]
LOADGEN = ROOT / "target" / "release" / "loadgen"


@pytest.mark.skipif(not LOADGEN.exists(), reason="target/release/loadgen is not built")
def test_every_threshold_is_documented_with_its_default() -> None:
    command = [LOADGEN, "http://127.0.0.1:9/", "--dry-run"]
    plan = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    text = (ROOT / "docs" / "checks.md").read_text(encoding="utf-8")

    thresholds = {**plan["thresholds"], **ORCHESTRATOR_THRESHOLDS}
    defaults = {
        f"{check}.{key}": float(limit)
        for check, limits in thresholds.items()
        for key, limit in limits.items()
    }

    documented = {
        name: float(limit) for name, limit in re.findall(r"`([a-z-]+\.\w+)=([\d.e]+)`", text)
    }
    assert documented == defaults
