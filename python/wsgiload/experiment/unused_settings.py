"""Finds deployment settings in the app's directory that are not used, and suggests the option that
uses them. Only reads files."""

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


def unused_settings(experiment: Experiment, servers: Mapping[str, ServerVariant]) -> str | None:
    """A hint if a file in the app's directory configures a server but no measured server uses it;
    otherwise None."""
    is_own = any(one.server.user_server is not None for one in servers.values())
    if experiment.bundled or experiment.app is None or is_own:
        return None
    of_gunicorn = [one for one in servers.values() if one.server.name == "gunicorn"]
    if any(one.config is not None for one in of_gunicorn):
        return None

    found = production_command(experiment.app_dir, experiment.app)
    if found is None:
        return None
    file, command = found
    how = "to measure its web process, use" if file == PROCFILE else "use"
    if file == GUNICORN and of_gunicorn:
        how = f"add --server-config gunicorn={GUNICORN}, or use"
    return f"{file} in the app's directory is not used; {how} --command {shlex.quote(command)}"


def production_command(folder: Path, app: str) -> tuple[str, str] | None:
    """The first file in this folder that configures a server, and the command that uses it."""
    if (folder / GUNICORN).is_file():
        return GUNICORN, f"gunicorn -c {GUNICORN} {shlex.quote(app)} --bind {{address}}"
    if (folder / UWSGI).is_file():
        return UWSGI, f"uwsgi --ini {UWSGI} --http-socket {{address}}"
    web = _web_of(folder / PROCFILE)
    return None if web is None else (PROCFILE, web)


def _web_of(path: Path) -> str | None:
    """The command of the Procfile's web process, changed to listen on the measured address."""
    try:
        match = _WEB.search(path.read_text())
    except (OSError, UnicodeError):
        return None
    if match is None:
        return None
    command = _PORT.sub("{port}", match[1])
    is_gunicorn = command.startswith("gunicorn ") and "{port}" not in command
    # Without --bind, gunicorn listens on $PORT, which Procfiles rely on.
    return f"{command} --bind {{address}}" if is_gunicorn else command
