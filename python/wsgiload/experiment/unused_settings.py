"""Settings of a deployment that lie in the app's folder and are not used, and the option that uses
them. Reads files, and starts nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from wsgiload.catalogue.names import ServerVariant
from wsgiload.experiment.plan import Experiment

GUNICORN, UWSGI, PROCFILE = "gunicorn.conf.py", "uwsgi.ini", "Procfile"

_WEB = re.compile(r"^web:\s*(\S.*?)\s*$", re.MULTILINE)
# ``$PORT``, ``${PORT}`` and ``${PORT:-8000}``.
_PORT = re.compile(r"\$(?:PORT\b|\{PORT(?::-[^}]*)?\})")


def unused_settings(experiment: Experiment, found: Mapping[str, ServerVariant]) -> str | None:
    """One sentence, where a file in the app's folder says how the app is deployed and no server
    that is measured uses it."""
    is_own = any(one.server.user_server is not None for one in found.values())
    if experiment.bundled or experiment.app is None or is_own:
        return None
    of_gunicorn = [one for one in found.values() if one.server.name == "gunicorn"]
    if any(one.config is not None for one in of_gunicorn):
        return None

    folder = experiment.app_dir
    if (folder / GUNICORN).is_file():
        own = f"gunicorn -c {GUNICORN} {experiment.app} --bind {{address}}"
        added = f"add --server-config gunicorn={GUNICORN}, or " if of_gunicorn else ""
        return _sentence(GUNICORN, f"{added}use", own)
    if (folder / UWSGI).is_file():
        own = f"uwsgi --ini {UWSGI} --http-socket {{address}}"
        return _sentence(UWSGI, "use", own)
    web = _web_of(folder / PROCFILE)
    return _sentence(PROCFILE, "to measure its web process, use", web) if web is not None else None


def _sentence(file: str, how: str, command: str) -> str:
    return f"{file} in the app's directory is not used; {how} --command {shlex.quote(command)}"


def _web_of(path: Path) -> str | None:
    """The command of its web process, listening where it is measured."""
    try:
        found = _WEB.search(path.read_text())
    except (OSError, UnicodeError):
        return None
    if found is None:
        return None
    command = _PORT.sub("{port}", found[1])
    is_gunicorn = command.startswith("gunicorn ") and "{port}" not in command
    # Without --bind it listens at $PORT, which Procfiles rely on.
    return f"{command} --bind {{address}}" if is_gunicorn else command
