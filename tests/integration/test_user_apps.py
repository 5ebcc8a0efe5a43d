"""User apps: Flask, Django and httpbin, each in a local ``.venv`` that wsgiload does not change."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from uv import find_uv_bin

from wsgiload.environments.interpreter import bundled_app_interpreter

from .command import Command, CommandResult

pytestmark = [pytest.mark.servers, pytest.mark.limits]

BRIEFLY = ("--rates", 50, "--duration", "500ms", "--warmup", "0s", "--cooldown", "0s", "--quiet")

FLASK_APP = """
    from flask import Flask

    app = Flask(__name__)


    @app.get("/users/<name>")
    def user(name):
        return {"name": name}
"""
DJANGO_SETTINGS = """
    SECRET_KEY = "of a test"
    ALLOWED_HOSTS = ["127.0.0.1"]
    ROOT_URLCONF = "shop.urls"
    MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
"""
DJANGO_URLS = """
    from django.http import JsonResponse
    from django.urls import path

    urlpatterns = [path("items/", lambda request: JsonResponse({"items": [1, 2, 3]}))]
"""
DJANGO_WSGI = """
    import os

    from django.core.wsgi import get_wsgi_application

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
    application = get_wsgi_application()
"""


def make_project(folder: Path, *packages: str) -> Path:
    """A directory with a ``.venv`` that contains these packages."""
    python = str(bundled_app_interpreter().base_executable)
    folder.mkdir(parents=True)

    for words in (
        ["venv", "--python", python, ".venv"],
        # Compiled, so that an import of the app does not write bytecode into the environment.
        ["pip", "install", "--compile-bytecode", "--python", ".venv/bin/python", *packages],
    ):
        subprocess.run([find_uv_bin(), "--quiet", *words], cwd=folder, check=True, timeout=300)

    return folder


def fingerprint(folder: Path) -> dict[str, str]:
    """Hashes of all files in a directory, by relative path; for symbolic links, their targets."""
    return {
        str(path.relative_to(folder)): f"-> {path.readlink()}"
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def sweep_unchanged(command: Command, project: Path, *words: object) -> CommandResult:
    """Sweep in the project's directory, and check that its environment did not change."""
    before = fingerprint(project / ".venv")
    assert any(name.endswith("RECORD") for name in before)

    result = command.run("sweep", *words, cwd=project)
    assert fingerprint(project / ".venv") == before
    return result


def require_all_ok(result: CommandResult, cells: list[str], code: int = 0) -> None:
    """All cells were measured, and all their responses are correct. A disturbed host may make them
    invalid."""
    invalid = any(cell["verdict"]["status"] == "invalid" for cell in result.cells.values())
    assert result.code == (98 if invalid else code)
    assert sorted(result.cells) == sorted(cells)
    for cell in result.cells.values():
        assert cell["failure"] is None
        assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of this module's projects, each of which is made once."""
    return tmp_path_factory.mktemp("projects")


def test_httpbin_is_measured_in_its_local_environment(command: Command, projects: Path) -> None:
    """The documented command."""
    project = make_project(projects / "httpbin", "httpbin")
    words = ("httpbin:app", "--path", "/json", "--servers", "gunicorn-gthread,waitress")
    load = ("--rates", "100,200", "--duration", "1s", "--warmup", "200ms", "--cooldown", "0s")
    result = sweep_unchanged(command, project, *words, *load)

    servers = ("gunicorn-gthread", "waitress")
    require_all_ok(result, [f"{server}@{rate}#1" for server in servers for rate in (100, 200)])
    assert result.summary["experiment"]["app"] == "httpbin:app"
    assert result.run_dir.parent == project / ".wsgiload" / "runs"


