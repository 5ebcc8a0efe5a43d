"""What an app raises, logs and sends, and the names in files of others, as strings that would steer
a terminal: raw in no output and in no file of the run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .command import Command, CommandResult, read_json
from .planted import HOSTILE, PLANTED, RAW
from .target import CountingServer
from .test_load import LOADGEN, needs_loadgen

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


def require_escaped(done: CommandResult) -> None:
    assert not [raw for raw in RAW if raw in done.out + done.err]


@pytest.mark.limits
def test_an_exception_at_import_is_shown_escaped_and_short(command: Command) -> None:
    (command.folder / "hostile.py").write_text(RAISES)

    done = command.run("sweep", "hostile:app", "--servers", "wsgiref", *BRIEFLY)

    require_escaped(done)
    assert "\\x1b]0;owned\\x07 \\u202egnp" in done.out + done.err
    assert len(done.out) + len(done.err) < 20_000
    for run in (command.folder / ".wsgiload" / "runs").glob("*"):
        assert files_with_raw_text(run) == []
        assert sum(path.stat().st_size for path in run.rglob("*")) < 1_000_000


@pytest.mark.limits
def test_logs_and_responses_are_stored_escaped(command: Command) -> None:
    (command.folder / "hostile.py").write_text(SPEAKS)

    done = command.run("sweep", "hostile:app", "--servers", "wsgiref", *BRIEFLY)
    require_escaped(done)
    assert files_with_raw_text(done.run_dir) == []
    assert "owned" in "".join(log.read_text() for log in done.run_dir.glob("server/*.log"))
    (cell,) = done.cells.values()
    assert cell["outcomes"]["http_status"] > 0


# By the boundary, or by a message that quotes.
ESCAPED = re.compile(r"\\x1b]0;owned|\\u{1b}]0;owned|\\u{9b}31m")

# A file of targets or sessions for each kind of name.
NAMED = {
    "placeholder": f"GET /\nA: {{{{{HOSTILE}}}}}\n",
    "column": f"GET /\nA: {{{{csv:users.csv:x{HOSTILE}}}}}\n",
    "columns of a file": "GET /{{csv:users.csv:none}}\n",
    "file": f"GET /\nA: {{{{csv:{HOSTILE}:id}}}}\n",
    "malformed file": f"GET /\nA: {{{{csv:{HOSTILE}.csv:id}}}}\n",
    "method": f"{HOSTILE.replace(' ', '')} /\n",
    "option": f"GET /\n--{HOSTILE}\n",
    "path": f"GET /{HOSTILE.replace(' ', '')}\n",
    "variable": f"[one]\nGET /\nGET /\nA: {{{{{HOSTILE}}}}}\n",
    "capture": f"[one]\nGET /\n--capture {HOSTILE}=json:.a\n",
    "expression": f"[one]\nGET /\n--capture a=json:{HOSTILE}\n",
    "session": f"[{HOSTILE}]\nGET /{{{{none}}}}\n",
}


@needs_loadgen
@pytest.mark.parametrize("name", NAMED)
def test_a_name_in_a_file_is_refused_escaped(
    name: str, command: Command, target: CountingServer
) -> None:
    (command.folder / "named").write_text(NAMED[name])
    (command.folder / "users.csv").write_text(f"id,{HOSTILE}\n1,2\n")
    (command.folder / f"{HOSTILE}.csv").write_text("id,x\n1,2\n3\n")
    kind = "--sessions" if NAMED[name].startswith("[") else "--targets"

    words = (target.url, "-R", 50, "-d", "200ms", kind, "named")
    for done in (
        command.run("load", *words),
        command.run(*words, program=[str(LOADGEN)]),
        command.run("sweep", "--servers", "wsgiref", "--rates", 50, kind, "named"),
    ):
        assert done.code == 2, done.err
        require_escaped(done)
        assert ESCAPED.search(done.err), done.err
    assert target.response_count == 0


@needs_loadgen
def test_the_name_of_a_request_is_shown_and_stored_escaped(
    command: Command, target: CountingServer
) -> None:
    (command.folder / "named").write_text(f"GET /\n--name {HOSTILE}\n\nGET /b\n")

    words = (target.url, "-R", 50, "-d", "500ms", "--targets", "named")
    stored = command.folder / "out.json"
    shown = command.run("load", *words)
    for done in (
        command.run("load", *words, "--json", stored),
        command.run(*words, "--json", stored, program=[str(LOADGEN)]),
        command.run(*words, program=[str(LOADGEN)]),
    ):
        require_escaped(done)
        assert not [raw for raw in RAW if raw in stored.read_text()]
        assert HOSTILE in [one["name"] for one in read_json(stored)["targets"]]
    require_escaped(shown)
    assert "\\x1b]0;owned" in shown.out
