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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from wsgiload.errors import ServerError, UsageError

TRUST_VARIABLE = "WSGILOAD_TRUST_FOLDER"
# The parent is checked after its death would kill this process, so it cannot be missed.
_EXECUTE = '[ "$PPID" = "$1" ] || exit 126; shift; exec "$@"'

# Only the command line and the Python API set it. A setting in a file could vouch for itself.
_is_folder_trusted: ContextVar[bool] = ContextVar("is_folder_trusted", default=False)


@dataclass(frozen=True, slots=True)
class Account:
    """A user without root's permissions."""

    name: str
    uid: int
    gid: int
    home: str

    def variables(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables with those that a login would set, unless they were set for the server."""
        own = {"HOME": self.home, "USER": self.name, "LOGNAME": self.name}
        inherited = {name for name in own if variables.get(name) == os.environ.get(name)}
        return {**own, **{name: text for name, text in variables.items() if name not in inherited}}

    def prefix(self) -> list[str]:
        """The start of a command that runs the rest as this user, without a way to regain
        permissions by a setuid program.

        The death signal is requested again, because a change of user clears it. setpriv still has
        capabilities when it executes its command, so a shell executes the rest: only that fails if
        the user may not read the program.
        """
        groups = "--init-groups" if _is_known(self.uid) else "--clear-groups"
        identity = [f"--reuid={self.uid}", f"--regid={self.gid}", groups]
        rest = ["--inh-caps=-all", "--no-new-privs", "--pdeathsig=KILL", "--"]
        shell = ["/bin/sh", "-c", _EXECUTE, "wsgiload-user", str(os.getpid())]
        return ["setpriv", *identity, *rest, *shell]


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


@contextmanager
def trusting_folder(is_trusted: bool) -> Iterator[None]:
    """Whether root may run and read what other users own, in this thread while the block lasts."""
    token = _is_folder_trusted.set(is_trusted)
    try:
        yield
    finally:
        _is_folder_trusted.reset(token)


def trust_folder(is_trusted: bool) -> None:
    """The same for the rest of a command."""
    _is_folder_trusted.set(is_trusted)


def owners_trusted_by(account: Account | None) -> set[int]:
    """The owners of code that may run as the account (None: as this user) without being named: the
    user, root and, as in git, the user who ran sudo."""
    owners = {0, os.geteuid() if account is None else account.uid}
    caller = os.environ.get("SUDO_UID", "")
    return owners | {int(caller)} if os.geteuid() == 0 and caller.isdecimal() else owners


def require_own(paths: Iterable[Path], risk: str, fix: str = "--user {owner}") -> None:
    """Raise UsageError if this process is root and one of the paths (or what it links to) belongs
    to someone else. ``risk`` says what root would do, and ``fix`` is the other way out."""
    is_trusted = os.environ.get(TRUST_VARIABLE, "").lower() in ("1", "true", "yes", "on")
    if os.geteuid() != 0 or is_trusted or _is_folder_trusted.get():
        return
    for path in paths:
        strangers = _owners(path) - owners_trusted_by(None)
        if strangers:
            owner = _name_of(min(strangers))
            raise UsageError(
                f"{path} belongs to {owner}, and root would {risk}",
                f"use {fix.format(owner=owner)}, or --trust-folder if you trust {owner}",
            )


def require_own_program(path: Path, risk: str, fix: str = "--user {owner}") -> None:
    """``require_own`` for a program, its folder, and the environment around it, which determines
    the modules that it imports."""
    places: list[Path] = []
    for one in (path, path.resolve()):
        environment = [one.parent.parent] if one.parent.name == "bin" else []
        places += [one, one.parent, *environment]
    require_own(dict.fromkeys(places), risk, fix)


def _owners(path: Path) -> set[int]:
    owners = set()
    for read in (path.lstat, path.stat):
        with suppress(OSError):  # what does not exist is reported by whoever needs it
            owners.add(read().st_uid)
    return owners


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
