"""A server runs on the default interpreter if it supports it, otherwise on the newest one that it
supports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from wsgiload.catalogue.contract import Server, Variant
from wsgiload.environments import versions as interpreters
from wsgiload.environments.interpreter import AppInterpreter
from wsgiload.environments.versions import find_version, interpreter_for
from wsgiload.errors import UsageError


def interpreter(version: str, implementation: str = "CPython") -> AppInterpreter:
    major, minor = version.split(".")[:2]
    path = Path(f"/pythons/{implementation}-{version}/bin/python")
    return AppInterpreter(
        executable=path,
        version=version,
        minor=(int(major), int(minor.rstrip("t"))),
        implementation=implementation,
        base_executable=path,
        site_packages=(),
        origin="found",
        distributions=MappingProxyType({}),
    )


INSTALLED = (
    interpreter("3.9.18"),
    interpreter("3.11.7"),
    interpreter("3.12.1"),
    interpreter("3.12.10"),
    interpreter("3.13.0"),
    interpreter("3.14.0t"),
    interpreter("3.9.16", "PyPy"),
)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        interpreters,
        "installed_interpreters",
        lambda implementation, user=None: tuple(
            interpreter for interpreter in INSTALLED if interpreter.implementation == implementation
        ),
    )


def server(**changes: object) -> Server:
    variant = Variant("default", "s", True, True, True)
    default = Server(
        "old", "s", "h", Path("/s/old.py"), (), None, (variant,), "default", lambda *_: []
    )
    return replace(default, **changes)  # type: ignore[arg-type]


def test_the_default_interpreter_is_used_if_supported() -> None:
    default = interpreter("3.11.7")
    assert interpreter_for(server(python_max=(3, 12)), default) is default


def test_otherwise_the_newest_supported_interpreter_is_used() -> None:
    assert interpreter_for(server(python_max=(3, 12)), interpreter("3.13.0")).version == "3.12.10"
    pypy = server(implementation="PyPy", python_min=(3, 9))
    assert interpreter_for(pypy, interpreter("3.13.0")).implementation == "PyPy"


def test_an_app_with_packages_keeps_its_interpreter() -> None:
    of_app = replace(interpreter("3.13.0"), site_packages=(Path("/app/site-packages"),))
    with pytest.raises(
        UsageError, match=r"old runs on Python >=3\.11,<=3\.12, not on CPython 3\.13\.0; omit this"
    ):
        interpreter_for(server(python_max=(3, 12)), of_app)


def test_without_a_supported_interpreter_the_fix_is_to_install_one() -> None:
    with pytest.raises(UsageError, match="install such an interpreter"):
        interpreter_for(server(python_min=(3, 20)), interpreter("3.13.0"))


@pytest.mark.parametrize(
    ("version", "selected"),
    [("3.12", "3.12.10"), ("3.12.1", "3.12.1"), ("3.14t", "3.14.0t"), ("3.9", "3.9.18")],
)
def test_a_version_selects_an_installed_interpreter(version: str, selected: str) -> None:
    assert find_version(version).version == selected


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("3.14", "Python 3.14 is not installed; installed versions: 3.9.18, 3.11.7"),
        ("newest", "is not a Python version"),
        ("3", "no"),
    ],
)
def test_an_unknown_version_is_rejected(version: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_version(version)
