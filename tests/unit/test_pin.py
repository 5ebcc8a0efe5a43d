"""Servers pinned to a version, and the lock files from which they are installed."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from wsgiload.catalogue.contract import LaunchContext
from wsgiload.catalogue.names import DEFAULT_FOLDER, ServerVariant, load_catalogue
from wsgiload.catalogue.pin import parts_of, server_in
from wsgiload.catalogue.user_server import UserServer
from wsgiload.environments import locks
from wsgiload.environments.interpreter import AppInterpreter, bundled_app_interpreter
from wsgiload.errors import ProvisionError, UsageError
from wsgiload.report.cells import label_of

from .filled import filled_cell

CATALOGUE = load_catalogue()
LOCK = "gunicorn==23.0.0 \\\n    --hash=sha256:00\n"


@pytest.fixture
def interpreter() -> AppInterpreter:
    return bundled_app_interpreter()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def select(name: str) -> ServerVariant:
    (variant,) = CATALOGUE.select([name])
    return variant


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("waitress", ("", "waitress", "")),
        ("again=waitress", ("again", "waitress", "")),
        ("waitress==3.0.1", ("", "waitress", "3.0.1")),
        ("old = waitress == 3.0.1", ("old", "waitress", "3.0.1")),
    ],
)
def test_a_name_has_an_alias_a_server_and_a_version(name: str, parts: tuple[str, str, str]) -> None:
    assert parts_of(name) == parts
    assert server_in(name) == "waitress"


def test_a_pinned_version_replaces_the_catalogue_version_and_is_in_the_name() -> None:
    variant = select("gunicorn-gthread==23.0.0")
    assert (variant.id, variant.server.key) == ("gunicorn-gthread-23.0.0", "gunicorn==23.0.0")
    assert variant.server.requirements[0] == "gunicorn[gevent,tornado]==23.0.0"
    assert variant.server.requirements[1:] == select("gunicorn").server.requirements[1:]
    assert select("waitress==3.0.1").id == "waitress-3.0.1"
    assert select("mod_wsgi==5.0").server.requirements == ("mod-wsgi==5.0",)
    alias = select("old=gunicorn==22.0.0")
    assert (alias.id, alias.server.key) == ("old", "gunicorn==22.0.0")


def test_the_report_names_a_pinned_server_like_the_plan() -> None:
    pinned = {"server": "gunicorn", "variant": "gthread", "pinned_version": "23.0.0"}
    assert label_of(filled_cell(**pinned, size="w2-t4")) == "gunicorn-gthread-23.0.0-w2-t4"
    assert label_of(filled_cell(**pinned, alias="old")) == "old"


def test_versions_of_one_server_are_different_servers() -> None:
    variants = CATALOGUE.select(
        ["gunicorn-gthread==22.0.0", "gunicorn-gthread==23.0.0", "gunicorn"]
    )
    assert [variant.id for variant in variants] == [
        "gunicorn-gthread-22.0.0",
        "gunicorn-gthread-23.0.0",
        "gunicorn-gthread",
    ]
    assert len(CATALOGUE.servers_named(["gunicorn==22.0.0", "gunicorn==23.0.0"])) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gunicorn==", "'' is not a version; write it like gunicorn==27.0.1"),
        ("gunicorn==>=2", "'>=2' is not a version"),
        ("gunicorn==latest", "'latest' is not a version"),
        ("wsgiref==3.12", "wsgiref comes with its interpreter and has no version of its own"),
        ("gunicorm==23.0.0", "unknown server 'gunicorm'; did you mean gunicorn"),
        ("prod==1", "--servers prod==1: your own command"),
    ],
)
def test_an_invalid_version_is_refused(name: str, message: str) -> None:
    user_server = UserServer("prod", "serve --bind {address}", Path("/shop"))
    with pytest.raises(UsageError) as raised:
        CATALOGUE.with_user_servers([user_server]).select([name])
    assert message in str(raised.value)


def test_the_command_depends_on_the_pinned_version() -> None:
    pinned = select("gunicorn-gthread")
    paths = (Path("/python"), Path("/bin"), "127.0.0.1", 80, "a:b", Path("/app"), Path("/scratch"))

    def command(version: str | None) -> list[str]:
        return pinned.server.command(pinned.variant, LaunchContext(*paths, version=version))

    assert "--no-control-socket" not in command("23.0.0")
    assert "--no-control-socket" not in command("25.0.9")
    assert all(
        "--no-control-socket" in command(one) for one in ("25.1.0", "25.1rc1", "27.0.1", None)
    )


def fake_resolve(
    monkeypatch: pytest.MonkeyPatch, code: int, text: str = "", error: str = ""
) -> list[tuple[object, ...]]:
    """Replace ``locks.resolve`` by a function with this result; return the list of its calls."""
    calls: list[tuple[object, ...]] = []

    def resolve(*arguments: object) -> subprocess.CompletedProcess[str]:
        calls.append(arguments)
        return subprocess.CompletedProcess([], code, text, error)

    monkeypatch.setattr(locks, "resolve", resolve)
    return calls


def test_a_version_is_resolved_once_and_its_lock_is_cached(
    monkeypatch: pytest.MonkeyPatch, interpreter: AppInterpreter, cache: Path
) -> None:
    calls, log_lines = fake_resolve(monkeypatch, 0, LOCK), list[str]()
    server = select("gunicorn==23.0.0").server
    first, second = (locks.lock_of(server, interpreter, log_lines.append) for _ in range(2))
    assert first == second and first.parent == cache / "locks"
    assert first.read_text() == LOCK
    assert log_lines == ["resolving gunicorn==23.0.0"]

    python = "{}.{}".format(*interpreter.minor)
    assert calls == [(server.requirements, (), python)]

    other = select("gunicorn==22.0.0").server
    assert locks.known_lock(other, interpreter) != first
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_a_catalogue_server_uses_the_lock_beside_its_file(
    monkeypatch: pytest.MonkeyPatch, interpreter: AppInterpreter
) -> None:
    calls = fake_resolve(monkeypatch, 0, LOCK)
    server = select("gunicorn").server
    assert locks.lock_of(server, interpreter, print) == server.lock_path
    missing = replace(server, source=DEFAULT_FOLDER / "none.py", name="none")
    assert locks.lock_of(missing, interpreter, print) == missing.lock_path
    assert calls == []


@pytest.mark.parametrize(
    ("error", "fix"),
    [
        (
            "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version "
            "of gunicorn==99 and\n      you require gunicorn==99, it fails.\n",
            "choose another version of gunicorn",
        ),
        ("error: Failed to fetch\n", "check the connection to the package index"),
    ],
)
def test_an_unresolvable_version_is_a_one_line_error_with_a_fix(
    monkeypatch: pytest.MonkeyPatch, interpreter: AppInterpreter, error: str, fix: str
) -> None:
    fake_resolve(monkeypatch, 1, error=error)
    with pytest.raises(ProvisionError) as raised:
        locks.lock_of(select("gunicorn==99").server, interpreter, lambda line: None)
    message = str(raised.value)
    assert message.startswith("gunicorn==99 could not be resolved: ")
    assert fix in message and "\n" not in message
