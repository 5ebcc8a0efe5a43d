"""README is short, and every command in it runs.

`make sweep` and `make test` are left out: the checks of every change run them. Commands run in a folder with a small
app, against a local server in place of the one on port 8000, for as long as the environment variables below say.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from .command import SCRIPT, Command
from .reference import needs_reference, reference

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
MAX_WORDS = 700
URL = "http://127.0.0.1:8000/"
OUTSIDE = {"make sweep", "make test"}

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\\n"]
"""

# Only what a command does not say itself: its own values are not changed.
LOAD = {"WSGILOAD_DURATION": "1s"}
SWEEP = LOAD | {"WSGILOAD_WARMUP": "100ms", "WSGILOAD_COOLDOWN": "100ms"}
SEVERAL_RUNS = SWEEP | {"WSGILOAD_RUNS": "1", "WSGILOAD_SETTLE": "0s", "WSGILOAD_RERUNS": "0"}
SEARCH = SWEEP | {
    "WSGILOAD_DURATION": "300ms",
    "WSGILOAD_SETTLE": "0s",
    "WSGILOAD_TRIALS": "1",
    "WSGILOAD_WIDTH": "50%",
    "WSGILOAD_CONFIRMATIONS": "0",
}
BRIEFLY = {"capacity": SEARCH, "load": LOAD, "sweep": SWEEP}


class Line(NamedTuple):
    """A command as README shows it."""

    text: str

    @property
    def words(self) -> list[str]:
        """As the shell would split it, without the comment."""
        return shlex.split(self.text, comments=True)

    @property
    def id(self) -> str:
        """The command with its options."""
        return "".join(word for word in self.words[1:] if word.isalpha() or word.startswith("--"))

    @property
    def variables(self) -> dict[str, str]:
        """What makes it short."""
        if "--slo" in self.words and self.words[1] == "sweep":
            return SEVERAL_RUNS
        return BRIEFLY.get(self.words[1], {})


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return found


def commands() -> list[Line]:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [Line(line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


LINES = commands()
RUN_HERE = [line for line in LINES if " ".join(line.words) not in OUTSIDE]


def test_readme_has_at_most_700_words() -> None:
    assert len(README.split()) <= MAX_WORDS


def test_every_line_of_a_console_block_is_a_command_that_is_run_or_left_out_by_name() -> None:
    assert all(line.startswith("$ ") for block in blocks("console") for line in block.splitlines())
    assert {" ".join(line.words) for line in LINES} >= OUTSIDE
    assert {line.words[0] for line in RUN_HERE} == {"wsgiload"}
    assert len(RUN_HERE) >= 8


@needs_reference
@pytest.mark.servers
@pytest.mark.limits
@pytest.mark.parametrize("line", RUN_HERE, ids=lambda line: line.id)
def test_command_runs(command: Command, line: Line) -> None:
    (command.folder / "app.py").write_text(APP)
    with reference("--hold", "1ms") as url:
        words = [word.replace(URL, url) for word in line.words[1:]]
        assignments = [f"{name}={value}" for name, value in line.variables.items()]
        done = command.run(*words, program=["env", *assignments, str(SCRIPT)])

    # 98 and 99 are about this host and this moment; 2 and 97 would be the command's own fault.
    assert done.code in (0, 98, 99), done.err
    assert done.out
    if "--json" in words:
        assert (command.folder / words[words.index("--json") + 1]).exists()


@needs_reference
@pytest.mark.parametrize("block", blocks("python"))
def test_python_block_runs(command: Command, block: str) -> None:
    with reference("--hold", "1ms") as url:
        text = block.replace(URL, url) + 'print("quantile", report.response_time.quantile(0.99))\n'
        done = command.run("-c", text, program=[sys.executable])
    assert done.code == 0, done.err
    assert int(done.out.split()[1]) >= 1_000_000
