"""A sweep of one app as another user, and what each of its processes noted about itself."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from wsgiload.account import Account, account_of

from .command import Command, CommandResult

# Every role notes its ids, variables and groups in a file of its own. Unless it is root, it tries to
# leave its control groups for the root of each hierarchy.
APP = """
import json, os, sys
from pathlib import Path

SEEN = Path(__file__).with_name("seen")

def leave_groups():
    left = []
    for place in ("", "*/"):
        for path in Path("/sys/fs/cgroup").glob(place + "cgroup.procs"):
            try:
                path.write_text(str(os.getpid()))
                left.append(str(path))
            except OSError:
                pass
    return left

def note(role):
    shim = sys.modules.get("wsgiload_app")
    facts = {
        "role": role, "uids": os.getresuid(), "gids": os.getresgid(), "groups": os.getgroups(),
        "account": [os.environ.get(name) for name in ("HOME", "USER", "LOGNAME")],
        "setting": os.environ.get("SETTING"),
        "capabilities": next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff")),
        "left": leave_groups() if os.geteuid() else None, "cgroups": Path("/proc/self/cgroup").read_text(),
        "shim": None if shim is None else [Path(shim.__file__).stat().st_uid,
            Path(shim.__file__).parents[1].stat().st_uid, Path(shim.__file__).parents[1].stat().st_mode],
    }
    (SEEN / f"{role}-{os.getpid()}").write_text(json.dumps(facts))

def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]

if __name__ == "__main__":
    note(sys.argv[1])
    if sys.argv[1] == "service":
        import time
        time.sleep(600)
    if sys.argv[1] == "command":
        from wsgiref.simple_server import make_server
        make_server("127.0.0.1", int(sys.argv[2]), app).serve_forever()
else:
    note("import" if sys.argv == ["who"] else "server")  # as the import check sets it
    # As nginx and gunicorn do with a log file of this name.
    with open("/proc/self/fd/1", "a") as log:  # where /dev/stdout leads
        print("opened the log again", file=log)
"""
# The servers are in a file of root, which --user does not make less trusted.
SETTINGS = """
[servers.own]
command = "{python} who.py command {{port}}"
setup = "{python} who.py setup"
teardown = "{python} who.py teardown"

[services.side]
command = "{python} who.py service"
"""
ROLES = {"import", "server", "command", "setup", "teardown", "service"}
LOAD = ("--rates", "20", "--duration", "1s", "--warmup", "0s", "--cooldown", "0s")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that every user can enter, with an app, and an interpreter that the user can run."""

    command: Command
    user: Account
    python: Path

    @property
    def folder(self) -> Path:
        """The folder of the app."""
        return self.command.folder

    def run(self, *words: object) -> CommandResult:
        """Run a command in the folder as the user; ``words`` begin with its name."""
        options = ("--user", self.user.name, "--python", self.python)
        return self.command.run(*words, *options)

    def seen(self) -> list[dict[str, Any]]:
        """What the processes noted."""
        return [json.loads(path.read_text()) for path in (self.folder / "seen").iterdir()]


@contextmanager
def place_for(name: str) -> Iterator[Place]:
    """A place for this user. Skips the test without an interpreter that the user can run."""
    user = account_of(name)
    assert user is not None
    python = _python_for(user)
    # Not in pytest's folder, which only root can enter.
    with tempfile.TemporaryDirectory(prefix="test-user-") as outer:
        Path(outer).chmod(0o755)
        command = Command(Path(outer) / "command")
        command.temporary.chmod(0o1777)
        (command.folder / "who.py").write_text(APP)
        (command.folder / "wsgiload.toml").write_text(SETTINGS.format(python=python))
        (command.folder / "more").mkdir()  # an import folder, so that servers get a shim
        (command.folder / "seen").mkdir()
        (command.folder / "seen").chmod(0o1777)
        try:
            yield Place(command, user, python)
            command.require_no_leftovers()
        finally:
            command.clean_up()


def _python_for(user: Account) -> Path:
    for python in (Path(sys.executable), Path("/usr/bin/python3")):
        words = [str(python), "-c", "import sys; assert sys.version_info >= (3, 11)"]
        if (
            subprocess.run([*user.prefix(), *words], capture_output=True, check=False).returncode
            == 0
        ):
            return python
    pytest.skip(f"{user.name} can run no interpreter that wsgiload supports")


def require_everything_ran_as(place: Place, sweep: CommandResult) -> None:
    """Fail unless each process of the sweep ran as the user, in a control group that it could not
    leave, with limits that were enforced, and could write where it has to."""
    user, seen = place.user, place.seen()
    roles = {facts["role"] for facts in seen}
    assert roles == ROLES, roles
    for facts in seen:
        assert facts["uids"] == [user.uid] * 3 and facts["gids"] == [user.gid] * 3, facts
        assert facts["groups"] in ([], [user.gid]), facts
        assert facts["account"] == [user.home, user.name, user.name], facts
        assert facts["capabilities"] == "0" * 16, facts
        assert facts["setting"] == "given" or facts["role"] == "service"
        assert facts["left"] == [] and "/wsgiload-" in facts["cgroups"], facts
    (shim,) = {tuple(facts["shim"]) for facts in seen if facts["role"] == "server"}
    assert shim[:2] == (user.uid, user.uid) and shim[2] & 0o777 == 0o700

    assert place.folder.stat().st_uid == 0 and sweep.run_dir.stat().st_uid == 0
    assert sweep.run_dir.stat().st_mode & 0o777 == 0o700
    for cell in sweep.cells.values():
        _require_limits(cell)
    (log,) = (sweep.run_dir / "server").glob("wsgiref@*.log")
    assert "opened the log again" in log.read_text()


def _require_limits(cell: Mapping[str, Any]) -> None:
    limits, resources = cell["limits"], cell["resources"]
    assert cell["failure"] is None, cell["failure"]
    assert cell["outcomes"]["ok"] == cell["outcomes"]["scheduled"] > 0
    assert limits["not_enforced"] == [] and limits["backend"] != "none"
    assert limits["read_back"]["effective_memory_bytes"] == 128 * 1024**2
    assert limits["read_back"]["pids"] == 50
    assert resources["cpu_cores_mean"] > 0 and resources["memory_peak_bytes"] > 0
