"""``--user`` runs everything of the app as that user, within the limits; root refuses the code of
others."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .command import Command

pytestmark = [
    pytest.mark.limits,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

NOBODY = 65534
# An interpreter that every user can read; the one of the tests may be in root's home.
PYTHON = next(filter(os.path.exists, ("/usr/bin/python3", "/usr/local/bin/python3")), None)
BRIEFLY = "--rates 20 --duration 1s --warmup 200ms --cooldown 0s"
APP = """
import json, os, pathlib, resource

def identity(step):
    status = pathlib.Path("/proc/self/status").read_text()
    groups = pathlib.Path("/proc/self/cgroup").read_text()
    facts = {
        "uid": os.getresuid(), "gid": os.getresgid(), "home": os.environ.get("HOME"),
        "user": os.environ.get("USER"), "limited": "wsgiload-" in groups,
        "capabilities": next(l.split()[1] for l in status.splitlines() if l.startswith("CapEff")),
    }
    with open("seen", "a") as seen:
        print(json.dumps({"step": step, **facts}), file=seen)
"""
SERVER = """
from wsgiref.simple_server import make_server
import sys
import who

who.identity("server")

def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]

if __name__ == "__main__":
    host, port = sys.argv[1].split(":")
    make_server(host, int(port), app).serve_forever()
"""
CONFIGURATION = """
[servers.prod]
command = "{python} server.py {{address}}"
setup = "{python} -c 'import who; who.identity(\\"setup\\")'"

[services.helper]
command = "{python} -c 'import time, who; who.identity(\\"service\\"); time.sleep(600)'"
"""


@pytest.fixture
def command() -> Iterator[Command]:
    """The command line in a folder that every user can reach."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o711)
        command = Command(Path(place) / "command")
        try:
            yield command
            assert command.processes() == {}
            assert command.groups() == []
        finally:
            command.clean_up()


@pytest.fixture
def folder(command: Command) -> Path:
    """The folder of a project that belongs to nobody."""
    command.folder.mkdir(parents=True, exist_ok=True)
    if PYTHON is None:
        pytest.skip("no Python that another user can read")
    (command.folder / "who.py").write_text(APP)
    (command.folder / "server.py").write_text(SERVER)
    os.chown(command.folder, NOBODY, NOBODY)
    return command.folder


def seen(folder: Path) -> dict[str, list[dict[str, object]]]:
    """What each step found out about itself."""
    steps: dict[str, list[dict[str, object]]] = {}
    for line in (folder / "seen").read_text().splitlines():
        facts = json.loads(line)
        steps.setdefault(facts.pop("step"), []).append(facts)
    return steps


def test_setup_service_import_and_server_run_as_the_user(command: Command, folder: Path) -> None:
    (folder / "wsgiload.toml").write_text(CONFIGURATION.format(python=PYTHON))
    result = command.run("sweep", "--user", "nobody", *shlex.split(BRIEFLY))

    assert result.code in (0, 98), result.err
    steps = seen(folder)
    assert set(steps) == {"server", "service", "setup"}
    for facts in (one for found in steps.values() for one in found):
        assert facts["uid"] == [NOBODY] * 3 and facts["gid"] == [NOBODY] * 3
        assert facts["capabilities"] == "0" * 16
        assert (facts["user"], facts["limited"]) == ("nobody", True)
    [cell] = result.cells.values()
    assert cell["failure"] is None and cell["limits"]["not_enforced"] == []
    assert result.summary["experiment"]["user"] == "nobody"
    assert result.run_dir.stat().st_uid == 0


def test_the_import_check_runs_as_the_user(command: Command, folder: Path) -> None:
    (folder / "broken.py").write_text("import who\nwho.identity('import')\nraise ValueError(1)\n")
    words = ("sweep", "broken:app", "--python", str(PYTHON), "--user", str(NOBODY))
    result = command.run(*words, "--servers", "wsgiref", *shlex.split(BRIEFLY))

    assert result.code == 97 and "ValueError" in result.err
    assert [facts["uid"] for facts in seen(folder)["import"]] == [[NOBODY] * 3]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_root_refuses_the_folder_of_another_user(
    command: Command, folder: Path, dry: tuple[str, ...]
) -> None:
    words = ("sweep", "server:app", "--python", str(PYTHON), *shlex.split(BRIEFLY), *dry)
    result = command.run(*words)

    assert result.code == 2 and not (folder / "seen").exists()
    assert result.err.count("\n") == 1
    assert "belongs to nobody" in result.err
    assert "--user nobody" in result.err and "--trust-folder" in result.err


def test_root_refuses_the_interpreter_and_the_configuration_of_another_user(
    command: Command, folder: Path
) -> None:
    os.chown(folder, 0, 0)
    (folder / "wsgiload.toml").write_text("trust-folder = true\n")
    result = command.run("sweep", "server:app", "--dry-run")
    assert result.code == 2 and "--trust-folder" in result.err

    (folder / "wsgiload.toml").write_text("rates = [20]\n")
    os.chown(folder / "wsgiload.toml", NOBODY, NOBODY)
    assert "wsgiload.toml belongs to nobody" in command.run("sweep", "--dry-run").err

    (folder / "wsgiload.toml").unlink()
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to(str(PYTHON))
    os.lchown(folder / ".venv" / "bin" / "python", NOBODY, NOBODY)
    result = command.run("sweep", "server:app", "--dry-run")
    assert result.code == 2 and "python belongs to nobody" in result.err


def test_a_trusted_folder_is_measured_as_root(command: Command, folder: Path) -> None:
    (folder / "wsgiload.toml").write_text(CONFIGURATION.format(python=PYTHON))
    result = command.run("sweep", "--trust-folder", *shlex.split(BRIEFLY))
    assert result.code in (0, 98), result.err
    assert {tuple(facts["uid"]) for found in seen(folder).values() for facts in found} == {
        (0, 0, 0)
    }  # type: ignore[arg-type]


def test_an_unknown_user_is_one_line(command: Command) -> None:
    result = command.run("sweep", "--user", "no-such-user", "--dry-run")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "no-such-user" in result.err
