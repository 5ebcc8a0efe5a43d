"""The lock of an environment: normally the file next to the server's file. For a version that the
user requested, or a user's server file without a lock, it is resolved once and cached."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from wsgiload.catalogue.contract import Server
from wsgiload.catalogue.names import DEFAULT_FOLDER
from wsgiload.environments.cache import cache_folder
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.uv import uv_program, uv_variables
from wsgiload.errors import ProvisionError
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
