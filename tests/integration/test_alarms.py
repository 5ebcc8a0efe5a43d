"""Reproduces the cause of each alarm with a real server, network and client."""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import signal
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from wsgiload.catalogue.contract import Profile
from wsgiload.catalogue.names import load_catalogue
from wsgiload.environments.cache import install_command, missing_packages
from wsgiload.findings.of_trials import alarm_records
from wsgiload.findings.over_cells import FLAT_WITHIN
from wsgiload.loads.reference_server import BUILT

from .catalogue import catalogue_server
from .command import SCRIPT, Command, CommandResult, until
from .reference import inconclusive, needs_reference, reference
from .target import CountingServer, SomeInTwoWrites, TwoWrites

BRIEFLY = ("--duration", "3s", "--warmup", "0s", "--cooldown", "0s", "--quiet")
ALARMS = {one.name for one in alarm_records()}
on_servers = [pytest.mark.servers, pytest.mark.limits]
# These tests look for effects far larger than those of a disturbed host, which therefore must not
# make a trial invalid.
LIMITS = ("missed-sends.invalid=0", "send-lag.invalid=1e9", "client-cpu.invalid=1e9")
TOLERATE_DISTURBANCE = tuple(
    f"--check-threshold={limit}" for limit in (*LIMITS, "client-stalls.invalid=1e9")
)

# A body in two pieces without Content-Length.
STREAMS = """
    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/plain")])
        yield b"one"
        yield b"two"
"""
# Each start is slower than the previous one, as with a cold cache or another busy process.
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


def alarms(result: CommandResult) -> set[str]:
    """The names of the alarms raised by a load."""
    names = re.findall(r"\(([a-z0-9-]+)\)", "\n".join(result.messages))
    return set(names) & ALARMS


def checks(result: CommandResult) -> set[str]:
    """The names of all checks in the verdicts of a sweep's cells."""
    return {
        reason["check"] for cell in result.cells.values() for reason in cell["verdict"]["reasons"]
    }


def write_app(command: Command, text: str) -> str:
    (command.folder / "made.py").write_text(textwrap.dedent(text))
    return "made:app"


def load(command: Command, url: str, *args: object) -> CommandResult:
    return command.run("load", url, "--duration", "2s", *args)


@needs_reference
def test_a_healthy_load_raises_no_alarm(command: Command) -> None:
    with reference("--hold", "1ms") as url:
        assert alarms(load(command, url, "--rate", 100)) == set()


@needs_reference
def test_v1_wrong_response_bodies_raise_an_alarm(command: Command) -> None:
    with reference("--fault", "wrong-body@every:20") as url:
        assert alarms(load(command, url, "--rate", 100, "--expect-regex", "^hello$")) == {
            "wrong-responses"
        }


@needs_reference
def test_v4_and_v9_a_server_that_stops_responding_raises_alarms(command: Command) -> None:
    with reference("--hold", "1ms", "--stall", "20s/60s+0s") as url:
        assert alarms(load(command, url, "--rate", 50, "--timeout", "300ms")) == {
            "dead-interval",
            "rate-not-reached",
        }


@needs_reference
def test_v6_a_server_without_keepalive_raises_an_alarm(command: Command) -> None:
    with reference("--requests-per-connection", 1) as url:
        assert alarms(load(command, url, "--rate", 50)) == {"no-keepalive"}
        assert alarms(load(command, url, "--rate", 50, "--keepalive", "off")) == set()


def test_v7_separate_writes_of_head_and_body_raise_an_alarm(command: Command) -> None:
    """Nagle's algorithm delays the body until the client acknowledges the head (delayed ACK)."""
    with CountingServer(TwoWrites) as server:
        result = load(command, server.url, "--connections", 2)
    if alarms(result) != {"nagle-delay"} and "run-queue-wait" in result.out:
        inconclusive(result.out.splitlines()[1])
    assert alarms(result) == {"nagle-delay"}


def test_v7_a_delay_of_every_fifth_response_raises_an_alarm(command: Command) -> None:
    """The alarm does not depend on the median, which is not delayed."""
    with CountingServer(SomeInTwoWrites) as server:
        result = load(command, server.url, "--connections", 2)
    if alarms(result) != {"nagle-delay"} and "run-queue-wait" in result.out:
        inconclusive(result.out.splitlines()[1])
    assert alarms(result) == {"nagle-delay"}
    assert "in 20 % of the responses" in result.err or "in 19 %" in result.err, result.err


