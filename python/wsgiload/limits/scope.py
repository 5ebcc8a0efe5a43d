"""Obtains a delegated scope for wsgiload from systemd.

On hosts with systemd, only systemd may create groups, except below a unit with ``Delegate=`` (the
single-writer rule in CGROUP_DELEGATION). So the command executes itself again in such a scope, in
the same process.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from wsgiload.errors import LimitsError
from wsgiload.limits import files, v2
from wsgiload.limits.model import Policy

GUARD_VARIABLE = "WSGILOAD_IN_SCOPE"
UNIT_SUFFIXES = (".scope", ".service")
# With the default policy, an out-of-memory worker would stop the whole scope, including a prefork
# server's master.
PROPERTIES = ("Delegate=yes", "OOMPolicy=continue")
PROPERTIES_BEFORE_253 = ("Delegate=yes",)
TRIAL_TIMEOUT_S = 30.0


def is_outside(root: Path = Path("/")) -> bool:
    """Whether systemd manages the unified hierarchy and has not delegated our part of it."""
    mount = v2.find_mount(root)
    if mount is None or not files.under(root, files.SYSTEMD_SIGN).is_dir():
        return False
    if not files.read_text(v2.own_base(root, mount) / "cgroup.controllers"):
        return False  # a hybrid host, where limits are those of v1
    unit = own_unit(files.own_memberships(root).get("", "/"))
    return unit is None or not _is_delegated(*unit)


def own_unit(group: str) -> tuple[str, bool] | None:
    """The systemd unit of a control group, and whether it belongs to a user's service manager."""
    parts = PurePosixPath(group).parts
    units = [part for part in parts if part.endswith(UNIT_SUFFIXES)]
    if not units:
        return None
    return units[-1], len(units) > 1 and any(part.startswith("user@") for part in parts)


@functools.cache
def _is_delegated(unit: str, is_users: bool) -> bool:
    command = [
        "systemctl",
        *(["--user"] if is_users else []),
        "show",
        "--property=Delegate",
        "--value",
        unit,
    ]
    # needed if the environment variables were not inherited
    environment = {"XDG_RUNTIME_DIR": f"/run/user/{os.geteuid()}", **os.environ}
    try:
        completed = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TRIAL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return completed.stdout.strip() == "yes"


def enter_scope(policy: Policy, root: Path = Path("/")) -> None:
    """If limits need it, execute this command again inside a delegated scope; then never returns.

    If that is impossible, does nothing: ``select_backend`` tells why.
    """
    if policy == "none" or GUARD_VARIABLE in os.environ or not is_outside(root):
        return
    with suppress(LimitsError):
        prefix, environment = _delegation(root)
        command = [*prefix, sys.executable, *sys.orig_argv[1:]]
        sys.stdout.flush()
        os.execvpe(command[0], command, environment)


def obstacle(root: Path = Path("/")) -> LimitsError:
    """Why this process is outside a delegated scope."""
    try:
        _delegation(root)
    except LimitsError as error:
        return error
    return LimitsError("systemd manages the cgroups of this host", files.DELEGATION_FIX)


def _delegation(root: Path) -> tuple[list[str], dict[str, str]]:
    """The prefix of a command that runs in a delegated scope, and its environment variables.
    Raises LimitsError if systemd does not delegate."""
    environment = {**os.environ, GUARD_VARIABLE: "1"}
    if os.geteuid() != 0:
        environment |= {"XDG_RUNTIME_DIR": str(_runtime_folder(root, os.environ, os.geteuid()))}
    return _working_prefix(environment), environment


def _runtime_folder(root: Path, environ: Mapping[str, str], user_id: int) -> Path:
    """The runtime folder of the user's service manager."""
    default = f"/run/user/{user_id}"
    named = environ.get("XDG_RUNTIME_DIR", default)
    for folder in dict.fromkeys((named, default)):
        if files.under(root, f"{folder}/systemd").is_dir():
            return Path(folder)
    raise LimitsError(
        f"no user service manager is running (no {default}/systemd), so no cgroup can be delegated",
        f"as root: loginctl enable-linger {files.user_name(user_id)}  (then again as this user)",
    )


def _working_prefix(environment: Mapping[str, str]) -> list[str]:
    """The prefix of a systemd-run command, tested to work. Raises LimitsError if none works."""
    if shutil.which("systemd-run") is None:
        raise LimitsError(
            "systemd manages this host, but systemd-run is missing",
            "install it",
        )
    error_text = ""
    for properties in (PROPERTIES, PROPERTIES_BEFORE_253):
        prefix = scope_prefix(properties, is_users=os.geteuid() != 0)
        try:
            tested = subprocess.run(
                [*prefix, "/bin/true"],
                env=dict(environment),
                capture_output=True,
                text=True,
                timeout=TRIAL_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            error_text = f"no response within {TRIAL_TIMEOUT_S:g} s"
            break
        if tested.returncode == 0:
            return prefix
        error_text = error_text or " ".join(tested.stderr.split())
    raise LimitsError(
        f"systemd does not delegate a cgroup: {error_text}",
        "run as root",
    )


def scope_prefix(properties: tuple[str, ...], *, is_users: bool) -> list[str]:
    """The prefix that runs a command in a scope with these properties, in the same process."""
    options = [
        "--scope",
        "--quiet",
        "--collect",
        *(word for name in properties for word in ("-p", name)),
    ]
    return ["systemd-run", *(["--user"] if is_users else []), *options, "--"]
