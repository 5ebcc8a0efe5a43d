"""The app's interpreter is found in the documented order."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wsgiload.cli import run
from wsgiload.environments import interpreter, project, versions
from wsgiload.environments.interpreter import (
    bundled_app_interpreter,
    clean_variables,
    find_app_interpreter,
)
from wsgiload.environments.project import project_environment
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.public_options import ServerOptions
from wsgiload.sweeps.app_check import app_interpreter, environment_note


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.delenv("UV_PROJECT_ENVIRONMENT", raising=False)
    interpreter._describe.cache_clear()


def make_environment(directory: Path) -> Path:
    """Creates a minimal virtual environment that the interpreter accepts."""
    current = find_app_interpreter(directory.parent, sys.executable)
    (directory / "bin").mkdir(parents=True)
    (directory / "bin" / "python").symlink_to(current.base_executable)
    (directory / "pyvenv.cfg").write_text(
        f"home = {current.base_executable.parent}\ninclude-system-site-packages = false\n"
    )
    packages = directory / "lib" / f"python{current.minor[0]}.{current.minor[1]}" / "site-packages"
    (packages / "Some_Thing-2.0.dist-info").mkdir(parents=True)
    (packages / "Some_Thing-2.0.dist-info" / "METADATA").write_text(
        "Name: Some_Thing\nVersion: 2.0\n"
    )
    return directory


def project_path(folder: Path) -> Path | None:
    found = project_environment(folder)
    return found.path if found else None


def fake_python(path: Path, version: str, implementation: str = "CPython") -> Path:
    """Creates an executable that describes itself as this interpreter."""
    minor = [int(part) for part in version.split(".")[:2]]
    path.write_text(
        "#!/bin/sh\n"
        f'echo \'{{"executable": "{path}", "base": "{path}", "version": "{version}", "minor": '
        f"{minor},"
        f' "implementation": "{implementation}", "site": [], "distributions": {{}}}}\'\n'
    )
    path.chmod(0o755)
    return path


def test_a_local_environment_is_found_and_described(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    python = find_app_interpreter(tmp_path)
    assert python.origin == ".venv"
    assert python.executable == tmp_path / ".venv" / "bin" / "python"
    assert python.base_executable == Path(sys.executable).resolve()
    assert python.minor == sys.version_info[:2]
    assert python.distributions["some-thing"] == "2.0"
    assert [directory.is_relative_to(tmp_path) for directory in python.site_packages] == [True]


def test_an_active_environment_takes_precedence_over_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_environment(tmp_path / ".venv")
    monkeypatch.setenv("VIRTUAL_ENV", str(make_environment(tmp_path / "active")))
    assert find_app_interpreter(tmp_path).origin == "VIRTUAL_ENV"


def test_the_active_environment_of_wsgiload_does_not_hide_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_environment(tmp_path / ".venv")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert find_app_interpreter(tmp_path).origin == ".venv"


def test_the_nearest_environment_in_a_parent_directory_is_found(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    directory = tmp_path / "packages" / "web"
    (directory / ".git").mkdir(parents=True)
    python = find_app_interpreter(directory)
    assert (python.origin, python.executable) == (".venv", tmp_path / ".venv" / "bin" / "python")
    nearer = make_environment(tmp_path / "packages" / ".venv")
    assert project_path(directory) == nearer


def test_the_search_ends_at_the_home_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    directory = home / "shop"
    directory.mkdir(parents=True)
    make_environment(tmp_path / ".venv")

    assert project_path(directory) == tmp_path / ".venv"

    monkeypatch.setenv("HOME", str(home))
    assert project_environment(directory) is None

    make_environment(home / ".venv")
    assert project_path(directory) == home / ".venv"


def test_an_environment_of_another_user_is_ignored_in_parent_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, any user who can write to /tmp could choose the interpreter of all apps in it."""
    environment = make_environment(tmp_path / ".venv")
    directory = tmp_path / "shop"
    directory.mkdir()
    real, other = os.stat, os.geteuid() + 1

    def stat(path: os.PathLike[str] | int, **options: bool) -> os.stat_result:
        result = real(path, **options)
        if path != owned:
            return result
        return os.stat_result([*result[:4], other, *result[5:]])

    monkeypatch.setattr(os, "stat", stat)
    for owned in (environment, tmp_path):
        assert project_environment(directory) is None, owned
        assert project_path(tmp_path) == environment
    owned = directory

    assert project_path(directory) == environment


