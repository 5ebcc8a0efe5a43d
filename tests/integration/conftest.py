"""What the end-to-end tests share: a command line that cleans up, a target, and whether limits can
be set here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from wsgiload.errors import LimitsError
from wsgiload.limits import Limits, select_backend

from .command import Command
from .target import CountingServer


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    """The command line, in an empty folder; whatever is left at the end fails the test, and is
    ended."""
    command = Command(tmp_path / "command")
    try:
        yield command
        assert command.processes() == {}
        assert command.groups() == []
    finally:
        command.clean_up()


@pytest.fixture
def target() -> Iterator[CountingServer]:
    """A server that counts its answers."""
    with CountingServer() as server:
        yield server


@pytest.fixture(scope="session")
def limits_refused() -> str | None:
    """Why limits cannot be enforced here, None where they can."""
    try:
        select_backend(Limits(cpus=0.5, memory_bytes=2**26, pids=64))
    except LimitsError as error:
        return str(error)
    return None


@pytest.fixture(autouse=True)
def skip_where_limits_are_refused(request: pytest.FixtureRequest) -> None:
    """Tests marked ``limits`` need them."""
    if request.node.get_closest_marker("limits") is not None:
        refused = request.getfixturevalue("limits_refused")
        if refused is not None:
            pytest.skip(refused)
