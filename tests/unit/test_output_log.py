"""The output of a server is read promptly, and its beginning and end are kept in a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from wsgiload.serving import log as module
from wsgiload.serving.log import OutputLog, last_line, output_log

FLOOD = f"""
import sys
for number in range({64 << 10}):
    sys.stdout.write(f"{{number:07}} {{'x' * 1015}}\\n")
"""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[OutputLog]:
    with output_log(tmp_path / "log") as log:
        yield log


def until(holds: object, timeout_s: float = 20.0) -> None:
    end = time.monotonic() + timeout_s
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_short_output_is_on_disk_while_the_server_runs(log: OutputLog) -> None:
    log.stream.write(b"listening\n")
    until(lambda: log.path.read_bytes() == b"listening\n")


def test_a_flood_is_bounded_and_says_what_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with output_log(path) as log:
        server = subprocess.Popen([sys.executable, "-c", FLOOD], stdout=log.stream)
        largest_bytes = 0
        while server.poll() is None:
            largest_bytes = max(largest_bytes, path.stat().st_size)
            time.sleep(0.01)
        assert server.returncode == 0
        assert log.tail().endswith(f"\n{(64 << 10) - 1:07} {'x' * 1015}")
    bound_bytes = module.HEAD_BYTES + module.TAIL_BYTES + module.PIPE_BYTES
    assert max(largest_bytes, path.stat().st_size) <= bound_bytes

    lines = path.read_bytes().splitlines(keepends=True)
    (gap,) = [number for number, line in enumerate(lines) if b"left out" in line]
    numbers = [int(line[:7]) for line in lines[:gap]], [int(line[:7]) for line in lines[gap + 1 :]]
    assert numbers[0] == list(range(gap)), "the beginning is complete"
    assert numbers[1] == list(range(numbers[1][0], 64 << 10)), "the end is complete"
    omitted = re.fullmatch(r"\[… ([0-9,]+) bytes left out …\]\n", lines[gap].decode())
    assert omitted is not None
    assert int(omitted[1].replace(",", "")) == (numbers[1][0] - gap) << 10


def test_the_end_of_a_long_output_is_stored_soon(log: OutputLog) -> None:
    for _ in range(6):
        log.stream.write(b"x" * (1 << 20))
    log.stream.write(b"\nlast line\n")
    until(lambda: log.path.read_bytes().endswith(b"last line\n"))


def test_a_part_of_the_output_can_be_read(log: OutputLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.add("setup: migrate")
    log.stream.write(b"migrated\n")
    start = log.mark()
    assert log.tail(start) == ""
    log.stream.write(b"listening\nready\n")
    assert log.read(start) == b"listening\nready\n"
    assert log.tail(start) == "listening\nready"
    assert log.read(start, max_bytes=10) == b"ready\n", "without the line that was cut"
    assert log.read(max_bytes=100).splitlines()[0] == b"setup: migrate"


def test_closing_does_not_wait_for_a_process_that_keeps_the_pipe(tmp_path: Path) -> None:
    with output_log(tmp_path / "log") as log:
        kept = os.dup(log.stream.fileno())
        os.write(kept, b"before\n")
    assert (tmp_path / "log").read_bytes() == b"before\n"
    with pytest.raises(BrokenPipeError):
        os.write(kept, b"after\n")
    os.close(kept)


def test_output_is_read_even_if_the_disk_is_full() -> None:
    with output_log(Path("/dev/full")) as log:
        for _ in range(8):
            log.stream.write(b"x" * (1 << 20))  # blocks if nobody reads
        until(lambda: log.mark() == 8 << 20)


def test_the_last_line_is_not_blank() -> None:
    assert (last_line("a\n b \n\n"), last_line(" \n")) == ("b", "")