def test_the_environment_is_in_the_plan_and_in_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = make_environment(tmp_path / ".venv") / "bin" / "python"
    directory = tmp_path / "shop"
    directory.mkdir()
    monkeypatch.chdir(directory)

    assert (
        run(
            [
                "sweep",
                "shop:app",
                "--servers",
                "wsgiref",
                "--rates",
                "9",
                "--dry-run",
                "--json",
                "-",
            ]
        )
        == 0
    )
    planned = json.loads(capsys.readouterr().out)["app_python"]
    assert (planned["executable"], planned["origin"]) == (str(python), ".venv")

    def note(chdir: Path) -> str | None:
        spec = SweepSpec(app="shop:app", server=ServerOptions(chdir=chdir))
        experiment = experiment_of(spec)
        return environment_note(experiment, {None: app_interpreter(experiment)})

    assert (
        note(directory) == f"using the environment {tmp_path / '.venv'} for the app (see --python)"
    )
    assert note(tmp_path) is None, "an environment in the app's directory needs no note"


def test_a_project_environment_takes_precedence_over_conda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_PREFIX", str(make_environment(tmp_path / "base")))
    assert find_app_interpreter(tmp_path).origin == "CONDA_PREFIX"
    make_environment(tmp_path / ".venv")
    assert find_app_interpreter(tmp_path).origin == ".venv"


def test_the_environment_of_a_poetry_project_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = make_environment(tmp_path / "cached")
    poetry = tmp_path / "bin" / "poetry"
    poetry.parent.mkdir()
    poetry.write_text(f"#!/bin/sh\necho {environment}\n")
    poetry.chmod(0o755)
    monkeypatch.setenv("PATH", str(poetry.parent), prepend=os.pathsep)

    assert find_app_interpreter(tmp_path).origin == "wsgiload"

    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / "poetry.lock").touch()

    assert find_app_interpreter(shop).origin == "Poetry"

    make_environment(tmp_path / ".venv")
    assert find_app_interpreter(shop).origin == "Poetry", (
        "an environment in a parent directory comes after Poetry's"
    )

    make_environment(shop / ".venv")
    assert find_app_interpreter(shop).origin == ".venv"


@pytest.mark.parametrize(
    ("file", "text", "program", "origin"),
    [
        ("Pipfile", "[packages]\n", "pipenv", "Pipenv"),
        ("pdm.lock", "", "pdm", "PDM"),
        ("pyproject.toml", "[tool.hatch.envs.default]\n", "hatch", "Hatch"),
    ],
)
def test_the_manager_of_a_project_is_asked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    text: str,
    program: str,
    origin: str,
) -> None:
    environment = make_environment(tmp_path / "cached")
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / file).write_text(text)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert find_app_interpreter(shop).origin == "wsgiload", "the program is missing"

    (tmp_path / "bin").mkdir()
    path = tmp_path / "bin" / program
    # PDM prints the interpreter.
    printed = environment / "bin" / "python" if program == "pdm" else environment
    path.write_text(f"#!/bin/sh\necho {printed}\n")
    path.chmod(0o755)
    found = find_app_interpreter(shop)
    assert (found.origin, found.executable) == (origin, environment / "bin" / "python")


@pytest.mark.parametrize("name", ["venv", "env"])
def test_a_folder_with_another_usual_name_is_found(tmp_path: Path, name: str) -> None:
    environment = make_environment(tmp_path / name)
    assert find_app_interpreter(tmp_path).origin == name

    make_environment(tmp_path / ".venv")
    assert find_app_interpreter(tmp_path).origin == ".venv"

    (tmp_path / "shop" / name).mkdir(parents=True)
    assert project_path(tmp_path / "shop") == tmp_path / ".venv", "a folder is no environment"
    assert environment.is_dir()


def test_the_variable_of_uv_names_a_folder_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_environment(tmp_path / ".venv")
    make_environment(tmp_path / "ci")
    member = tmp_path / "packages" / "shop"
    member.mkdir(parents=True)
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "ci")
    assert find_app_interpreter(tmp_path).origin == ".venv", "it is no project of uv"

    (tmp_path / "uv.lock").touch()
    (member / "pyproject.toml").touch()

    for folder in (tmp_path, member):
        found = find_app_interpreter(folder)
        assert found.origin == "UV_PROJECT_ENVIRONMENT"
        assert found.executable == tmp_path / "ci" / "bin" / "python"

    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "missing")
    with pytest.raises(UsageError, match="missing has no bin/python; run `uv sync`"):
        find_app_interpreter(tmp_path)