def test_a_flask_project_with_another_version_of_waitress_is_measured(
    command: Command, projects: Path
) -> None:
    """The catalogue's version is measured, the conflict is reported, and the user's copy stays."""
    project = make_project(projects / "flask", "flask", "waitress==2.1.2")
    (project / "shop.py").write_text(textwrap.dedent(FLASK_APP))
    words = ("shop:app", "--path", "/users/ada", "--servers", "waitress,wsgiref")
    result = sweep_unchanged(command, project, *words, *BRIEFLY)

    require_all_ok(result, ["waitress@50#1", "wsgiref@50#1"])
    waitress = result.cells["waitress@50#1"]
    assert waitress["version"] != "2.1.2"
    assert (
        f"waitress was measured with waitress {waitress['version']}; your app's environment has "
        "2.1.2" in waitress["notes"]
    )
    assert not any("was measured with" in note for note in result.cells["wsgiref@50#1"]["notes"])
    assert "your app's environment has 2.1.2" in result.out


def test_a_django_project_is_measured_from_another_directory(
    command: Command, projects: Path
) -> None:
    """``--chdir`` names the directory of the project's modules and environment."""
    project = make_project(projects / "django", "django")
    (project / "shop").mkdir()
    for name, text in (("settings", DJANGO_SETTINGS), ("urls", DJANGO_URLS), ("wsgi", DJANGO_WSGI)):
        (project / "shop" / f"{name}.py").write_text(textwrap.dedent(text))
    before = fingerprint(project / ".venv")

    words = ("shop.wsgi:application", "--chdir", project, "--path", "/items/")
    result = command.run("sweep", *words, "--servers", "gunicorn-gthread", *BRIEFLY)

    require_all_ok(result, ["gunicorn-gthread@50#1"])
    assert fingerprint(project / ".venv") == before
    assert result.run_dir.is_relative_to(command.folder)


SIZES = ("--grid", "workers=1,2", "threads=1,4", "--slo", "p99<100ms")


def test_httpbin_gets_no_recommendation_from_one_run(command: Command, projects: Path) -> None:
    """One run per size is not enough, and the message states how many runs are needed."""
    project = projects / "httpbin"
    if not project.exists():
        make_project(project, "httpbin")
    words = ("httpbin:app", "--path", "/json", "--servers", "gunicorn-gthread", *SIZES, "--runs", 1)
    result = command.run("sweep", *words, *BRIEFLY, cwd=project)

    require_all_ok(
        result,
        [
            f"gunicorn-gthread-w{workers}-t{threads}@50#1"
            for workers in (1, 2)
            for threads in (1, 4)
        ],
        code=98,
    )
    assert result.out.splitlines()[-1].startswith(
        "No recommendation: no configuration has 4 valid runs at one rate"
    )
    assert "Use --runs 6 on an idle machine" in result.out

    report = command.run("report", result.run_dir, "--slo", "p99<100ms", cwd=project)
    assert report.out.splitlines()[-1] == result.out.splitlines()[-1]
    assert report.code == 98


@pytest.mark.skipif(
    "WSGILOAD_LONG_TESTS" not in os.environ, reason="set WSGILOAD_LONG_TESTS=1 for long tests"
)
@pytest.mark.timeout(1200)
def test_httpbin_gets_a_recommended_setting_or_a_reason(command: Command, projects: Path) -> None:
    project = projects / "httpbin"
    if not project.exists():
        make_project(project, "httpbin")
    words = ("httpbin:app", "--path", "/json", "--servers", "gunicorn-gthread", *SIZES)
    load = ("--rates", "50,200,800", "--duration", "5s")
    result = command.start("sweep", *words, *load, cwd=project).end(1100)

    sentence = result.out.splitlines()[-1]
    assert sentence.startswith(("Recommended: gunicorn-gthread-w", "No recommendation: "))
    if sentence.startswith("Recommended"):
        assert re.search(r"95 % CI [0-9.]+ .?s to [0-9.]+ .?s, 6 runs", sentence)
        assert re.search(r" of 512 MiB \([0-9.]+ % free\)", sentence)