@needs_reference
def test_stalls_raise_an_alarm_in_a_closed_loop_only(command: Command) -> None:
    with reference("--hold", "5ms", "--stall", "300ms/3s") as url:
        result = command.run("load", url, "--connections", 1, "--duration", "7s")
        assert alarms(result) == {"closed-loop-stalls"}, result.err

        result = command.run("load", url, "--rate", 100, "--duration", "4s")
        assert "closed-loop-stalls" not in alarms(result), result.err


@needs_reference
def test_v9_an_overload_raises_an_alarm(command: Command) -> None:
    """A server that needs 20 ms per request gets twice its capacity; the timeout is 1 s."""
    with reference("--hold", "20ms", "--servers", 1) as url:
        assert "rate-not-reached" in alarms(load(command, url, "--rate", 100, "--timeout", "1s"))


@needs_reference
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs a network namespace"
)
def test_v5_a_shortage_of_ports_raises_an_alarm(command: Command) -> None:
    """50 users keep one connection each in a network namespace with 60 ports."""
    script = f"""
        ip link set lo up && echo 40000 40059 > /proc/sys/net/ipv4/ip_local_port_range
        {BUILT} --listen 127.0.0.1:9000 --hold 20ms --no-stamps --for 20s & server=$!
        sleep 0.5
        {SCRIPT} load http://127.0.0.1:9000/ -c 50 -d 1s --source-addresses 127.0.0.1 --verbose
        kill $server
    """
    result = command.run(program=["unshare", "--net", "sh", "-c", script])

    assert "network-resources" in alarms(result), result.err


@needs_reference
def test_v5_a_shortage_of_file_descriptors_raises_an_alarm(command: Command) -> None:
    """100 concurrent requests need more file descriptors than the limit of 40, set during the
    load."""
    with reference("--hold", "1s") as url:
        running = command.start(
            "load", url, "--rate", 100, "--duration", "2s", "--max-connections", 90
        )
        until(lambda: "sending load" in running.err, "the load")
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (40, 40))
        result = running.end()

    assert "Traceback (most recent call last)" not in result.err, result.err
    command.require_no_leftovers()
    assert "network-resources" in alarms(result), result.err
    assert result.code == 98
    assert "invalid: client" in result.out


@needs_reference
def test_a_stalled_client_invalidates_its_own_load(command: Command) -> None:
    with reference("--hold", "1ms") as url:
        running = command.start("load", url, "--rate", 500, "--duration", "3s")
        until(lambda: "sending load" in running.err, "the load")
        time.sleep(1.0)
        os.kill(running.pid, signal.SIGSTOP)
        time.sleep(0.4)
        os.kill(running.pid, signal.SIGCONT)
        result = running.end()

    assert result.code == 98
    assert "client-stalls" in result.out
    assert "verdict: invalid: client" in result.out or "verdict: invalid: host" in result.out


