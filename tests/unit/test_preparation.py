"""Setup and teardown commands of a server: order, output and failures."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import pytest

from wsgiload.errors import ServerError
from wsgiload.limits import Janitor, Limits
from wsgiload.limits.unlimited import UnlimitedBackend, UnlimitedGroup
from wsgiload.serving.groups import Place
from wsgiload.serving.lifecycle import Preparation, prepared
from wsgiload.serving.log import OutputLog, output_log


class Group(UnlimitedGroup):
    """A group that does not change the test's own process."""

    def spawn(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        self.started = subprocess.Popen(argv, env=env, cwd=cwd, stdout=log, stderr=log)
        return self.started

    def kill(self) -> None:
        self.started.kill()
        self.started.wait()


class Backend(UnlimitedBackend):
    def create(self, limits: Limits, label: str) -> Group:
        assert limits.requested() == ()
        return Group(label, limits, ())


@pytest.fixture
def place() -> Iterator[Place]:
    with Janitor() as janitor:
        yield Place(Limits(cpus=1.0, memory_bytes=1 << 29, pids=9), Backend(), janitor)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[OutputLog]:
    (tmp_path / "log").write_text("earlier attempt")
    with output_log(tmp_path / "log") as log:
        yield log


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def preparation(log: OutputLog, **options: object) -> Preparation:
    script = "import os; open('events', 'a').write({!r} + os.environ.get('COLOUR', ''))"
    default: dict[str, object] = {
        "server": "prod",
        "setup": [python(script.format("set up ")), python("print('migrated')")],
        "teardown": [python(script.format("; torn down "))],
        "folder": log.path.parent,
        "variables": {"COLOUR": "blue"},
        "log": log,
        "timeout_s": 30.0,
    }
    return Preparation(**default | options)  # type: ignore[arg-type]


def test_setup_runs_before_the_server_and_teardown_after_it(
    tmp_path: Path, log: OutputLog, place: Place
) -> None:
    events = tmp_path / "events"
    with prepared(preparation(log), place):
        assert events.read_text() == "set up blue"
    assert events.read_text() == "set up blue; torn down blue"
    text = log.read().decode()
    assert text.index("setup: ") < text.index("migrated") < text.index("teardown: ")
    assert "earlier" not in text


def test_a_failed_setup_command_is_reported_with_its_exit_code_and_output(
    tmp_path: Path, log: OutputLog, place: Place
) -> None:
    failing = python("print('connecting'); print('no database'); raise SystemExit(3)")
    commands = preparation(log, setup=[failing])
    message = (
        rf"the setup command `.*` of prod exited with code 3: no database; run it in {tmp_path}"
    )

    with pytest.raises(ServerError, match=message) as raised, prepared(commands, place):
        pytest.fail("the server was started")
    assert raised.value.step == "setup"
    assert raised.value.log_tail == "connecting\nno database"
    assert "torn down" in (tmp_path / "events").read_text(), "teardown runs after a failed setup"


def test_a_hanging_setup_command_times_out(log: OutputLog, place: Place) -> None:
    commands = preparation(log, setup=[python("import time; time.sleep(60)")], timeout_s=0.5)
    message = re.escape("of prod did not end within 0.5 s; raise --ready-timeout")
    with pytest.raises(ServerError, match=message), prepared(commands, place):
        pytest.fail("the server was started")


def test_every_teardown_runs_and_the_first_failure_is_raised(
    tmp_path: Path, log: OutputLog, place: Place
) -> None:
    failing = [python(f"open('left', 'a').write('{n}'); raise SystemExit({n})") for n in (4, 5)]
    with (
        pytest.raises(ServerError, match=r"teardown .* exited with code 4: without output"),
        prepared(preparation(log, teardown=failing), place),
    ):
        pass
    assert (tmp_path / "left").read_text() == "45"


def test_a_failed_teardown_does_not_hide_the_first_error(log: OutputLog, place: Place) -> None:
    commands = preparation(log, teardown=[python("raise SystemExit(4)")])
    with pytest.raises(KeyboardInterrupt), prepared(commands, place):
        raise KeyboardInterrupt
