"""Servers defined by files in a directory of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.catalogue.names import load_catalogue
from wsgiload.cli import run
from wsgiload.environments import locks
from wsgiload.environments.interpreter import bundled_app_interpreter
from wsgiload.environments.provision import provision
from wsgiload.errors import UsageError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(tmp_path / "cache"))


SERVER_FILE = """
from pathlib import Path

from wsgiload.catalogue.contract import Server, Variant

SERVER = Server(
    name={name!r},
    summary="s",
    homepage="https://example.org/",
    source=Path(__file__),
    requirements=(),
    distribution=None,
    variants=(Variant("default", "s", True, False, False),),
    default_variant="default",
    command=lambda variant, context: [str(context.python), "-c", "1"],
)
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "servers"
    directory.mkdir()
    (directory / "plainserve.py").write_text(SERVER_FILE.format(name="plainserve"))
    return directory


def test_servers_of_a_directory_are_selected_like_catalogue_servers(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = load_catalogue(further=directory)
    assert [variant.id for variant in catalogue.select(["plainserve", "waitress"])] == [
        "plainserve",
        "waitress",
    ]
    assert "plainserve" in [variant.id for variant in catalogue.select(None)]

    assert run(["servers", "show", "plainserve", "--servers-from", str(directory)]) == 0
    assert "plainserve" in capsys.readouterr().out

    words = [
        "sweep",
        "--servers",
        "plainserve",
        "--servers-from",
        str(directory),
        "--dry-run",
        "--json",
        "-",
    ]
    assert run(words) == 0
    assert "plainserve" in capsys.readouterr().out


def test_a_server_without_a_lock_is_installed_from_a_generated_one(directory: Path) -> None:
    interpreter = bundled_app_interpreter()
    (server,) = load_catalogue(further=directory).servers_named(["plainserve"])
    environment = provision(server, interpreter, log=lambda line: None)
    assert environment.built
    assert locks.known_lock(server, interpreter).read_text() == ""
    (directory / "locks").mkdir()
    server.lock_path.write_text("# written by hand\n")
    assert locks.lock_of(server, interpreter, print) == server.lock_path


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (None, "", "it contains no server file; put a file into it that defines SERVER"),
        (
            "waitress.py",
            SERVER_FILE.format(name="waitress"),
            "is a catalogue server; rename",
        ),
        ("odd.py", "raise ValueError('no')", "odd.py cannot be read: ValueError: no"),
        ("Odd.py", SERVER_FILE.format(name="Odd"), "the name 'Odd' must be in lower case"),
    ],
)
def test_an_invalid_directory_is_refused(
    tmp_path: Path, name: str | None, text: str, message: str
) -> None:
    directory = tmp_path / "mine"
    with pytest.raises(UsageError, match="there is no such directory; correct its path"):
        load_catalogue(further=directory)

    directory.mkdir()
    if name is not None:
        (directory / name).write_text(text)
    with pytest.raises(UsageError) as raised:
        load_catalogue(further=directory)
    assert message in str(raised.value)
