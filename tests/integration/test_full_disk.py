"""A disk that is full or read-only: the message names path, cause and what is safe, and every cell is
stored completely or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from wsgiload.results.integrity import damages, read_load

from .command import SCRIPT, Command, CommandResult, read_json

pytestmark = pytest.mark.servers

BRIEFLY = ("--duration", "300ms", "--warmup", "0s", "--cooldown", "0s", "--limits", "none")
# In a mount namespace of its own: a file system for the runs, of which a copy is all that stays.
MOUNTED = (
    'mount -t tmpfs -o "$1" tmpfs "$2" || exit 125; folder="$2"; copy="$3"; shift 3; '
    '"$@"; code=$?; cp -r "$folder/." "$copy"; exit $code'
)


@pytest.fixture(autouse=True)
def needs_mounts() -> None:
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if os.geteuid() != 0 or done.returncode != 0:
        pytest.skip("needs root, and mount namespaces")


def sweep_onto(command: Command, options: str, *words: object) -> tuple[CommandResult, Path]:
    """A sweep whose runs are on a file system mounted like this, and a copy of that."""
    folder, copy = command.folder / "disk", command.folder / "copy"
    folder.mkdir()
    copy.mkdir()
    program = ["unshare", "--mount", "/bin/sh", "-c", MOUNTED, "sh", options]
    program += [str(folder), str(copy), str(SCRIPT)]
    done = command.run("sweep", "--servers", "wsgiref", *words, "--out", folder, program=program)
    return done, copy


def test_a_read_only_disk_is_named_before_anything_is_measured(command: Command) -> None:
    done, copy = sweep_onto(command, "ro", "--rates", 50, *BRIEFLY)
    assert done.code == 2
    (line,) = done.messages
    assert line.startswith(f"wsgiload: cannot create the run directory {command.folder}/disk/")
    assert line.endswith("Read-only file system; choose another directory with --out")
    assert list(copy.iterdir()) == []


@pytest.mark.parametrize("kibibytes", [48, 96, 160])
def test_a_full_disk_costs_only_the_cell_under_way(command: Command, kibibytes: int) -> None:
    rates = ",".join(str(rate) for rate in range(50, 66))
    done, copy = sweep_onto(command, f"size={kibibytes}k", "--rates", rates, *BRIEFLY)
    assert done.code == 2, done.err
    line = done.messages[-1]
    assert "No space left on device" in line and f"{command.folder}/disk/" in line
    assert "every cell before this one is stored" in line
    assert "free disk space, then continue with `wsgiload sweep --resume " in line

    (run,) = copy.iterdir()
    cells = [cell["id"] for cell in read_json(run / "summary.json")["cells"]]
    assert len(cells) < 16
    for cell in cells:
        assert read_load(run / "load" / f"{cell}.json").outcomes.ok > 0
    assert damages(run) == []
    shutil.rmtree(copy)
