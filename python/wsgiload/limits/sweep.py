"""Kills everything in a group or a session, and removes group directories.

The janitor's child process runs this file by itself, so it may only import the standard library.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Marks the processes of a group, in case they leave it.
GROUP_VARIABLE = "WSGILOAD_GROUP"
# The kernel's default size of POSIX message queues in bytes, which servers do not use.
QUEUE_BYTES = 819_200
END = "end"  # the last line before a normal exit
END_TIMEOUT_S = 10.0
LOCK_TIMEOUT_S = 2.0
FREEZE_TIMEOUT_S = 0.2
FIRST_PAUSE_S = 0.001
MAX_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True)
class Entry:
    """A group in the janitor's register, with everything to clean up if it is not closed."""

    name: str
    directories: tuple[str, ...] = ()
    sessions: tuple[tuple[int, int], ...] = ()
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Creator:
    """The process that creates groups and folders: its pid, which is in their names, and their
    locations."""

    pid: int
    bases: tuple[str, ...] = ()
    temporary_folders: tuple[str, ...] = ()
    folder_prefix: str = ""


def members_of(directories: Iterable[Path]) -> list[int]:
    """The processes in these groups and in all groups below them."""
    pids: set[int] = set()
    for directory in directories:
        for path, _, _ in os.walk(directory):
            with suppress(OSError):
                pids.update(map(int, Path(path, "cgroup.procs").read_text().split()))
    # 0 stands for a process in another pid namespace; kill(0) would signal our own group
    return sorted(pid for pid in pids if pid > 1 and pid != os.getpid())


def end_members(directories: Sequence[Path], timeout_s: float = END_TIMEOUT_S) -> list[int]:
    """Kill every member and wait until none is left; returns those that survived the timeout."""
    deadline_s = time.monotonic() + timeout_s
    pause_s = FIRST_PAUSE_S
    while members := members_of(directories):
        if not _kill_groups(directories):
            _kill_frozen(directories)
        if time.monotonic() > deadline_s:
            return members
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_PAUSE_S)
    return []


def remove_directories(directories: Sequence[Path], timeout_s: float = END_TIMEOUT_S) -> list[Path]:
    """Kill the members and remove the groups, the deepest first; returns those that could not be
    removed."""
    deadline_s = time.monotonic() + timeout_s
    pause_s = FIRST_PAUSE_S
    while remaining := [directory for directory in directories if not _remove_tree(directory)]:
        if time.monotonic() > deadline_s:
            return remaining
        # a process may have joined after the check, such as a wrapper that was starting
        end_members(remaining, max(0.0, deadline_s - time.monotonic()))
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_PAUSE_S)
    return []


def remove_directory(directory: Path) -> bool:
    """Remove one empty group; False while it is busy or cannot be removed."""
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_tree(directory: Path) -> bool:
    below = [Path(path) for path, _, _ in os.walk(directory, topdown=False)]
    return all(remove_directory(path) for path in (below or [directory]))


def _kill_groups(directories: Sequence[Path]) -> bool:
    """Use ``cgroup.kill``, which no fork can escape; False if it does not cover all members."""
    killable = [
        directory for directory in directories if _try_write(directory / "cgroup.kill", "1")
    ]
    return bool(killable) and set(members_of(directories)) <= set(members_of(killable))


def _kill_frozen(directories: Sequence[Path]) -> None:
    """Kill the members one by one, frozen if possible, so they cannot fork meanwhile."""
    freezers = [path for path in directories if _try_write(path / "freezer.state", "FROZEN")]
    deadline_s = time.monotonic() + FREEZE_TIMEOUT_S
    while any(_is_freezing(path) for path in freezers) and time.monotonic() < deadline_s:
        time.sleep(FIRST_PAUSE_S)
    for pid in members_of(directories):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    for path in freezers:
        _try_write(path / "freezer.state", "THAWED")


def _is_freezing(directory: Path) -> bool:
    try:
        return (directory / "freezer.state").read_text().strip() == "FREEZING"
    except OSError:
        return False


def _try_write(path: Path, value: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.write(descriptor, value.encode()) > 0
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)


