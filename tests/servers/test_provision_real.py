"""Real environments from the real locks: built once, then offline, and layered over an app's
packages."""

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
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("WSGILOAD_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="module")
def interpreter() -> AppInterpreter:
    return bundled_app_interpreter()


@pytest.fixture(scope="module", autouse=True)
def built(cache: Path, interpreter: AppInterpreter) -> dict[str, object]:
    return dict(provision_all(list(SERVERS.values()), interpreter, log=lambda line: None))


def run(environment: Environment, app_dir: Path, text: str) -> str:
    done = subprocess.run(
        [environment.python, "-P", "-c", text],
        env=environment.environ(app_dir),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def distribution(folder: Path, name: str, version: str) -> None:
    """A package of one module that knows its version."""
    (folder / f"{name}-{version}.dist-info").mkdir(parents=True)
    (folder / f"{name}-{version}.dist-info" / "METADATA").write_text(
        f"Name: {name}\nVersion: {version}\n"
    )
    (folder / f"{name}.py").write_text(f"__version__ = {version!r}\n")


@pytest.mark.parametrize("name", SERVERS)
def test_each_builds_and_imports(name: str, built: dict[str, object], tmp_path: Path) -> None:
    environment = built[name]
    assert isinstance(environment, Environment)
    assert environment.built
    assert f"{name}=={environment.version}" in {
        re.sub(r"\[.*\]", "", requirement) for requirement in SERVERS[name].requirements
    }
    assert run(environment, tmp_path, f"import {name}; print({name}.__name__)") == name


@pytest.mark.parametrize("name", SERVERS)
def test_the_second_time_needs_no_network(
    name: str, interpreter: AppInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", "/nonexistent")
    again = provision(SERVERS[name], interpreter, log=lambda line: pytest.fail(line))
    assert not again.built
    assert again.seconds < 5


def test_a_script_still_starts_after_the_environment_was_renamed(
    built: dict[str, object], tmp_path: Path
) -> None:
    environment = built["gunicorn"]
    assert isinstance(environment, Environment)
    script = [str(environment.bin / "gunicorn"), "--version"]
    done = subprocess.run(
        script, env=environment.environ(tmp_path), capture_output=True, text=True, check=True
    )
    assert environment.version in done.stdout


def test_the_apps_packages_are_seen_behind_the_servers_own(
    interpreter: AppInterpreter, tmp_path: Path
) -> None:
    packages, editable = tmp_path / "site-packages", tmp_path / "editable"
    editable.mkdir()
    distribution(packages, "shop_models", "1.0")
    distribution(packages, "waitress", "0.1")
    distribution(editable, "shop_core", "2.0")
    (packages / "shop_core.pth").write_text(f"{editable}\n")
    found = MappingProxyType({"shop-models": "1.0", "waitress": "0.1"})
    app = replace(interpreter, site_packages=(packages,), distributions=found)

    layered = provision(SERVERS["waitress"], app, log=lambda line: None)
    assert not layered.built
    assert layered.conflicts == (Conflict("waitress", layered.version, "0.1"),)
    text = (
        "import shop_models, shop_core, waitress as own; print(shop_models.__version__, "
        "own.serve.__name__)"
    )
    assert run(layered, tmp_path, text) == "1.0 serve"

    plain = provision(SERVERS["waitress"], interpreter, log=lambda line: None)
    assert plain.python == layered.python
    assert plain.conflicts == ()
    look = "import importlib.util; print(importlib.util.find_spec('shop_models'))"
    assert run(plain, tmp_path, look) == "None"
