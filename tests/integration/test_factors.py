"""Sweeps over several bundled apps and over several versions of Python."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from wsgiload.catalogue.bundled import BUNDLED
from wsgiload.catalogue.names import load_catalogue
from wsgiload.environments.versions import installed_interpreters, supports

from .command import Command, CommandResult, read_json, until
from .stored import expected_code, only_run, schema_errors

pytestmark = [pytest.mark.servers, pytest.mark.limits]

# wsgiref needs no download.
SERVERS = ("--servers", "wsgiref")
BRIEFLY = (*SERVERS, "--rates", 30, "--duration", "1s", "--warmup", "0s", "--cooldown", "0s")


def require_correct_responses(result: CommandResult, app: str, name: str) -> None:
    """All requests were ok, the load checked this app's body, and the app counted as many."""
    cell, load = result.cells[name], read_json(result.run_dir / "load" / f"{name}.json")

    assert cell["app"] == f"{app}:app"
    assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert base64.b64decode(load["plan"]["check"]["body_base64"]) == BUNDLED[app].expected_body
    assert cell["external_counts"]["requests_seen"] == cell["outcomes"]["ok"], (
        "requests counted by the app"
    )


def test_a_resumed_sweep_of_two_apps_expects_each_apps_own_body(
    command: Command,
) -> None:
    running = command.start("sweep", *BRIEFLY, "--grid", "app=hello,cpu")
    until(lambda: "[2/2]" in running.err, "the second cell")
    until(
        lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
        "its load",
    )
    running.press_ctrl_c()
    assert running.end().code == 130

    result = command.run("sweep", "--resume", only_run(command))
    assert result.code == expected_code(result.summary)
    assert sorted(result.cells) == ["wsgiref-cpu@30#1", "wsgiref-hello@30#1"]
    for app in ("hello", "cpu"):
        require_correct_responses(result, app, f"wsgiref-{app}@30#1")
    assert result.summary["experiment"]["app"] == ["hello:app", "cpu:app"]
    assert schema_errors("summary-1", result.summary) == []

    page = (result.run_dir / "report.html").read_text()
    for words in ("hello:app and cpu:app", "app: see the server's name", "wsgiref-cpu"):
        assert words in page


def two_versions() -> dict[str, str]:
    """The two newest installed minor versions that run wsgiref, with their full versions."""
    (wsgiref,) = load_catalogue().servers_named(["wsgiref"])
    supported = [
        interpreter
        for interpreter in installed_interpreters("CPython")
        if supports(wsgiref, interpreter) and interpreter.version[-1] != "t"
    ]

    newest = {
        ".".join(map(str, interpreter.minor)): interpreter.version
        for interpreter in sorted(supported, key=lambda interpreter: interpreter.version)
    }
    return dict(list(newest.items())[-2:])


def test_two_versions_of_python_run_the_same_app(command: Command) -> None:
    versions = two_versions()
    if len(versions) < 2:
        pytest.skip(
            "needs two versions of CPython 3.11 or newer; installed: "
            f"{', '.join(versions.values()) or 'none'}"
        )

    result = command.run("sweep", *BRIEFLY, "--grid", f"python={','.join(versions)}", "app=cpu")
    assert result.code == expected_code(result.summary)

    full_versions = {name: cell["python"] for name, cell in result.cells.items()}
    minors = {name: ".".join(version.split(".")[:2]) for name, version in full_versions.items()}
    assert minors == {f"wsgiref-py{minor}-cpu@30#1": minor for minor in versions}
    for name in full_versions:
        require_correct_responses(result, "cpu", name)
    assert schema_errors("summary-1", result.summary) == []


def test_a_python_version_that_is_not_installed_is_refused_before_anything_starts(
    command: Command, tmp_path: Path
) -> None:
    result = command.run("sweep", *BRIEFLY, "--grid", "python=3.99", "--out", tmp_path / "runs")
    assert result.code == 2
    assert result.err.startswith("wsgiload: Python 3.99 is not installed; installed versions: ")
    assert not (tmp_path / "runs").exists()
