"""The app's interpreter is found in the promised order."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wsgiload.cli import run
from wsgiload.environments import interpreter
from wsgiload.environments.interpreter import (
    bundled_app_interpreter,
    clean_variables,
    describe_interpreter,
    find_app_interpreter,
    project_environment,
)
from wsgiload.errors import UsageError
from wsgiload.experiment.build import SweepSpec, experiment_of
from wsgiload.experiment.public_options import ServerOptions
from wsgiload.sweeps.app_check import app_interpreter, environment_note


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    describe_interpreter.cache_clear()


def make_environment(folder: Path) -> Path:
    """A virtual environment in miniature: enough for the interpreter to believe in it."""
    own = find_app_interpreter(folder.parent, sys.executable)
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(own.base_executable)
    (folder / "pyvenv.cfg").write_text(
        f"home = {own.base_executable.parent}\ninclude-system-site-packages = false\n"
    )
    packages = folder / "lib" / f"python{own.minor[0]}.{own.minor[1]}" / "site-packages"
    (packages / "Some_Thing-2.0.dist-info").mkdir(parents=True)
    (packages / "Some_Thing-2.0.dist-info" / "METADATA").write_text(
        "Name: Some_Thing\nVersion: 2.0\n"
    )
    return folder


def fake_python(path: Path, version: str, implementation: str = "CPython") -> Path:
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
    found = find_app_interpreter(tmp_path)
    assert found.origin == ".venv"
    assert found.executable == tmp_path / ".venv" / "bin" / "python"
    assert found.base_executable == Path(sys.executable).resolve()
    assert found.minor == sys.version_info[:2]
    assert found.distributions["some-thing"] == "2.0"
    assert [folder.is_relative_to(tmp_path) for folder in found.site_packages] == [True]


def test_an_active_environment_goes_before_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_environment(tmp_path / ".venv")
    monkeypatch.setenv("VIRTUAL_ENV", str(make_environment(tmp_path / "active")))
    assert find_app_interpreter(tmp_path).origin == "VIRTUAL_ENV"


def test_our_own_active_environment_does_not_hide_a_local_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_environment(tmp_path / ".venv")
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    assert find_app_interpreter(tmp_path).origin == ".venv"


def test_the_nearest_environment_around_the_folder_is_found(tmp_path: Path) -> None:
    make_environment(tmp_path / ".venv")
    folder = tmp_path / "packages" / "web"
    (folder / ".git").mkdir(parents=True)
    found = find_app_interpreter(folder)
    assert (found.origin, found.executable) == (".venv", tmp_path / ".venv" / "bin" / "python")
    nearer = make_environment(tmp_path / "packages" / ".venv")
    assert project_environment(folder) == nearer


def test_the_search_ends_at_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    folder = home / "shop"
    folder.mkdir(parents=True)
    make_environment(tmp_path / ".venv")
    assert project_environment(folder) == tmp_path / ".venv"
    monkeypatch.setenv("HOME", str(home))
    assert project_environment(folder) is None
    make_environment(home / ".venv")
    assert project_environment(folder) == home / ".venv"


def test_an_environment_of_another_user_counts_only_in_the_folder_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write to /tmp could otherwise choose the interpreter of all apps in it."""
    environment = make_environment(tmp_path / ".venv")
    folder = tmp_path / "shop"
    folder.mkdir()
    real, other = os.stat, os.geteuid() + 1

    def stat(path: os.PathLike[str] | int, **options: bool) -> os.stat_result:
        found = real(path, **options)
        if path != owned:
            return found
        return os.stat_result([*found[:4], other, *found[5:]])

    monkeypatch.setattr(os, "stat", stat)
    for owned in (environment, tmp_path):
        assert project_environment(folder) is None, owned
        assert project_environment(tmp_path) == environment
    owned = folder
    assert project_environment(folder) == environment


def test_the_environment_that_is_used_is_shown_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = make_environment(tmp_path / ".venv") / "bin" / "python"
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run(["sweep", "shop:app", "--servers", "wsgiref", "--rates", "9", "--dry-run"]) == 0
    shown = json.loads(capsys.readouterr().out)["app_python"]
    assert (shown["executable"], shown["origin"]) == (str(python), ".venv")

    def note(chdir: Path) -> str | None:
        spec = SweepSpec(app="shop:app", server=ServerOptions(chdir=chdir))
        experiment = experiment_of(spec)
        return environment_note(experiment, {None: app_interpreter(experiment)})

    assert note(folder) == f"using the environment {tmp_path / '.venv'} for the app (see --python)"
    assert note(tmp_path) is None, "that is what everybody expects"


def test_conda_s_environment_comes_after_a_project_s_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_PREFIX", str(make_environment(tmp_path / "base")))
    assert find_app_interpreter(tmp_path).origin == "CONDA_PREFIX"
    make_environment(tmp_path / ".venv")
    assert find_app_interpreter(tmp_path).origin == ".venv"


def test_poetry_is_asked_for_its_environment(
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
    assert find_app_interpreter(shop).origin == "Poetry", "that around it is less surely the app's"
    make_environment(shop / ".venv")
    assert find_app_interpreter(shop).origin == ".venv"


def test_a_poetry_that_does_not_end_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "poetry.lock").touch()
    poetry = tmp_path / "poetry"
    poetry.write_text("#!/bin/sh\nexec sleep 60\n")
    poetry.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(interpreter, "POETRY_TIMEOUT_S", 0.2)
    with pytest.raises(UsageError, match=r"did not end within 0\.2 s; name .* with --python"):
        find_app_interpreter(tmp_path)


def test_python_goes_before_all_and_may_be_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(make_environment(tmp_path / "active")))
    make_environment(tmp_path / "other")
    found = find_app_interpreter(tmp_path, "other")
    assert (found.origin, found.executable) == ("--python", tmp_path / "other" / "bin" / "python")


def test_otherwise_it_is_our_own(tmp_path: Path) -> None:
    found = find_app_interpreter(tmp_path)
    assert found.origin == "wsgiload"
    assert "pytest" in found.distributions


def test_bundled_apps_see_no_packages_of_ours() -> None:
    found = bundled_app_interpreter()
    assert found.executable == found.base_executable
    assert not found.site_packages
    assert not found.distributions


@pytest.mark.parametrize(
    ("version", "implementation"), [("3.10.13", "CPython"), ("3.11.4", "PyPy")]
)
def test_an_unsupported_interpreter_is_refused(
    tmp_path: Path, version: str, implementation: str
) -> None:
    path = fake_python(tmp_path / "python", version, implementation)
    with pytest.raises(UsageError, match=rf"{implementation} {version}.*--python"):
        find_app_interpreter(tmp_path, str(path))


def test_a_shim_that_fails_is_named_with_the_fix(tmp_path: Path) -> None:
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


def test_variables_that_choose_modules_are_taken_away() -> None:
    inherited = {"PYTHONPATH": "/x", "PYTHONHOME": "/y", "VIRTUAL_ENV": "/z", "PYTHONHASHSEED": "1"}
    assert clean_variables(inherited, Path("/app")) == {
        "PYTHONPATH": "/app",
        "PYTHONHASHSEED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def test_the_description_is_asked_once_per_interpreter(tmp_path: Path) -> None:
    first = find_app_interpreter(tmp_path)
    assert find_app_interpreter(tmp_path) is first
    assert replace(first, origin="--python") != first
