"""``loadgen --as TOOL`` sends what the tool itself sends: both drive a server that keeps every
request, and the records are compared."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.generators import find_program

from .recording_server import Received, RecordingServer
from .test_load import LOADGEN, needs_loadgen

pytestmark = needs_loadgen

EQUIVALENT = "loadgen: equivalent: "
PACKAGES = {"wrk": "wrk", "ab": "apache2-utils", "httperf": "httperf"}
HTTPERF = ("--server=127.0.0.1", "--port={port}", "--hog")
# Any file without placeholders.
BODY = str(Path(__file__).with_name("recording_server.py"))
TIMEOUT_S = 60


def filled(words: Sequence[str], port: int) -> list[str]:
    return [word.replace("{port}", str(port)) for word in words]


def program_of(tool: str) -> str:
    program = find_program(tool)
    if program is None:
        pytest.skip(f"{tool} is not installed; as root run: apt-get install --yes {PACKAGES[tool]}")
    return str(program)


def traffic_of(argv: Sequence[str], words: Sequence[str]) -> RecordingServer:
    """What a server received from this command."""
    with RecordingServer() as server:
        command = [*argv, *filled(words, server.port)]
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
        # A host that is not quiet makes our figures invalid, but not what we send.
        assert ended.returncode in (0, 98), ended.stdout + ended.stderr
    return server


def as_sent_to(port: int, requests: Counter[Received]) -> set[Received]:
    """The different requests, as if both servers had the same port."""
    return {
        Received(
            one.method,
            one.target,
            one.version,
            tuple((name, value.replace(f":{port}", ":PORT")) for name, value in one.headers),
            one.body,
        )
        for one in requests
    }


def both(tool: str, words: Sequence[str]) -> tuple[RecordingServer, RecordingServer]:
    """What the tool sent and what we sent for the same words: the same requests."""
    theirs = traffic_of([program_of(tool)], words)
    ours = traffic_of([str(LOADGEN), "--as", tool], words)
    sent = as_sent_to(ours.port, ours.requests)
    assert sent == as_sent_to(theirs.port, theirs.requests)
    assert len(sent) == 1, "a load of equal requests"
    return theirs, ours


# --- the same as the tool itself


@pytest.mark.parametrize(
    "words", [(), ("-H", "X-A: {{b}}", "--latency"), ("-H", "Host: shop.example")], ids=" ".join
)
def test_wrk_keeps_its_connections(words: tuple[str, ...]) -> None:
    url = "http://127.0.0.1:{port}/a?b=c"
    for server in both("wrk", ["-t2", "-c5", "-d1s", *words, url]):
        assert server.lengths.total() == 4, "two for each thread"
        assert min(server.lengths) > 10


def test_wrk_that_says_close_opens_a_connection_for_each_request() -> None:
    words = ["-t1", "-c2", "-d1s", "-H", "Connection: close", "http://127.0.0.1:{port}/"]
    for server in both("wrk", words):
        assert set(server.lengths) == {1}
        assert server.lengths[1] > 10


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("-i",),
        ("-m", "DELETE"),
        ("-p", BODY, "-T", "text/x-python"),
        ("-u", BODY),
        ("-A", "user:password", "-C", "a=b"),
        ("-H", "Accept: text/html", "-H", "X-A: b", "-H", "User-Agent: me"),
    ],
    ids=lambda words: words[0] if words else "plain",
)
def test_ab_opens_a_connection_for_each_of_its_requests(words: tuple[str, ...]) -> None:
    url = "http://127.0.0.1:{port}/a?b=c"
    for server in both("ab", ["-n", "41", "-c", "4", *words, url]):
        assert server.lengths == {1: 41}


def test_ab_with_k_keeps_its_connections() -> None:
    words = ["-k", "-n", "41", "-c", "4", "http://127.0.0.1:{port}/"]
    theirs, ours = both("ab", words)
    assert ours.requests.total() == 41
    assert 41 <= theirs.requests.total() < 41 + 4, "ab abandons requests when it has enough"
    assert ours.lengths.total() == theirs.lengths.total() == 4


def test_ab_ends_when_its_time_is_over() -> None:
    url = "http://127.0.0.1:{port}/"
    for server in both("ab", ["-c", "2", "-t", "1", "-n", "1000000", "-k", url]):
        assert server.lengths.total() == 2
        assert 10 < server.requests.total() < 1_000_000


@pytest.mark.parametrize("calls", [1, 3])
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--method=HEAD", "--server-name=shop.example"),
        ("--add-header=X-A: b\\nX-B: c\\n",),
        ("--http-version=1.0",),
    ],
    ids=lambda words: words[0] if words else "plain",
)
def test_httperf_makes_its_calls_on_each_of_its_connections(
    words: tuple[str, ...], calls: int
) -> None:
    rate = ("--rate=50", "--num-conns=25", f"--num-calls={calls}", "--uri=/a?b=c")
    for server in both("httperf", [*HTTPERF, *rate, *words]):
        assert server.lengths == {calls: 25}


# --- by its source: it does not run on a current Python


def test_funkload_runs_a_closed_loop_for_each_number_of_users(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = [
        "--users",
        "2,5",
        "-D",
        "0.5",
        "-u",
        "http://127.0.0.1:{port}/a",
        "--json",
        str(report),
    ]
    server = traffic_of([str(LOADGEN), "--as", "funkload"], words)
    headers = (("host", f"127.0.0.1:{server.port}"), ("user-agent", "FunkLoad/1.17.1"))
    assert set(server.requests) == {Received("GET", "/a", "HTTP/1.0", headers, b"")}
    assert set(server.lengths) == {1}

    ok = 0
    for users in (2, 5):
        one = json.loads((tmp_path / f"report-{users}.json").read_text())
        assert one["plan"]["load"]["closed"]["connections"] == users
        ok += one["outcomes"]["ok"]
    assert ok == server.requests.total()


def test_a_check_that_fails_is_a_failure_in_funkload_mode() -> None:
    with RecordingServer() as server:
        url = f"http://127.0.0.1:{server.port}/"
        words = ["-c", "2", "-D", "0.2", url, "--expect-regex", "something else"]
        ended = subprocess.run(
            [LOADGEN, "--as", "funkload", *words], capture_output=True, text=True, check=False
        )
    outcomes = json.loads(ended.stdout)["outcomes"]
    assert (outcomes["ok"], ended.returncode) == (0, 97), ended.stderr
    assert outcomes["bad_body"] > 0


# --- the equivalent command


@pytest.mark.parametrize(
    "words",
    [
        ("wrk", "-t2", "-c4", "-d1s", "-H", "X-It's: a b", "http://127.0.0.1:9/?a=1&b=2"),
        ("ab", "-n", "50", "-c", "5", "http://127.0.0.1:9/"),
        ("httperf", *HTTPERF, "--rate=333", "--num-conns=100", "--num-calls=4"),
        ("funkload", "--users", "7", "-m", "1", "-M", "2", "http://127.0.0.1:9/"),
    ],
    ids=lambda words: words[0],
)
def test_the_printed_command_is_the_same_load(words: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [LOADGEN, "--as", *filled(words, 9), "--dry-run"],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    (line,) = [one for one in ended.stderr.splitlines() if one.startswith(EQUIVALENT)]
    path = f"{LOADGEN.parent}{os.pathsep}{os.environ['PATH']}"
    pasted = subprocess.run(
        ["bash", "-c", line.removeprefix(EQUIVALENT)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    assert json.loads(ended.stdout) == json.loads(pasted.stdout)


def test_secrets_are_not_printed() -> None:
    words = ["-A", "user:password", "-C", "session=planted", "http://127.0.0.1:9/", "--dry-run"]
    ended = subprocess.run(
        [LOADGEN, "--as", "ab", *words], capture_output=True, text=True, check=True
    )
    assert "dXNlcjpwYXNzd29yZA==" in ended.stdout, "the plan has them"
    assert "dXNlcjpwYXNzd29yZA==" not in ended.stderr
    assert "planted" not in ended.stderr


def test_what_a_mode_does_not_know_is_refused_before_anything_is_sent() -> None:
    for words, said in (
        (("wrk", "-s", "x.lua", "http://127.0.0.1:9/"), "Lua scripts cannot run"),
        (("ab", "--rate", "5", "http://127.0.0.1:9/"), "closest loadgen option: --rate"),
        (("siege", "http://127.0.0.1:9/"), "--as wrk, --as ab, --as httperf or --as funkload"),
    ):
        ended = subprocess.run(
            [LOADGEN, "--as", *words], capture_output=True, text=True, check=False
        )
        assert (ended.returncode, ended.stdout) == (2, "")
        assert said in ended.stderr
    late = [LOADGEN, "http://127.0.0.1:9/", "--as", "wrk"]
    ended = subprocess.run(late, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "--as must be the first option" in ended.stderr
