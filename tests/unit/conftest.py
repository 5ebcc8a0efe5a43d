"""Unit tests start no process."""

from __future__ import annotations

import pytest

from wsgiload.cli import _capacity, _sweep


@pytest.fixture(autouse=True)
def apps_that_need_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run would import its app."""
    for module in (_capacity, _sweep):
        monkeypatch.setattr(module, "require_importable_app", lambda experiment: None)
