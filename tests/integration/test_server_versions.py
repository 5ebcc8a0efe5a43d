"""Comparisons of versions of a server."""

from __future__ import annotations

import pytest

from .command import SCRIPT, Command

pytestmark = [pytest.mark.servers, pytest.mark.limits, pytest.mark.timeout(600)]

BRIEFLY = ("--rates", 50, "--duration", "1s", "--warmup", "200ms", "--cooldown", "0s", "--quiet")


def test_two_versions_of_a_server_are_compared(command: Command) -> None:
    versions = ("22.0.0", "23.0.0")
    names = ",".join(f"gunicorn-gthread=={version}" for version in versions)
    result = command.run("sweep", "--servers", names, *BRIEFLY)

    assert set(result.cells) == {f"gunicorn-gthread-{version}@50#1" for version in versions}
    for version in versions:
        cell = result.cells[f"gunicorn-gthread-{version}@50#1"]
        assert cell["failure"] is None
        assert (cell["version"], cell["pinned_version"]) == (version, version)
        assert cell["settings"]["versions"]["packages"]["gunicorn"] == version
        assert f"gunicorn-gthread-{version}" in result.out

    # Installed versions need no package index.
    offline = ["env", "UV_OFFLINE=1", "UV_CACHE_DIR=/nonexistent", str(SCRIPT)]
    words = ("sweep", "--servers", names, *BRIEFLY)
    repetition = command.run(*words, program=offline)
    assert all(cell["failure"] is None for cell in repetition.cells.values())


def test_a_version_that_does_not_exist_fails_only_its_own_cells(command: Command) -> None:
    result = command.run("sweep", "--servers", "gunicorn-gthread==0.0.1,wsgiref", *BRIEFLY)

    assert result.code == 97
    assert result.cells["wsgiref@50#1"]["failure"] is None

    failure = result.cells["gunicorn-gthread-0.0.1@50#1"]["failure"]
    assert failure["step"] == "provision"
    assert failure["message"].startswith("gunicorn==0.0.1 could not be resolved: ")
    assert "choose another version of gunicorn" in failure["message"]
