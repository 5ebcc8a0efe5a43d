"""The version of a server that a user asks for, and the lock that it is installed from."""

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


def one(name: str) -> ServerVariant:
    (found,) = CATALOGUE.select([name])
    return found


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


def test_a_version_replaces_that_of_the_catalogue_and_is_in_the_name() -> None:
    found = one("gunicorn-gthread==23.0.0")
    assert (found.id, found.server.key) == ("gunicorn-gthread-23.0.0", "gunicorn==23.0.0")
    assert found.server.requirements[0] == "gunicorn[gevent,tornado]==23.0.0"
    assert found.server.requirements[1:] == one("gunicorn").server.requirements[1:]
    assert one("waitress==3.0.1").id == "waitress-3.0.1"
    assert one("mod_wsgi==5.0").server.requirements == ("mod-wsgi==5.0",)
    alias = one("old=gunicorn==22.0.0")
    assert (alias.id, alias.server.key) == ("old", "gunicorn==22.0.0")


def test_the_report_names_a_server_as_the_plan_does() -> None:
    of = {"server": "gunicorn", "variant": "gthread", "pinned_version": "23.0.0"}
    assert label_of(filled_cell(**of, size="w2-t4")) == "gunicorn-gthread-23.0.0-w2-t4"
    assert label_of(filled_cell(**of, alias="old")) == "old"


def test_versions_of_one_server_are_different_servers() -> None:
    found = CATALOGUE.select(["gunicorn-gthread==22.0.0", "gunicorn-gthread==23.0.0", "gunicorn"])
    assert [variant.id for variant in found] == [
        "gunicorn-gthread-22.0.0",
        "gunicorn-gthread-23.0.0",
        "gunicorn-gthread",
    ]
    assert len(CATALOGUE.servers_named(["gunicorn==22.0.0", "gunicorn==23.0.0"])) == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gunicorn==", "'' is not a version; write it like gunicorn==27.0.1"),
        ("gunicorn==>=2", "'>=2' is not a version"),
        ("gunicorn==latest", "'latest' is not a version"),
        ("wsgiref==3.12", "wsgiref comes with its interpreter and has no version of its own"),
        ("gunicorm==23.0.0", "unknown server 'gunicorm'; did you mean gunicorn"),
        ("prod==1", "--servers prod==1: your own command"),
    ],
)
def test_what_is_no_version_is_refused(name: str, says: str) -> None:
    own = UserServer("prod", "serve --bind {address}", Path("/shop"))
    with pytest.raises(UsageError) as raised:
        CATALOGUE.with_user_servers([own]).select([name])
    assert says in str(raised.value)


def test_a_server_file_learns_which_version_is_started() -> None:
    found = one("gunicorn-gthread")
    paths = (Path("/python"), Path("/bin"), "127.0.0.1", 80, "a:b", Path("/app"), Path("/scratch"))

    def words(version: str | None) -> list[str]:
        return found.server.command(found.variant, LaunchContext(*paths, version=version))

    assert "--no-control-socket" not in words("23.0.0")
    assert "--no-control-socket" not in words("25.0.9")
    assert all("--no-control-socket" in words(one) for one in ("25.1.0", "25.1rc1", "27.0.1", None))


def answer(
    monkeypatch: pytest.MonkeyPatch, code: int, text: str = "", error: str = ""
) -> list[tuple[object, ...]]:
    """What resolving answers from now on; the calls."""
    calls: list[tuple[object, ...]] = []

    def resolve(*arguments: object) -> subprocess.CompletedProcess[str]:
        calls.append(arguments)
        return subprocess.CompletedProcess([], code, text, error)

    monkeypatch.setattr(locks, "resolve", resolve)
    return calls


def test_a_version_is_resolved_once_and_its_lock_is_kept(
    monkeypatch: pytest.MonkeyPatch, interpreter: AppInterpreter, cache: Path
) -> None:
    calls, said = answer(monkeypatch, 0, LOCK), list[str]()
    server = one("gunicorn==23.0.0").server
    first, second = (locks.lock_of(server, interpreter, said.append) for _ in range(2))
    assert first == second and first.parent == cache / "locks"
    assert first.read_text() == LOCK
    assert said == ["resolving gunicorn==23.0.0"]
    python = "{}.{}".format(*interpreter.minor)
    assert calls == [(server.requirements, (), python)]
    other = one("gunicorn==22.0.0").server
    assert locks.known_lock(other, interpreter) != first
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_servers_of_the_catalogue_have_the_lock_beside_their_file(
    monkeypatch: pytest.MonkeyPatch, interpreter: AppInterpreter
) -> None:
    calls = answer(monkeypatch, 0, LOCK)
    server = one("gunicorn").server
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
def test_a_version_that_cannot_be_resolved_is_one_line_with_its_fix(
    monkeypatch: pytest.MonkeyPatch, interpreter: AppInterpreter, error: str, fix: str
) -> None:
    answer(monkeypatch, 1, error=error)
    with pytest.raises(ProvisionError) as raised:
        locks.lock_of(one("gunicorn==99").server, interpreter, lambda line: None)
    message = str(raised.value)
    assert message.startswith("gunicorn==99 could not be resolved: ")
    assert fix in message and "\n" not in message
