"""Suggests apps that may have been meant by a wrong name, based on the files of the project.

Imports nothing; ``app_import`` tests the candidates.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

from wsgiload.catalogue.contract import Interface
from wsgiload.environments import django
from wsgiload.environments.app_name import AppName, ImportedFrom

# Source folders belong to the enclosing project; project folders are usually projects themselves.
SOURCE_FOLDERS = ("src", "lib")
PROJECT_FOLDERS = ("app", "backend", "server")


def for_missing_module(
    name: AppName, folder: Path, variables: Mapping[str, str], interface: Interface
) -> list[ImportedFrom]:
    """Candidates for a module that is missing in ``folder``: similar names and other locations."""
    top, dot, rest = name.module.partition(".")
    local_modules = [path.stem for path in folder.glob("*.py")]
    local_modules += [path.parent.name for path in folder.glob("*/__init__.py")]
    candidates = [
        ImportedFrom(folder, AppName(module + dot + rest, name.expression))
        for module in difflib.get_close_matches(top, local_modules, n=2)
    ]

    # The form of Django's WSGI_APPLICATION: shop.wsgi.application.
    above, _, last = name.module.rpartition(".")
    if above and last.isidentifier():
        candidates.append(ImportedFrom(folder, AppName(above, last)))

    candidates += with_source_folder(name, top, folder, variables)
    candidates += [
        ImportedFrom(folder / place, name)
        for place in PROJECT_FOLDERS
        if _contains(folder / place, top)
    ]
    return candidates + in_django(folder, interface)


def with_source_folder(
    name: AppName, module: str, folder: Path, variables: Mapping[str, str]
) -> list[ImportedFrom]:
    """The app with an additional folder that contains ``module``: a source folder, or a folder of
    the inherited ``PYTHONPATH``, which servers do not get."""
    inherited = [Path(path) for path in variables.get("PYTHONPATH", "").split(os.pathsep) if path]
    places = [
        *(folder / path for path in SOURCE_FOLDERS),
        *(Path.cwd() / path for path in inherited),
    ]
    return [ImportedFrom(folder, name, (place,)) for place in places if _contains(place, module)]


def above_file(name: AppName, file: Path, absent: str) -> list[ImportedFrom]:
    """The app, imported from an enclosing folder that contains ``absent``, the relative path that
    it failed to open."""
    places = [place for place in file.parents if (place / absent).exists()]
    return [ImportedFrom(place, name) for place in places]


def in_django(folder: Path, interface: Interface) -> list[ImportedFrom]:
    """The apps of Django projects in a folder and its direct subfolders."""
    return [
        ImportedFrom(project, AppName(module, "application"))
        for project in django.projects(folder)
        for module in django.app_modules(project, interface)
    ]


def asgi_of_django(name: AppName, folder: Path) -> list[ImportedFrom]:
    """The ASGI app of a Django project, given its WSGI app (names as in ``startproject``)."""
    package, _, module = name.module.rpartition(".")
    is_django = bool(package) and module == "wsgi"
    return [ImportedFrom(folder, AppName(f"{package}.asgi", name.expression))] if is_django else []


def _contains(place: Path, module: str) -> bool:
    return (place / module).is_dir() or (place / f"{module}.py").is_file()
