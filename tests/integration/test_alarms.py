"""Each alarm, made to go off by its cause: a real server, a real network, a real client.

docs/alarms.md says which cause stands for which alarm.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from wsgiload.analysis.alarms import FLAT_WITHIN
from wsgiload.catalogue.contract import Profile
from wsgiload.catalogue.names import load_catalogue
from wsgiload.documents.check_names import CODES
from wsgiload.environments.system import install_command, missing_packages
from wsgiload.loads.reference_server import BUILT

from .catalogue import catalogue_server
from .command import SCRIPT, Command, Done, until
from .reference import inconclusive, needs_reference, reference
from .target import CountingServer, SomeInTwoWrites, TwoWrites

BRIEFLY = ("--duration", "3s", "--warmup", "0s", "--cooldown", "0s", "--quiet")
ALARMS = {name for name, code in CODES.items() if code.startswith("V")} | {
    "cached-response",
    "closed-loop-stalls",
    "memory-growth",
}
on_servers = [pytest.mark.servers, pytest.mark.limits]
# What these tests claim is far larger than a disturbed host makes it, so that no trial is given up
# for that.
LIMITS = (
    "missed-sends.invalid=0",
    "send-lag.invalid=1e9",
    "client-cpu.invalid=1e9",
)
HOWEVER_DISTURBED = tuple(
    f"--check-threshold={limit}" for limit in (*LIMITS, "client-stalls.invalid=1e9")
)

# A head, and a body in pieces without a Content-Length.
STREAMS = """
    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        yield b"one"
        yield b"two"
"""
# Each start is slower than the one before: a cache that was cold, a neighbour, another core.
SLOWER_EACH_START = """
    from pathlib import Path
    import time

    STARTS = Path(__file__).with_name("starts")
    with STARTS.open("a") as starts:
        starts.write("x")
    HOLD_S = 0.010 * STARTS.stat().st_size

    def app(environ, start_response):
        time.sleep(HOLD_S)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
"""
CACHES = """
    from functools import cache
    import time

    @cache
    def page(path, query):
        time.sleep(0.020)
        return b"ok"

    def app(environ, start_response):
        body = page(environ["PATH_INFO"], environ["QUERY_STRING"])
        start_response("200 OK", [("Content-Length", "2")])
        return [body]
"""
LEAKS = """
    kept = []

    def app(environ, start_response):
        kept.append(b"x" * 20_000)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
"""
HOLDS_ITS_THREAD = """
    import time

    def app(environ, start_response):
        time.sleep(0.040)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
