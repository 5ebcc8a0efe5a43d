"""Runs every program in ``examples/`` against servers on this machine."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from .command import Command, CommandResult
from .reference import needs_reference, reference

EXAMPLES = Path(__file__).parents[2] / "examples"
MAX_LINES = 50

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"ok\\n"]
"""


def run(command: Command, name: str, *args: object, with_pytest: bool = False) -> CommandResult:
    program = [sys.executable]
    if with_pytest:
        program += ["-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return command.run(EXAMPLES / name, *args, program=program)


def test_every_example_has_a_test() -> None:
    source = Path(__file__).read_text()
    names = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert len(names) == 5
    assert [name for name in names if f'command, "{name}"' not in source] == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_examples_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < MAX_LINES


@needs_reference
def test_a_load_meets_its_threshold(command: Command) -> None:
    with reference("--hold", "1ms") as url:
        result = run(command, "load_with_threshold.py", url, 1_000)
    assert "p99 of correct responses: " in result.out
    assert "failed requests: 0" in result.out
    assert result.code == (98 if "verdict: invalid" in result.out else 0)


@needs_reference
def test_a_load_fails_its_threshold(command: Command) -> None:
    with reference("--hold", "20ms") as url:
        result = run(command, "load_with_threshold.py", url, 1)
    assert result.code == (98 if "verdict: invalid" in result.out else 99)


@needs_reference
def test_a_rate_staircase_ends_where_the_server_falls_behind(command: Command) -> None:
    # One request at a time, 10 ms each: a capacity of 100 requests per second.
    with reference("--hold", "10ms", "--servers", 1) as url:
        result = run(command, "rate_staircase.py", url, 20, 400, 800)
    assert result.code == 0, result.err
    assert "The server falls behind at 400 requests per second." in result.out
    assert len(re.findall(r"  (?:valid|warn|invalid)$", result.out, re.MULTILINE)) == 2


def test_a_load_runs_in_a_test_suite(command: Command) -> None:
    result = run(command, "test_under_load.py", with_pytest=True)
    assert result.code == 0, result.out
    assert "1 passed" in result.out


@pytest.mark.servers
@pytest.mark.limits
def test_the_server_with_the_lower_p99_is_named(command: Command) -> None:
    (command.folder / "myapp.py").write_text(APP)
    result = run(command, "better_server.py", "myapp:app")
    assert result.code == 0, result.err
    status, _, sentence = result.out.splitlines()[0].partition(": ")
    assert status in ("decided", "tie", "undecided")
    assert "gunicorn-gthread" in sentence or "waitress" in sentence


@needs_reference
def test_histograms_of_two_loads_are_merged(command: Command) -> None:
    with reference("--hold", "1ms") as fast, reference("--hold", "30ms") as slow:
        result = run(command, "merge_histograms.py", fast, slow)

    assert result.code == 0, result.err

    rows = re.findall(
        r"^(\w+) +(\d+) requests, p50 (\S+) ms, p99 (\S+) ms", result.out, re.MULTILINE
    )

    figures = {name: (int(count), float(p50), float(p99)) for name, count, p50, p99 in rows}
    assert figures["merged"][0] == figures["first"][0] + figures["second"][0]
    # Half of all requests took 30 ms, so the merged p99 is that of the slow server, not the mean.
    assert figures["merged"][2] >= 30 > figures["first"][1]
