"""The command lines of wsgiload in the documentation have existing options with valid values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from wsgiload.cli import wsgiload

ROOT = Path(__file__).parents[2]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Files and folders that the command lines name.
FILES = (".env", "gunicorn.conf.py", "wrk-100.txt", "ab.txt", "hey.txt", "results")


def command_lines() -> Iterator[tuple[str, str]]:
    for page in sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")]):
        for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
            for line in re.findall(r"^\$ (wsgiload .+)$", block, re.MULTILINE):
                yield page.name, line


COMMAND_LINES = list(command_lines())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("page", "line"), COMMAND_LINES)
def test_each_command_line_can_be_parsed(page: str, line: str) -> None:
    line = re.sub(r'"\$\(.*?\)"', "1", line)  # what the shell inserts
    words = shlex.split(line.partition(" | ")[0], comments=True)[1:]
    command: click.Command = wsgiload
    context = click.Context(wsgiload, **wsgiload.context_settings)
    while isinstance(command, click.Group):
        command = command.commands[words.pop(0)]
        if isinstance(command, click.Group):
            context = click.Context(command, parent=context)
    with suppress(click.exceptions.Exit):  # --list
        assert command.make_context(command.name, words, parent=context).args == [], page


def test_the_documentation_has_command_lines() -> None:
    assert len(COMMAND_LINES) > 40
