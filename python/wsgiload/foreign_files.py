"""Reads files from elsewhere within bounds, and replaces files as a whole.

A file that is found in a run directory must be a regular file: no link, pipe or device. A file that
the user names may be behind a link, or be a pipe that another program writes to. Decodes nothing.
"""

from __future__ import annotations

import errno
import gzip
import math
import os
import select
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wsgiload.errors import UsageError

MULTIPLIER = "WSGILOAD_FILE_BOUNDS"
# The end of the names of files that are not complete.
UNFINISHED = ".unfinished"
MIB = 1 << 20
_CHUNK_BYTES = MIB
STANDARD_INPUT = "-"
_GZIP_MARK = b"\x1f\x8b"
# Of a pipe, or of packed content: gzip can pack a thousand bytes into one.
_MAX_COPIED_BYTES = 1024 * MIB
# A pipe that no program has opened for writing within this time will hardly get a writer.
_WRITER_MS = 3_000
_NOT_A_FILE: dict[str, Callable[[int], bool]] = {
    "a directory": stat.S_ISDIR,
    "a link": stat.S_ISLNK,
    "a pipe": stat.S_ISFIFO,
    "a socket": stat.S_ISSOCK,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
}
_REMOVE = "restore or remove it, if you know where this directory comes from"


class RefusedFile(UsageError):
    """A file that is not read, or only in part: not a regular file, beyond a bound, unreadable, or
    changed while it was read. A missing file is a FileNotFoundError."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file from elsewhere, with its bounds."""

    name: str
    max_bytes: int
    max_line_bytes: int | None = None
    max_lines: int | None = None
    # Cells of a summary.
    max_entries: int | None = None
    # JSON or TOML, whose parsers refuse a deeply nested file.
    is_nested: bool = False
    # Whether the user chooses the file, which may then be behind a link, or be a pipe.
    is_named: bool = False
    # What to do instead of raising a bound.
    fix: str | None = None


SUMMARY = FileKind("summary", 128 * MIB, max_entries=5_000, is_nested=True)
CAPACITY = FileKind("capacity result", 64 * MIB, is_nested=True)
RUN_INFO = FileKind("run description", 16 * MIB, is_nested=True)
LOAD_REPORT = FileKind("load report", 64 * MIB, is_nested=True)
MANIFEST = FileKind("manifest", 16 * MIB, is_nested=True)
TABLE = FileKind("table of a run", 512 * MIB, max_line_bytes=64 << 10, max_lines=1_000_000)
# Any file of a run: for its checksum, for a resume, or to embed it in the page.
RUN_FILE = FileKind("file of a run", 1024 * MIB)
OTHER_RESULT = FileKind(
    "result of another tool",
    16 * MIB,
    is_nested=True,
    is_named=True,
    fix="audit the summary, not the individual requests",
)
HAR = FileKind("HAR file", 512 * MIB, is_nested=True, is_named=True)
OPENAPI = FileKind("OpenAPI description", 32 * MIB, is_nested=True, is_named=True)
BODY = FileKind("body", 64 * MIB, is_named=True)
HEADERS = FileKind(
    "header fields", MIB, is_named=True, fix="name a file with one header field per line"
)
VARIABLES = FileKind("environment variables", MIB, is_named=True)
CONFIGURATION = FileKind("configuration", MIB, is_nested=True, is_named=True)
TARGETS = FileKind("targets", 256 * MIB, max_line_bytes=64 * MIB, is_named=True)
SESSIONS = FileKind("sessions", 256 * MIB, max_line_bytes=64 * MIB, is_named=True)
RECORDING = FileKind(
    "trace or access log",
    4096 * MIB,
    max_line_bytes=MIB,
    max_lines=20_000_000,
    is_named=True,
)
KINDS = tuple(value for value in vars().values() if isinstance(value, FileKind))


