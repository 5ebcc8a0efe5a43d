"""``--user`` on real processes: everything of the app runs as that user, and root refuses to run
what other users own before any of it runs."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .command import Command, until
from .other_user import LOAD, Place, place_for, require_everything_ran_as

STRANGER = 54_321  # has no account

pytestmark = [
    pytest.mark.limits,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners and users"),
]


@pytest.fixture(params=["nobody", str(STRANGER)])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.delenv("SUDO_UID", raising=False)
    with place_for(request.param) as place:
        # The default cache is in root's home.
        monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(place.folder / "cache"))
        yield place


def test_everything_of_an_app_runs_as_the_user(place: Place) -> None:
    sweep = place.run(
        *("sweep", "who:app", "--servers", "wsgiref,own", *LOAD, "--pythonpath", "more"),
        *("--memory", "128MiB", "--pids", 50, "--env", "SETTING=given"),
    )
    assert sweep.code in (0, 98), sweep.err
    require_everything_ran_as(place, sweep)


@pytest.mark.parametrize("place", ["nobody"], indirect=True)
def test_without_control_groups_the_user_is_the_same(place: Place) -> None:
    place.run("sweep", "who:app", "--servers", "wsgiref", *LOAD, "--limits", "none")
    seen = place.seen()
    assert {facts["role"] for facts in seen} == {"import", "server", "service"}
    assert {tuple(facts["uids"]) for facts in seen} == {(place.user.uid,) * 3}


@pytest.mark.parametrize("place", ["nobody"], indirect=True)
def test_a_killed_sweep_leaves_nothing_of_the_user(place: Place) -> None:
    words = ("sweep", "who:app", "--servers", "wsgiref", "--rates", "20", "--duration", "60s")
    sweep = place.command.start(*words, "--user", "nobody", "--python", place.python)
    until(lambda: any(f["role"] == "server" for f in place.seen()), "the server")
    assert any(path.stat().st_uid == 0 for path in place.command.temporary.iterdir())

    os.kill(sweep.pid, signal.SIGKILL)

    assert sweep.end().code == -signal.SIGKILL
    until(lambda: not place.command.processes(), "the end of the processes")
    until(lambda: not place.command.groups(), "the end of the groups")
    until(lambda: not place.command.temporary_files(), "the end of the folders")


COMMANDS = {
    "sweep": ("sweep", "who:app", "--servers", "wsgiref", *LOAD),
    "dry-run": ("sweep", "who:app", "--servers", "wsgiref", *LOAD, "--dry-run"),
    "capacity": ("capacity", "who:app", "--servers", "wsgiref", "--slo", "p99<50ms"),
    "run": ("run", "experiment.toml"),
    "reproduce": ("reproduce", "appdynamics-2016"),
    "list": ("servers", "list"),
    "install": ("servers", "install", "wsgiref"),
    "check": ("servers", "check", "wsgiref"),
}


@pytest.mark.parametrize("place", [str(STRANGER)], indirect=True)
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_command_of_root_runs_another_users_interpreter(
    place: Place, words: tuple[str, ...]
) -> None:
    (place.folder / "wsgiload.toml").unlink()
    (place.folder / "experiment.toml").write_text('app = "who:app"\nservers = "wsgiref"\n')
    python = place.folder / "python3"
    python.write_text(f'#!/bin/sh\ntouch {place.folder}/seen/ran\nexec {place.python} "$@"\n')
    python.chmod(0o755)
    os.chown(python, STRANGER, -1)

    refused = place.command.run(*words, "--python", python)

    assert refused.code == 2
    message = refused.messages[-1]  # a study prints what it changed
    assert f"{python} belongs to {STRANGER}, and root would run it" in message
    assert message.endswith(f"use --user {STRANGER}, or --trust-folder if you trust {STRANGER}")
    assert list((place.folder / "seen").iterdir()) == []


@pytest.mark.parametrize("place", ["nobody"], indirect=True)
def test_the_link_to_an_interpreter_of_another_user_is_refused(place: Place) -> None:
    (place.folder / "wsgiload.toml").unlink()
    link = place.folder / ".venv" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(place.python)
    os.lchown(link, place.user.uid, -1)

    refused = place.command.run(*COMMANDS["dry-run"])

    assert refused.code == 2
    (message,) = refused.messages
    assert "python belongs to nobody" in message and "--user nobody" in message
    assert place.seen() == []


def test_an_unknown_user_is_one_line(tmp_path: Path) -> None:
    result = Command(tmp_path / "command").run("sweep", "--user", "no-such-user", "--dry-run")
    (message,) = result.messages
    assert result.code == 2 and "no-such-user" in message


@pytest.mark.parametrize("place", [str(STRANGER)], indirect=True)
@pytest.mark.parametrize("name", ["sweep", "dry-run", "capacity", "run"])
def test_no_command_of_root_runs_an_app_in_another_users_folder(place: Place, name: str) -> None:
    (place.folder / "wsgiload.toml").unlink()
    (place.folder / "experiment.toml").write_text('app = "who:app"\nservers = "wsgiref"\n')
    os.chown(place.folder, STRANGER, -1)

    refused = place.command.run(*COMMANDS[name], "--python", place.python)

    assert refused.code == 2
    (message,) = refused.messages
    assert f"{place.folder} belongs to {STRANGER}, and root would run code from it" in message
    assert f"use --user {STRANGER}, or --trust-folder" in message
    assert place.seen() == []


@pytest.mark.parametrize("place", [str(STRANGER)], indirect=True)
def test_both_ways_out_of_a_refusal_work(place: Place) -> None:
    (place.folder / "wsgiload.toml").unlink()
    os.chown(place.folder, STRANGER, -1)
    words = (*COMMANDS["dry-run"], "--python", place.python)

    as_user = place.command.run(*words, "--user", STRANGER)
    assert as_user.code == 0, as_user.err
    assert [facts["uids"][0] for facts in place.seen()] == [STRANGER]

    trusted = place.command.run(*words, "--trust-folder")
    assert trusted.code == 0, trusted.err
    assert sorted(facts["uids"][0] for facts in place.seen()) == [0, STRANGER]


@pytest.mark.parametrize("place", [str(STRANGER)], indirect=True)
@pytest.mark.parametrize(
    "words",
    [("load", "http://127.0.0.1:9/", "--dry-run"), COMMANDS["dry-run"], ("run", "wsgiload.toml")],
    ids=["load", "sweep", "run"],
)
def test_root_follows_no_settings_of_another_user(place: Place, words: tuple[str, ...]) -> None:
    os.chown(place.folder / "wsgiload.toml", STRANGER, -1)

    refused = place.command.run(*words)

    assert refused.code == 2
    (message,) = refused.messages
    assert f"wsgiload.toml belongs to {STRANGER}, and root would follow its settings" in message
    assert f"--trust-folder if you trust {STRANGER}" in message
    if words[0] == "load":
        assert place.command.run(*words, "--trust-folder").code == 0


@pytest.mark.parametrize("place", [str(STRANGER)], indirect=True)
def test_a_file_cannot_say_that_it_is_trusted(place: Place) -> None:
    for name in ("trust_folder", "trust-folder"):
        (place.folder / "wsgiload.toml").write_text(f"{name} = true\n")
        refused = place.command.run(*COMMANDS["dry-run"])
        assert refused.code == 2
        assert f"{name} cannot be set in a file; use the flag --trust-folder" in refused.err


@pytest.mark.parametrize("place", [str(STRANGER)], indirect=True)
def test_the_python_api_refuses_and_trusts_like_the_command_line(place: Place) -> None:
    (place.folder / "wsgiload.toml").unlink()
    os.chown(place.folder, STRANGER, -1)
    program = place.folder / "measure.py"
    program.write_text(
        "import sys, wsgiload\n"
        f"options = {{'python': {str(place.python)!r}, 'trust_folder': len(sys.argv) > 1}}\n"
        "try:\n"
        "    result = wsgiload.sweep('who:app', servers=['wsgiref'], rates=[20], duration=1,\n"
        "        server=wsgiload.ServerOptions(**options))\n"
        "    print(result.summary.cells[0].failure)\n"
        "except wsgiload.UsageError as error:\n"
        "    print(error)\n"
    )
    python = [sys.executable, str(program)]

    refused = place.command.run(program=python)
    assert f"{place.folder} belongs to {STRANGER}" in refused.out
    assert place.seen() == []

    assert place.command.run("trust", program=python).out == "None\n"
    assert {facts["uids"][0] for facts in place.seen()} == {0}
