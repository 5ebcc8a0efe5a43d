"""Environments built from the real lock files: built once, then reused offline, and layered over an
app's packages."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from wsgiload.catalogue.names import load_catalogue
from wsgiload.environments.interpreter import AppInterpreter, bundled_app_interpreter
from wsgiload.environments.provision import Conflict, Environment, provision, provision_all

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

SERVERS = {
    server.name: server
    for server in load_catalogue().servers_named(["waitress", "gunicorn", "gevent", "cheroot"])
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        directory = tmp_path_factory.mktemp("cache")
        patch.setenv("WSGILOAD_CACHE_DIR", str(directory))
        yield directory


@pytest.fixture(scope="module")
def interpreter() -> AppInterpreter:
    return bundled_app_interpreter()


@pytest.fixture(scope="module", autouse=True)
def environments(cache: Path, interpreter: AppInterpreter) -> dict[str, object]:
    return dict(provision_all(list(SERVERS.values()), interpreter, log=lambda line: None))


def run(environment: Environment, app_dir: Path, script: str) -> str:
    """The output of a Python script in the environment."""
    process = subprocess.run(
        [environment.python, "-P", "-c", script],
        env=environment.environ(app_dir),
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout.strip()


def write_distribution(directory: Path, name: str, version: str) -> None:
    """Write a distribution with one module, which has a ``__version__``."""
    metadata = directory / f"{name}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    (directory / f"{name}.py").write_text(f"__version__ = {version!r}\n")


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_can_be_installed_and_imported(
    name: str, environments: dict[str, object], tmp_path: Path
) -> None:
    environment = environments[name]
    assert isinstance(environment, Environment)
    assert environment.built
    requirements = {
        re.sub(r"\[.*\]", "", requirement) for requirement in SERVERS[name].requirements
    }
    assert f"{name}=={environment.version}" in requirements
    assert run(environment, tmp_path, f"import {name}; print({name}.__name__)") == name


@pytest.mark.parametrize("name", SERVERS)
def test_an_existing_environment_is_reused_without_network(
    name: str, interpreter: AppInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", "/nonexistent")
    environment = provision(SERVERS[name], interpreter, log=lambda line: pytest.fail(line))
    assert not environment.built
    assert environment.seconds < 5


def test_a_script_starts_after_the_environment_was_renamed(
    environments: dict[str, object], tmp_path: Path
) -> None:
    environment = environments["gunicorn"]
    assert isinstance(environment, Environment)
    command = [str(environment.bin / "gunicorn"), "--version"]
    process = subprocess.run(
        command, env=environment.environ(tmp_path), capture_output=True, text=True, check=True
    )
    assert environment.version in process.stdout


def test_the_servers_packages_shadow_the_apps_packages(
    interpreter: AppInterpreter, tmp_path: Path
) -> None:
    packages, editable = tmp_path / "site-packages", tmp_path / "editable"
    editable.mkdir()
    write_distribution(packages, "shop_models", "1.0")
    write_distribution(packages, "waitress", "0.1")
    write_distribution(editable, "shop_core", "2.0")
    (packages / "shop_core.pth").write_text(f"{editable}\n")
    distributions = MappingProxyType({"shop-models": "1.0", "waitress": "0.1"})
    app = replace(interpreter, site_packages=(packages,), distributions=distributions)

    layered = provision(SERVERS["waitress"], app, log=lambda line: None)
    assert not layered.built
    assert layered.conflicts == (Conflict("waitress", layered.version, "0.1"),)
    script = (
        "import shop_models, shop_core, waitress; "
        "print(shop_models.__version__, waitress.serve.__name__)"
    )
    assert run(layered, tmp_path, script) == "1.0 serve"

    plain = provision(SERVERS["waitress"], interpreter, log=lambda line: None)
    assert plain.python == layered.python
    assert plain.conflicts == ()
    script = "import importlib.util; print(importlib.util.find_spec('shop_models'))"
    assert run(plain, tmp_path, script) == "None"
