"""Where a Django project keeps its WSGI module and its settings, by the layout of its files."""

from __future__ import annotations

import re
from pathlib import Path

_SETTINGS = re.compile(r"""DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([A-Za-z_][\w.]*)['"]""")
MANAGE = "manage.py"
MANAGE_BYTES = 100_000


def projects(folder: Path) -> list[Path]:
    """The folders with a ``manage.py``: the given one, then those in it."""
    return [
        path.parent
        for path in (folder / MANAGE, *sorted(folder.glob(f"*/{MANAGE}")))
        if path.is_file()
    ]


def wsgi_modules(project: Path) -> list[str]:
    """The modules of a project that are called ``wsgi``, as ``startproject`` names them."""
    names = sorted(path.parent.name for path in project.glob("*/wsgi.py"))
    return [f"{name}.wsgi" for name in names if name.isidentifier()]


def settings_modules(project: Path) -> list[str]:
    """The settings modules: those that ``manage.py`` names, then those for production."""
    named = _SETTINGS.findall(_text(project / MANAGE))
    files = [
        *sorted(project.glob("*/settings/prod*.py")),
        *sorted(project.glob("*/settings.py")),
        *(file for file in sorted(project.glob("*/settings/__init__.py")) if _text(file).strip()),
    ]
    found = [".".join(file.relative_to(project).with_suffix("").parts) for file in files]
    return list(dict.fromkeys([*named, *(name.removesuffix(".__init__") for name in found)]))


def _text(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(MANAGE_BYTES)
    except OSError:
        return ""
