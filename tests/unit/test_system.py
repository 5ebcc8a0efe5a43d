"""What a server needs of the system is looked for, and named with the command that installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.catalogue.contract import Dependency
from wsgiload.catalogue.names import load_catalogue
from wsgiload.environments.system import find_program, install_command, missing_packages
from wsgiload.errors import ServerError
from wsgiload.serving.launch import require_system


@pytest.mark.parametrize(
    "place", ["usr/include/ev.h", "usr/include/x86_64-linux-gnu/ev.h", "usr/local/include/ev.h"]
)
def test_a_header_is_found_where_debian_puts_it(tmp_path: Path, place: str) -> None:
    needs = (Dependency("libev-dev", header="ev.h"),)
    assert missing_packages(needs, tmp_path) == ["libev-dev"]
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).touch()
    assert missing_packages(needs, tmp_path) == []


def test_a_program_is_found_outside_an_ordinary_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "sbin" / "frontd"
    program.parent.mkdir()
    monkeypatch.setattr(
        "wsgiload.environments.system.ADMINISTRATION_FOLDERS", (str(program.parent),)
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    needs = (
        Dependency("frontd-light", program="frontd"),
        Dependency("frontd-light", program="frontd"),
    )
    assert missing_packages(needs) == ["frontd-light"]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_program("frontd") == str(program)
    assert missing_packages(needs) == []


def test_one_command_installs_them_all() -> None:
    assert install_command(["a", "b"]) == "apt-get install --yes --no-install-recommends a b"


def test_a_server_whose_front_is_missing_is_refused_before_it_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (found,) = load_catalogue().select(["gunicorn-nginx"])
    monkeypatch.setattr("wsgiload.environments.system.find_program", lambda name: None)
    with pytest.raises(
        ServerError,
        match="gunicorn-nginx needs the system package nginx-light; as root run `apt-get",
    ):
        require_system(found)
    (without,) = load_catalogue().select(["gunicorn-sync"])
    require_system(without)
