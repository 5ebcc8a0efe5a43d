"""Damaged caches are detected, reported by file name, and rebuilt.

The kinds of damage are those of run directories.
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
from wsgiload.loads.build import require_possible
from wsgiload.loads.options import Level, LoadSettings, load_plan
from wsgiload.loads.request import Request
from wsgiload.serving.check import CheckResult
from wsgiload.serving.check_store import read_checks, store_checks
from wsgiload.units import NS_PER_S

from .test_calibration import CONDITIONS, document
from .test_corruptions import BYTES, CORRUPTIONS, JSON, Damage
from .test_provision import make_server

PARTS = 8
# Damage to these files may go unnoticed: a missing checksum is not an error.
IGNORABLE = ("tiny-1.0.dist-info/RECORD", "wsgiload.json")


@dataclass(frozen=True, slots=True)
class Corruption:
    """Damage to a file of the cache; the seed determines its position."""

    file: str
    kind: str
    damage: Damage
    seed: int

    def __str__(self) -> str:
        return f"{self.file}: {self.kind} {self.seed}"

    def apply(self, path: Path) -> bool:
        """Damage the file and return whether it has changed."""
        before = path.read_bytes()
        damaged = self.damage(before, random.Random(self.seed))
        if path.is_symlink():
            path.unlink()
        if damaged is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(damaged)
        return damaged != before


def corruptions_of(file: str, kinds: dict[str, Damage], repetitions: int = 1) -> list[Corruption]:
    """One corruption of the file per kind, or several if the position of the damage is random."""
    at_random_positions = (*JSON, "truncated", "bit flipped")
    return [
        Corruption(file, kind, damage, seed)
        for kind, damage in kinds.items()
        for seed in range(repetitions if kind in at_random_positions else 1)
    ]


DOCUMENTS = {name: corruptions_of(name, BYTES | JSON, 3) for name in ("floor.json", "checks.json")}
KEYS = corruptions_of(
    "redaction.key", {name: damage for name, damage in BYTES.items() if name != "UTF-16"}, 3
)
INSTALLED_FILES = ("tiny.py", "tiny-1.0.dist-info/METADATA", "../../../bin/tiny")
ENVIRONMENT = [
    *corruptions_of("wsgiload.json", BYTES | JSON),
    *(corruption for file in INSTALLED_FILES for corruption in corruptions_of(file, BYTES)),
    *corruptions_of("tiny-1.0.dist-info/RECORD", BYTES, 3),
    *corruptions_of("zzz-wsgiload-app-site.pth", BYTES),
    *corruptions_of("_wsgiload_app_site.py", BYTES),
    *corruptions_of("bin/python", {name: BYTES[name] for name in ("deleted", "empty", "binary")}),
    *corruptions_of(
        "pyvenv.cfg", {name: BYTES[name] for name in ("deleted", "empty", "binary", "UTF-16")}
    ),
]
ALL = [
    *(corruption for corruptions in DOCUMENTS.values() for corruption in corruptions),
    *KEYS,
    *ENVIRONMENT,
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_there_are_at_least_500_corruptions() -> None:
    assert len(ALL) >= 200
    assert len(ALL) + len(CORRUPTIONS) >= 500


# --- the noise floor


@pytest.mark.parametrize("corruption", DOCUMENTS["floor.json"], ids=str)
def test_a_damaged_noise_floor_is_ignored_or_usable_and_replaced(
    corruption: Corruption,
) -> None:
    calibration = msgspec.structs.replace(document(), machine=machine_of(host_facts()))
    corruption.apply(store_calibration(CONDITIONS, calibration))

    floor = floor_of_plan("on")
    plan = load_plan(
        "http://127.0.0.1:1/",
        Request(),
        LoadSettings(duration_ns=NS_PER_S),
        Level(rate_per_s=9.0),
        1,
    )
    require_possible(msgspec.structs.replace(plan, noise_floor=floor))

    store_calibration(CONDITIONS, calibration)
    assert known_floor("on", calibration.machine) == calibration


@pytest.mark.parametrize("figure", ["p50", "p99", "p99.9", "created_ns"])
@pytest.mark.parametrize("value", [10**30, 10**18 * 9])
def test_impossible_noise_floors_are_ignored(figure: str, value: int, cache: Path) -> None:
    """A plan with impossible figures would be rejected, and a creation time in the future would
    never expire."""
    calibration = msgspec.structs.replace(document(), machine=machine_of(host_facts()))
    path = store_calibration(CONDITIONS, calibration)
    assert floor_of_plan("on") is not None

    stored = json.loads(path.read_text())
    (entry,) = stored.values()
    (entry if figure == "created_ns" else entry["noise_floor"]["response_time_ns"])[figure] = value
    path.write_text(json.dumps(stored))

    assert floor_of_plan("on") is None


# --- the results of checks


@pytest.mark.parametrize("corruption", DOCUMENTS["checks.json"], ids=str)
def test_damaged_checks_are_not_shown_and_are_replaced(
    corruption: Corruption, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variants = load_catalogue().select(["waitress"])
    result = CheckResult("waitress", "tuned", version="3.0", right_body=True)
    store_checks(variants, [result])
    corruption.apply(cache / "checks.json")

    assert cli.run(["servers", "show", "waitress"]) == EXIT_OK
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    assert "\x1b" not in output.out + output.err

    store_checks(variants, [result])
    assert read_checks(variants[0]) == [result]


# --- the key of redacted values


@pytest.mark.parametrize("corruption", KEYS, ids=str)
def test_a_damaged_redaction_key_is_replaced_once(corruption: Corruption, cache: Path) -> None:
    """After the replacement, redacted values of several commands are comparable again."""

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


def make_wheel(directory: Path) -> Path:
    """Build a wheel with a module and a console script."""
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

    wheel = directory / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel


@dataclass(frozen=True, slots=True)
class Installed:
    """A server with its environment and the cache that contains it."""

    server: Server
    interpreter: AppInterpreter
    cache: Path

    def provision(self, log: Callable[[str], None] = lambda text: None) -> LockedEnvironment:
        return provision(self.server, self.interpreter, log=log)

    def path_of(self, file: str) -> Path:
        """The path of a file in the environment."""
        (environment,) = [path for path in (self.cache / "environments").iterdir() if path.is_dir()]
        if file in ("wsgiload.json", "pyvenv.cfg", "bin/python"):
            return environment / file
        (site_packages,) = (environment / "lib").glob("py*3.*/site-packages")
        return Path(os.path.normpath(site_packages / file))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """An environment that is built once; each test damages a copy."""
    directory = tmp_path_factory.mktemp("tiny")
    wheel = make_wheel(directory)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    lock = f"tiny @ {wheel.as_uri()} --hash=sha256:{digest}\n"

    server = replace(make_server(directory, lock), requirements=("tiny==1.0",), distribution="tiny")
    installed = Installed(server, bundled_app_interpreter(), directory / "cache")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WSGILOAD_CACHE_DIR", str(installed.cache))
        installed.provision()
    yield installed


@pytest.fixture
def installed(template: Installed, cache: Path) -> Installed:
    shutil.copytree(template.cache, cache, symlinks=True)
    return replace(template, cache=cache)


def require_intact(installed: Installed, environment: LockedEnvironment) -> None:
    """Check that the package is installed and runs."""
    assert environment.version == "1.0"
    assert installed.path_of("tiny.py").read_text() == SOURCE
    command = [environment.bin / "tiny"]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert process.stderr == "tiny\n", "the script exits with the return value of main"

    assert not installed.provision().built


def test_an_intact_environment_is_reused(installed: Installed) -> None:
    messages: list[str] = []
    environment = installed.provision(messages.append)
    assert (environment.built, messages) == (False, [])
    require_intact(installed, environment)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_environment_is_reported_and_rebuilt(
    part: int, template: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(part, len(ENVIRONMENT), PARTS):
        corruption, cache = ENVIRONMENT[number], tmp_path / str(number)
        shutil.copytree(template.cache, cache, symlinks=True)
        monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(cache))
        installed = replace(template, cache=cache)
        path = installed.path_of(corruption.file)
        is_damaged = corruption.apply(path)

        messages: list[str] = []
        environment = installed.provision(messages.append)

        assert environment.built == bool(messages), corruption
        if environment.built:
            # A damaged RECORD may look intact, but no longer list all files.
            unlisted = path.name == "RECORD" and "missing in the RECORD" in messages[0]
            assert str(path) in messages[0] or unlisted, (corruption, messages)
        else:  # unchanged, except for files that are not verified
            assert not is_damaged or corruption.file in IGNORABLE, corruption
        require_intact(installed, environment)
        shutil.rmtree(cache)


@pytest.mark.parametrize(
    "added",
    ["evil.pth", "sitecustomize.py", "tiny.cpython-312-x86_64-linux-gnu.so", "json/x.py", "link"],
)
def test_an_added_module_is_reported_and_removed(installed: Installed, added: str) -> None:
    path = installed.path_of(added)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("/tmp") if added == "link" else path.write_text("")
    messages: list[str] = []
    assert installed.provision(messages.append).built
    assert messages[0].startswith(f"{path} was added")
    assert not os.path.lexists(path)


def test_an_added_program_is_reported_and_removed(installed: Installed) -> None:
    path = installed.path_of("bin/python").with_name("sh")
    path.symlink_to("/bin/true")
    messages: list[str] = []
    assert installed.provision(messages.append).built
    assert messages[0].startswith(f"{path} was added")


def test_files_that_a_server_adds_while_it_runs_are_no_damage(installed: Installed) -> None:
    for name in ("dropin.cache", "__pycache__/tiny.cpython-312.opt-1.pyc"):
        installed.path_of(name).parent.mkdir(exist_ok=True)
        installed.path_of(name).write_text("")
    assert not installed.provision().built


def test_files_in_place_of_directories_are_removed_or_reported(
    installed: Installed, cache: Path
) -> None:
    environment = installed.path_of("pyvenv.cfg").parent
    shutil.rmtree(environment)
    for leftover in (environment, environment.with_name(environment.name + ".unfinished")):
        leftover.write_text("a file")
    require_intact(installed, installed.provision())

    shutil.rmtree(environment)
    shutil.rmtree(cache / "logs")
    (cache / "logs").write_text("a file")
    with pytest.raises(ProvisionError, match=f"cannot write to the cache {cache / 'logs'}"):
        installed.provision()


def test_missing_packages_are_reinstalled(installed: Installed) -> None:
    shutil.rmtree(installed.path_of("tiny.py").parent)

    messages: list[str] = []
    environment = installed.provision(messages.append)

    assert environment.built
    assert "site-packages" in messages[0] and " is missing; installing plain" in messages[0]
    require_intact(installed, environment)


def test_damaged_files_in_the_installer_cache_are_not_installed(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    path = installed.path_of("tiny.py")
    shutil.rmtree(installed.path_of("pyvenv.cfg").parent)
    installed.provision()
    (cached,) = (tmp_path / "uv").rglob("tiny.py")
    assert not cached.samefile(path), "a hard link would share the damage"

    cached.write_text("raise SystemExit('damaged')\n")
    shutil.rmtree(installed.path_of("pyvenv.cfg").parent)
    environment = installed.provision()
    assert environment.built
    require_intact(installed, environment)
