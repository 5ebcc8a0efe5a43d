"""What a server needs of the system itself: whether it is there, and the one command that installs
it.

It only looks; nothing is ever installed from here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from wsgiload.catalogue.contract import Dependency

# Servers' programs lie where an ordinary user's PATH does not lead.
ADMINISTRATION_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
HEADER_FOLDERS = ("usr/include", "usr/local/include")


def find_program(name: str) -> str | None:
    """Its path, looked for as a service manager would; None where it is not installed."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), *ADMINISTRATION_FOLDERS]
    return shutil.which(name, path=os.pathsep.join(folders))


def missing_packages(needs: Iterable[Dependency], root: Path = Path("/")) -> list[str]:
    """The Debian packages of ``needs`` that are not there, each once."""
    return list(dict.fromkeys(needed.package for needed in needs if not _is_there(needed, root)))


def install_command(packages: Iterable[str]) -> str:
    """What to run as root."""
    return f"apt-get install --yes --no-install-recommends {' '.join(packages)}"


def _is_there(needed: Dependency, root: Path) -> bool:
    if needed.program is not None and find_program(needed.program) is None:
        return False
    return needed.header is None or any(_headers(needed.header, root))


def _headers(name: str, root: Path) -> Iterable[Path]:
    for folder in HEADER_FOLDERS:
        # Debian puts what differs between architectures one folder deeper.
        yield from (root / folder).glob(name)
        yield from (root / folder).glob(f"*-linux-gnu*/{name}")
