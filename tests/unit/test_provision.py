"""Provisioning: caching, failed builds and the environment of a server."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from wsgiload.catalogue.contract import Dependency, Server, Variant
from wsgiload.catalogue.names import DEFAULT_FOLDER
from wsgiload.environments import provision as module
from wsgiload.environments.interpreter import AppInterpreter, bundled_app_interpreter
from wsgiload.environments.provision import (
    Conflict,
    LockedEnvironment,
    build_failure,
    cache_folder,
    find_conflicts,
    installed_servers,
    outside_cause,
    provision,
    provision_all,
)
from wsgiload.errors import ProvisionError, UsageError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def interpreter() -> AppInterpreter:
    return bundled_app_interpreter()


def make_server(folder: Path, lock: str | None = "# nothing\n") -> Server:
    """A server without requirements: its environment needs no index."""
    if lock is not None:
        (folder / "locks").mkdir(exist_ok=True)
        (folder / "locks" / "plain.txt").write_text(lock)

    return Server(
        name="plain",
        summary="s",
        homepage="h",
        source=folder / "plain.py",
        requirements=(),
        distribution=None,
        variants=(Variant("default", "s", False, False, False),),
        default_variant="default",
        command=lambda variant, context: [],
    )


def make_environment(**changes: object) -> LockedEnvironment:
    environment = LockedEnvironment(
        "plain", Path("/e/bin/python"), Path("/e/bin"), "1", "3.11.0", "0" * 64, False, 0.0, ()
    )
    return replace(environment, **changes)  # type: ignore[arg-type]


def quiet(line: str) -> None:
    """Ignore progress lines."""


def test_the_cache_follows_the_usual_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    assert cache_folder() == Path("/one")
    monkeypatch.delenv("WSGILOAD_CACHE_DIR")
    assert cache_folder() == Path("/two/wsgiload")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == Path("/home/someone/.cache/wsgiload")


def test_an_environment_is_built_once_and_then_taken_from_the_cache(
    tmp_path: Path, interpreter: AppInterpreter, cache: Path
) -> None:
    server = make_server(tmp_path)
    log_lines: list[str] = []
    assert installed_servers([server], interpreter) == frozenset()

    first = provision(server, interpreter, log=log_lines.append)
    second = provision(server, interpreter, log=log_lines.append)
    assert (first.built, second.built) == (True, False)
    assert first.python == second.python
    assert len(log_lines) == 1
    assert second.version == interpreter.version
    assert installed_servers([server], interpreter) == {"plain"}
    assert sorted(path.suffix for path in (cache / "environments").iterdir() if path.is_file()) == [
        ".lock"
    ]
    assert not list((cache / "environments").glob("*.unfinished"))
    assert list((cache / "logs").glob("plain-*.log"))


def test_temporary_files_of_a_build_are_removed(
    tmp_path: Path, interpreter: AppInterpreter, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_tmp = tmp_path / "shared"
    shared_tmp.mkdir()
    monkeypatch.setenv("TMPDIR", str(shared_tmp))
    fake_uv = tmp_path / "uv"
    fake_uv.write_text(
        f'#!/bin/sh\necho "$TMPDIR" > {tmp_path}/tmpdir\n: > "$TMPDIR/left.lock"\nexec '
        f'{module.uv_program()} "$@"\n'
    )
    fake_uv.chmod(0o755)
    monkeypatch.setattr(module, "uv_program", lambda: str(fake_uv))
    provision(make_server(tmp_path), interpreter, log=quiet)
    build_tmp = Path((tmp_path / "tmpdir").read_text().strip())

    assert build_tmp.parent == cache / "environments"
    assert not build_tmp.exists()
    assert list(shared_tmp.iterdir()) == []


def test_control_characters_in_a_build_log_are_escaped(
    tmp_path: Path, interpreter: AppInterpreter, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_uv = tmp_path / "uv"
    fake_uv.write_text(
        f"#!/bin/sh\nprintf '\\033]0;owned\\007 \\342\\200\\256\\n'\nexec {module.uv_program()} \"$@\"\n"
    )
    fake_uv.chmod(0o755)
    monkeypatch.setattr(module, "uv_program", lambda: str(fake_uv))
    provision(make_server(tmp_path), interpreter, log=quiet)
    (log,) = (cache / "logs").iterdir()

    assert log.read_text().startswith("\\x1b]0;owned\\x07 \\u202e\n")


def test_a_different_lock_gets_a_different_environment(
    tmp_path: Path, interpreter: AppInterpreter
) -> None:
    first = provision(make_server(tmp_path), interpreter, log=quiet)
    second = provision(make_server(tmp_path, "# other\n"), interpreter, log=quiet)
    assert first.python != second.python
    assert first.lock_sha256 != second.lock_sha256


def test_an_incomplete_environment_is_built_again(
    tmp_path: Path, interpreter: AppInterpreter
) -> None:
    server = make_server(tmp_path)
    first = provision(server, interpreter, log=quiet)
    (first.bin.parent / module.FACTS_FILE).unlink()
    assert provision(server, interpreter, log=quiet).built


def test_a_failed_build_leaves_only_its_log(
    tmp_path: Path, interpreter: AppInterpreter, cache: Path
) -> None:
    broken = replace(
        make_server(tmp_path, "x" * 10), requirements=("plain==1",)
    )  # no hash: refused at once

    with pytest.raises(
        ProvisionError, match=r"plain could not be installed.*see the full log: "
    ) as caught:
        provision(broken, interpreter, log=quiet)

    assert caught.value.log_tail
    assert caught.value.step == "provision"
    assert [path for path in (cache / "environments").iterdir() if path.is_dir()] == []
    assert isinstance(provision_all([broken], interpreter, log=quiet)["plain"], ProvisionError)


def test_a_server_without_a_lock_is_refused(tmp_path: Path, interpreter: AppInterpreter) -> None:
    server = replace(make_server(tmp_path, lock=None), source=DEFAULT_FOLDER / "plain.py")
    with pytest.raises(ProvisionError, match="has no lock"):
        provision(server, interpreter, log=quiet)


def test_an_interpreter_out_of_range_is_refused(
    tmp_path: Path, interpreter: AppInterpreter
) -> None:
    server = replace(make_server(tmp_path), python_max=(3, 4), python_min=(3, 3))
    with pytest.raises(UsageError, match=r"plain runs on Python >=3\.3,<=3\.4"):
        provision(server, interpreter, log=quiet)


def test_an_unwritable_cache_is_reported(
    tmp_path: Path, interpreter: AppInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(ProvisionError, match="WSGILOAD_CACHE_DIR"):
        provision(make_server(tmp_path), interpreter, log=quiet)


def test_only_differing_versions_conflict() -> None:
    server = {"greenlet": "3", "gunicorn": "27", "packaging": "26"}
    app = {"greenlet": "2", "packaging": "26", "flask": "3"}
    assert find_conflicts(server, app) == (Conflict("greenlet", "3", "2"),)


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("error: command 'gcc' failed: No such file or directory", "gcc"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'gcc'", "gcc"),
        ("/bin/sh: 1: gcc: not found", "gcc"),
        (
            "plugins/python/uwsgi_python.h:4:10: fatal error: Python.h: No such file or directory",
            "python3-dev",
        ),
    ],
)
def test_a_failed_build_names_the_missing_system_package(
    tmp_path: Path, text: str, package: str
) -> None:
    server = replace(
        make_server(tmp_path), needs_compiler=True, needs=(Dependency("gcc", program="gcc"),)
    )
    error = build_failure(server, "start\n" + text + "\nend\n", tmp_path / "build.log")
    assert f"system package {package} is missing" in error.cause
    assert "apt-get install " in (error.fix or "")
    assert package in (error.fix or "")
    assert text in error.log_tail


def test_a_server_sees_the_app_but_not_the_callers_python_variables() -> None:
    inherited = {
        "PYTHONPATH": "/x",
        "VIRTUAL_ENV": "/z",
        "HOME": "/h",
        "SERVE_ARGS": "--evil",
        "PATH": "/bin",
    }
    layered = make_environment(
        layered_site_packages=(Path("/a"), Path("/b")), ignored_variables=("SERVE_*",)
    )

    assert layered.environ(Path("/app"), inherited) == {
        "HOME": "/h",
        "PATH": "/bin",
        "PYTHONPATH": "/app",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "WSGILOAD_APP_SITE": "/a:/b",
    }


OFFLINE = """error: Request failed after 3 retries in 9.1s
  cause: Failed to fetch: https://index.example/simple/waitress/
  cause: error sending request for url (https://index.example/simple/waitress/)
  cause: dns error
"""


@pytest.mark.parametrize(
    ("output", "free_bytes", "expected"),
    [
        (OFFLINE, 1 << 30, "waitress cannot be downloaded: no network, or the package index"),
        ("error: failed to write: No space left on device (os error 28)", 1 << 30, "no space left"),
        ("", 4096, "no space left in the cache"),
        ("error: no matching distribution", 1 << 30, None),
    ],
)
def test_a_full_disk_and_a_missing_network_are_named(
    output: str,
    free_bytes: int,
    expected: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=free_bytes)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    error = outside_cause(make_server(tmp_path), output, tmp_path)
    assert (error is None) == (expected is None)
    if error is not None and expected is not None:
        assert expected in error.cause
        assert error.fix
