"""The lock of an environment: normally the file next to the server's file. For a version that the
user requested, or a user's server file without a lock, uv resolves it once and it is cached.

An environment is used again only if it is unchanged: its interpreter, the layering, and every file
with a checksum in the packages' RECORDs; no program or module may be outside of them. Bytecode has
no checksum; the interpreter rebuilds it if its source is newer.
"""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from wsgiload.account import require_own_program
from wsgiload.catalogue.contract import Server
from wsgiload.catalogue.names import DEFAULT_FOLDER
from wsgiload.environments.cache import cache_folder
from wsgiload.environments.interpreter import AppInterpreter, clean_variables, normalise
from wsgiload.errors import ProvisionError, UsageError
from wsgiload.host.memory_guard import unguarded
from wsgiload.scratch import scratch_folder

# For every supported interpreter; with hashes, so only these files can be installed; without index
# URLs.
COMPILE = (
    "--universal",
    "--generate-hashes",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
)
_NO_SUCH_VERSION = "No solution found"


def known_lock(server: Server, interpreter: AppInterpreter) -> Path:
    """The path of a server's lock, which may not exist yet; resolves nothing."""
    if not _needs_resolving(server):
        return server.lock_path
    key = json.dumps([server.requirements, server.overrides, interpreter.minor])
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return cache_folder() / "locks" / f"{server.key}-{digest}.txt"


def lock_of(server: Server, interpreter: AppInterpreter, log: Callable[[str], None]) -> Path:
    """The lock of a server, resolved now if necessary. Raises ProvisionError."""
    path = known_lock(server, interpreter)
    if path.exists() or not _needs_resolving(server):
        return path
    log(f"resolving {server.key}")
    text = _resolve_lock(server, interpreter)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as unfinished:
            unfinished.write(text)
        Path(unfinished.name).rename(path)
    except OSError as error:
        cause = f"cannot write to the cache {path.parent}: {error.strerror}"
        fix = "set WSGILOAD_CACHE_DIR to a writable directory"
        raise ProvisionError(cause, fix, step="provision") from error
    return path


def _needs_resolving(server: Server) -> bool:
    is_ours = server.source.parent.resolve() == DEFAULT_FOLDER.resolve()
    return server.pinned is not None or (not is_ours and not server.lock_path.exists())


def _resolve_lock(server: Server, interpreter: AppInterpreter) -> str:
    completed = resolve(server.requirements, server.overrides, "{}.{}".format(*interpreter.minor))
    if completed.returncode == 0:
        return completed.stdout
    text = " ".join(completed.stderr.split())
    because = re.search(r"Because .*", text)
    why = because[0].rstrip(".") if because else text.removeprefix("error: ")
    fix = "check the connection to the package index, then run it again"
    if _NO_SUCH_VERSION in text:
        fix = f"choose another version of {server.distribution or server.name}"
    cause = f"{server.key} could not be resolved: {why}"
    raise ProvisionError(cause, fix, step="provision", log_tail=completed.stderr)


def resolve(
    requirements: Sequence[str], overrides: Sequence[str], python: str
) -> subprocess.CompletedProcess[str]:
    """uv's output for locking these requirements for this Python version and later ones."""
    if not requirements:
        return subprocess.CompletedProcess([], 0, "", "")
    with scratch_folder() as folder, unguarded():
        override = folder / "overrides.txt"
        override.write_text("\n".join(overrides))
        words = [uv_program(), "pip", "compile", *COMPILE, "--python-version", python]
        words += ["--override", str(override)] if overrides else []
        return subprocess.run(
            [*words, "-"],
            input="\n".join(requirements),
            cwd=folder,  # uv reads the configuration of the project it is started in
            env=uv_variables(),
            text=True,
            capture_output=True,
            check=False,
        )


OLDEST = (0, 8)


@functools.cache
def uv_program() -> str:
    """The path of uv: that on PATH if it is new enough, otherwise that of the dependency. Raises
    ProvisionError if both are missing."""
    found = shutil.which("uv")
    if found is not None and _is_usable(Path(found)):
        return found
    try:
        from uv import find_uv_bin  # only here: where PATH has uv, the package may be left out

        return str(find_uv_bin())
    except (ImportError, FileNotFoundError) as error:
        raise ProvisionError("the program uv is missing", "python -m pip install uv") from error


def _is_usable(program: Path) -> bool:
    """Whether a uv is new enough, and may run as this user."""
    with suppress(OSError, UsageError, subprocess.TimeoutExpired):
        require_own_program(program, "run it")
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10)
        version = re.match(r"uv (\d+)\.(\d+)", said.stdout)
        return version is not None and tuple(map(int, version.groups())) >= OLDEST
    return False


def uv_variables() -> dict[str, str]:
    """The environment variables for uv."""
    variables = clean_variables(os.environ, Path())
    del variables["PYTHONPATH"]  # a build must not see the app
    # uv must use the app's interpreter and never download another one.
    return variables | {"UV_PYTHON_DOWNLOADS": "never", "NO_COLOR": "1"}


# Written last, so an environment without it is incomplete.
FACTS_FILE = "wsgiload.json"
METHOD = "sha256"
# What an interpreter imports or executes. Servers add other files while they run, such as Twisted's
# cache of plugins.
IMPORTED = {".py", ".pyc", ".pth", ".so"}
# uv writes these into environments of PyPy; no RECORD lists them.
OF_UV = ("_virtualenv.py", "_virtualenv.pth")
# What an environment without packages contains in ``bin``.
OF_VENV = re.compile(r"(activate|deactivate|pydoc|python|pypy).*")
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
    listed = {site_packages / name for name in (*our_files, *OF_UV)}
    for record in sorted(site_packages.glob("*.dist-info/RECORD")):
        checksums = _read_record(record)
        if checksums is None:
            yield f"{record} is damaged"
            return
        yield from _changed_files(record, checksums)
        listed |= checksums.keys()
    for path in _programs_and_modules(folder / "bin", site_packages):
        if path not in listed:
            yield f"{path} was added, or is missing in the RECORD of its package"
    if installed_distributions(folder) != dict(distributions):
        yield f"{folder / FACTS_FILE} does not list the packages that {site_packages} contains"


def _read_record(record: Path) -> dict[Path, str] | None:
    """The files of a package and their checksums; None if the RECORD is damaged."""
    try:
        rows = list(csv.reader(_text_of(record).splitlines()))
    except csv.Error:
        return None
    if not rows or any(len(row) != 3 for row in rows):
        return None
    folder = record.parent.parent
    return {Path(os.path.normpath(folder / name)): checksum for name, checksum, _ in rows}


def _changed_files(record: Path, checksums: Mapping[Path, str]) -> Iterator[str]:
    for path, checksum in checksums.items():
        method, _, expected = checksum.partition("=")
        if method == METHOD:
            if not path.is_file():
                yield f"{path} is listed in {record} but missing"
            digest = hashlib.sha256(path.read_bytes()).digest()
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != expected:
                yield f"{path} does not match {record} (checksum mismatch)"


def _programs_and_modules(programs: Path, site_packages: Path) -> Iterator[Path]:
    yield from (path for path in programs.iterdir() if not OF_VENV.fullmatch(path.name))
    for parent, folders, files in os.walk(site_packages):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        yield from (Path(parent, name) for name in folders if Path(parent, name).is_symlink())
        yield from (Path(parent, name) for name in files if Path(name).suffix in IMPORTED)


def _text_of(path: Path) -> str:
    """The text of a file; invalid text never equals the original."""
    return path.read_bytes().decode(errors="replace")
