"""The memory figure is what a server needs: it serves with a limit slightly above the figure, and
not with half of it."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from .command import Command, CommandResult

pytestmark = [pytest.mark.servers, pytest.mark.limits]

MIB = 1024**2
ANONYMOUS_BYTES, SHARED_BYTES, FILE_BYTES = 96 * MIB, 16 * MIB, 160 * MIB
# The interpreter, the server and their kernel memory.
OTHER_BYTES = 40 * MIB
APP = f"""
    import mmap, os

    anonymous = b"x" * {ANONYMOUS_BYTES}
    shared = mmap.mmap(-1, {SHARED_BYTES})
    for _ in range({SHARED_BYTES // MIB}):
        shared.write(b"x" * {MIB})

    # Pages that another process has read are charged to that process, so drop them first.
    file = os.open("large", os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    while os.read(file, {MIB}):
        pass

    def app(environ, start_response):
        os.pread(file, 65536, int.from_bytes(os.urandom(4), "big") % {FILE_BYTES})
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""
IMPORT = f"""
    import time

    parsed = b"x" * {ANONYMOUS_BYTES}
    time.sleep(0.5)
    del parsed

    def app(environ, start_response):
        start_response("200 OK", [("Content-Length", "0")])
        return []
"""


@pytest.fixture
def hungry(command: Command) -> Command:
    """The command in a folder with an app that needs a known amount of memory and reads a file that
    is larger."""
    folder = command.folder
    kind = subprocess.check_output(["stat", "-f", "-c", "%T", folder], text=True).strip()
    if kind == "tmpfs":
        pytest.skip(f"{folder} is on a tmpfs, whose files are not page cache")
    (folder / "hungry.py").write_text(textwrap.dedent(APP))
    _write_file(folder / "large")
    return command


def _write_file(path: Path) -> None:
    """Write the file to the disk: the kernel cannot drop pages before they are written."""
    with path.open("wb") as file:
        for _ in range(FILE_BYTES // MIB):
            file.write(os.urandom(MIB))
        file.flush()
        os.fsync(file.fileno())


def sweep(command: Command, server: str, memory_bytes: int) -> tuple[CommandResult, dict[str, Any]]:
    """A short load with this memory limit, and its cell."""
    result = command.run(
        *("sweep", "hungry:app", "--servers", server, "--memory", f"{memory_bytes // 1024}KiB"),
        *("--rates", "20", "--duration", "3s", "--warmup", "500ms", "--cooldown", "0s", "--quiet"),
    )
    (cell,) = result.cells.values()
    return result, cell


@pytest.mark.parametrize("server", ["waitress", "gunicorn-gthread"])
def test_a_server_runs_in_little_more_than_its_memory_figure_but_not_in_half_of_it(
    hungry: Command, server: str
) -> None:
    _, cell = sweep(hungry, server, 1024 * MIB)
    used = cell["resources"]
    workers = cell["settings"]["workers"] or 1
    known_bytes = workers * (ANONYMOUS_BYTES + SHARED_BYTES)
    figure_bytes = used["memory_peak_bytes"]
    assert known_bytes < figure_bytes < known_bytes + (workers + 1) * OTHER_BYTES
    assert used["page_cache_peak_bytes"] > 0.9 * FILE_BYTES

    _, cell = sweep(hungry, server, round(1.1 * figure_bytes))
    assert cell["failure"] is None
    assert cell["outcomes"]["ok"] > 0.9 * cell["outcomes"]["scheduled"] > 0
    assert cell["resources"]["memory_peak_bytes"] == pytest.approx(figure_bytes, rel=0.1)

    result, cell = sweep(hungry, server, figure_bytes // 2)
    assert result.code == 97
    assert cell["resources"]["oom_kills"] >= 1
    assert "needs more memory than its limit" in cell["failure"]["message"]


def test_memory_that_only_the_import_of_the_app_needs_counts(command: Command) -> None:
    """gunicorn accepts connections before its worker imports the app."""
    (command.folder / "hungry.py").write_text(textwrap.dedent(IMPORT))
    _, cell = sweep(command, "gunicorn-gthread", 1024 * MIB)
    used = cell["resources"]
    assert used["memory_mean_bytes"] < OTHER_BYTES
    assert ANONYMOUS_BYTES < used["memory_peak_bytes"] < ANONYMOUS_BYTES + OTHER_BYTES
