"""docs/coming-from.md: each tool has a section, and each command line of wsgiload is valid."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from wsgiload.cli import run, wsgiload

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
WSGILOAD_COMMANDS = re.findall(r"`(wsgiload (?:load|sweep|compare) [^`]+)`", PAGE)
TOOLS = {"wrk", "wrk2", "ab", "httperf", "hey", "oha"}
# Files used by the command lines.
FILES = {
    "shop.targets": "GET /\n",
    "shop.sessions": "[look]\nGET /\n",
    "order.json": "{}\n",
}


@pytest.fixture
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with the files used by the command lines."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def sections() -> dict[str, str]:
    """The sections about tools by heading."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    by_heading = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {name: text for name, text in by_heading.items() if "loadgen" not in name}


def test_every_tool_has_a_table_of_commands_and_of_figures() -> None:
    tool_sections = sections()
    assert set(" ".join(tool_sections).replace(" and ", " ").split()) == TOOLS
    for section in tool_sections.values():
        assert "| command | equivalent `wsgiload` command |" in section
        assert "| figure | where to find it in `wsgiload` |" in section
    assert len(WSGILOAD_COMMANDS) > 15


@pytest.mark.usefixtures("working_directory")
@pytest.mark.parametrize("line", WSGILOAD_COMMANDS)
def test_each_wsgiload_command_line_is_valid(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, command, *arguments = shlex.split(line)
    if command == "load":
        assert run([command, *arguments, "--dry-run", "--json", "-"]) == 0, capsys.readouterr().err
    else:  # these commands need an app or stored runs
        group = click.Context(wsgiload, **wsgiload.context_settings)
        assert wsgiload.commands[command].make_context(command, arguments, parent=group).args == []
