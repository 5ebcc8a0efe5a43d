"""Checks that a cached environment is unchanged since its installation.

Compares the interpreter, the layering, and every file with a checksum in the packages' RECORDs, and
looks for programs and modules that no RECORD lists. Bytecode has no checksum; the interpreter
rebuilds it if its source is newer.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path

from wsgiload.environments.interpreter import normalise

# Written last, so an environment without it is incomplete.
FACTS_FILE = "wsgiload.json"
METHOD = "sha256"
# What an interpreter imports or executes. Servers add other files while they run, such as Twisted's
# cache of plugins.
IMPORTED = {".py", ".pyc", ".pth", ".so"}
# uv writes these into environments of PyPy; no RECORD lists them.
OF_UV = ("_virtualenv.py", "_virtualenv.pth")
# What an environment without packages contains in ``bin``.
OF_VENV = re.compile(r"(activate|deactivate|pydoc|python|pypy).*")
HOME = re.compile(r"^home = (.+)$", re.MULTILINE)


def damage_of(
    folder: Path,
    base_executable: Path,
    distributions: Mapping[str, str],
    our_files: Mapping[str, str],
) -> str | None:
    """A description of the first damaged file; None if there is none. ``our_files`` maps the files
    that wsgiload wrote next to the packages to their text."""
    try:
        return next(_damages(folder, base_executable, distributions, our_files), None)
    except FileNotFoundError as error:
        return f"{error.filename or folder} is missing"
    except OSError as error:
        return f"{error.filename or folder} cannot be read: {error.strerror}"


def site_packages_of(folder: Path) -> Path:
    """The package folder of an environment."""
    path = next((folder / "lib").glob("py*3.*/site-packages"), None)
    return path if path is not None else folder / "lib" / "python3" / "site-packages"


def installed_distributions(folder: Path) -> dict[str, str]:
    """Names and versions of the distributions, from the metadata on disk; starts no interpreter."""
    distributions = metadata.distributions(path=[str(site_packages_of(folder))])
    return {
        normalise(distribution.metadata["Name"]): distribution.version
        for distribution in distributions
    }


def _damages(
    folder: Path,
    base_executable: Path,
    distributions: Mapping[str, str],
    our_files: Mapping[str, str],
) -> Iterator[str]:
    python, settings = folder / "bin" / "python", folder / "pyvenv.cfg"
    if python.resolve() != base_executable.resolve():
        yield f"{python} is not the interpreter {base_executable}"
    home = HOME.search(_text_of(settings))
    if home is None or not Path(home[1]).is_dir():
        yield f"{settings} names no interpreter"

    site_packages = site_packages_of(folder)
    for name, text in our_files.items():
        if _text_of(site_packages / name) != text:
            yield f"{site_packages / name} was changed"
    listed = {site_packages / name for name in (*our_files, *OF_UV)}
    for record in sorted(site_packages.glob("*.dist-info/RECORD")):
        checksums = _read_record(record)
        if checksums is None:
            yield f"{record} is damaged"
            return
        yield from _changed_files(record, checksums)
        listed |= checksums.keys()
    for path in _programs_and_modules(folder / "bin", site_packages):
        if path not in listed:
            yield f"{path} was added, or is missing in the RECORD of its package"
    if installed_distributions(folder) != dict(distributions):
        yield f"{folder / FACTS_FILE} does not list the packages that {site_packages} contains"


def _read_record(record: Path) -> dict[Path, str] | None:
    """The files of a package and their checksums; None if the RECORD is damaged."""
    try:
        rows = list(csv.reader(_text_of(record).splitlines()))
    except csv.Error:
        return None
    if not rows or any(len(row) != 3 for row in rows):
        return None
    folder = record.parent.parent
    return {Path(os.path.normpath(folder / name)): checksum for name, checksum, _ in rows}


def _changed_files(record: Path, checksums: Mapping[Path, str]) -> Iterator[str]:
    for path, checksum in checksums.items():
        method, _, expected = checksum.partition("=")
        if method == METHOD:
            if not path.is_file():
                yield f"{path} is listed in {record} but missing"
            digest = hashlib.sha256(path.read_bytes()).digest()
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != expected:
                yield f"{path} does not match {record} (checksum mismatch)"


def _programs_and_modules(programs: Path, site_packages: Path) -> Iterator[Path]:
    yield from (path for path in programs.iterdir() if not OF_VENV.fullmatch(path.name))
    for parent, folders, files in os.walk(site_packages):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        yield from (Path(parent, name) for name in folders if Path(parent, name).is_symlink())
        yield from (Path(parent, name) for name in files if Path(name).suffix in IMPORTED)


def _text_of(path: Path) -> str:
    """The text of a file; invalid text never equals the original."""
    return path.read_bytes().decode(errors="replace")
