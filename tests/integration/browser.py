"""Runs the tests of ``frontend/browser`` on pages in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "target" / "page"


def assert_pages_pass(script: str, pages: Path) -> None:
    """Run this script of the front end's package; skip without a browser."""
    if shutil.which("chromium") is None and "CI" not in os.environ:
        pytest.skip("needs Debian's chromium: apt-get install chromium")
    result = subprocess.run(
        ["npm", "--prefix", str(ROOT / "frontend"), "run", "--silent", script],
        env=os.environ | {"WSGILOAD_PAGES": str(pages), "WSGILOAD_PICTURES": str(SCREENSHOTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=350,
    )
    assert result.returncode == 0, result.stdout
