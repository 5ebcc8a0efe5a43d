"""Command lines made of every option and values that no one means: each ends with a code of the
contract and one short complaint, whatever the value; nothing is started."""

from __future__ import annotations

import datetime
import os
import random
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

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
# Of each command the words that make it start nothing.
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
    *("\x1b]0;owned\x07", "\u202e", "\udcff"),
)
MAX_CHARACTERS = 20_000
# As many of a command as take a second; all with WSGILOAD_LONG_TESTS.
CASES_OF_A_DAY = 300


@pytest.fixture(autouse=True)
def nothing_hidden() -> Iterator[None]:
    """A value that was given as a secret is hidden from then on."""
    yield
    show_all()


def options_of(name: str) -> list[str]:
    """The options of a command that take a value."""
    command = cli.wsgiload.get_command(click.Context(cli.wsgiload), name)
    assert command is not None
    options = [one for one in command.params if isinstance(one, click.Option) and not one.is_flag]
    return sorted(option.opts[0] for option in options)


def lines_of(name: str) -> Iterator[list[str]]:
    """Every option with every value, and the values as arguments."""
    for value in VALUES:
        yield [name, *COMMANDS[name], f"--{value}"]
        yield [name, value, *COMMANDS[name][1:]]
        for option in options_of(name):
            yield [name, *COMMANDS[name], option, value]


def part_of_today(lines: list[list[str]]) -> list[list[str]]:
    if "WSGILOAD_LONG_TESTS" in os.environ:
        return lines
    chosen = random.Random(datetime.date.today().toordinal())
    return chosen.sample(lines, min(CASES_OF_A_DAY, len(lines)))


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.timeout(1200)
def test_each_ends_with_a_code_of_the_contract(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run")
    for words in part_of_today(list(lines_of(name))):
        shown_words = [ascii(word)[:60] for word in words]
        code = cli.run(words)
        shown = capsys.readouterr()
        assert code in CODES, shown_words
        assert code == EXIT_OK or shown.err or shown.out, shown_words
        assert len(shown.err) < MAX_CHARACTERS, shown_words
        assert not any(raw in shown.err for raw in ("\x1b", "\u202e", "\udcff")), shown_words
