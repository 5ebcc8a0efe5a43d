"""Other load generators: runs those that are installed, and has stored output of the others.

The stored output is real: ``RECORD_FOREIGN=1`` writes what the installed tools print to
``foreign/``, with their command lines in ``foreign/commands.txt``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bench.generators import DIALECTS, find_program

STORED = Path(__file__).parent / "foreign"
COMMANDS = STORED / "commands.txt"
TIMEOUT_S = 60
# How each is installed that `make bench` does not use.
INSTALL = {"httperf": "apt-get install httperf"}
Meanwhile = Callable[["subprocess.Popen[bytes]"], None]


def output_of(
    tool: str,
    case: str,
    words: Sequence[object],
    *,
    stdin: str = "",
    preexec: Callable[[], None] | None = None,
    meanwhile: Meanwhile | None = None,
    then: Sequence[str] = (),
) -> str:
    """What the tool prints when it is run with these words; what it once printed for this case
    where it is not installed. ``then`` are the words of a second call that reads the first one's
    output."""
    stored = STORED / f"{tool}-{case}.txt"
    program = find_program(tool)
    if program is None:
        return _stored(tool, stored)

    argv = [str(program), *map(str, words)]
    printed = _run(argv, stdin.encode(), preexec, meanwhile)
    if then:
        printed = _run([str(program), *then], printed)
    if os.environ.get("RECORD_FOREIGN"):
        _record(stored, printed, argv, stdin, then)
    return printed.decode()


def _run(
    argv: Sequence[str],
    stdin: bytes,
    preexec: Callable[[], None] | None = None,
    meanwhile: Meanwhile | None = None,
) -> bytes:
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, preexec_fn=preexec
    )
    try:
        if meanwhile is not None:
            meanwhile(process)
        printed, _ = process.communicate(stdin, timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
    return printed


def stored_output(tool: str, case: str) -> str:
    """What the tool once printed for a case that needs more than the tool to be repeated."""
    return _stored(tool, STORED / f"{tool}-{case}.txt")


def _stored(tool: str, stored: Path) -> str:
    how = INSTALL.get(tool) or DIALECTS[tool].install
    if not stored.exists():
        pytest.skip(f"{tool} is not installed and there is no stored output: {how}")
    return stored.read_text()


def _record(
    stored: Path, printed: bytes, argv: Sequence[str], stdin: str, then: Sequence[str]
) -> None:
    STORED.mkdir(exist_ok=True)
    stored.write_bytes(printed)
    words = [Path(argv[0]).name, *argv[1:]]
    line = f"{stored.name}: {' '.join(words)}"
    if stdin:
        line = f"{line} <<< {stdin.strip()!r}"
    if then:
        line = f"{line} | {Path(argv[0]).name} {' '.join(then)}"
    known = COMMANDS.read_text().splitlines() if COMMANDS.exists() else []
    others = [one for one in known if not one.startswith(f"{stored.name}: ")]
    COMMANDS.write_text("\n".join(sorted([*others, line])) + "\n")
