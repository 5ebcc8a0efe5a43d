"""What a name that does not exist may have meant, by the files that are there.

Nothing is imported here; whether a candidate works is tried elsewhere (``app_import``).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

from wsgiload.catalogue.contract import Interface
from wsgiload.environments import django
from wsgiload.environments.app_name import AppName, ImportedFrom

# Modules below the first belong to the project around; the others are usually projects themselves.
SOURCE_FOLDERS = ("src", "lib")
PROJECT_FOLDERS = ("app", "backend", "server")


def for_missing_module(
    name: AppName, folder: Path, variables: Mapping[str, str], interface: Interface
) -> list[ImportedFrom]:
    """For a module that ``folder`` does not have: names like it, and other places."""
    top, dot, rest = name.module.partition(".")
    local_modules = [path.stem for path in folder.glob("*.py")]
    local_modules += [path.parent.name for path in folder.glob("*/__init__.py")]
    candidates = [
        ImportedFrom(folder, AppName(module + dot + rest, name.expression))
        for module in difflib.get_close_matches(top, local_modules, n=2)
    ]

    # As Django's WSGI_APPLICATION is written: shop.wsgi.application.
    above, _, last = name.module.rpartition(".")
    if above and last.isidentifier():
        candidates.append(ImportedFrom(folder, AppName(above, last)))

    candidates += with_source_folder(name, top, folder, variables)
    candidates += [
        ImportedFrom(folder / place, name)
        for place in PROJECT_FOLDERS
        if _holds(folder / place, top)
    ]
    return candidates + in_django(folder, interface)


def with_source_folder(
    name: AppName, module: str, folder: Path, variables: Mapping[str, str]
) -> list[ImportedFrom]:
    """The app with a further folder that holds ``module``: where sources usually are, or one of
    ``PYTHONPATH``, which servers do not see."""
    inherited = [Path(one) for one in variables.get("PYTHONPATH", "").split(os.pathsep) if one]
    places = [*(folder / one for one in SOURCE_FOLDERS), *(Path.cwd() / one for one in inherited)]
    return [ImportedFrom(folder, name, (place,)) for place in places if _holds(place, module)]


def above_file(name: AppName, file: Path, absent: str) -> list[ImportedFrom]:
    """The app from the folders around a file of it that have what it opens by a relative path."""
    places = [place for place in file.parents if (place / absent).exists()]
    return [ImportedFrom(place, name) for place in places]


def in_django(folder: Path, interface: Interface) -> list[ImportedFrom]:
    """The apps of the Django projects in a folder and just below it."""
    return [
        ImportedFrom(project, AppName(module, "application"))
        for project in django.projects(folder)
        for module in django.app_modules(project, interface)
    ]


def asgi_of_django(name: AppName, folder: Path) -> list[ImportedFrom]:
    """The ASGI app beside a WSGI app, as Django's ``startproject`` names both."""
    package, _, module = name.module.rpartition(".")
    is_django = bool(package) and module == "wsgi"
    return [ImportedFrom(folder, AppName(f"{package}.asgi", name.expression))] if is_django else []


def _holds(place: Path, module: str) -> bool:
    return (place / module).is_dir() or (place / f"{module}.py").is_file()
