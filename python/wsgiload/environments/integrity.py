"""Checks that a cached environment is unchanged since its installation.

Compares the interpreter, the layering, and every file with a checksum in the packages' RECORDs.
Bytecode has no checksum; the interpreter rebuilds it if its source is newer.
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
    for record in sorted(site_packages.glob("*.dist-info/RECORD")):
        yield from _changed_files(record)
    if installed_distributions(folder) != dict(distributions):
        yield f"{folder / FACTS_FILE} does not list the packages that {site_packages} contains"


def _changed_files(record: Path) -> Iterator[str]:
    try:
        rows = list(csv.reader(_text_of(record).splitlines()))
    except csv.Error as error:
        yield f"{record} is damaged: {error}"
        return
    if not rows or any(len(row) != 3 for row in rows):
        yield f"{record} is damaged"
        return
    for name, checksum, _ in rows:
        method, _, expected = checksum.partition("=")
        if method == METHOD:
            path = Path(os.path.normpath(record.parent.parent / name))
            if not path.is_file():
                yield f"{path} is listed in {record} but missing"
            digest = hashlib.sha256(path.read_bytes()).digest()
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != expected:
                yield f"{path} does not match {record} (checksum mismatch)"


def _text_of(path: Path) -> str:
    """The text of a file; invalid text never equals the original."""
    return path.read_bytes().decode(errors="replace")
