"""docs/coming-from.md: every command line of ours is valid, and every tool has a section."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from wsgiload.cli import run, wsgiload

ROOT = Path(__file__).parents[2]
LOADGEN = ROOT / "target" / "release" / "loadgen"
PAGE = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
OURS = re.findall(r"`(wsgiload (?:load|sweep|compare) [^`]+)`", PAGE)
COMPATIBLE = re.findall(r"`(loadgen --as [^`]+ [^`]+)`", PAGE)
TOOLS = {"wrk", "wrk2", "ab", "httperf", "hey", "oha", "FunkLoad"}
HAVE_MODES = {"wrk", "ab", "httperf", "FunkLoad"}
# The files that the command lines name.
FILES = {
    "shop.targets": "GET /\n",
    "shop.sessions": "[look]\nGET /\n",
    "order.json": "{}\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with those files."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    return tmp_path


def sections() -> dict[str, str]:
    """The sections about tools, by their heading."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {name: text for name, text in found.items() if "loadgen" not in name}


def test_every_tool_has_its_command_lines_and_its_figures() -> None:
    found = sections()
    assert set(" ".join(found).replace(" and ", " ").split()) == TOOLS
    for name, section in found.items():
        mode = "compatibility mode | " if name in HAVE_MODES else ""
        assert f"| command | {mode}equivalent `wsgiload` command |" in section
        assert "| figure | where to find it in `wsgiload` |" in section
    assert len(OURS) > 15


@pytest.mark.parametrize("tool", sorted(HAVE_MODES - {"FunkLoad"}))
def test_a_compatibility_mode_takes_the_command_line_as_it_is(tool: str) -> None:
    rows = re.findall(rf"^\| `({tool} [^`]+)` \| `([^`]+)` \|", sections()[tool], re.MULTILINE)
    assert len(rows) >= 3
    for theirs, mode in rows:
        assert mode == f"loadgen --as {theirs}"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("line", OURS)
def test_each_command_line_of_ours_is_valid(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, command, *words = shlex.split(line)
    if command == "load":
        assert run([command, *words, "--dry-run"]) == 0, capsys.readouterr().err
    else:  # these need an app, or stored runs
        group = click.Context(wsgiload, **wsgiload.context_settings)
        assert wsgiload.commands[command].make_context(command, words, parent=group).args == []


@pytest.mark.skipif(not LOADGEN.exists(), reason="target/release/loadgen is not built")
@pytest.mark.parametrize("line", COMPATIBLE)
def test_each_command_line_of_a_compatibility_mode_is_valid(line: str, folder: Path) -> None:
    words = shlex.split(line)[1:]
    extra = [] if "--help" in words else ["--dry-run"]
    ended = subprocess.run(
        [LOADGEN, *words, *extra], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "--help" in words or "loadgen: equivalent: " in ended.stderr
