"""Caches damaged in every way: whoever uses one says which file it was, makes it again and goes on.

The damages are those of run directories, and others where a cache is more than one document.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from wsgiload import cli
from wsgiload.calibration.noise_floor import (
    floor_of_plan,
    known_floor,
    machine_of,
    store_calibration,
)
from wsgiload.catalogue.contract import Server
from wsgiload.catalogue.names import load_catalogue
from wsgiload.environments.interpreter import AppInterpreter, bundled_app_interpreter
from wsgiload.environments.provision import LockedEnvironment, provision
from wsgiload.errors import EXIT_OK, ProvisionError
from wsgiload.experiment import redaction
from wsgiload.host.facts import host_facts
from wsgiload.loads.generator import require_possible
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request
from wsgiload.serving.check import CheckResult
from wsgiload.serving.check_store import read_checks, store_checks
from wsgiload.units import NS_PER_S

from .test_calibration import CONDITIONS, document
from .test_corruptions import BYTES, CORRUPTIONS, JSON, Damage
from .test_provision import make_server

PARTS = 8
# A checksum that is not there any more is not missed.
IGNORABLE = ("tiny-1.0.dist-info/RECORD", "wsgiload.json")


@dataclass(frozen=True, slots=True)
class Corruption:
    """A file of the cache, what is done to it, and the seed of where."""

    file: str
    kind: str
    damage: Damage
    seed: int

    def __str__(self) -> str:
        return f"{self.file}: {self.kind} {self.seed}"

    def apply(self, path: Path) -> bool:
        """Damage the file; whether anything is different now."""
        before = path.read_bytes()
        damaged = self.damage(before, random.Random(self.seed))
        if path.is_symlink():
            path.unlink()
        if damaged is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(damaged)
        return damaged != before


def of(file: str, kinds: dict[str, Damage], times: int = 1) -> list[Corruption]:
    """Each kind for the file, those with a place of chance more often."""
    by_chance = (*JSON, "truncated", "bit flipped")
    return [
        Corruption(file, kind, damage, seed)
        for kind, damage in kinds.items()
        for seed in range(times if kind in by_chance else 1)
    ]


DOCUMENTS = {name: of(name, BYTES | JSON, 3) for name in ("floor.json", "checks.json")}
KEYS = of("redaction.key", {name: one for name, one in BYTES.items() if name != "UTF-16"}, 3)
RECORDED = ("tiny.py", "tiny-1.0.dist-info/METADATA", "../../../bin/tiny")
IN_AN_ENVIRONMENT = [
    *of("wsgiload.json", BYTES | JSON),
    *(one for file in RECORDED for one in of(file, BYTES)),
    *of("tiny-1.0.dist-info/RECORD", BYTES, 3),
    *of("zzz-wsgiload-app-site.pth", BYTES),
    *of("_wsgiload_app_site.py", BYTES),
    *of("bin/python", {name: BYTES[name] for name in ("deleted", "empty", "binary")}),
    *of("pyvenv.cfg", {name: BYTES[name] for name in ("deleted", "empty", "binary", "UTF-16")}),
]
ALL = [*(one for made in DOCUMENTS.values() for one in made), *KEYS, *IN_AN_ENVIRONMENT]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_there_are_enough() -> None:
    assert len(ALL) >= 200
    assert len(ALL) + len(CORRUPTIONS) >= 500


# --- the noise floor


@pytest.mark.parametrize("corruption", DOCUMENTS["floor.json"], ids=str)
def test_a_damaged_noise_floor_is_none_or_can_be_used_and_the_next_replaces_it(
    corruption: Corruption,
) -> None:
    here = msgspec.structs.replace(document(), machine=machine_of(host_facts()))
    corruption.apply(store_calibration(CONDITIONS, here))

    floor = floor_of_plan("on")
    plan = load_plan(
        "http://127.0.0.1:1/", Request(), LoadSettings(NS_PER_S), Level(rate_per_s=9.0), 1
    )
    require_possible(msgspec.structs.replace(plan, noise_floor=floor))

    store_calibration(CONDITIONS, here)
    assert known_floor("on", here.machine) == here


@pytest.mark.parametrize("figure", ["p50", "p99", "p99.9", "created_ns"])
@pytest.mark.parametrize("value", [10**30, 10**18 * 9])
def test_figures_that_cannot_be_are_no_noise_floor(figure: str, value: int, cache: Path) -> None:
    """A plan with them would be refused, far from where the fault is; one of the future would stand
    forever."""
    here = msgspec.structs.replace(document(), machine=machine_of(host_facts()))
    path = store_calibration(CONDITIONS, here)
    assert floor_of_plan("on") is not None
    stored = json.loads(path.read_text())
    (one,) = stored.values()
    (one if figure == "created_ns" else one["noise_floor"]["response_time_ns"])[figure] = value
    path.write_text(json.dumps(stored))
    assert floor_of_plan("on") is None


# --- the results of checks


@pytest.mark.parametrize("corruption", DOCUMENTS["checks.json"], ids=str)
def test_damaged_checks_are_not_shown_and_the_next_replace_them(
    corruption: Corruption, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = load_catalogue().select(["waitress"])
    result = CheckResult("waitress", "tuned", version="3.0", right_body=True)
    store_checks(chosen, [result])
    corruption.apply(cache / "checks.json")

    assert cli.run(["servers", "show", "waitress"]) == EXIT_OK
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err
    assert "\x1b" not in shown.out + shown.err

    store_checks(chosen, [result])
    assert read_checks(chosen[0]) == [result]


# --- the key of redacted values


@pytest.mark.parametrize("corruption", KEYS, ids=str)
def test_a_damaged_key_is_replaced_once(corruption: Corruption, cache: Path) -> None:
    """From then on, redacted values of several commands compare again."""

    def key_of_a_command() -> bytes:
        redaction._key.cache_clear()
        return redaction._key()

    try:
        key_of_a_command()
        corruption.apply(cache / "redaction.key")
        first = key_of_a_command()
        assert len(first) == redaction.KEY_BYTES
        assert key_of_a_command() == first
    finally:
        redaction._key.cache_clear()


# --- the environments of servers

SOURCE = "def main():\n    return 'tiny'\n"


def make_wheel(folder: Path) -> Path:
    """A package with a module and a console script."""
    files = {
        "tiny.py": SOURCE,
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny-1.0.dist-info/entry_points.txt": "[console_scripts]\ntiny = tiny:main\n",
    }
    record = "tiny-1.0.dist-info/RECORD"
    lines = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
        lines.append(f"{name},sha256={digest.rstrip('=')},{len(text)}")
    files[record] = "\n".join([*lines, f"{record},,"]) + "\n"
    wheel = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


@dataclass(frozen=True, slots=True)
class Installed:
    """A server in an environment of its own, and the cache that holds it."""

    server: Server
    interpreter: AppInterpreter
    cache: Path

    def provision(self, log: Callable[[str], None] = lambda text: None) -> LockedEnvironment:
        return provision(self.server, self.interpreter, log=log)

    def path_of(self, file: str) -> Path:
        """Where a file of the environment is."""
        (folder,) = [path for path in (self.cache / "environments").iterdir() if path.is_dir()]
        if file in ("wsgiload.json", "pyvenv.cfg", "bin/python"):
            return folder / file
        (site_packages,) = (folder / "lib").glob("py*3.*/site-packages")
        return Path(os.path.normpath(site_packages / file))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Built once; each test damages a copy."""
    folder = tmp_path_factory.mktemp("tiny")
    wheel = make_wheel(folder)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock = f"tiny @ {wheel.as_uri()} --hash=sha256:{digest}\n"
    server = replace(make_server(folder, lock), requirements=("tiny==1.0",), distribution="tiny")
    made = Installed(server, bundled_app_interpreter(), folder / "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WSGILOAD_CACHE_DIR", str(made.cache))
        made.provision()
    yield made


