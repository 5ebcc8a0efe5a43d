"""The wheel, installed into a clean environment away from the checkout, does the main job from an
empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

pytestmark = [pytest.mark.servers, pytest.mark.limits]

ROOT = Path(__file__).parents[2]
CARRIED = (
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
    "wsgiload/documents/schema/capacity-2.json",
    "wsgiload/documents/schema/load-2.json",
    "wsgiload/py.typed",
    "wsgiload/_loadgen.pyi",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from this checkout, with what the checkout has built already."""
    folder = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    subprocess.run(
        [maturin, "build", "--release", "--locked", "--out", folder], cwd=ROOT, check=True
    )
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel, what it needs, and nothing
    else."""
    environment = tmp_path_factory.mktemp("clean") / "env"
    uv = find_uv_bin()
    subprocess.run(
        [uv, "venv", "--no-project", "--python", sys.executable, environment], check=True
    )
    subprocess.run(
        [uv, "pip", "install", "--python", environment / "bin" / "python", wheel], check=True
    )
    return environment / "bin"


def run(words: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    return subprocess.run(
        words, cwd=folder, env=variables, capture_output=True, text=True, timeout=150, check=False
    )


def test_everything_that_a_sweep_needs_travels_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in CARRIED if name not in names] == []
    assert [name for name in names if name.endswith(".pyc")] == []


def test_it_sweeps_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    options = [
        "--servers",
        "waitress,gunicorn-sync",
        "--rates",
        "100",
        "--duration",
        "1s",
        "--warmup",
        "200ms",
    ]
    done = run([installed / "wsgiload", "sweep", *options, "--json", "result.json"], tmp_path)
    assert done.returncode in (0, 98), done.stderr
    cells = json.loads((tmp_path / "result.json").read_text())["cells"]
    assert sorted(cell["server"] for cell in cells) == ["gunicorn", "waitress"]
    for cell in cells:
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert list((tmp_path / ".wsgiload" / "runs").glob("*/report.html"))


def test_it_loads_a_url_from_python(installed: Path, tmp_path: Path) -> None:
    program = (
        "import wsgiload, wsgiload.documents.schema; "
        "report = wsgiload.load('http://127.0.0.1:9/', rate=50, duration=0.2); "
        "print(report.outcomes['refused'] == report.outcomes['scheduled'], wsgiload.__file__)"
    )
    done = run([installed / "python", "-c", program], tmp_path)
    assert done.returncode == 0, done.stderr
    held, file = done.stdout.split()
    assert held == "True"
    assert not Path(file).is_relative_to(ROOT)
