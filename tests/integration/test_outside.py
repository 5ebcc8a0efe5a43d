"""The generator's counts compared with those of the app (check ``app-calls``), the kernel
(``kernel-drops``) and a counting server."""

from __future__ import annotations

import textwrap
import time
import urllib.request
from typing import Any

import pytest

import wsgiload
from wsgiload.findings.external_counts import max_sent_requests, total_responses

from .command import Command, CommandResult, until
from .target import CountingServer, unused_port

BRIEFLY = ("--duration", "2s", "--warmup", "500ms", "--cooldown", "200ms", "--quiet")
USER_APP = """
    def app(environ, start_response):
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
"""


def only_cell(result: CommandResult) -> dict[str, Any]:
    (cell,) = result.cells.values()
    return cell


def checks_of(cell: dict[str, Any]) -> dict[str, str]:
    """The checks that fired, with their messages."""
    return {reason["check"]: reason["message"] for reason in cell["verdict"]["reasons"]}


@pytest.mark.parametrize("keepalive", ["on", "off", 7])
def test_the_report_counts_requests_and_responses_of_all_phases(
    target: CountingServer, keepalive: Any
) -> None:
    options = wsgiload.LoadOptions(warmup=0.5, keepalive=keepalive)
    report = wsgiload.load(target.url, rate=300, duration=1.0, options=options).document
    assert report.outcomes.ok < target.response_count, "the server also counts the warm-up"
    assert total_responses(report) == target.response_count == max_sent_requests(report)


def test_a_load_warns_if_it_does_not_reach_the_precision(
    command: Command, target: CountingServer
) -> None:
    result = command.run(
        "load", target.url, "--rate", 100, "--duration", "1s", "--precision", "p50:5%"
    )
    (complaint,) = [line for line in result.messages if "p50" in line]
    assert complaint.startswith(
        "wsgiload: precision of p50 not reached: a confidence interval needs at least "
    )


def test_a_load_is_extended_until_max_duration_for_the_precision(
    command: Command, target: CountingServer
) -> None:
    options = wsgiload.LoadOptions(arrivals="constant", precision="p99.9:1%", max_duration=2.5)
    report = wsgiload.load(target.url, rate=400, duration=1.0, options=options).to_dict()

    assert (report["measured_ns"], report["outcomes"]["scheduled"], target.response_count) == (
        2 * 10**9,
        800,
        800,
    )
    assert report["precision"] == {"half_width": None, "is_reached": False}

    words = ("--rate", 400, "--duration", "1s", "--precision", "p99.9:1%", "--max-duration", "2.5s")
    result = command.run("load", target.url, *words)
    assert any(
        line.startswith("wsgiload: precision of p99.9 not reached: ") for line in result.messages
    )


@pytest.mark.servers
@pytest.mark.limits
class TestOfServers:
    """Servers of the catalogue, with limits."""

    @pytest.mark.parametrize("server", ["waitress", "gunicorn-gthread", "uwsgi-http", "fastwsgi"])
    def test_the_workers_of_bundled_apps_count_all_requests(
        self, command: Command, server: str
    ) -> None:
        words = ("--servers", server, "--workers", 2, "--rates", 200, "--precision", "5%")
        cell = only_cell(command.run("sweep", *words, *BRIEFLY))

        assert "app-calls" not in checks_of(cell), checks_of(cell)
        assert "app-calls" not in {check["check"] for check in cell["not_checked"]}
        assert cell["external_counts"]["requests_seen"] > cell["outcomes"]["scheduled"], (
            "the app also counts the warm-up"
        )
        assert None not in cell["external_counts"].values()
        assert any("p99" in note for note in cell["notes"])

    def test_a_user_app_does_not_count_and_the_check_is_listed_as_not_done(
        self, command: Command
    ) -> None:
        (command.folder / "made.py").write_text(textwrap.dedent(USER_APP))
        cell = only_cell(
            command.run("sweep", "made:app", "--servers", "wsgiref", "--rates", 50, *BRIEFLY)
        )

        (reason,) = [
            check["reason"] for check in cell["not_checked"] if check["check"] == "app-calls"
        ]
        assert "the app did not count its requests" in reason
        assert cell["external_counts"]["requests_seen"] is None

    def test_app_calls_detects_requests_of_another_client(self, command: Command) -> None:
        """Another client sends requests during the load, which makes the times meaningless."""
        port = unused_port()
        running = command.start(
            "sweep", "--servers", "waitress", "--rates", 100, "--port", port, *BRIEFLY
        )
        until(
            lambda: any("wsgiload.loads._driver" in line for line in command.processes().values()),
            "the load",
        )

        time.sleep(1.0)
        for _ in range(20):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as response:
                response.read()
        result = running.end()

        cell = only_cell(result)
        assert result.code == 98
        assert cell["verdict"]["status"] == "invalid"
        assert "the app counted" in checks_of(cell)["app-calls"]

    def test_kernel_drops_detects_dropped_connections(self, command: Command) -> None:
        """200 simultaneous connections overflow an accept queue of five."""
        server = ("--servers", "cheroot", "--profile", "stock")
        load = ("--connections", 200, "--timeout", "3s")
        cell = only_cell(command.run("sweep", *server, *load, *BRIEFLY))

        assert cell["external_counts"]["listen_drops"] > 0
        assert "retransmissions add 1, 3 or 7 s" in checks_of(cell)["kernel-drops"]
