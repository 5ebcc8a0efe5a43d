"""What is bundled: the apps with their correct responses, and the scripts that start servers
without a suitable command line. These do not import wsgiload, so a copy works elsewhere."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from wsgiload.catalogue.contract import Interface
from wsgiload.catalogue.names import DEFAULT_FOLDER
from wsgiload.errors import UsageError

APPS_FOLDER = Path(__file__).parent / "apps"
DEFAULT_APP = "hello"

NAMES = (
    "hello",
    "ok",
    "unsized",
    "json1k",
    "events",
    "echo",
    "cpu",
    "sleep",
    "files",
    "database",
    "upstream",
)


@dataclass(frozen=True, slots=True)
class Upstream:
    """The server from which an app fetches: ``program`` takes the port as its argument, and the app
    reads the address (``host:port``) from the environment variable ``variable``."""

    program: Path
    variable: str


@dataclass(frozen=True, slots=True)
class BundledApp:
    """One bundled app: ``module`` is importable once ``app_dir`` is on ``sys.path``.

    ``body`` is the default request body of an app that echoes it.
    """

    name: str
    module: str
    app_dir: Path
    path: str
    expected_body: bytes
    summary: str
    method: str = "GET"
    body: bytes | None = None
    upstream: Upstream | None = None
    has_asgi: bool = False

    @property
    def app(self) -> str:
        """``module:callable`` of the WSGI app."""
        return f"{self.module}:app"

    def app_for(self, interface: Interface) -> str:
        """``module:callable`` for this interface. Raises UsageError if there is none."""
        if interface == "wsgi":
            return self.app
        if not self.has_asgi:
            with_asgi = " or ".join(name for name, app in BUNDLED.items() if app.has_asgi)
            raise UsageError(
                f"the bundled app {self.name!r} is a WSGI app",
                f"choose {with_asgi} with --app-name, or omit --interface {interface}",
            )
        return f"{self.module}:{interface}_app"


def _describe(name: str) -> BundledApp:
    module = importlib.import_module(f"wsgiload.catalogue.apps.{name}")
    program = getattr(module, "UPSTREAM_PROGRAM", None)
    return BundledApp(
        name=name,
        module=name,
        app_dir=APPS_FOLDER,
        path=module.PATH,
        expected_body=module.EXPECTED_BODY,
        summary=(module.__doc__ or "").partition("\n")[0],
        method=getattr(module, "METHOD", "GET"),
        body=getattr(module, "BODY", None),
        upstream=Upstream(APPS_FOLDER / program, module.UPSTREAM_VARIABLE) if program else None,
        has_asgi=hasattr(module, "asgi_app"),
    )


BUNDLED: Mapping[str, BundledApp] = MappingProxyType({name: _describe(name) for name in NAMES})


def bundled_app(name: str) -> BundledApp:
    """The bundled app of that name."""
    app = BUNDLED.get(name)
    if app is None:
        known = ", ".join(BUNDLED)
        raise UsageError(
            f"unknown bundled app {name!r}", f"choose one of {known} (default: {DEFAULT_APP})"
        )
    return app


def script_text(name: str) -> str:
    """The text of this script. Raises UsageError if it does not exist."""
    known = {path.name: path for path in _folder().iterdir() if path.is_file()}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1) or sorted(known)
        raise UsageError(f"there is no script {name!r}", f"choose one of {', '.join(near)}")
    return known[name].read_text(encoding="utf-8")


def scripts_in(command: Sequence[str]) -> tuple[str, ...]:
    """The names of the scripts in a command line, and of the scripts that these start."""
    folder = _folder()
    paths = [Path(word.removeprefix("file:")) for word in command]
    named = [path for path in paths if path.parent == folder and path.is_file()]
    text = "".join(path.read_text(encoding="utf-8") for path in named)
    started = [path for path in sorted(folder.glob("run_*.py")) if f'"{path.name}"' in text]
    return tuple(dict.fromkeys(path.name for path in (*named, *started)))


def _folder() -> Path:
    # Resolved, like the paths of the catalogue.
    return DEFAULT_FOLDER.resolve() / "runners"
