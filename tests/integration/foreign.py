"""Runs other load generators, or returns their stored output if they are not installed.

The stored output is real: with ``RECORD_FOREIGN=1``, the output of the installed tools is written
to ``foreign/``, and their command lines to ``foreign/commands.txt``.
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
# How to install the tools that `make bench` does not use.
INSTALL = {"httperf": "apt-get install httperf"}
Meanwhile = Callable[["subprocess.Popen[bytes]"], None]


def output_of(
    tool: str,
    case: str,
    args: Sequence[object],
    *,
    stdin: str = "",
    preexec: Callable[[], None] | None = None,
    meanwhile: Meanwhile | None = None,
    then: Sequence[str] = (),
) -> str:
    """Run the tool and return its output; if it is not installed, the stored output of this case.

    ``then`` are the arguments of a second call, which reads the output of the first one.
    """
    stored = STORED / f"{tool}-{case}.txt"
    program = find_program(tool)
    if program is None:
        return _read_stored(tool, stored)

    argv = [str(program), *map(str, args)]
    output = _run(argv, stdin.encode(), preexec, meanwhile)
    if then:
        output = _run([str(program), *then], output)

    if os.environ.get("RECORD_FOREIGN"):
        _record(stored, output, argv, stdin, then)
    return output.decode()


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
        output, _ = process.communicate(stdin, timeout=TIMEOUT_S)
    finally:
        process.kill()
        process.wait()
    return output


def stored_output(tool: str, case: str) -> str:
    """The stored output of a case that this test cannot reproduce with the tool alone."""
    return _read_stored(tool, STORED / f"{tool}-{case}.txt")


def _read_stored(tool: str, stored: Path) -> str:
    install = INSTALL.get(tool) or DIALECTS[tool].install
    if not stored.exists():
        pytest.skip(f"{tool} is not installed and there is no stored output: {install}")
    return stored.read_text()


def _record(
    stored: Path, output: bytes, argv: Sequence[str], stdin: str, then: Sequence[str]
) -> None:
    STORED.mkdir(exist_ok=True)
    stored.write_bytes(output)

    args = [Path(argv[0]).name, *argv[1:]]
    line = f"{stored.name}: {' '.join(args)}"
    if stdin:
        line = f"{line} <<< {stdin.strip()!r}"
    if then:
        line = f"{line} | {Path(argv[0]).name} {' '.join(then)}"

    recorded = COMMANDS.read_text().splitlines() if COMMANDS.exists() else []
    others = [other for other in recorded if not other.startswith(f"{stored.name}: ")]
    COMMANDS.write_text("\n".join(sorted([*others, line])) + "\n")
