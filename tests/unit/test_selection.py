"""The lists of tests in ``tests/conftest.py`` name existing tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ESSENTIAL, NEVER_RERUN

INTEGRATION = Path(__file__).parents[1] / "integration"


@pytest.mark.parametrize("module", sorted(ESSENTIAL))
def test_the_essential_tests_exist(module: str) -> None:
    text = (INTEGRATION / f"{module}.py").read_text()
    assert [name for name in ESSENTIAL[module] if f"def {name}(" not in text] == []


def test_the_modules_that_are_never_repeated_exist() -> None:
    assert {path.stem for path in INTEGRATION.glob("test_*.py")} >= NEVER_RERUN
