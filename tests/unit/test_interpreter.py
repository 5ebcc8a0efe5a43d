"""The app's interpreter is found in the promised order, and a broken app gets one clear line."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wsgiload.environments import interpreter as module
from wsgiload.environments.interpreter import (
    bundled_app_interpreter,
    check_app,
    clean_variables,
    describe_interpreter,
    find_app_interpreter,
)
from wsgiload.errors import AppImportError, UsageError


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
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


def check(folder: Path, app: str, text: str | None = None) -> None:
    if text is not None:
        (folder / "shop.py").write_text(text)
    check_app(app, find_app_interpreter(folder), folder)


def test_a_good_app_passes_whatever_it_prints_or_starts(tmp_path: Path) -> None:
    check(
        tmp_path,
        "shop:app",
        "import threading, time\nprint('noise')\nthreading.Thread(target=time.sleep, "
        "args=(600,)).start()\n"
        "def app(environ, start_response): ...\n",
    )


@pytest.mark.parametrize(
    ("app", "fix"),
    [
        ("shop", "shop:app"),
        ("shop.py:app", "shop:app"),
        ("src/shop.py:main", "src.shop:main"),
        ("shop:app()", "shop:app"),
        ("", "myapp:app"),
    ],
)
def test_a_name_of_the_wrong_form_is_a_usage_error(tmp_path: Path, app: str, fix: str) -> None:
    with pytest.raises(UsageError, match="is not module:callable") as caught:
        check(tmp_path, app)
    assert fix in (caught.value.fix or "")


def test_wrong_names_get_suggestions(tmp_path: Path) -> None:
    text = "LIMIT = 3\ndef application(environ, start_response): ...\n"
    with pytest.raises(UsageError, match=r"no module 'shpo'.*did you mean 'shop'"):
        check(tmp_path, "shpo:app", text)
    with pytest.raises(UsageError, match=r"no module 'shop\.deep'"):
        check(tmp_path, "shop.deep:app")
    with pytest.raises(UsageError, match=r"has no 'aplication'; did you mean shop:application"):
        check(tmp_path, "shop:aplication")
    with pytest.raises(UsageError, match="shop:LIMIT is not callable: it is of type int"):
        check(tmp_path, "shop:LIMIT")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = 1\ndef broken(:\n", r"SyntaxError: invalid syntax at \S+shop\.py:2"),
        (
            "import not_there_at_all\n",
            r"ModuleNotFoundError: .*'not_there_at_all' at \S+shop\.py:1",
        ),
        ("from json import nothing\n", r"ImportError: cannot import name 'nothing'"),
        ("import json\n\njson.loads('{')\n", r"JSONDecodeError: .* at \S+shop\.py:3"),
        ("raise SystemExit(4)\n", r"SystemExit: 4 at \S+shop\.py:1"),
    ],
)
def test_an_app_that_fails_while_imported_gets_one_line(
    tmp_path: Path, text: str, line: str
) -> None:
    with pytest.raises(AppImportError, match=line) as caught:
        check(tmp_path, "shop:app", text)
    assert "\n" not in str(caught.value)
    assert caught.value.fix


def test_an_app_that_ends_the_interpreter_is_told(tmp_path: Path) -> None:
    with pytest.raises(AppImportError, match="ended the interpreter with code 7"):
        check(tmp_path, "shop:app", "import os\nos._exit(7)\n")


def test_an_app_that_never_ends_importing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IMPORT_TIMEOUT_S", 0.5)
    with pytest.raises(AppImportError, match="did not end within"):
        check(tmp_path, "shop:app", "import time\ntime.sleep(600)\n")


def test_the_description_is_asked_once_per_interpreter(tmp_path: Path) -> None:
    first = find_app_interpreter(tmp_path)
    assert find_app_interpreter(tmp_path) is first
    assert replace(first, origin="--python") != first
