"""Missing system packages of a server are found and named with the command that installs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.catalogue.contract import Dependency
from wsgiload.catalogue.names import load_catalogue
from wsgiload.environments.cache import find_program, install_command, missing_packages
from wsgiload.errors import ServerError
from wsgiload.serving.launch import require_system


@pytest.mark.parametrize(
    "header", ["usr/include/ev.h", "usr/include/x86_64-linux-gnu/ev.h", "usr/local/include/ev.h"]
)
def test_a_header_is_found_in_the_directories_of_debian(tmp_path: Path, header: str) -> None:
    needs = (Dependency("libev-dev", header="ev.h"),)
    assert missing_packages(needs, tmp_path) == ["libev-dev"]
    (tmp_path / header).parent.mkdir(parents=True)
    (tmp_path / header).touch()
    assert missing_packages(needs, tmp_path) == []


def test_a_program_in_sbin_is_found_without_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "sbin" / "frontd"
    program.parent.mkdir()
    monkeypatch.setattr(
        "wsgiload.environments.cache.ADMINISTRATION_FOLDERS", (str(program.parent),)
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


def test_one_command_installs_all_packages() -> None:
    assert install_command(["a", "b"]) == "apt-get install --yes --no-install-recommends a b"


def test_a_server_whose_proxy_is_missing_is_refused_before_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (variant,) = load_catalogue().select(["gunicorn-nginx"])
    monkeypatch.setattr("wsgiload.environments.cache.find_program", lambda name: None)
    with pytest.raises(
        ServerError,
        match="gunicorn-nginx needs the system package nginx-light; as root run `apt-get",
    ):
        require_system(variant)

    (independent,) = load_catalogue().select(["gunicorn-sync"])
    require_system(independent)
