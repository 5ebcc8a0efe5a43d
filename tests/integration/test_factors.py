"""Bundled apps and versions of Python as factors of one real sweep."""

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

# wsgiref, because its environment is made without a download.
BRIEFLY = (
    "--servers",
    "wsgiref",
    "--rates",
    30,
    "--duration",
    "1s",
    "--warmup",
    "0s",
    "--cooldown",
    "0s",
)


def require_right_answers(done: CommandResult, app: str, name: str) -> None:
    """Everything was answered with the body of this app, and nothing else would have counted."""
    cell, load = done.cells[name], read_json(done.run_dir / "load" / f"{name}.json")
    assert cell["app"] == f"{app}:app"
    assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert base64.b64decode(load["plan"]["check"]["body_base64"]) == BUNDLED[app].expected_body
    assert cell["external_counts"]["requests_seen"] == cell["outcomes"]["ok"], (
        "the app itself counted them"
    )


def test_two_apps_are_each_asked_in_their_own_way_also_after_an_interruption(
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
    done = command.run("sweep", "--resume", only_run(command))
    assert done.code == expected_code(done.summary)
    assert sorted(done.cells) == ["wsgiref-cpu@30#1", "wsgiref-hello@30#1"]
    for app in ("hello", "cpu"):
        require_right_answers(done, app, f"wsgiref-{app}@30#1")
    assert done.summary["experiment"]["app"] == ["hello:app", "cpu:app"]
    assert schema_errors("summary-2", done.summary) == []
    page = (done.run_dir / "report.html").read_text()
    for words in ("hello:app and cpu:app", "app: see the server's name", "wsgiref-cpu"):
        assert words in page


def two_versions() -> dict[str, str]:
    """Of two minor versions on which wsgiref runs: the words for them, and the builds that they
    mean."""
    (wsgiref,) = load_catalogue().servers_named(["wsgiref"])
    suitable = [
        one
        for one in installed_interpreters("CPython")
        if supports(wsgiref, one) and one.version[-1] != "t"
    ]
    newest = {
        ".".join(map(str, one.minor)): one.version
        for one in sorted(suitable, key=lambda one: one.version)
    }
    return dict(list(newest.items())[-2:])


def test_two_versions_of_python_run_the_same_app(command: Command) -> None:
    versions = two_versions()
    if len(versions) < 2:
        pytest.skip(
            f"of CPython 3.11 or newer only {', '.join(versions.values())} is installed here"
        )
    done = command.run("sweep", *BRIEFLY, "--grid", f"python={','.join(versions)}", "app=cpu")
    assert done.code == expected_code(done.summary)
    ran = {name: cell["python"] for name, cell in done.cells.items()}
    minors = {name: ".".join(version.split(".")[:2]) for name, version in ran.items()}
    assert minors == {f"wsgiref-py{asked}-cpu@30#1": asked for asked in versions}
    for name in ran:
        require_right_answers(done, "cpu", name)
    assert schema_errors("summary-2", done.summary) == []


def test_a_version_that_is_not_installed_is_refused_before_anything_starts(
    command: Command, tmp_path: Path
) -> None:
    done = command.run("sweep", *BRIEFLY, "--grid", "python=3.99", "--out", tmp_path / "runs")
    assert done.code == 2
    assert done.err.startswith("wsgiload: Python 3.99 is not installed; installed versions: ")
    assert not (tmp_path / "runs").exists()
