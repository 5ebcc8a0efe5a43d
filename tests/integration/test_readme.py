"""README is short, and every command in it runs.

`make sweep` and `make test` are not run here, because `.ci/run` runs them. Commands run in a
directory with a small app, on a local server in place of the one on port 8000, and with the short
durations below.
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
NOT_RUN = {"make sweep", "make test"}

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\\n"]
"""

# Environment variables: a command's own options take precedence.
LOAD = {"WSGILOAD_DURATION": "1s"}
SWEEP = LOAD | {"WSGILOAD_WARMUP": "100ms", "WSGILOAD_COOLDOWN": "100ms"}
SEVERAL_RUNS = SWEEP | {"WSGILOAD_RUNS": "1", "WSGILOAD_SETTLE": "0s", "WSGILOAD_RERUNS": "0"}
SEARCH = SWEEP | {
    "WSGILOAD_DURATION": "300ms",
    "WSGILOAD_SETTLE": "0s",
    "WSGILOAD_WIDTH": "50%",
}
BRIEFLY = {"capacity": SEARCH, "load": LOAD, "sweep": SWEEP}


class Line(NamedTuple):
    """A command as README shows it."""

    text: str

    @property
    def words(self) -> list[str]:
        """Its words, as the shell splits them, without the comment."""
        return shlex.split(self.text, comments=True)

    @property
    def id(self) -> str:
        """The subcommand with its options, as the id of the test."""
        return "".join(word for word in self.words[1:] if word.isalpha() or word.startswith("--"))

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that shorten its loads."""
        if "--slo" in self.words and self.words[1] == "sweep":
            return SEVERAL_RUNS
        return BRIEFLY.get(self.words[1], {})


def blocks(language: str) -> list[str]:
    """The code blocks in this language."""
    bodies: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    return bodies


def commands() -> list[Line]:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    return [Line(line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


LINES = commands()
COMMANDS_TO_RUN = [line for line in LINES if " ".join(line.words) not in NOT_RUN]


def test_readme_has_at_most_700_words() -> None:
    assert len(README.split()) <= MAX_WORDS


def test_every_line_of_a_console_block_is_a_command_that_is_run_or_excluded_by_name() -> None:
    assert all(line.startswith("$ ") for block in blocks("console") for line in block.splitlines())
    assert {" ".join(line.words) for line in LINES} >= NOT_RUN
    assert {line.words[0] for line in COMMANDS_TO_RUN} == {"wsgiload"}
    assert len(COMMANDS_TO_RUN) >= 8


@needs_reference
@pytest.mark.servers
@pytest.mark.limits
@pytest.mark.parametrize("line", COMMANDS_TO_RUN, ids=lambda line: line.id)
def test_every_command_runs(command: Command, line: Line) -> None:
    (command.folder / "app.py").write_text(APP)
    with reference("--hold", "1ms") as url:
        words = [word.replace(URL, url) for word in line.words[1:]]
        assignments = [f"{name}={value}" for name, value in line.variables.items()]
        result = command.run(*words, program=["env", *assignments, str(SCRIPT)])

    # 98 and 99 depend on the host and its load; 2 and 97 would be errors of the command.
    assert result.code in (0, 98, 99), result.err
    assert result.out
    if "--json" in words:
        assert (command.folder / words[words.index("--json") + 1]).exists()


@needs_reference
@pytest.mark.parametrize("block", blocks("python"))
def test_every_python_block_runs(command: Command, block: str) -> None:
    with reference("--hold", "1ms") as url:
        text = block.replace(URL, url) + 'print("quantile", report.response_time.quantile(0.99))\n'
        result = command.run("-c", text, program=[sys.executable])

    assert result.code == 0, result.err
    assert int(result.out.split()[1]) >= 1_000_000
