"""Fixtures of the integration tests: the command line, a target server, and whether limits can be
enforced."""

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
    """The command line in an empty folder. Remaining processes or control groups fail the test."""
    command = Command(tmp_path / "command")
    try:
        yield command
        assert command.processes() == {}
        assert command.groups() == []
    finally:
        command.clean_up()


@pytest.fixture
def target() -> Iterator[CountingServer]:
    """A server that counts its responses."""
    with CountingServer() as server:
        yield server


@pytest.fixture(scope="session")
def limits_error() -> str | None:
    """Why this host cannot enforce limits; None if it can."""
    try:
        select_backend(Limits(cpus=0.5, memory_bytes=2**26, pids=64))
    except LimitsError as error:
        return str(error)
    return None


@pytest.fixture(autouse=True)
def skip_without_limits(request: pytest.FixtureRequest) -> None:
    """Skip tests marked ``limits`` if this host cannot enforce limits."""
    if request.node.get_closest_marker("limits") is not None:
        refused = request.getfixturevalue("limits_error")
        if refused is not None:
            pytest.skip(refused)
