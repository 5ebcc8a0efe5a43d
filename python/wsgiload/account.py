"""The user as whom the code under test runs, and whether root may run code from a folder.

As root, wsgiload would run the app, its interpreter and the commands of configuration files as
root. If someone else owns these, they could gain root's permissions, so wsgiload refuses, as git
does (``safe.directory``).
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wsgiload.errors import ServerError, UsageError


@dataclass(frozen=True, slots=True)
class Account:
    """A user without root's permissions."""

    name: str
    uid: int
    gid: int
    home: str

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that a login would set."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}

    def prefix(self) -> list[str]:
        """The start of a command that runs the rest as this user.

        The death signal is requested again, because a change of user clears it.
        """
        groups = "--init-groups" if _is_known(self.uid) else "--clear-groups"
        identity = [f"--reuid={self.uid}", f"--regid={self.gid}", groups]
        return ["setpriv", *identity, "--inh-caps=-all", "--pdeathsig=KILL", "--"]


def account_of(user: str | None) -> Account | None:
    """The account with this name or number; None for no user and for our own.

    Raises UsageError if there is none, or if this process may not change its user.
    """
    if user is None:
        return None
    account = _find(user)
    if account.uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise UsageError(f"--user {user} needs root", "run the command as root, or omit --user")
    if shutil.which("setpriv") is None:
        raise UsageError(
            "--user needs the program setpriv", "install it: apt-get install util-linux"
        )
    return account


def require_reachable(account: Account | None, paths: Iterable[Path]) -> None:
    """Raise ServerError for the first of these existing programs and folders that the account may
    not use."""
    if account is None:
        return
    for path in filter(Path.exists, paths):
        test = [*account.prefix(), "test", "-x", str(path)]
        if subprocess.run(test, check=False).returncode != 0:
            raise ServerError(
                f"the user {account.name} may not read {path}",
                "choose places that this user can read: --python for the interpreter, --chdir for "
                "the app, WSGILOAD_CACHE_DIR for the servers",
                step="start",
            )


def _find(user: str) -> Account:
    try:
        entry = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except KeyError:
        if user.isdecimal():
            return Account(user, int(user), int(user), "/")
        raise UsageError(
            f"--user: there is no user {user!r}", "`getent passwd` lists the users"
        ) from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir)


def _is_known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def require_own(paths: Iterable[Path]) -> None:
    """Raise UsageError if this process is root and one of the paths (or what it links to) belongs
    to someone else. Root's code and, under sudo, that of the user who ran sudo are trusted."""
    if os.geteuid() != 0:
        return
    trusted = {0, int(os.environ.get("SUDO_UID") or 0)}
    for path in paths:
        owners = {stat(path).st_uid for stat in (os.lstat, os.stat) if path.exists()}
        for owner in owners - trusted:
            name = _name_of(owner)
            raise UsageError(
                f"{path} belongs to {name}, and its code would run as root",
                f"run it as its owner with --user {name}, or as root with --trust-folder",
            )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
