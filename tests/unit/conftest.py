"""Fixtures of all unit tests."""

from __future__ import annotations

import pytest

from wsgiload.cli import _capacity, _sweep


@pytest.fixture(autouse=True)
def skip_app_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan dry runs without importing the app, which need not exist."""
    for module in (_capacity, _sweep):
        monkeypatch.setattr(module, "require_importable_app", lambda experiment: None)
