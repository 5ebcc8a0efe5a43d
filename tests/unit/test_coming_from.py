"""docs/coming-from.md: every command line of ours is valid, and every tool has a section."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from wsgiload.cli import run, wsgiload

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")
OURS = re.findall(r"`(wsgiload (?:load|sweep|compare) [^`]+)`", PAGE)
TOOLS = {"wrk", "wrk2", "ab", "httperf", "hey", "oha", "FunkLoad"}
# The files that the command lines name.
FILES = {
    "shop.targets": "GET /\n",
    "shop.sessions": "[look]\nGET /\n",
    "order.json": "{}\n",
}


def test_every_tool_has_its_command_lines_and_its_figures() -> None:
    sections = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert set(" ".join(found).replace(" and ", " ").split()) == TOOLS
    for section in found.values():
        assert "| theirs | ours |" in section
        assert "| their figure | ours |" in section
    assert len(OURS) > 15


@pytest.mark.parametrize("line", OURS)
def test_each_command_line_of_ours_is_valid(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)

    _, command, *words = shlex.split(line)
    if command == "load":
        assert run([command, *words, "--dry-run"]) == 0, capsys.readouterr().err
    else:  # these need an app, or stored runs
        assert wsgiload.commands[command].make_context(command, words).args == []