def process_stat(pid: int) -> tuple[str, int, int] | None:
    """State, session and start time in ticks of a process; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = text.rpartition(")")[2].split()  # the name before it may contain anything
        return fields[0], int(fields[3]), int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def session_members(session: int, started_ticks: int) -> list[int]:
    """The living processes of the session that began at this time; none if its pid was reused."""
    leader = process_stat(session)
    if leader is not None and leader[2] != started_ticks:
        return []
    pids: list[int] = []
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        stat = process_stat(pid)
        if stat and stat[0] not in "ZX" and stat[1] == session and stat[2] >= started_ticks:
            pids.append(pid)
    return pids


def mark_process(pid: int, mark: str) -> None:
    """Mark a process that was just started, and thereby all that it starts, with a limit that
    outlives a change of its environment variables, session, user and control group."""
    with suppress(OSError, ValueError, AttributeError):  # it ended, or macOS
        hard = resource.prlimit(pid, resource.RLIMIT_MSGQUEUE)[1]
        resource.prlimit(pid, resource.RLIMIT_MSGQUEUE, (_marking_limit(mark), hard))


def _marking_limit(mark: str) -> int:
    """A value for each mark, of which at least half of the default remains."""
    half = QUEUE_BYTES // 2
    return half + int.from_bytes(hashlib.sha256(mark.encode()).digest()[:8], "big") % half


def marked_processes(mark: str) -> list[int]:
    """The living processes that inherited this mark. The variables of other users' processes are
    not visible, but their limits are."""
    pids = {pid for pid, inherited in marks().items() if inherited == mark}
    for pid in (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        if has_marking_limit(pid, mark) and _is_alive(pid):
            pids.add(pid)
    return sorted(pids)


def has_marking_limit(pid: int, mark: str) -> bool:
    """Whether the process inherited the limit of this mark."""
    with suppress(OSError):
        limits = Path(f"/proc/{pid}/limits").read_text()
        return re.search(rf"^Max msgqueue size +{_marking_limit(mark)} ", limits, re.M) is not None
    return False


def escaped_from(directories: Sequence[Path], mark: str) -> dict[int, str]:
    """The living processes with this mark that are not in all of these groups, and their names."""
    marked = marked_processes(mark)
    outside = _outside(directories, marked)
    if outside:
        time.sleep(MAX_PAUSE_S)  # a process that ends has left its groups slightly earlier
    names = {}
    for pid in _outside(directories, outside):
        with suppress(OSError):
            names[pid] = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return {pid: name for pid, name in names.items() if _is_alive(pid)}


def _outside(directories: Sequence[Path], pids: Iterable[int]) -> list[int]:
    members = set.intersection(*(set(members_of([directory])) for directory in directories))
    return [pid for pid in pids if pid not in members]


def _is_alive(pid: int) -> bool:
    stat = process_stat(pid)
    return stat is not None and stat[0] not in "ZX"


def marks(processes: Path = Path("/proc")) -> dict[int, str]:
    """The marks of all living processes that inherited one, by pid."""
    variable = f"{GROUP_VARIABLE}=".encode()
    marks_by_pid: dict[int, str] = {}
    with suppress(OSError):
        for entry in processes.iterdir():
            with suppress(OSError, ValueError):
                pid = int(entry.name)
                if not _is_alive(pid):
                    continue
                for assignment in (entry / "environ").read_bytes().split(b"\0"):
                    if assignment.startswith(variable):
                        marks_by_pid[pid] = os.fsdecode(assignment[len(variable) :])
    return marks_by_pid


def is_in_our_namespace(pid: int) -> bool:
    """Whether the process is in our pid namespace."""
    try:
        return Path(f"/proc/{pid}/ns/pid").readlink() == Path("/proc/self/ns/pid").readlink()
    except OSError:
        return False


def end_session(session: int, started_ticks: int, timeout_s: float = END_TIMEOUT_S) -> list[int]:
    """Kill a whole session and wait until it is empty; returns those that survived the timeout."""
    return kill_all(lambda: session_members(session, started_ticks), timeout_s)


def end_marked(mark: str, timeout_s: float = END_TIMEOUT_S) -> list[int]:
    """Kill all processes with this mark and wait until none is left; returns those that survived
    the timeout."""
    return kill_all(lambda: marked_processes(mark), timeout_s)


def kill_all(find_members: Callable[[], list[int]], timeout_s: float = END_TIMEOUT_S) -> list[int]:
    """Kill the processes that ``find_members`` returns until it returns none; returns those that
    survived the timeout."""
    deadline_s = time.monotonic() + timeout_s
    pause_s = FIRST_PAUSE_S
    while members := find_members():
        for pid in members:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline_s:
            return members
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_PAUSE_S)
    return []


def remove_left_by(creator: Creator) -> None:
    """Kill and remove everything that a killed process left behind, identified by its pid in the
    names, so unregistered groups are included."""
    prefix = f"wsgiload-{creator.pid}-"
    kill_all(lambda: _marked_by(prefix))
    directories = [
        path
        for base in creator.bases
        for path in _beginning_with(prefix, Path(base))
        if path.is_dir()
    ]
    end_members(directories)
    remove_directories(directories)
    for parent in creator.temporary_folders:
        for folder in _beginning_with(creator.folder_prefix, Path(parent)):
            _remove_folder(folder)


def _marked_by(prefix: str) -> list[int]:
    marked = [pid for pid, mark in marks().items() if mark.startswith(prefix)]
    return [pid for pid in marked if is_in_our_namespace(pid)]


def _beginning_with(prefix: str, parent: Path) -> list[Path]:
    try:
        return [path for path in parent.iterdir() if path.name.startswith(prefix)]
    except OSError:
        return []


def _remove_folder(folder: Path) -> None:
    """Remove a folder of this user, unless a process with the same pid in another container has
    locked it."""
    with suppress(OSError):
        if folder.lstat().st_uid == os.geteuid() and _is_unlocked(folder):
            shutil.rmtree(folder)


def _is_unlocked(folder: Path) -> bool:
    """Whether the lock is free. Waits, because the kernel releases a killed process's lock slightly
    after it closes our input."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    deadline_s = time.monotonic() + LOCK_TIMEOUT_S
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if time.monotonic() > deadline_s:
                return False
            time.sleep(MAX_PAUSE_S)
    finally:
        os.close(descriptor)


def main() -> None:
    """Read the register from standard input; at its end, kill and remove everything in the
    register.

    Lines are ``add <json>`` and ``drop <json>``, with the keys of an ``Entry``. ``end`` announces
    a normal exit; without it, the creator was killed, and everything that it created is removed.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # ends only with its parent
    creator, register, is_orderly = Creator(**json.loads(sys.argv[1])), dict[str, Entry](), False
    for line in sys.stdin:
        verb, _, payload = line.partition(" ")
        is_orderly = verb.strip() == END
        if is_orderly:
            break
        entry = Entry(**json.loads(payload))
        if verb == "add":
            register[entry.name] = entry
        else:
            register.pop(entry.name, None)

    for entry in register.values():
        directories = [Path(path) for path in entry.directories]
        end_members(directories)
        for session, started_ticks in entry.sessions:
            end_session(session, started_ticks)
        if entry.mark:
            end_marked(entry.mark)
        remove_directories(directories)
    if not is_orderly:
        remove_left_by(creator)


if __name__ == "__main__":
    main()
