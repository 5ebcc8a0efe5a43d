"""Command lines with each option and absurd values end with a documented exit code and a short
message. Nothing is started."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.selection import IS_LONG, SEED
from wsgiload import cli
from wsgiload.errors import (
    EXIT_INTERRUPTED,
    EXIT_INVALID,
    EXIT_OK,
    EXIT_SERVER,
    EXIT_THRESHOLD,
    EXIT_USAGE,
)
from wsgiload.foreign_text import show_all

from .report_fixture import write_run

CODES = {EXIT_OK, EXIT_USAGE, EXIT_SERVER, EXIT_INVALID, EXIT_THRESHOLD, EXIT_INTERRUPTED}
URL = "http://127.0.0.1:9/"
# Arguments with which a command starts nothing.
COMMANDS = {
    "sweep": ("--dry-run",),
    "load": (URL, "--dry-run"),
    "capacity": ("--slo", "p99<50ms", "--dry-run"),
    "calibrate": ("--dry-run",),
    "report": ("run",),
    "compare": ("run", "run"),
    "audit": ("run",),
    "explain": ("send-lag",),
}
VALUES = (
    *("", " ", "-", "-1", "0", "nan", "1e400", "9" * 400, "1.5.2", "1-", "0-99999999"),
    *("a=b", "=", "a=b,a=c", "@none", "/dev/null", "{host}", "'", "x" * 100_000),
    *("\x1b]0;title\x07", "\u202e", "\udcff"),
)
MAX_CHARACTERS = 20_000
# A sample per command, which takes about a second; WSGILOAD_LONG_TESTS runs all cases.
CASES = 300


@pytest.fixture(autouse=True)
def forget_secrets() -> Iterator[None]:
    """Stop redacting the values that a test has passed as secrets."""
    yield
    show_all()


def options_of(name: str) -> list[str]:
    """The options of a command that take a value."""
    command = cli.wsgiload.get_command(click.Context(cli.wsgiload), name)
    assert command is not None
    options = [
        option
        for option in command.params
        if isinstance(option, click.Option) and not option.is_flag
    ]
    return sorted(option.opts[0] for option in options)


def command_lines_of(name: str) -> Iterator[list[str]]:
    """Command lines with each value as a flag, as an argument and as the value of each option."""
    for value in VALUES:
        yield [name, *COMMANDS[name], f"--{value}"]
        yield [name, value, *COMMANDS[name][1:]]
        for option in options_of(name):
            yield [name, *COMMANDS[name], option, value]


def sample(command_lines: list[list[str]]) -> list[list[str]]:
    if IS_LONG:
        return command_lines
    rng = random.Random(SEED)
    return rng.sample(command_lines, min(CASES, len(command_lines)))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.timeout(1200)
def test_each_command_line_ends_with_a_documented_exit_code(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run")

    for arguments in sample(list(command_lines_of(name))):
        description = [ascii(argument)[:60] for argument in arguments]
        code = cli.run(arguments)
        output = capsys.readouterr()

        assert code in CODES, description
        assert code == EXIT_OK or output.err or output.out, description
        assert len(output.err) < MAX_CHARACTERS, description
        assert not any(raw in output.err for raw in ("\x1b", "\u202e", "\udcff")), description