def test_a_version_file_is_used_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = fake_python(tmp_path / "python3.97", "3.97.1")
    monkeypatch.setattr(versions, "_executables", lambda name: iter([named]))
    versions.installed_interpreters.cache_clear()
    experiment = experiment_of(SweepSpec(app="shop:app", server=ServerOptions(chdir=tmp_path)))

    def found() -> tuple[str, str | None]:
        one = app_interpreter(experiment)
        return one.origin, environment_note(experiment, {None: one})

    assert found() == ("wsgiload", None)
    (tmp_path / ".python-version").write_text("3.97\n")
    assert found() == (
        ".python-version",
        "using Python 3.97.1, as .python-version says (see --python)",
    )

    (tmp_path / ".python-version").write_text("3.98\n")
    origin, note = found()
    assert origin == "wsgiload"
    assert note is not None
    assert note.startswith(".python-version says 3.98, which is not installed or not supported;")

    for other in (".".join(map(str, sys.version_info[:2])), "shop-env"):
        (tmp_path / ".python-version").write_text(f"{other}\n")
        assert found() == ("wsgiload", None), other

    make_environment(tmp_path / ".venv")
    assert found() == (".venv", None)
    versions.installed_interpreters.cache_clear()


def test_a_hanging_poetry_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "poetry.lock").touch()
    poetry = tmp_path / "poetry"
    poetry.write_text("#!/bin/sh\nexec sleep 60\n")
    poetry.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(project, "MANAGER_TIMEOUT_S", 0.2)
    with pytest.raises(UsageError, match=r"did not end within 0\.2 s; name .* with --python"):
        find_app_interpreter(tmp_path)


def test_the_python_option_takes_precedence_and_may_name_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(make_environment(tmp_path / "active")))
    make_environment(tmp_path / "other")
    python = find_app_interpreter(tmp_path, "other")
    assert (python.origin, python.executable) == ("--python", tmp_path / "other" / "bin" / "python")


def test_the_default_is_the_interpreter_of_wsgiload(tmp_path: Path) -> None:
    python = find_app_interpreter(tmp_path)
    assert python.origin == "wsgiload"
    assert "pytest" in python.distributions


def test_bundled_apps_cannot_import_packages_of_wsgiload() -> None:
    python = bundled_app_interpreter()
    assert python.executable == python.base_executable
    assert not python.site_packages
    assert not python.distributions


@pytest.mark.parametrize(
    ("version", "implementation"), [("3.10.13", "CPython"), ("3.11.4", "PyPy")]
)
def test_an_unsupported_interpreter_is_rejected(
    tmp_path: Path, version: str, implementation: str
) -> None:
    path = fake_python(tmp_path / "python", version, implementation)
    with pytest.raises(UsageError, match=rf"{implementation} {version}.*--python"):
        find_app_interpreter(tmp_path, str(path))


def test_a_failing_shim_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "shims").mkdir()
    shim = tmp_path / "shims" / "python3.8"
    shim.write_text("#!/bin/sh\necho 'pyenv: python3.8: command not found' >&2; exit 127\n")
    shim.chmod(0o755)
    with pytest.raises(UsageError, match=r"command not found.*shim of a version manager"):
        find_app_interpreter(tmp_path, str(shim))


def test_a_missing_interpreter_or_environment_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no such interpreter"):
        find_app_interpreter(tmp_path, "no-such-python")
    with pytest.raises(UsageError, match="no such interpreter"):
        find_app_interpreter(tmp_path, "./bin/no-such-python")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match="deactivate"):
        find_app_interpreter(tmp_path)


def test_variables_that_affect_imports_are_removed() -> None:
    inherited = {"PYTHONPATH": "/x", "PYTHONHOME": "/y", "VIRTUAL_ENV": "/z", "PYTHONHASHSEED": "1"}
    assert clean_variables(inherited, Path("/app")) == {
        "PYTHONPATH": "/app",
        "PYTHONHASHSEED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def test_each_interpreter_is_described_only_once(tmp_path: Path) -> None:
    first = find_app_interpreter(tmp_path)
    assert find_app_interpreter(tmp_path) is first
    assert replace(first, origin="--python") != first
