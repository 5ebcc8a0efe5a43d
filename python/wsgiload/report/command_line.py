"""Shell commands that start a server as it was measured: the command as a user would type it and,
if wsgiload uses a script to start the server, the commands that install it. Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from wsgiload.documents.cell_result import CellResult, ServerSettings
from wsgiload.environments.app_name import SHIM_MODULE, parse_app
from wsgiload.experiment.redaction import holds_redacted
from wsgiload.program import command_line
from wsgiload.report.cells import Sweep

# The port of the pasted command.
PORT = "8000"

_ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost|0\.0\.0\.0):(\d+)")
_EXTRAS = re.compile(r"\[.*\]")
_PORT_OPTION = re.compile(r"^--?[a-z-]*port$")
# A temporary directory that is removed after the run.
_SCRATCH = re.compile(r"(?:/[^/:]+)*/wsgiload-scratch-[^/]+")
# Programs by the module that installs them.
_PROGRAMS = {
    "granian": "granian",
    "gunicorn": "gunicorn",
    "hypercorn": "hypercorn",
    "uvicorn": "uvicorn",
    "waitress": "waitress-serve",
}
# Options with the paths of our environment and the app. A user in the app's folder with an active
# environment does not need them.
_OPTIONS_OF_OURS = ("--virtualenv", "--pythonpath")
# An empty file that prevents gunicorn from reading another configuration file.
_EMPTY_SETTINGS = "gunicorn_settings.py"
# Starts the following script in several processes; unnecessary with one process.
_PREFORK = "prefork.py"


def start_of(cells: Iterable[CellResult], cell_ids: Sequence[str]) -> str | None:
    """The commands that start a server as in these cells; None if its settings are unknown."""
    ids = set(cell_ids)
    started = next((cell for cell in cells if cell.id in ids and cell.settings), None)
    return None if started is None else start_of_cell(started)


def start_of_cell(cell: CellResult) -> str | None:
    """The same for one cell. If the app's name is not accepted by every server, the first command
    writes a module with a plain name."""
    if cell.settings is None:
        return None
    text = to_run(cell.settings)
    if cell.app is None or SHIM_MODULE not in text:
        return text
    return f"{_module_of(cell.app)}\n{text}"


def _module_of(app: str) -> str:
    """The command that writes a module with a plain name for the app."""
    name = parse_app(app)
    lookup = f"importlib.import_module({name.module!r}).{name.expression}"
    source = f"import importlib; application = {lookup}"
    return f"echo {shlex.quote(source)} > {SHIM_MODULE}.py"


def to_run(settings: ServerSettings) -> str:
    """``to_paste`` on the last line, after the commands that install what it needs: everything if
    it is a script of wsgiload, otherwise the server and the packages that its arguments name, such
    as uvloop."""
    command = to_paste(settings)
    scripts = [script for script in settings.scripts if script != _EMPTY_SETTINGS]
    if _PREFORK not in command:
        scripts = [script for script in scripts if script != _PREFORK]
    if not scripts:
        packages = _named_packages(command, settings.requirements)
        return "\n".join([*([f"pip install {shlex.join(packages)}"] if packages else []), command])

    lines = []
    if settings.system_packages:
        lines.append(f"apt-get install {shlex.join(settings.system_packages)}  # as root")
    is_pypy = (settings.versions.python or "").startswith("PyPy")
    pip = "pypy3 -m venv pypy && pypy/bin/pip" if is_pypy else "pip"
    if settings.requirements:
        lines.append(f"{pip} install {shlex.join(settings.requirements)}")
    lines += [
        f"{command_line('servers', 'script', script)} > {shlex.quote(script)}" for script in scripts
    ]
    return "\n".join([*lines, f"pypy/bin/{command}" if is_pypy else command])


def _named_packages(command: str, requirements: Sequence[str]) -> list[str]:
    """The requirements of the server and of the packages that its arguments name, as in ``--loop
    uvloop`` and ``--gevent 100``; without extras if they name none."""
    arguments = {word.lstrip("-") for word in re.split(r"[\s=]", command)[1:]}
    named = [one for one in requirements[1:] if one.partition("==")[0] in arguments]
    server = [one if named else _EXTRAS.sub("", one) for one in requirements[:1]]
    return [*server, *named]


def to_paste(settings: ServerSettings) -> str:
    """The command with its environment variables, at port 8000 and without the paths of our
    environments and scripts. A user's command only gets the port."""
    port = _port(settings.command)
    words = [_renumbered(word, port) for word in settings.command]
    variables = dict(settings.environment)
    if settings.user_command is None:
        words = _plain(words, settings)
        variables = {name: _without_ours(name, value) for name, value in variables.items()}
    assignments = [_assignment(name, value) for name, value in sorted(variables.items())]
    return " ".join([*(["env", *assignments] if assignments else []), shlex.join(words)])


