"""``wsgiload init``: writes wsgiload.toml for the app in the current folder. Imports no app."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import click

from wsgiload.cli._completion import apps_here, complete_apps
from wsgiload.cli._help import HelpfulCommand
from wsgiload.cli._options import trust_option
from wsgiload.cli.config import OWN_FILE, tables_of
from wsgiload.environments import app_name
from wsgiload.environments.app_name import parse_app
from wsgiload.environments.interpreter import find_app_interpreter
from wsgiload.errors import UsageError
from wsgiload.experiment.unused_settings import production_command
from wsgiload.program import command_line

_ASGI = re.compile(
    r"\b(?:FastAPI|Litestar|Quart|Sanic|Starlette|get_asgi_application)\(|async def \w+\(scope"
)
_TEXT = """\
# Defaults of wsgiload: `wsgiload sweep {app}` uses them.
# The command line takes precedence. docs/options.md lists every key (--cpus is cpus).

# The limits of the server: those of the container in which it will run.
cpus = 1
memory = "512MiB"

# The app runs on {python}; another one:
# python = ".venv/bin/python"
{app_keys}
# The request, and what a correct response contains:
# path = "/"
# header = ["Accept: application/json"]
# expect-regex = "."

[sweep]
# Requests per second; without this line, those at which the servers differ:
# rates = [50, 100, 200]
# From `wsgiload servers list`; without this line, all that need no system packages:
# servers = {servers}
# The slowest acceptable response time; asks for the leanest configuration that keeps it:
# slo = ["p99<100ms"]
{production}"""
_PRODUCTION = """
# Your own command, from {file}; without `servers` above, it alone is measured:
# [servers.production]
# command = {command}
"""


@click.command("init", cls=HelpfulCommand, examples=("wsgiload init", "wsgiload init shop:app"))
@click.argument("app", required=False, shell_complete=complete_apps)
@trust_option
def init(app: str | None) -> None:
    """Write a commented wsgiload.toml for the app in this folder.

    Without APP, the app is found by its usual names: app, application or create_app in a module of
    this folder, or the wsgi.py of a Django project.
    """
    present = [path for path, _ in tables_of(Path())]
    if present:
        raise UsageError(f"{present[-1]} has settings already", "edit them, or remove them first")
    project, name = (Path(), parse_app(app).text) if app else _find()
    text = _settings(project, name)
    try:
        with Path(OWN_FILE).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(f"{OWN_FILE} exists already", "edit it, or remove it first") from error
    click.echo(f"wrote {OWN_FILE}; next: {command_line('sweep', name)}")


def _find() -> tuple[Path, str]:
    """The folder from which the first app is imported, and its name."""
    names = apps_here()
    if len({name.partition(":")[0] for name in names}) > 1:
        raise UsageError(
            f"several apps found: {', '.join(names)}",
            f"name one, such as `wsgiload init {names[0]}`",
        )
    for name in names:
        return Path(), f"{name}()" if name.endswith(":create_app") else name
    for project in app_name.projects(Path()):
        for module in app_name.app_modules(project, "wsgi"):
            return project, f"{module}:application"
    raise UsageError("no app found in this folder", "name it, such as `wsgiload init shop:app`")


def _settings(project: Path, name: str) -> str:
    """The content of the file."""
    interpreter = find_app_interpreter(project.resolve())
    stem = project / parse_app(name).module.replace(".", "/")
    module = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    keys = [f"chdir = {_quoted(str(project))}\n"] if project != Path() else []
    servers = ["gunicorn-gthread", "granian", "waitress"]
    if module.is_file() and _ASGI.search(module.read_text(encoding="utf-8", errors="replace")):
        keys.append('interface = "asgi"\n')
        servers = ["granian", "uvicorn"]
    own = production_command(project, name)
    return _TEXT.format(
        app=shlex.quote(name),
        python=f"Python {interpreter.version} ({interpreter.origin})",
        app_keys="".join(keys),
        servers=json.dumps(servers),
        production=_PRODUCTION.format(file=own[0], command=_quoted(own[1])) if own else "",
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # TOML has no surrogates