class TestOnServers:
    """Servers of the catalogue, with defaults that have distorted published comparisons."""

    pytestmark: Sequence[pytest.MarkDecorator] = on_servers

    def test_v2_v3_more_connections_than_threads_raise_an_alarm(self, command: Command) -> None:
        """By default, cheroot serves 10 connections and queues 5; the others retry."""
        args = shlex.split("--servers cheroot --profile stock --connections 200 --timeout 3s")
        result = command.run("sweep", *args, *BRIEFLY)
        assert checks(result) & {"littles-law", "uneven-connections"}, checks(result)

    @pytest.mark.parametrize(
        ("server", "profile"), [("gunicorn-sync", "tuned"), ("uwsgi-http", "stock")]
    )
    def test_v6_a_probe_detects_a_server_without_keepalive(
        self, command: Command, server: str, profile: str
    ) -> None:
        """The load then opens a connection for each request, and the report says so."""
        args = ("--servers", server, "--profile", profile, "--keepalive", "on", "--rates", 50)
        result = command.run("sweep", *args, *BRIEFLY)

        (cell,) = result.cells.values()
        assert not cell["keepalive_honoured"]
        assert "no-keepalive" in checks(result)

        output = " ".join(result.out.split())
        no_keepalive = "has no keep-alive: it closes the connection after each response"
        (note,) = [note for note in cell["notes"] if no_keepalive in note]
        assert note not in output, "the check reports it once for all servers"
        assert (
            "the server closes the connection after each response although keep-alive was requested"
            in output
        )

    @pytest.mark.parametrize(
        ("server", "profile"), [("gunicorn-sync", "tuned"), ("uwsgi-http", "stock")]
    )
    def test_v6_a_load_detects_a_server_without_keepalive(
        self, command: Command, server: str, profile: Profile, tmp_path: Path
    ) -> None:
        """uWSGI's router closes connections without announcing it; the only evidence is that there
        are as many connections as responses."""
        with catalogue_server(server, profile, tmp_path) as url:
            assert "no-keepalive" in alarms(load(command, url, "--rate", 50, "--keepalive", "on"))

    def test_v7_a_body_in_pieces_without_tcp_nodelay_raises_an_alarm(
        self, command: Command
    ) -> None:
        """bjoern does not disable Nagle's algorithm, and the app sends no Content-Length."""
        (bjoern,) = load_catalogue().select(["bjoern"])
        if missing := missing_packages(bjoern.needs):
            pytest.skip(
                f"bjoern needs {' '.join(missing)}; as root run: {install_command(missing)}"
            )
        args = ("--servers", "bjoern", "--connections", 2, *TOLERATE_DISTURBANCE)
        result = command.run("sweep", write_app(command, STREAMS), *args, *BRIEFLY)
        if "nagle-delay" not in checks(result) and checks(result) & {
            "run-queue-wait",
            "steal",
            "contaminated",
        }:
            inconclusive(f"responses also waited for a CPU: {checks(result)}")

        assert "nagle-delay" in checks(result), checks(result)

    def test_v8_and_v9_too_few_threads_raise_alarms(self, command: Command) -> None:
        """One thread that sleeps 10 ms per request is offered twice its capacity, but uses at most
        a tenth of a CPU, even at 0.5 ms of CPU time per request."""
        args = shlex.split("--servers waitress --server-threads 1 --app-name sleep --rates 200")
        result = command.run("sweep", *args, *BRIEFLY)
        assert checks(result) >= {"idle-server", "rate-not-reached"}, checks(result)

    def test_an_app_that_caches_the_only_url_raises_an_alarm(self, command: Command) -> None:
        args = ("--servers", "waitress", "--rates", 100, *BRIEFLY)
        result = command.run("sweep", write_app(command, CACHES), *args)
        assert checks(result) & ALARMS == {"cached-response"}, checks(result)

        result = command.run(
            "sweep", write_app(command, HOLDS_ITS_THREAD), "-c", 1, *args[:2], *BRIEFLY
        )
        assert checks(result) & ALARMS == set(), checks(result)

    def test_a_memory_leak_raises_an_alarm(self, command: Command) -> None:
        args = ("--servers", "waitress", "--rates", 200, *BRIEFLY, "--duration", "8s")
        result = command.run("sweep", write_app(command, LEAKS), *args)
        assert checks(result) & ALARMS == {"memory-growth"}, checks(result)
        output = " ".join(result.out.split())
        assert "MiB in 8 s and did not level off (" in output, output

    def test_v10_a_server_that_is_slower_at_each_start_raises_an_alarm(
        self, command: Command
    ) -> None:
        args = shlex.split("--servers waitress --connections 4 --runs 2 --settle 0s")
        args += TOLERATE_DISTURBANCE
        result = command.run("sweep", write_app(command, SLOWER_EACH_START), *args, *BRIEFLY)
        assert result.code == 0, checks(result)
        assert "waitress at 4 connections: throughput varies by " in result.out, result.out
        assert "(run-spread)" in result.out

    def test_v11_throughput_independent_of_the_connections_raises_an_alarm(
        self, command: Command
    ) -> None:
        """One thread that sleeps 40 ms serves 25 requests per second; scheduling delays of about
        1 ms hardly change that."""
        args = shlex.split("--servers waitress --server-threads 1 --connections 4,8,16")
        args += TOLERATE_DISTURBANCE
        result = command.run("sweep", write_app(command, HOLDS_ITS_THREAD), *args, *BRIEFLY)

        assert result.code == 0, checks(result)

        goodputs = [cell["rate_result"]["goodput_per_s"] for cell in result.cells.values()]
        if max(goodputs) / min(goodputs) > 1 + FLAT_WITHIN:
            inconclusive(f"goodput was not constant: {goodputs} per second")

        (line,) = [line for line in result.out.splitlines() if "(flat-throughput)" in line]
        assert line.startswith("waitress-t1: ")
