"""Finds the WSGI and ASGI modules and the settings of a Django project by the layout of its
files."""

from __future__ import annotations

import os
import re
from itertools import chain
from pathlib import Path

from wsgiload.catalogue.contract import Interface

_SETTINGS = re.compile(r"""DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([A-Za-z_][\w.]*)['"]""")
_HOSTS = re.compile(r"ALLOWED_HOSTS\b[^\n=]*=(.*?)(?:\n\n|\n(?=\w)|\Z)", re.DOTALL)
_LITERAL = re.compile(r"""['"]([^'"\n]+)['"]""")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?")
MANAGE = "manage.py"
MAX_BYTES = 100_000
MAX_HOSTS = 8


def projects(folder: Path) -> list[Path]:
    """The folders with a ``manage.py``: the given one, then those in it."""
    return [
        path.parent
        for path in (folder / MANAGE, *sorted(folder.glob(f"*/{MANAGE}")))
        if path.is_file()
    ]


def app_modules(project: Path, interface: Interface) -> list[str]:
    """The modules of a project that are named like the interface, as in ``startproject``."""
    names = sorted(path.parent.name for path in project.glob(f"*/{interface}.py"))
    return [f"{name}.{interface}" for name in names if name.isidentifier()]


def settings_modules(project: Path) -> list[str]:
    """The settings modules: those that ``manage.py`` names, then those for production."""
    named = _SETTINGS.findall(_text(project / MANAGE))
    files = [
        *sorted(project.glob("*/settings/prod*.py")),
        *sorted(project.glob("*/settings.py")),
        *(file for file in sorted(project.glob("*/settings/__init__.py")) if _text(file).strip()),
    ]
    module_names = [".".join(file.relative_to(project).with_suffix("").parts) for file in files]
    return list(dict.fromkeys([*named, *(name.removesuffix(".__init__") for name in module_names)]))


def allowed_hosts(folder: Path) -> list[str]:
    """Host names that ALLOWED_HOSTS may contain, from the settings and the environment
    variables."""
    projects_of = dict.fromkeys([folder, *projects(folder)])
    patterns = ("*/settings*.py", "*/settings/*.py")
    files = [
        file for project in projects_of for glob in patterns for file in sorted(project.glob(glob))
    ]
    texts = [text for file in files for text in _HOSTS.findall(_text(file))]
    literals = chain.from_iterable(_LITERAL.findall(text) for text in texts)
    variables = [text for name, text in os.environ.items() if "ALLOWED_HOSTS" in name]
    names = chain.from_iterable(text.split(",") for text in chain(variables, literals))
    hosts = [name.strip().removeprefix(".") for name in names]
    return [name for name in dict.fromkeys(hosts) if _HOST.fullmatch(name)][:MAX_HOSTS]


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(MAX_BYTES)
    except OSError:
        return ""