def _assignment(name: str, value: str) -> str:
    """For a secret, the user's own variable; the shell says if it is not set."""
    if holds_redacted(value):
        return f'{name}="${{{name}:?}}"'
    return shlex.quote(f"{name}={value}")


def _plain(words: Sequence[str], settings: ServerSettings) -> list[str]:
    """The words as a user would type them."""
    words = [_program(word) for word in _without_options_of_ours(words, settings)]
    words = [_SCRATCH.sub("/tmp", _script(word, settings.scripts)) for word in words]
    if words[1:2] == ["-P"]:  # -P omits the script's folder, which is the app's folder here
        del words[1]
    if words[1:2] == [_PREFORK] and words[2:3] != ["--workers"]:
        del words[1]
    return _with_programs(words)


def _without_options_of_ours(words: Sequence[str], settings: ServerSettings) -> list[str]:
    remaining: list[str] = []
    place = 0
    while place < len(words):
        option, value = words[place], words[place + 1] if place + 1 < len(words) else ""
        if _is_ours(option, value) and value not in settings.added_arguments:
            place += 2
            continue
        remaining.append(option)
        place += 1
    return remaining


def _is_ours(option: str, value: str) -> bool:
    path = PurePosixPath(value)
    if option == "--config":
        return path.is_absolute() and path.name == _EMPTY_SETTINGS
    return option in _OPTIONS_OF_OURS and path.is_absolute()


def _program(word: str) -> str:
    """The name of a program in a ``bin`` folder; other words unchanged."""
    path = PurePosixPath(word)
    return path.name if path.is_absolute() and path.parent.name == "bin" else word


def _script(word: str, scripts: Sequence[str]) -> str:
    """The name of a wsgiload script without its path; hypercorn's settings keep their ``file:``
    prefix."""
    prefix, _, name = word.rpartition("/")
    if name not in scripts or not prefix:
        return word
    return f"file:{name}" if prefix.startswith("file:") else name


def _with_programs(words: Sequence[str]) -> list[str]:
    """``gunicorn`` instead of ``python -m gunicorn``, also after a script."""
    typed: list[str] = []
    place = 0
    while place < len(words):
        first, module = words[place], words[place + 2 : place + 3]
        is_module = first.startswith("python") and words[place + 1 : place + 2] == ["-m"]
        if is_module and module and module[0] in _PROGRAMS:
            typed.append(_PROGRAMS[module[0]])
            place += 3
            continue
        typed.append(first)
        place += 1
    return typed


def _without_ours(name: str, value: str) -> str:
    """``.`` instead of the folder of our scripts in PYTHONPATH. uvicorn's workers import the script
    by name, and the pasted commands write it to the app's folder."""
    folders = [PurePosixPath(folder).name for folder in value.split(":")]
    return "." if name == "PYTHONPATH" and "runners" in folders else value


def _port(command: tuple[str, ...]) -> str | None:
    for word in command:
        address = _ADDRESS.search(word)
        if address is not None:
            return address.group(1)
    for option, value in pairwise(command):
        if _PORT_OPTION.match(option) and value.isdigit():
            return value
    return None


def _renumbered(word: str, port: str | None) -> str:
    """The word with the port replaced, unless it is part of a longer number."""
    if port is None:
        return word
    return re.sub(rf"(?<!\d){port}(?!\d)", PORT, word)


def settings_of(sweep: Sweep) -> list[tuple[str, str]]:
    """Each server with its settings, including servers that failed after their start."""
    by_label: dict[str, ServerSettings] = {}
    for cell in sweep.cells:
        if cell.result.settings is not None:
            by_label.setdefault(cell.label, cell.result.settings)
    return [(label, _text(settings)) for label, settings in by_label.items()]


def _text(settings: ServerSettings) -> str:
    before = f" (setup: {'; '.join(settings.setup)})" if settings.setup else ""
    return f"{to_paste(settings)}{before}"
