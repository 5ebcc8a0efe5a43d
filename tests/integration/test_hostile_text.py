"""Terminal control strings in exceptions, logs, responses and input files: all output and all files
of the run contain them only escaped."""

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
LOGS_AND_RESPONDS = f"""
import sys

count = 0

def app(environ, start_response):
    global count
    count += 1
    sys.stderr.write('{PLANTED} in the log\\n')
    sys.stderr.flush()
    # The probes succeed, so that only the load fails.
    start_response('200 OK' if count < 8 else '500 Error', [('X-Planted', '\\x9b31m')])
    return ['{PLANTED} in the body'.encode()]
"""


def files_with_raw_text(run: Path) -> list[str]:
    """The names of files that contain a planted string unescaped."""
    texts = {path: path.read_text() for path in run.rglob("*") if path.is_file()}
    return [path.name for path, text in texts.items() if any(raw in text for raw in RAW)]


def require_escaped(result: CommandResult) -> None:
    """The output contains no planted string unescaped."""
    assert not [raw for raw in RAW if raw in result.out + result.err]


@pytest.mark.limits
def test_an_exception_at_import_is_shown_escaped_and_short(command: Command) -> None:
    (command.folder / "hostile.py").write_text(RAISES)

    result = command.run("sweep", "hostile:app", "--servers", "wsgiref", *BRIEFLY)

    require_escaped(result)
    assert "\\x1b]0;owned\\x07 \\u202egnp" in result.out + result.err
    assert len(result.out) + len(result.err) < 20_000
    for run in (command.folder / ".wsgiload" / "runs").glob("*"):
        assert files_with_raw_text(run) == []
        assert sum(path.stat().st_size for path in run.rglob("*")) < 1_000_000


@pytest.mark.limits
def test_logs_and_responses_are_stored_escaped(command: Command) -> None:
    (command.folder / "hostile.py").write_text(LOGS_AND_RESPONDS)

    result = command.run("sweep", "hostile:app", "--servers", "wsgiref", *BRIEFLY)

    require_escaped(result)
    assert files_with_raw_text(result.run_dir) == []
    assert "owned" in "".join(log.read_text() for log in result.run_dir.glob("server/*.log"))
    (cell,) = result.cells.values()
    assert cell["outcomes"]["http_status"] > 0


# As the output escapes control characters, or as Rust quotes them.
ESCAPED = re.compile(r"\\x1b]0;owned|\\u{1b}]0;owned|\\u{9b}31m")

# For each kind of name, a file of targets or sessions with a hostile one.
FILES = {
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
@pytest.mark.parametrize("name", FILES)
def test_a_hostile_name_in_a_file_is_refused_and_escaped(
    name: str, command: Command, target: CountingServer
) -> None:
    (command.folder / "named").write_text(FILES[name])
    (command.folder / "users.csv").write_text(f"id,{HOSTILE}\n1,2\n")
    (command.folder / f"{HOSTILE}.csv").write_text("id,x\n1,2\n3\n")
    kind = "--sessions" if FILES[name].startswith("[") else "--targets"

    words = (target.url, "-R", 50, "-d", "200ms", kind, "named")
    for result in (
        command.run("load", *words),
        command.run(*words, program=[str(LOADGEN)]),
        command.run("sweep", "--servers", "wsgiref", "--rates", 50, kind, "named"),
    ):
        assert result.code == 2, result.err
        require_escaped(result)
        assert ESCAPED.search(result.err), result.err
    assert target.response_count == 0


@needs_loadgen
def test_a_hostile_request_name_is_shown_and_stored_escaped(
    command: Command, target: CountingServer
) -> None:
    (command.folder / "named").write_text(f"GET /\n--name {HOSTILE}\n\nGET /b\n")

    words = (target.url, "-R", 50, "-d", "500ms", "--targets", "named")
    document = command.folder / "out.json"
    shown = command.run("load", *words)

    for result in (
        command.run("load", *words, "--json", document),
        command.run(*words, "--json", document, program=[str(LOADGEN)]),
        command.run(*words, program=[str(LOADGEN)]),
    ):
        require_escaped(result)
        assert not [raw for raw in RAW if raw in document.read_text()]
        assert HOSTILE in [request["name"] for request in read_json(document)["targets"]]

    require_escaped(shown)
    assert "\\x1b]0;owned" in shown.out
