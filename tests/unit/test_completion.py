"""Completion in a shell: what a Tab suggests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsgiload.cli import wsgiload

SCRIPT = Path(sys.executable).with_name("wsgiload")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suggestions(*words: str) -> list[str]:
    """What Tab suggests for the last word of a command line."""
    environment = {
        "_WSGILOAD_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("wsgiload", *words)),
        "COMP_CWORD": str(len(words)),
    }
    result = CliRunner().invoke(wsgiload, [], env=environment, prog_name="wsgiload")
    assert result.exit_code == 0
    kinds = [line.partition(",") for line in result.output.splitlines()]
    return [value if kind == "plain" else f"({kind})" for kind, _, value in kinds]


def test_commands_and_options_are_completed() -> None:
    assert suggestions("re") == ["reproduce", "report"]
    assert suggestions("sweep", "--mem") == ["--memory"]
    assert suggestions("completion", "") == ["bash", "zsh", "fish"]


def test_servers_are_completed_in_lists_unless_they_cannot_run() -> None:
    names = suggestions("sweep", "--servers", "gunicorn")
    assert {"gunicorn", "gunicorn-gthread"} <= set(names)
    assert "gunicorn-eventlet" not in names, "it is refused"
    assert suggestions("sweep", "--servers", "uwsgi,wait") == ["uwsgi,waitress"]
    assert suggestions("servers", "show", "waitr") == ["waitress"]


def test_checks_studies_and_apps_are_completed(folder: Path) -> None:
    assert suggestions("explain", "send-lag") == ["send-lag", "send-lag-absolute"]
    assert "slides-2013-fair" in suggestions("reproduce", "slides")
    assert suggestions("sweep", "--app-name", "hel") == ["hello"]
    (folder / "shop.py").write_text(
        "app = Flask(__name__)\ndef create_app():\n    raise SystemExit\n"
    )
    assert suggestions("sweep", "sh") == ["shop:app", "shop:create_app"]


def test_runs_are_completed_latest_first(folder: Path) -> None:
    assert suggestions("report", "") == ["(dir)"]
    runs = [f".wsgiload/runs/2026112{day}T101500Z-t-1a2b" for day in (4, 5)]
    for run in runs:
        (folder / run).mkdir(parents=True)
    assert suggestions("report", "") == runs[::-1]
    assert suggestions("compare", runs[0], ".wsg") == runs[::-1]
    assert suggestions("sweep", "--resume", runs[0][:-1]) == runs[:1]


def test_a_broken_configuration_file_does_not_prevent_completion(folder: Path) -> None:
    (folder / "wsgiload.toml").write_text("[sweep\n")
    assert suggestions("sweep", "--mem") == ["--memory"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid_in_its_shell(shell: str) -> None:
    result = CliRunner().invoke(wsgiload, ["completion", shell])
    assert result.exit_code == 0 and "_WSGILOAD_COMPLETE=" in result.output
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([program, "-n"], input=result.output, text=True, check=True)


def test_bash_inserts_the_only_suggestion(folder: Path) -> None:
    program = shutil.which("bash")
    if program is None:
        pytest.skip("bash is not installed")
    typed = (
        "source <(wsgiload completion bash); COMP_WORDS=(wsgiload sweep --servers waitr);"
        'COMP_CWORD=3; _wsgiload_completion wsgiload; echo "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"}
    shown = subprocess.run(
        [program, "-c", typed], env=environment, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "waitress\n", shown.stderr
