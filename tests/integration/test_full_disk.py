"""Full and read-only disks: the message states path, cause and which cells are stored, and every
cell is stored completely or not at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from wsgiload.results.integrity import damages, read_load

from .command import SCRIPT, Command, CommandResult, read_json

pytestmark = pytest.mark.servers

BRIEFLY = ("--duration", "300ms", "--warmup", "0s", "--cooldown", "0s", "--limits", "none")
# Runs in a private mount namespace: mounts a tmpfs for the runs and copies its content, because the
# mount ends with the namespace.
RUN_ON_TMPFS = (
    'mount -t tmpfs -o "$1" tmpfs "$2" || exit 125; folder="$2"; copy="$3"; shift 3; '
    '"$@"; code=$?; cp -r "$folder/." "$copy"; exit $code'
)


@pytest.fixture(autouse=True)
def skip_without_mounts() -> None:
    """These tests need mount namespaces."""
    result = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if os.geteuid() != 0 or result.returncode != 0:
        pytest.skip("needs root and mount namespaces")


def sweep_onto(command: Command, options: str, *words: object) -> tuple[CommandResult, Path]:
    """Sweep onto a tmpfs with these mount options; returns the result and a copy of the tmpfs."""
    folder, copy = command.folder / "disk", command.folder / "copy"
    folder.mkdir()
    copy.mkdir()

    program = ["unshare", "--mount", "/bin/sh", "-c", RUN_ON_TMPFS, "sh", options]
    program += [str(folder), str(copy), str(SCRIPT)]
    result = command.run("sweep", "--servers", "wsgiref", *words, "--out", folder, program=program)
    return result, copy


def test_a_read_only_disk_is_an_error_before_any_measurement(command: Command) -> None:
    result, copy = sweep_onto(command, "ro", "--rates", 50, *BRIEFLY)

    assert result.code == 2
    (line,) = result.messages
    assert line.startswith(f"wsgiload: cannot create the run directory {command.folder}/disk/")
    assert line.endswith("Read-only file system; choose another directory with --out")
    assert list(copy.iterdir()) == []


@pytest.mark.parametrize("kibibytes", [48, 96, 160])
def test_a_full_disk_loses_only_the_current_cell(command: Command, kibibytes: int) -> None:
    rates = ",".join(str(rate) for rate in range(50, 66))
    result, copy = sweep_onto(command, f"size={kibibytes}k", "--rates", rates, *BRIEFLY)

    assert result.code == 2, result.err
    line = result.messages[-1]
    assert "No space left on device" in line and f"{command.folder}/disk/" in line
    assert "every cell before this one is stored" in line
    assert re.search("free disk space, then continue with `.*wsgiload sweep --resume ", line)

    (run,) = copy.iterdir()
    cells = [cell["id"] for cell in read_json(run / "summary.json")["cells"]]
    assert len(cells) < 16
    for cell in cells:
        assert read_load(run / "load" / f"{cell}.json").outcomes.ok > 0
    assert damages(run) == []
    shutil.rmtree(copy)