@pytest.fixture
def installed(template: Installed, cache: Path) -> Installed:
    shutil.copytree(template.cache, cache, symlinks=True)
    return replace(template, cache=cache)


def require_whole(installed: Installed, environment: LockedEnvironment) -> None:
    """What was installed is there, and runs."""
    assert environment.version == "1.0"
    assert installed.path_of("tiny.py").read_text() == SOURCE
    words = [environment.bin / "tiny"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == "tiny\n", "the script exits with what main returns"
    assert not installed.provision().built


def test_an_environment_that_is_whole_is_taken_as_it_is(installed: Installed) -> None:
    said: list[str] = []
    environment = installed.provision(said.append)
    assert (environment.built, said) == (False, [])
    require_whole(installed, environment)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_environment_is_named_and_built_again(
    part: int, template: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(part, len(IN_AN_ENVIRONMENT), PARTS):
        corruption, cache = IN_AN_ENVIRONMENT[number], tmp_path / str(number)
        shutil.copytree(template.cache, cache, symlinks=True)
        monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(cache))
        installed = replace(template, cache=cache)
        path = installed.path_of(corruption.file)
        is_damaged = corruption.apply(path)

        said: list[str] = []
        environment = installed.provision(said.append)

        assert environment.built == bool(said), corruption
        if environment.built:
            assert str(path) in said[0], (corruption, said)
        else:  # as it was, but for what nobody reads
            assert not is_damaged or corruption.file in IGNORABLE, corruption
        require_whole(installed, environment)
        shutil.rmtree(cache)


def test_what_stands_in_the_way_of_an_environment_is_removed_or_named(
    installed: Installed, cache: Path
) -> None:
    folder = installed.path_of("pyvenv.cfg").parent
    shutil.rmtree(folder)
    for leftover in (folder, folder.with_name(folder.name + ".unfinished")):
        leftover.write_text("a file")
    require_whole(installed, installed.provision())

    shutil.rmtree(folder)
    shutil.rmtree(cache / "logs")
    (cache / "logs").write_text("a file")
    with pytest.raises(ProvisionError, match=f"cannot write to the cache {cache / 'logs'}"):
        installed.provision()


def test_packages_that_are_gone_are_installed_again(installed: Installed) -> None:
    shutil.rmtree(installed.path_of("tiny.py").parent)
    said: list[str] = []
    environment = installed.provision(said.append)
    assert environment.built
    assert "site-packages" in said[0] and " is missing; installing plain" in said[0]
    require_whole(installed, environment)


def test_a_damaged_cache_of_the_installer_is_not_installed_from(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    path = installed.path_of("tiny.py")
    shutil.rmtree(installed.path_of("pyvenv.cfg").parent)
    installed.provision()
    (kept,) = (tmp_path / "uv").rglob("tiny.py")
    assert not kept.samefile(path), "an environment would share its damage"

    kept.write_text("raise SystemExit('damaged')\n")
    shutil.rmtree(installed.path_of("pyvenv.cfg").parent)
    environment = installed.provision()
    assert environment.built
    require_whole(installed, environment)
