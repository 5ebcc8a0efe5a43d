"""Chooses the mechanism that enforces limits by testing each: create a group, limit it, join it,
remove it.

If a requested limit cannot be enforced, the strict policy raises an error, and best-effort says why
and records it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from wsgiload.errors import LimitsError, WsgiloadError
from wsgiload.host.cpus import available_cpus
from wsgiload.limits import files, scope, sweep, v1, v2
from wsgiload.limits.model import Backend, Limits, creator_pid, validate_limits
from wsgiload.limits.unlimited import UnlimitedBackend

PROBE_TIMEOUT_S = 10.0


def ignore(message: str) -> None:
    """Ignores a message."""


def select_backend(
    limits: Limits, root: Path = Path("/"), log: Callable[[str], None] = ignore
) -> Backend:
    """The best backend for these limits. Also cleans up after killed runs.

    ``log`` gets one line that says which limits cannot be enforced, why, and what is needed. Under
    the strict policy, this line is raised as LimitsError.
    """
    validate_limits(limits, available_cpus())
    end_stale_processes(root)
    remove_stale_groups(root)
    if limits.policy == "none":
        return UnlimitedBackend()
    causes: list[LimitsError] = []
    for backend in candidates(root):
        try:
            probe(backend, replace(limits, policy="strict"))
            return backend
        except LimitsError as error:
            causes.append(error)
    if not limits.requested():
        return UnlimitedBackend()
    if scope.is_outside(root):
        causes.append(scope.obstacle(root))
    why = "; ".join(error.cause for error in causes) or "no usable cgroup hierarchy is mounted"
    fix = next((error.fix for error in causes if error.fix), "run as root")
    if limits.policy == "strict":
        requested = ", ".join(limits.requested())
        raise LimitsError(
            f"the requested limits ({requested}) cannot be enforced: {why}",
            f"{fix}, or use --limits best-effort",
        )
    missing, backend = _most_capable(limits, root)
    log(f"limits not enforced: {', '.join(missing)} ({why}). To enforce them: {fix}")
    return backend


def _most_capable(limits: Limits, root: Path) -> tuple[tuple[str, ...], Backend]:
    """The limits that cannot be enforced, and the backend that enforces all others."""
    partial: list[tuple[tuple[str, ...], Backend]] = []
    for backend in candidates(root):
        with suppress(LimitsError):
            partial.append((probe(backend, limits), backend))
    partial.append((limits.requested(), UnlimitedBackend()))
    return min(partial, key=lambda pair: len(pair[0]))


def candidates(root: Path) -> list[Backend]:
    """The backends for the mounted hierarchies, the most capable first."""
    backends: list[Backend] = []
    mount = v2.find_mount(root)
    is_delegated = not scope.is_outside(root)
    if mount and is_delegated and files.read_text(v2.own_base(root, mount) / "cgroup.controllers"):
        backends.append(v2.V2Backend(root))
    if set(v1.find_own(root)) & set(v1.CONTROLLERS):
        backends.append(v1.V1Backend(root))
    return backends


def probe(backend: Backend, limits: Limits) -> tuple[str, ...]:
    """Create, limit, join and remove a group; returns the limits that are not enforced."""
    group = backend.create(limits, "probe")
    try:
        with Path(os.devnull).open("wb") as log:
            process = group.spawn(["/bin/true"], env={}, cwd=Path("/"), log=log)
            code = process.wait(PROBE_TIMEOUT_S)
    except WsgiloadError as error:
        raise LimitsError(f"{backend.name}: {error.cause}", error.fix) from error
    finally:
        group.close()
    if code != 0:
        raise LimitsError(
            f"{backend.name}: a process cannot join a cgroup (exit code {code})", "run as root"
        )
    return group.enforcement.not_enforced


def remove_stale_groups(root: Path = Path("/")) -> list[str]:
    """Remove the groups of wsgiload processes that no longer exist; returns their names.

    Members are killed first. Groups that cannot be removed remain; they are harmless.
    """
    removed: set[str] = set()
    for base in bases_of(root):
        for directory in _children(base):
            creator = creator_pid(directory.name)
            if creator is not None and not _process_exists(creator, root):
                sweep.end_members([directory])
                if not sweep.remove_directories([directory]):
                    removed.add(directory.name)
            elif (match := v2.LEAF_NAME.fullmatch(directory.name)) and not _process_exists(
                int(match["pid"]), root
            ):
                # never killed, because in a container it may contain the user's shell; only an
                # empty group can be removed
                with suppress(OSError):
                    sweep.remove_directory(directory)
    return sorted(removed)


def end_stale_processes(root: Path = Path("/")) -> list[int]:
    """Kill servers without a control group whose wsgiload process no longer exists; returns their
    pids."""

    def stale() -> list[int]:
        marked = sweep.marks(files.under(root, "/proc"))
        creators = {pid: creator_pid(mark) for pid, mark in marked.items()}
        return [
            pid
            for pid, creator in creators.items()
            if creator is not None
            and not _process_exists(creator, root)
            and sweep.is_in_our_namespace(pid)
        ]

    pids = stale()
    sweep.kill_all(stale)
    return pids


def bases_of(root: Path = Path("/")) -> Iterable[Path]:
    """The groups below which wsgiload creates its groups, one per hierarchy."""
    groups = [group for group, _ in v1.find_own(root).values()]
    mount = v2.find_mount(root)
    if mount:
        groups.append(v2.own_base(root, mount))
    return dict.fromkeys(groups)


def _children(base: Path) -> list[Path]:
    try:
        return [path for path in base.iterdir() if path.is_dir()]
    except OSError:
        return []


def _process_exists(pid: int, root: Path) -> bool:
    return files.under(root, f"/proc/{pid}").exists()