def read_file(kind: FileKind, path: Path) -> bytes:
    """The content of a file. Raises RefusedFile, or FileNotFoundError."""
    with _opened(kind, path) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return _piped(kind, path, file.fileno())
        before = _bounded(kind, path, file)
        content = file.read(_bound(kind.max_bytes) + 1)
        if _state(file) != before:
            raise _changed(path)
    return content


def read_lines(kind: FileKind, path: Path, errors: str = "strict") -> Iterator[str]:
    """The lines of a file, which may grow meanwhile. Raises like ``read_file``."""
    with _opened(kind, path) as file:
        for line in _lines(kind, path, file):
            yield line.decode(errors=errors)


def read_chunks(kind: FileKind, path: Path, max_bytes: int | None = None) -> Iterator[bytes]:
    """The first ``max_bytes`` of a file in parts. Raises like ``read_file``."""
    with _opened(kind, path) as file:
        size_bytes, _ = _bounded(kind, path, file)
        remaining = size_bytes if max_bytes is None else min(size_bytes, max_bytes)
        while remaining > 0 and (chunk := file.read(min(remaining, _CHUNK_BYTES))):
            yield chunk
            remaining -= len(chunk)
        if _state(file)[0] < size_bytes:
            raise _changed(path)


@contextmanager
def checked_input(kind: FileKind, name: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse a file before the generator's parsers open it, in the block; they name a missing one.
    A pipe stays open, so that its writer does not fail in between. Only the parsers can bound what
    they read from there, or from standard input (``-``)."""
    path = Path(name)
    if str(path) == "-" or not path.exists():
        yield
        return
    with _opened(kind, path) as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISREG(mode):
            _check_lines(kind, path, file)
        elif stat.S_ISFIFO(mode):
            _require_writer(path, file.fileno())
        yield


@contextmanager
def plain_input(kind: FileKind, name: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, bool]]:
    """A regular file with the content of a file that the user names, or of standard input (``-``),
    unpacked if gzip packed it; and whether packed content is cut off. Raises like ``read_file``."""
    path = Path(name)
    is_standard_input = str(path) == STANDARD_INPUT
    with checked_input(kind, path), ExitStack() as stack:
        if is_standard_input:
            path = Path("standard input")
            if sys.stdin.isatty():
                raise UsageError(f"{path} is a terminal", "redirect a file to standard input")
            source: BinaryIO = sys.stdin.buffer
        else:
            source = stack.enter_context(path.open("rb"))

        is_cut = False
        if is_standard_input or not path.is_file():
            copy = stack.enter_context(tempfile.TemporaryFile())
            _copy(kind, path, source.read, copy)
            source = copy
        source.seek(0)
        if source.read(2) == _GZIP_MARK:
            source.seek(0)
            packed = stack.enter_context(gzip.GzipFile(fileobj=source))
            copy = stack.enter_context(tempfile.TemporaryFile())
            is_cut = not _copy(kind, path, packed.read1, copy)
            source = copy
        source.seek(0)
        yield source, is_cut


def _copy(kind: FileKind, path: Path, read: Callable[[int], bytes], copy: BinaryIO) -> bool:
    """Copy within the bounds; return whether packed content is complete."""
    copied_bytes, bound, is_complete = 0, _bound(min(kind.max_bytes, _MAX_COPIED_BYTES)), True
    try:
        while chunk := read(_CHUNK_BYTES):
            copied_bytes += len(chunk)
            if copied_bytes > bound:
                raise _beyond(kind, path, f"has more than {_size(bound)}")
            copy.write(chunk)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        is_complete = False
    copy.seek(0)
    _check_lines(kind, path, copy)
    return is_complete


def require_entries(kind: FileKind, path: Path, entries: int) -> None:
    """Refuse a file with more entries than its kind may have."""
    if kind.max_entries is not None and entries > (bound := _bound(kind.max_entries)):
        raise _beyond(kind, path, f"has more than {bound:,} cells")


def too_deep(path: Path | str) -> RefusedFile:
    """The error for a file whose parser gave up."""
    return RefusedFile(f"{path} is nested too deeply", "no program writes such a file; restore it")


def require_plain(folder: Path) -> None:
    """Refuse a run directory that contains anything but files and directories: a link may lead
    anywhere, and a pipe never ends."""
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    mode = entry.stat(follow_symlinks=False).st_mode
                    if stat.S_ISDIR(mode):
                        pending.append(Path(entry.path))
                    elif not stat.S_ISREG(mode):
                        raise RefusedFile(f"{entry.path} is {_named(mode)}, not a file", _REMOVE)
        except FileNotFoundError:
            continue  # its reader says what is missing
        except OSError as error:
            raise RefusedFile(f"cannot read {error.filename}: {error.strerror}") from error


def replace_file(path: Path, data: bytes, *, is_synced: bool = False) -> None:
    """Write a file as a whole: it has its old content until all of the new one is written. A link
    is replaced, not followed. Raises OSError, and leaves nothing."""
    old_mode = 0
    with suppress(FileNotFoundError):
        old_mode = path.lstat().st_mode
    mode = stat.S_IMODE(old_mode) if stat.S_ISREG(old_mode) else None
    unfinished = None
    try:
        unfinished = new_sibling(path, data, mode, is_synced=is_synced)
        unfinished.replace(path)
    except OSError as error:
        if unfinished is not None:
            unfinished.unlink()
        error.filename = str(path)  # the other name says nothing to the user
        raise


def write_named(path: Path, data: bytes) -> None:
    """Write a file that the user names, which may also be a pipe or a device such as /dev/stdout.
    Raises OSError."""
    is_stream = path.absolute().parts[1:2] in (("dev",), ("proc",)) or (
        path.exists() and not path.is_file()
    )
    if is_stream:
        path.write_bytes(data)
        return
    try:
        replace_file(path, data)
    except PermissionError:  # a file may be writable in a folder that is not
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(fd, "wb") as file:
            file.write(data)


def new_sibling(
    path: Path, data: bytes, mode: int | None = None, *, is_synced: bool = False
) -> Path:
    """A new file with this content in the folder of ``path``, with a name for which nobody can
    prepare a link. Raises OSError, and leaves nothing."""
    sibling = path.with_name(f".{os.urandom(8).hex()}{UNFINISHED}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(sibling, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            if mode is not None:
                os.fchmod(fd, mode)
            file.write(data)
            file.flush()
            if is_synced:
                os.fsync(fd)
    except OSError:
        sibling.unlink()
        raise
    return sibling


@contextmanager
def _opened(kind: FileKind, path: Path) -> Iterator[BinaryIO]:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        fd = os.open(path, flags | (0 if kind.is_named else os.O_NOFOLLOW))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise _not_opened(kind, path, error) from error
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode) and not (kind.is_named and _may_be_read(fd, mode)):
            raise RefusedFile(f"{path} is {_named(mode)}, not a file", "name a regular file")
        with os.fdopen(fd, "rb", closefd=False) as file:
            yield file
    except OSError as error:
        raise RefusedFile(f"cannot read {path}: {error.strerror}") from error
    finally:
        os.close(fd)


def _may_be_read(fd: int, mode: int) -> bool:
    """Whether it is a pipe, a terminal or the null device, which a user may name."""
    is_null = os.fstat(fd).st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116
    return stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and (is_null or os.isatty(fd)))


def _not_opened(kind: FileKind, path: Path, error: OSError | ValueError) -> RefusedFile:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.ELOOP and not kind.is_named:
        return RefusedFile(f"{path} is a link, not a file", _REMOVE)
    if number == errno.ENXIO:
        return RefusedFile(f"{path} is a socket or a pipe, not a file", "name a regular file")
    cause = error.strerror if isinstance(error, OSError) else error
    return RefusedFile(f"cannot read {path}: {cause}")


def _named(mode: int) -> str:
    return next((name for name, is_one in _NOT_A_FILE.items() if is_one(mode)), "of another kind")


def _bounded(kind: FileKind, path: Path, file: BinaryIO) -> tuple[int, int]:
    """The state of a regular file within its bound."""
    state = _state(file)
    if state[0] > (bound := _bound(kind.max_bytes)):
        raise _beyond(kind, path, f"is larger than {_size(bound)}")
    return state


def _state(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _piped(kind: FileKind, path: Path, fd: int) -> bytes:
    """What a program writes into a pipe. The user may wait for it as long as it is open."""
    content, bound = bytearray(), _bound(kind.max_bytes)
    _require_writer(path, fd)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while len(content) <= bound:
        poll.poll()
        try:
            chunk = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            continue
        if not chunk:
            return bytes(content)
        content += chunk
    raise _beyond(kind, path, f"has more than {_size(bound)}")


def _require_writer(path: Path, fd: int) -> None:
    """Refuse a pipe that no program has opened for writing."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if poll.poll(_WRITER_MS):
        return
    with suppress(BlockingIOError):  # a program has opened it, but has not written yet
        if os.read(fd, 1):
            raise _changed(path)
        raise RefusedFile(f"{path} is a pipe that no program writes to", "name a file")


def _lines(kind: FileKind, path: Path, file: BinaryIO) -> Iterator[bytes]:
    """The lines that the file has now; they are refused if any of them change meanwhile."""
    before_bytes, before_ns = _bounded(kind, path, file)
    max_bytes, max_lines = _line_bounds(kind)
    number = read_bytes = 0
    while read_bytes < before_bytes and (line := file.readline(max_bytes + 1)):
        number, read_bytes = number + 1, read_bytes + len(line)
        if len(line) > max_bytes:
            raise _beyond(kind, path, f"has a line of more than {_size(max_bytes)}")
        if number > max_lines:
            raise _beyond(kind, path, f"has more than {max_lines:,} lines")
        yield line
    after_bytes, after_ns = _state(file)
    if after_bytes < before_bytes or (after_bytes == before_bytes and after_ns != before_ns):
        raise _changed(path)


def _check_lines(kind: FileKind, path: Path, file: BinaryIO) -> None:
    """Check only the bounds, faster than ``_lines``: no line is longer than its part of a chunk and
    the ones before it."""
    before = _bounded(kind, path, file)
    max_bytes, max_lines = _line_bounds(kind)
    number = open_bytes = 0
    while chunk := file.read(_CHUNK_BYTES):
        number += chunk.count(b"\n")
        first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
        if open_bytes + (len(chunk) if first < 0 else first) > max_bytes:
            raise _beyond(kind, path, f"has a line of more than {_size(max_bytes)}")
        if number > max_lines:
            raise _beyond(kind, path, f"has more than {max_lines:,} lines")
        open_bytes = open_bytes + len(chunk) if first < 0 else len(chunk) - last - 1
    if _state(file) != before:
        raise _changed(path)


def _line_bounds(kind: FileKind) -> tuple[int, float]:
    max_lines = math.inf if kind.max_lines is None else _bound(kind.max_lines)
    return _bound(kind.max_line_bytes or kind.max_bytes), max_lines


def _beyond(kind: FileKind, path: Path, excess: str) -> RefusedFile:
    raised = f"if you trust it, set {MULTIPLIER}={4 * _factor()} to raise the bounds of all files"
    return RefusedFile(f"{path} {excess}", kind.fix or raised)


def _changed(path: Path) -> RefusedFile:
    return RefusedFile(f"{path} changed while it was read", "try again when nothing writes to it")


def _bound(value: int) -> int:
    return value * _factor()


def _factor() -> int:
    """How much larger files may be, as the user allows."""
    text = os.environ.get(MULTIPLIER, "1")
    if not text.isascii() or not text.isdigit() or int(text[:9]) < 1:
        raise UsageError(f"{MULTIPLIER}={text!r} is not a whole number above 0", "write one like 4")
    return int(text[:9])


def _size(size_bytes: int) -> str:
    return f"{size_bytes >> 20} MiB" if size_bytes >= MIB else f"{size_bytes >> 10} KiB"
