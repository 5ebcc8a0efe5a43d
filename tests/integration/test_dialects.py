"""``loadgen --as TOOL`` sends the same requests as the tool itself. Both send to a server that
records its requests, and the recordings are compared."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.generators import find_program

from .recording_server import Received, RecordingServer
from .test_load import LOADGEN, needs_loadgen

pytestmark = needs_loadgen

EQUIVALENT = "loadgen: equivalent: "
PACKAGES = {"wrk": "wrk", "ab": "apache2-utils", "httperf": "httperf"}
HTTPERF = ("--server=127.0.0.1", "--port={port}", "--hog")
# An arbitrary file without placeholders.
BODY = str(Path(__file__).with_name("recording_server.py"))
TIMEOUT_S = 60


def with_port(args: Sequence[str], port: int) -> list[str]:
    return [arg.replace("{port}", str(port)) for arg in args]


def program_of(tool: str) -> str:
    program = find_program(tool)
    if program is None:
        pytest.skip(f"{tool} is not installed; as root run: apt-get install --yes {PACKAGES[tool]}")
    return str(program)


def traffic_of(argv: Sequence[str], args: Sequence[str]) -> RecordingServer:
    """Run this command against a recording server, and return the server."""
    with RecordingServer() as server:
        command = [*argv, *with_port(args, server.port)]
        completed = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
        # On a disturbed host, the figures are invalid, but the requests are the same.
        assert completed.returncode in (0, 98), completed.stdout + completed.stderr
    return server


def without_port(port: int, requests: Counter[Received]) -> set[Received]:
    """The distinct requests, with the port of the server replaced."""
    return {
        replace(
            request,
            headers=tuple(
                (name, value.replace(f":{port}", ":PORT")) for name, value in request.headers
            ),
        )
        for request in requests
    }


def compare_requests(tool: str, args: Sequence[str]) -> tuple[RecordingServer, RecordingServer]:
    """Run the tool and loadgen with the same arguments, require equal requests, and return both
    recording servers."""
    theirs = traffic_of([program_of(tool)], args)
    ours = traffic_of([str(LOADGEN), "--as", tool], args)

    sent = without_port(ours.port, ours.requests)
    assert sent == without_port(theirs.port, theirs.requests)
    assert len(sent) == 1, "the requests differ from each other"
    return theirs, ours


# --- compared with the tool itself


@pytest.mark.parametrize(
    "args", [(), ("-H", "X-A: {{b}}", "--latency"), ("-H", "Host: shop.example")], ids=" ".join
)
def test_wrk_keeps_its_connections(args: tuple[str, ...]) -> None:
    url = "http://127.0.0.1:{port}/a?b=c"
    for server in compare_requests("wrk", ["-t2", "-c5", "-d1s", *args, url]):
        assert server.requests_per_connection.total() == 4, "expected two connections per thread"
        assert min(server.requests_per_connection) > 10


def test_wrk_with_connection_close_opens_a_connection_for_each_request() -> None:
    args = ["-t1", "-c2", "-d1s", "-H", "Connection: close", "http://127.0.0.1:{port}/"]
    for server in compare_requests("wrk", args):
        assert set(server.requests_per_connection) == {1}
        assert server.requests_per_connection[1] > 10


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("-i",),
        ("-m", "DELETE"),
        ("-p", BODY, "-T", "text/x-python"),
        ("-u", BODY),
        ("-A", "user:password", "-C", "a=b"),
        ("-H", "Accept: text/html", "-H", "X-A: b", "-H", "User-Agent: me"),
    ],
    ids=lambda args: args[0] if args else "plain",
)
def test_ab_opens_a_connection_for_each_request(args: tuple[str, ...]) -> None:
    url = "http://127.0.0.1:{port}/a?b=c"
    for server in compare_requests("ab", ["-n", "41", "-c", "4", *args, url]):
        assert server.requests_per_connection == {1: 41}


def test_ab_with_keepalive_keeps_its_connections() -> None:
    args = ["-k", "-n", "41", "-c", "4", "http://127.0.0.1:{port}/"]
    theirs, ours = compare_requests("ab", args)
    assert ours.requests.total() == 41
    assert 41 <= theirs.requests.total() < 41 + 4, "ab abandons requests at the end"
    assert ours.requests_per_connection.total() == theirs.requests_per_connection.total() == 4


def test_ab_ends_after_its_time_limit() -> None:
    url = "http://127.0.0.1:{port}/"
    for server in compare_requests("ab", ["-c", "2", "-t", "1", "-n", "1000000", "-k", url]):
        assert server.requests_per_connection.total() == 2
        assert 10 < server.requests.total() < 1_000_000


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--method=HEAD", "--server-name=shop.example"),
        ("--add-header=X-A: b\\nX-B: c\\n",),
        ("--http-version=1.0",),
    ],
    ids=lambda args: args[0] if args else "plain",
)
def test_httperf_sends_all_calls_on_each_connection(args: tuple[str, ...], calls: int) -> None:
    rate = ("--rate=50", "--num-conns=25", f"--num-calls={calls}", "--uri=/a?b=c")
    for server in compare_requests("httperf", [*HTTPERF, *rate, *args]):
        assert server.requests_per_connection == {calls: 25}


# --- FunkLoad: derived from its source, because it does not run on a current Python


def test_funkload_runs_a_closed_loop_for_each_number_of_users(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    args = shlex.split("--users 2,5 -D 0.5 -u http://127.0.0.1:{port}/a --json")
    args.append(str(report))
    server = traffic_of([str(LOADGEN), "--as", "funkload"], args)
    headers = (("host", f"127.0.0.1:{server.port}"), ("user-agent", "FunkLoad/1.17.1"))
    assert set(server.requests) == {Received("GET", "/a", "HTTP/1.0", headers, b"")}
    assert set(server.requests_per_connection) == {1}

    ok = 0
    for users in (2, 5):
        report_of_level = json.loads((tmp_path / f"report-{users}.json").read_text())
        assert report_of_level["plan"]["load"]["closed"]["connections"] == users
        ok += report_of_level["outcomes"]["ok"]
    assert ok == server.requests.total()


def test_a_failed_body_check_is_a_failure_in_funkload_mode() -> None:
    with RecordingServer() as server:
        url = f"http://127.0.0.1:{server.port}/"
        args = ["-c", "2", "-D", "0.2", url, "--expect-regex", "something else"]
        completed = subprocess.run(
            [LOADGEN, "--as", "funkload", *args], capture_output=True, text=True, check=False
        )

    outcomes = json.loads(completed.stdout)["outcomes"]
    assert (outcomes["ok"], completed.returncode) == (0, 97), completed.stderr
    assert outcomes["bad_body"] > 0


# --- the equivalent command


@pytest.mark.parametrize(
    "args",
    [
        ("wrk", "-t2", "-c4", "-d1s", "-H", "X-It's: a b", "http://127.0.0.1:9/?a=1&b=2"),
        ("ab", "-n", "50", "-c", "5", "http://127.0.0.1:9/"),
        ("httperf", *HTTPERF, "--rate=333", "--num-conns=100", "--num-calls=4"),
        ("funkload", "--users", "7", "-m", "1", "-M", "2", "http://127.0.0.1:9/"),
    ],
    ids=lambda args: args[0],
)
def test_the_printed_equivalent_command_runs_the_same_load(args: tuple[str, ...]) -> None:
    completed = subprocess.run(
        [LOADGEN, "--as", *with_port(args, 9), "--dry-run"],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    (line,) = [line for line in completed.stderr.splitlines() if line.startswith(EQUIVALENT)]

    path = f"{LOADGEN.parent}{os.pathsep}{os.environ['PATH']}"
    pasted = subprocess.run(
        ["bash", "-c", line.removeprefix(EQUIVALENT)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    assert json.loads(completed.stdout) == json.loads(pasted.stdout)


def test_secrets_are_not_printed() -> None:
    args = ["-A", "user:password", "-C", "session=planted", "http://127.0.0.1:9/", "--dry-run"]
    completed = subprocess.run(
        [LOADGEN, "--as", "ab", *args], capture_output=True, text=True, check=True
    )
    assert "dXNlcjpwYXNzd29yZA==" in completed.stdout, "the plan must contain the secrets"
    assert "dXNlcjpwYXNzd29yZA==" not in completed.stderr
    assert "planted" not in completed.stderr


def test_unsupported_options_of_a_tool_are_rejected_before_anything_is_sent() -> None:
    for args, message in (
        (("wrk", "-s", "x.lua", "http://127.0.0.1:9/"), "Lua scripts cannot run"),
        (("ab", "--rate", "5", "http://127.0.0.1:9/"), "closest loadgen option: --rate"),
        (("siege", "http://127.0.0.1:9/"), "--as wrk, --as ab, --as httperf or --as funkload"),
    ):
        completed = subprocess.run(
            [LOADGEN, "--as", *args], capture_output=True, text=True, check=False
        )
        assert (completed.returncode, completed.stdout) == (2, "")
        assert message in completed.stderr

    as_last = [LOADGEN, "http://127.0.0.1:9/", "--as", "wrk"]
    completed = subprocess.run(as_last, capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "--as must be the first option" in completed.stderr
