"""Reads and writes the kernel's cgroup files: mounts, memberships, values, counters.

Every function takes the directory or the root, so tests can provide a fake cgroupfs.
"""

from __future__ import annotations

import errno
import os
import pwd
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wsgiload.limits.model import COUNTER_NAMES, Counters

NS_PER_US = 1_000
SYSTEMD_SIGN = "/run/systemd/system"  # checked by sd_booted(3)
DELEGATION_FIX = (
    "run as root, or start it as: systemd-run --user --scope -p Delegate=yes -- wsgiload …"
)
READ_ONLY_FIX = (
    "in a container, start it with docker run --privileged, or podman run --security-opt "
    "unmask=/sys/fs/cgroup; "
    "elsewhere as root: mount -o remount,rw on that file system"
)
READ_BYTES = 16_384
# Minimum intervals between reads of counters that are expensive, or meaningless over shorter times.
EVERY_PERIOD_NS = 100_000_000
EVERY_SECOND_NS = 1_000_000_000

Parser = Callable[[str], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Mount:
    """One mounted hierarchy; ``visible_root`` is the group at which the mount begins."""

    directory: Path
    visible_root: str
    version: int
    controllers: frozenset[str]


def under(root: Path, absolute: str) -> Path:
    """An absolute path, moved below ``root``."""
    return root / absolute.lstrip("/")


def read_text(path: Path) -> str | None:
    """The stripped content; None if the file is missing or unreadable."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None


def read_int(path: Path) -> int | None:
    """The number in a file; None if there is none, or if it is ``max``."""
    try:
        return int(read_text(path) or "")
    except ValueError:
        return None


def write_text(path: Path, value: str) -> None:
    """Write to an existing file; unlike ``Path.write_text``, this never creates one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Create a group; on a real cgroupfs, the kernel adds its files."""
    path.mkdir()


def fix_of(error: OSError) -> str:
    """The fix after the kernel refused to create a group or to write to one."""
    if error.errno == errno.EROFS:
        return READ_ONLY_FIX
    if Path(SYSTEMD_SIGN).is_dir():
        return DELEGATION_FIX
    return READ_ONLY_FIX if os.geteuid() == 0 else _as_root()


def _as_root() -> str:
    """This command as root, with the app running as the present user."""
    is_command = Path(sys.argv[0]).stem in ("wsgiload", "__main__")
    words = [sys.executable, *sys.orig_argv[1:]] if is_command else ["wsgiload", "…"]
    # The servers must be where the user can read them.
    cache = 'WSGILOAD_CACHE_DIR="${WSGILOAD_CACHE_DIR:-$HOME/.cache/wsgiload}"'
    return f"sudo {cache} {shlex.join(words)} --user {user_name(os.geteuid())}"


def user_name(user_id: int) -> str:
    """The name of a user; its number if it has none."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def missing_controller(controller: str, directory: Path) -> str:
    """A message that a limit's controller is not available, and how to enable it."""
    how = "cgroup_enable=memory on the kernel command line, or " if controller == "memory" else ""
    how += "Delegate=cpu cpuset memory pids in a drop-in of user@.service"
    return f"the {controller} controller is not available in {directory}; it may need {how}"


def find_mounts(root: Path) -> list[Mount]:
    """The cgroup mounts of this process, from /proc/self/mountinfo."""
    text = read_text(under(root, "/proc/self/mountinfo")) or ""
    return [mount for line in text.splitlines() if (mount := _parse_mount(root, line))]


def _parse_mount(root: Path, line: str) -> Mount | None:
    head, _, tail = line.partition(" - ")
    before, after = head.split(), tail.split()
    if len(before) < 5 or len(after) < 3 or after[0] not in ("cgroup", "cgroup2"):
        return None
    # mountinfo escapes spaces as octal
    point = before[4].replace("\\040", " ")
    options = frozenset(after[2].split(","))
    return Mount(under(root, point), before[3], 2 if after[0] == "cgroup2" else 1, options)


def own_memberships(root: Path) -> dict[str, str]:
    """The path of this process's group by controller; the v2 hierarchy has the key ``""``."""
    return memberships_of("self", root)


def memberships_of(process: int | str, root: Path) -> dict[str, str]:
    """Like ``own_memberships`` for any process; empty if it does not exist."""
    memberships: dict[str, str] = {}
    for line in (read_text(under(root, f"/proc/{process}/cgroup")) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        memberships.update(dict.fromkeys(controllers.split(","), path))
    return memberships


def own_directory(mount: Mount, path: str) -> Path:
    """The directory of the group ``path``; a mount may show only a part of its hierarchy."""
    inside = mount.visible_root.rstrip("/")
    if inside and not (path == inside or path.startswith(inside + "/")):
        return mount.directory
    return under(mount.directory, path[len(inside) :])


def ancestors(directory: Path, top: Path) -> Iterator[Path]:
    """The directory and everything above it, up to and including ``top``."""
    yield directory
    while directory != top and top in directory.parents:
        directory = directory.parent
        yield directory


def minimum(values: Sequence[float | None]) -> float | None:
    """The smallest of the known values; None if there are none."""
    return min((value for value in values if value is not None), default=None)


def swap_is_on(root: Path) -> bool:
    """Whether this machine has swap (the file's first line is a heading)."""
    return len((read_text(under(root, "/proc/swaps")) or "").splitlines()) > 1


def flat_keys(text: str) -> dict[str, int]:
    """``key value`` lines, the format of cpu.stat, memory.stat and memory.events."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        with suppress(ValueError):
            values[key] = int(value)
    return values


def renamed(columns: Mapping[str, str], factor: int = 1) -> Parser:
    """A parser of flat keys that keeps and renames those in ``columns``."""

    def parse(text: str) -> dict[str, int]:
        values = flat_keys(text)
        return {name: values[key] * factor for key, name in columns.items() if key in values}

    return parse


def single(name: str) -> Parser:
    """A parser of a file with a single number."""
    return lambda text: {name: int(text)}


def pressure(columns: Mapping[str, str]) -> Parser:
    """A parser of PSI files: the total of the lines ``some`` and ``full``, in nanoseconds."""

    def parse(text: str) -> dict[str, int]:
        totals: dict[str, int] = {}
        for line in text.splitlines():
            kind, _, rest = line.partition(" ")
            if kind in columns and "total=" in rest:
                totals[columns[kind]] = int(rest.rpartition("total=")[2]) * NS_PER_US
        return totals

    return parse


CPU_PRESSURE = pressure({"some": "psi_cpu_some_ns", "full": "psi_cpu_full_ns"})
MEMORY_PRESSURE = pressure({"some": "psi_memory_some_ns", "full": "psi_memory_full_ns"})
IO_PRESSURE = pressure({"some": "psi_io_some_ns", "full": "psi_io_full_ns"})


@dataclass(frozen=True, slots=True)
class CounterSource:
    """One file with counters; ``spacing_ns`` is the minimum time between reads (0: every
    sample)."""

    path: Path
    parse: Parser
    spacing_ns: int = 0


def parse_texts(texts: Iterable[tuple[Parser, bytes]]) -> Counters:
    """The counters in the contents of files; None for those of invalid files."""
    values: dict[str, int] = {}
    for parse, data in texts:
        with suppress(ValueError):
            values.update(parse(data.decode()))
    return Counters(**{name: value for name, value in values.items() if name in COUNTER_NAMES})


class CounterFiles:
    """Reads counters from files that stay open, at a fifteenth of the cost of reopening them.

    Counters of missing or failing files are None.
    """

    def __init__(self, sources: Sequence[CounterSource]) -> None:
        self._lock = threading.Lock()  # prevents reading a closed and reused file descriptor
        self._files: list[tuple[int, Parser]] = []
        for source in sources:
            with suppress(OSError):
                self._files.append((os.open(source.path, os.O_RDONLY | os.O_CLOEXEC), source.parse))

    def read(self) -> Counters:
        """All current counters."""
        texts: list[tuple[Parser, bytes]] = []
        with self._lock:
            for descriptor, parse in self._files:
                with suppress(OSError):
                    texts.append((parse, os.pread(descriptor, READ_BYTES, 0)))
        return parse_texts(texts)

    def close(self) -> None:
        """Close the files; later reads return nothing."""
        with self._lock:
            for descriptor, _ in self._files:
                os.close(descriptor)
            self._files.clear()
