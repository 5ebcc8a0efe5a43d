"""What an app raises, logs and sends, as strings that would steer a terminal: raw in no output and
in no file of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import Command, Done
from .planted import PLANTED, RAW

pytestmark = pytest.mark.limits

BRIEFLY = ("--rates", 50, "--duration", "300ms", "--warmup", "0s", "--cooldown", "0s")
RAISES = f"raise RuntimeError('{PLANTED} \\udc80 ' + 'x' * 5_000_000)\n"
SPEAKS = f"""
import sys

asked = 0

def app(environ, start_response):
    global asked
    asked += 1
    sys.stderr.write('{PLANTED} in the log\\n')
    sys.stderr.flush()
    # Correct while it is probed, so that the failures are those of the load.
    start_response('200 OK' if asked < 8 else '500 Error', [('X-Planted', '\\x9b31m')])
    return ['{PLANTED} in the body'.encode()]
"""


def files_with_raw_text(run: Path) -> list[str]:
    """The files that hold one of the planted strings as it was."""
    texts = {path: path.read_text() for path in run.rglob("*") if path.is_file()}
    return [path.name for path, text in texts.items() if any(raw in text for raw in RAW)]


def require_escaped(done: Done) -> None:
    assert not [raw for raw in RAW if raw in done.out + done.err]


def test_an_exception_at_import_is_shown_escaped_and_short(command: Command) -> None:
    (command.folder / "hostile.py").write_text(RAISES)

    done = command.run("sweep", "hostile:app", "--servers", "wsgiref", *BRIEFLY)

    require_escaped(done)
    assert "\\x1b]0;owned\\x07 \\u202egnp" in done.out + done.err
    assert len(done.out) + len(done.err) < 20_000
    for run in (command.folder / ".wsgiload" / "runs").glob("*"):
        assert files_with_raw_text(run) == []
        assert sum(path.stat().st_size for path in run.rglob("*")) < 1_000_000


def test_logs_and_responses_are_stored_escaped(command: Command) -> None:
    (command.folder / "hostile.py").write_text(SPEAKS)

    done = command.run("sweep", "hostile:app", "--servers", "wsgiref", *BRIEFLY)
    require_escaped(done)
    assert files_with_raw_text(done.run_dir) == []
    assert "owned" in "".join(log.read_text() for log in done.run_dir.glob("server/*.log"))
    (cell,) = done.cells.values()
    assert cell["outcomes"]["http_status"] > 0
