"""The wheel, installed into a clean environment outside the checkout, measures from an empty
directory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from uv import find_uv_bin

pytestmark = [pytest.mark.servers, pytest.mark.limits]

ROOT = Path(__file__).parents[2]
PACKAGED_FILES = (
    "wsgiload/_servers/gunicorn.py",
    "wsgiload/_servers/locks/gunicorn.txt",
    "wsgiload/_servers/runners/run_gevent.py",
    "wsgiload/_servers/runners/node_hello.js",
    "wsgiload/_experiments/appdynamics-2016.toml",
    "wsgiload/_experiments/slides-2013-fair.toml",
    "wsgiload/catalogue/apps/conformance.py",
    "wsgiload/catalogue/apps/counted.py",
    "wsgiload/catalogue/apps/json1k.py",
    "wsgiload/catalogue/apps/upstream_source.py",
    "wsgiload/report/template.html.j2",
    "wsgiload/report/front_end/page.css",
    "wsgiload/report/front_end/page.js",
    "wsgiload/documents/schema/capacity-1.json",
    "wsgiload/documents/schema/load-1.json",
    "wsgiload/py.typed",
    "wsgiload/_loadgen.pyi",
)

# About 39 MB of this is uv, which many environments already contain.
MAX_ADDED_BYTES = 75_000_000
MAX_ADDED_WITHOUT_UV_BYTES = 36_000_000
MAX_HELP_S = 0.25
HELP_ATTEMPTS = 5


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, from an incremental build."""
    folder = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "build", "--release", "--locked", "--out", folder], cwd=ROOT, check=True
    )
    return next(folder.glob("*.whl"))


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment with only the wheel and its dependencies."""

    folder: Path
    bytes_before: int

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def added_bytes(self) -> int:
        """The size of the installation, as counted by ``du -sb``."""
        return size_bytes(self.folder) - self.bytes_before

    @property
    def uv_bytes(self) -> int:
        """The part of ``added_bytes`` that is uv."""
        (packages,) = self.folder.glob("lib/python*/site-packages")
        parts = (*packages.glob("uv"), *packages.glob("uv-*"), *self.programs.glob("uv*"))
        return sum(size_bytes(part) for part in parts)


def size_bytes(root: Path) -> int:
    """The size of a file, or of a directory with its content."""
    return sum(path.lstat().st_size for path in (root, *root.rglob("*")))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Compiled to bytecode, as by pip."""
    folder = tmp_path_factory.mktemp("clean") / "env"
    uv = find_uv_bin()
    subprocess.run([uv, "venv", "--no-project", "--python", sys.executable, folder], check=True)

    bytes_before = size_bytes(folder)
    python = folder / "bin" / "python"
    subprocess.run(
        [uv, "pip", "install", "--compile-bytecode", "--python", python, wheel], check=True
    )
    return Environment(folder, bytes_before)


@pytest.fixture(scope="module")
def installed(environment: Environment) -> Path:
    """The directory of the environment's programs."""
    return environment.programs


def run(words: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    return subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, timeout=150, check=False
    )


def test_the_wheel_contains_all_files_of_a_sweep(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in PACKAGED_FILES if name not in names] == []
    assert [name for name in names if name.endswith(".pyc")] == []


def test_an_installation_is_small(environment: Environment) -> None:
    added, uv = environment.added_bytes, environment.uv_bytes
    sys.stdout.write(f"{added:,} bytes added, including {uv:,} bytes of uv\n")
    assert uv > 0
    assert added <= MAX_ADDED_BYTES
    assert added - uv <= MAX_ADDED_WITHOUT_UV_BYTES


def test_help_takes_little_cpu_time(installed: Path, tmp_path: Path) -> None:
    times_s = []
    for _ in range(HELP_ATTEMPTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run([installed / "wsgiload", "--help"], tmp_path).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    sys.stdout.write(f"wsgiload --help: {sorted(times_s)} s of CPU time\n")
    # Compare the minimum: disturbances only add CPU time.
    assert min(times_s) <= MAX_HELP_S


def test_the_installed_command_sweeps_from_an_empty_directory(
    installed: Path, tmp_path: Path
) -> None:
    servers = ["--servers", "waitress,gunicorn-sync", "--json", "result.json"]
    load = ["--rates", "100", "--duration", "1s", "--warmup", "200ms", "--reruns", "0"]
    result = run([installed / "wsgiload", "sweep", *servers, *load], tmp_path)

    assert result.returncode in (0, 98), result.stderr
    cells = json.loads((tmp_path / "result.json").read_text())["cells"]
    assert sorted(cell["server"] for cell in cells) == ["gunicorn", "waitress"]
    for cell in cells:
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert list((tmp_path / ".wsgiload" / "runs").glob("*/report.html"))


def test_the_installed_package_loads_a_url_from_python(installed: Path, tmp_path: Path) -> None:
    program = (
        "import wsgiload, wsgiload.documents.schema; "
        "report = wsgiload.load('http://127.0.0.1:9/', rate=50, duration=0.2); "
        "print(report.outcomes['refused'] == report.outcomes['scheduled'], wsgiload.__file__)"
    )
    result = run([installed / "python", "-c", program], tmp_path)

    assert result.returncode == 0, result.stderr
    all_refused, file = result.stdout.split()
    assert all_refused == "True"
    assert not Path(file).is_relative_to(ROOT)
