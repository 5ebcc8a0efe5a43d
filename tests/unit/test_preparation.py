"""Commands around a server: their order, their output, and what becomes of a failure."""

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
from wsgiload.serving.log import last_line, tail_of
from wsgiload.serving.preparation import Preparation, prepared


class Group(UnlimitedGroup):
    """A group that leaves the test's process as it is."""

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


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def preparation(folder: Path, **options: object) -> Preparation:
    note = "import os; open('events', 'a').write({!r} + os.environ.get('COLOUR', ''))"
    known: dict[str, object] = {
        "server": "prod",
        "setup": [python(note.format("set up ")), python("print('migrated')")],
        "teardown": [python(note.format("; torn down "))],
        "folder": folder,
        "variables": {"COLOUR": "blue"},
        "log_path": folder / "log",
        "timeout_s": 30.0,
    }
    return Preparation(**known | options)  # type: ignore[arg-type]


def test_setup_runs_before_and_teardown_after_in_the_users_environment(
    tmp_path: Path, place: Place
) -> None:
    (tmp_path / "log").write_text("of an earlier attempt")
    events = tmp_path / "events"
    with prepared(preparation(tmp_path), place):
        assert events.read_text() == "set up blue"
    assert events.read_text() == "set up blue; torn down blue"
    log = (tmp_path / "log").read_text()
    assert log.index("setup: ") < log.index("migrated") < log.index("teardown: ")
    assert "earlier" not in log


def test_a_setup_that_fails_is_named_with_its_code_and_its_last_lines(
    tmp_path: Path, place: Place
) -> None:
    failing = python("print('connecting'); print('no database'); raise SystemExit(3)")
    asked = preparation(tmp_path, setup=[failing])
    says = rf"the setup command `.*` of prod exited with code 3: no database; run it in {tmp_path}"
    with pytest.raises(ServerError, match=says) as raised, prepared(asked, place):
        pytest.fail("the server was started")
    assert raised.value.step == "setup"
    assert raised.value.log_tail == "connecting\nno database"
    assert "torn down" in (tmp_path / "events").read_text(), "what it began is undone"


def test_a_setup_that_does_not_end_is_ended(tmp_path: Path, place: Place) -> None:
    asked = preparation(tmp_path, setup=[python("import time; time.sleep(60)")], timeout_s=0.5)
    says = re.escape("of prod did not end within 0.5 s; raise --ready-timeout")
    with pytest.raises(ServerError, match=says), prepared(asked, place):
        pytest.fail("the server was started")


def test_every_teardown_runs_and_the_first_failure_is_raised(tmp_path: Path, place: Place) -> None:
    ways_out = [python(f"open('left', 'a').write('{n}'); raise SystemExit({n})") for n in (4, 5)]
    with (
        pytest.raises(ServerError, match=r"teardown .* exited with code 4: without output"),
        prepared(preparation(tmp_path, teardown=ways_out), place),
    ):
        pass
    assert (tmp_path / "left").read_text() == "45"


def test_what_failed_first_is_what_is_reported(tmp_path: Path, place: Place) -> None:
    asked = preparation(tmp_path, teardown=[python("raise SystemExit(4)")])
    with pytest.raises(KeyboardInterrupt), prepared(asked, place):
        raise KeyboardInterrupt


def test_the_tail_of_a_server_leaves_out_what_was_written_before_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("migrated\nlistening\nready\n")
    assert tail_of(log, offset=len("migrated\n")) == "listening\nready"
    assert tail_of(tmp_path / "none") == ""
    assert (last_line("a\n b \n\n"), last_line(" \n")) == ("b", "")
