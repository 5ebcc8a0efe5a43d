"""What exists on this machine: the folder of cached environments, locks and check results, and the
system packages of a server, with the command that installs them. Installs nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from wsgiload.catalogue.contract import Dependency


def cache_folder() -> Path:
    """``WSGILOAD_CACHE_DIR``, or ``wsgiload`` in the user's cache folder."""
    configured = os.environ.get("WSGILOAD_CACHE_DIR")
    if configured:
        return Path(configured).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser().absolute() / "wsgiload"


# Servers' programs are in folders that an ordinary user's PATH does not contain.
ADMINISTRATION_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
HEADER_FOLDERS = ("usr/include", "usr/local/include")


def find_program(name: str) -> str | None:
    """The path of a program on PATH or in an administrators' folder; None if it is not
    installed."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), *ADMINISTRATION_FOLDERS]
    return shutil.which(name, path=os.pathsep.join(folders))


def missing_packages(needs: Iterable[Dependency], root: Path = Path("/")) -> list[str]:
    """The Debian packages of ``needs`` that are not installed, without duplicates."""
    return list(
        dict.fromkeys(needed.package for needed in needs if not _is_installed(needed, root))
    )


def install_command(packages: Iterable[str]) -> str:
    """The command to run as root."""
    return f"apt-get install --yes --no-install-recommends {' '.join(packages)}"


def _is_installed(needed: Dependency, root: Path) -> bool:
    if needed.program is not None and find_program(needed.program) is None:
        return False
    return needed.header is None or any(_headers(needed.header, root))


def _headers(name: str, root: Path) -> Iterable[Path]:
    for folder in HEADER_FOLDERS:
        # Debian puts architecture-specific files one folder deeper.
        yield from (root / folder).glob(name)
        yield from (root / folder).glob(f"*-linux-gnu*/{name}")
