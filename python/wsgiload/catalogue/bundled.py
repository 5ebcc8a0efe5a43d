"""The apps that come with wsgiload, each with its correct response. It only describes them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from wsgiload.errors import UsageError

APPS_FOLDER = Path(__file__).parent / "apps"
DEFAULT_APP = "hello"


@dataclass(frozen=True, slots=True)
class BundledApp:
    """One bundled app: ``module`` is importable once ``app_dir`` is on ``sys.path``."""

    name: str
    module: str
    app_dir: Path
    path: str
    expected_body: bytes
    summary: str

    @property
    def app(self) -> str:
        """``module:callable``, as servers take it."""
        return f"{self.module}:app"


def _describe(name: str) -> BundledApp:
    module = importlib.import_module(f"wsgiload.catalogue.apps.{name}")
    summary = (module.__doc__ or "").partition("\n")[0]
    return BundledApp(name, name, APPS_FOLDER, module.PATH, module.EXPECTED_BODY, summary)


BUNDLED: Mapping[str, BundledApp] = MappingProxyType(
    {name: _describe(name) for name in ("hello", "json1k", "cpu", "sleep")}
)


def bundled_app(name: str) -> BundledApp:
    """The bundled app of that name."""
    app = BUNDLED.get(name)
    if app is None:
        known = ", ".join(BUNDLED)
        raise UsageError(
            f"unknown bundled app {name!r}", f"choose one of {known} (default: {DEFAULT_APP})"
        )
    return app