"""


def alarms(done: Done) -> set[str]:
    """The names of those that a load raised."""
    names = re.findall(r"\(([a-z0-9-]+)\)", "\n".join(done.complaints))
    return set(names) & ALARMS


def checks(done: Done) -> set[str]:
    """The names of all that the cells of a sweep have in their verdicts."""
    return {
        reason["check"] for cell in done.cells.values() for reason in cell["verdict"]["reasons"]
    }


def write_app(command: Command, text: str) -> str:
    (command.folder / "made.py").write_text(textwrap.dedent(text))
    return "made:app"


def load(command: Command, url: str, *words: object) -> Done:
    return command.run("load", url, "--duration", "2s", *words)


@needs_reference
def test_a_sound_load_raises_none(command: Command) -> None:
    with reference("--hold", "1ms") as url:
        assert alarms(load(command, url, "--rate", 100)) == set()


@needs_reference
def test_v1_a_wrong_body(command: Command) -> None:
    with reference("--fault", "wrong-body@every:20") as url:
        assert alarms(load(command, url, "--rate", 100, "--expect-regex", "^hello$")) == {
            "wrong-responses"
        }


@needs_reference
def test_v4_and_v9_a_server_that_stops_answering(command: Command) -> None:
    with reference("--hold", "1ms", "--stall", "20s/60s+0s") as url:
        assert alarms(load(command, url, "--rate", 50, "--timeout", "300ms")) == {
            "dead-interval",
            "rate-not-reached",
        }


@needs_reference
def test_v6_a_connection_for_every_answer(command: Command) -> None:
    with reference("--requests-per-connection", 1) as url:
        assert alarms(load(command, url, "--rate", 50)) == {"no-keepalive"}
        assert alarms(load(command, url, "--rate", 50, "--keepalive", "off")) == set()


def test_v7_a_head_and_a_body_in_two_writes(command: Command) -> None:
    """Nagle's algorithm holds the body back until the head is acknowledged, which the client's
    kernel delays."""
    with CountingServer(TwoWrites) as server:
        done = load(command, server.url, "--connections", 2)
    if alarms(done) != {"nagle-delay"} and "run-queue-wait" in done.out:
        inconclusive(done.out.splitlines()[1])
    assert alarms(done) == {"nagle-delay"}


def test_v7_every_fifth_body_in_a_write_of_its_own(command: Command) -> None:
    """The median response does not wait."""
    with CountingServer(SomeInTwoWrites) as server:
        done = load(command, server.url, "--connections", 2)
    if alarms(done) != {"nagle-delay"} and "run-queue-wait" in done.out:
        inconclusive(done.out.splitlines()[1])
    assert alarms(done) == {"nagle-delay"}
    assert "in 20 % of the responses" in done.err or "in 19 %" in done.err, done.err


@needs_reference
def test_stalls_that_one_user_hardly_sees(command: Command) -> None:
    with reference("--hold", "5ms", "--stall", "300ms/3s") as url:
        done = command.run("load", url, "--connections", 1, "--duration", "7s")
        assert alarms(done) == {"closed-loop-stalls"}, done.err
        done = command.run("load", url, "--rate", 100, "--duration", "4s")
        assert "closed-loop-stalls" not in alarms(done), done.err


@needs_reference
def test_v9_an_overload(command: Command) -> None:
    """A single server of 20 ms gets twice what it can answer; who waits for longer than a second
    gives up."""
    with reference("--hold", "20ms", "--servers", 1) as url:
        assert "rate-not-reached" in alarms(load(command, url, "--rate", 100, "--timeout", "1s"))


@needs_reference
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs a network of its own"
)
def test_v5_ports_run_short(command: Command) -> None:
    """In a network of its own with 60 ports, where 50 users keep a connection each."""
    words = f"""
        ip link set lo up && echo 40000 40059 > /proc/sys/net/ipv4/ip_local_port_range
        {BUILT} --listen 127.0.0.1:9000 --hold 20ms --no-stamps --for 20s & server=$!
        sleep 0.5
        {SCRIPT} load http://127.0.0.1:9000/ -c 50 -d 1s --source-addresses 127.0.0.1 --verbose
        kill $server
    """
    done = command.run(program=["unshare", "--net", "sh", "-c", words])
    assert "network-resources" in alarms(done), done.err


@needs_reference
def test_v5_descriptors_are_used_up(command: Command) -> None:
    """A hundred requests of a second each, by a process that may open forty descriptors from then
    on."""
    with reference("--hold", "1s") as url:
        running = command.start(
            "load", url, "--rate", 100, "--duration", "2s", "--max-connections", 90
        )
        until(lambda: "loading" in running.err, "the load")
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (40, 40))
        done = running.end()
    assert "Traceback (most recent call last)" not in done.err, done.err
    command.require_nothing_left()
    assert "network-resources" in alarms(done), done.err
    assert done.code == 98
    assert "invalid: client" in done.out


@needs_reference
def test_a_client_that_stood_still_blames_itself(command: Command) -> None:
    with reference("--hold", "1ms") as url:
        running = command.start("load", url, "--rate", 500, "--duration", "3s")
        until(lambda: "loading" in running.err, "the load")
        time.sleep(1.0)
        os.kill(running.pid, signal.SIGSTOP)
        time.sleep(0.4)
        os.kill(running.pid, signal.SIGCONT)
        done = running.end()
    assert done.code == 98
    assert "client-stalls" in done.out
    assert "verdict: invalid: client" in done.out or "verdict: invalid: host" in done.out


class TestOnServers:
    """Of the catalogue, each with the default that has spoiled a published comparison."""

    pytestmark: Sequence[pytest.MarkDecorator] = on_servers

    def test_v2_v3_ten_threads_and_two_hundred_connections(self, command: Command) -> None:
        """cheroot as it comes: it keeps ten connections, and its queue of five leaves the others to
        try again."""
        words = (
            "--servers",
            "cheroot",
            "--profile",
            "stock",
            "--connections",
            200,
            "--timeout",
            "3s",
        )
        done = command.run("sweep", *words, *BRIEFLY)
        assert checks(done) & {"littles-law", "uneven-connections"}, checks(done)

    @pytest.mark.parametrize(
        ("server", "profile"), [("gunicorn-sync", "tuned"), ("uwsgi-http", "stock")]
    )
    def test_v6_a_front_that_keeps_no_connection(
        self, command: Command, server: str, profile: str
    ) -> None:
        """Probed before the load, which is then measured with a connection for each request, and
        says so."""
        words = ("--servers", server, "--profile", profile, "--keepalive", "on", "--rates", 50)
        done = command.run("sweep", *words, *BRIEFLY)
        (cell,) = done.cells.values()
        assert not cell["keepalive_honoured"]
        assert "no-keepalive" in checks(done)
        said = " ".join(done.out.split())
        no_keepalive = "has no keep-alive: it closes the connection after each response"
        (note,) = [note for note in cell["notes"] if no_keepalive in note]
        assert note not in said, "the check says it of all servers at once"
        assert (
            "the server closes the connection after each response although keep-alive was requested"
            in said
        )

    @pytest.mark.parametrize(
        ("server", "profile"), [("gunicorn-sync", "tuned"), ("uwsgi-http", "stock")]
    )
    def test_v6_of_a_server_that_nobody_probed(
        self, command: Command, server: str, profile: Profile, tmp_path: Path
    ) -> None:
        """uWSGI's router closes without saying so: as many connections as answers are all that
        shows it."""
        with catalogue_server(server, profile, tmp_path) as url:
            assert "no-keepalive" in alarms(load(command, url, "--rate", 50, "--keepalive", "on"))

    def test_v7_a_body_in_pieces_without_tcp_nodelay(self, command: Command) -> None:
        """bjoern, which leaves Nagle's algorithm on, and an app that gives no Content-Length."""
        (bjoern,) = load_catalogue().select(["bjoern"])
        if missing := missing_packages(bjoern.needs):
            pytest.skip(
                f"bjoern needs {' '.join(missing)}; as root run: {install_command(missing)}"
            )
        words = ("--servers", "bjoern", "--connections", 2, *HOWEVER_DISTURBED)
        done = command.run("sweep", write_app(command, STREAMS), *words, *BRIEFLY)
        if "nagle-delay" not in checks(done) and checks(done) & {
            "run-queue-wait",
            "steal",
            "contaminated",
        }:
            inconclusive(f"half of the answers waited for a core, too: {checks(done)}")
        assert "nagle-delay" in checks(done), checks(done)

    def test_v8_and_v9_too_few_threads(self, command: Command) -> None:
        """One thread of 10 ms at twice its rate, which takes a tenth of the CPU even where a
        request costs 0.5 ms."""
        words = (
            "--servers",
            "waitress",
            "--server-threads",
            1,
            "--app-name",
            "sleep",
            "--rates",
            200,
        )
        done = command.run("sweep", *words, *BRIEFLY)
        assert checks(done) >= {"idle-server", "rate-not-reached"}, checks(done)

    def test_an_app_that_caches_the_only_url(self, command: Command) -> None:
        words = ("--servers", "waitress", "--rates", 100, *BRIEFLY)
        done = command.run("sweep", write_app(command, CACHES), *words)
        assert checks(done) & ALARMS == {"cached-response"}, checks(done)
        done = command.run(
            "sweep", write_app(command, HOLDS_ITS_THREAD), "-c", 1, *words[:2], *BRIEFLY
        )
        assert checks(done) & ALARMS == set(), checks(done)

    def test_an_app_that_keeps_something_of_every_request(self, command: Command) -> None:
        words = ("--servers", "waitress", "--rates", 200, *BRIEFLY, "--duration", "8s")
        done = command.run("sweep", write_app(command, LEAKS), *words)
        assert checks(done) & ALARMS == {"memory-growth"}, checks(done)
        said = " ".join(done.out.split())
        assert "MiB in 8 s and did not level off (" in said, said

    def test_v10_a_server_that_is_slower_at_each_start(self, command: Command) -> None:
        words = (
            "--servers",
            "waitress",
            "--connections",
            4,
            "--runs",
            2,
            "--settle",
            "0s",
            *HOWEVER_DISTURBED,
        )
        done = command.run("sweep", write_app(command, SLOWER_EACH_START), *words, *BRIEFLY)
        assert done.code == 0, checks(done)
        assert "waitress at 4 connections: throughput varies by " in done.out, done.out
        assert "(run-spread)" in done.out

    def test_v11_the_same_throughput_whatever_the_users(self, command: Command) -> None:
        """One thread of 40 ms: 25 a second, of which the scheduler's millisecond is a small
        part."""
        words = (
            "--servers",
            "waitress",
            "--server-threads",
            1,
            "--connections",
            "4,8,16",
            *HOWEVER_DISTURBED,
        )
        done = command.run("sweep", write_app(command, HOLDS_ITS_THREAD), *words, *BRIEFLY)
        assert done.code == 0, checks(done)
        goodputs = [cell["rate_result"]["goodput_per_s"] for cell in done.cells.values()]
        if max(goodputs) / min(goodputs) > 1 + FLAT_WITHIN:
            inconclusive(f"a thread of 40 ms served {goodputs} a second")
        (line,) = [line for line in done.out.splitlines() if "(flat-throughput)" in line]
        assert line.startswith("waitress-t1: ")
