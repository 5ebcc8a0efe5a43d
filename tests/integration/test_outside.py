"""The generator's account of a load against those of the app (C17), the kernel (C18) and a server
that counts."""

from __future__ import annotations

import textwrap
import time
import urllib.request
from typing import Any

import pytest

import wsgiload
from wsgiload.analysis.ground_truth import max_sent_requests, total_responses

from .command import Command, CommandResult, until
from .target import CountingServer, unused_port

BRIEFLY = ("--duration", "2s", "--warmup", "500ms", "--cooldown", "200ms", "--quiet")
OF_A_USER = """
    def app(environ, start_response):
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
"""


def only_cell(done: CommandResult) -> dict[str, Any]:
    (cell,) = done.cells.values()
    return cell


def checks_of(cell: dict[str, Any]) -> dict[str, str]:
    """The names of all that was found, with their messages."""
    return {reason["check"]: reason["message"] for reason in cell["verdict"]["reasons"]}


@pytest.mark.parametrize("keepalive", ["on", "off", 7])
def test_the_report_tells_what_was_sent_and_answered_in_all_phases(
    target: CountingServer, keepalive: Any
) -> None:
    options = wsgiload.LoadOptions(warmup=0.5, keepalive=keepalive)
    report = wsgiload.load(target.url, rate=300, duration=1.0, options=options).document
    assert report.outcomes.ok < target.response_count, "the warm-up was answered, too"
    assert total_responses(report) == target.response_count == max_sent_requests(report)


def test_a_load_says_how_well_it_knows_a_quantile(command: Command, target: CountingServer) -> None:
    done = command.run(
        "load", target.url, "--rate", 100, "--duration", "1s", "--precision", "p50:5%"
    )
    (told,) = [line for line in done.messages if "p50" in line]
    assert told.startswith(
        "wsgiload: precision of p50 not reached: a confidence interval needs at least "
    )


def test_a_load_goes_on_for_a_quantile_and_says_where_it_never_knew_it(
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
    done = command.run("load", target.url, *words)
    assert any(
        line.startswith("wsgiload: precision of p99.9 not reached: ") for line in done.messages
    )


@pytest.mark.servers
@pytest.mark.limits
class TestOfServers:
    """Of the catalogue, inside limits."""

    @pytest.mark.parametrize("server", ["waitress", "gunicorn-gthread", "uwsgi-http", "fastwsgi"])
    def test_bundled_apps_count_in_every_worker_what_the_generator_sent(
        self, command: Command, server: str
    ) -> None:
        words = ("--servers", server, "--workers", 2, "--rates", 200, "--precision", "5%")
        cell = only_cell(command.run("sweep", *words, *BRIEFLY))
        assert "app-calls" not in checks_of(cell), checks_of(cell)
        assert "app-calls" not in {one["check"] for one in cell["not_checked"]}
        assert cell["external_counts"]["requests_seen"] > cell["outcomes"]["scheduled"], (
            "the warm-up was seen, too"
        )
        assert None not in cell["external_counts"].values()
        assert any("p99" in note for note in cell["notes"])

    def test_an_app_of_the_users_does_not_count_and_the_cell_says_so(
        self, command: Command
    ) -> None:
        (command.folder / "made.py").write_text(textwrap.dedent(OF_A_USER))
        cell = only_cell(
            command.run("sweep", "made:app", "--servers", "wsgiref", "--rates", 50, *BRIEFLY)
        )
        (why,) = [one["reason"] for one in cell["not_checked"] if one["check"] == "app-calls"]
        assert "the app did not count its requests" in why
        assert cell["external_counts"]["requests_seen"] is None

    def test_c17_requests_that_the_generator_did_not_send(self, command: Command) -> None:
        """Somebody else asks the server meanwhile: whose times these are, nobody knows."""
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
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
                answer.read()
        done = running.end()
        cell = only_cell(done)
        assert done.code == 98
        assert cell["verdict"]["status"] == "invalid"
        assert "the app counted" in checks_of(cell)["app-calls"]

    def test_c18_connections_that_the_kernel_turned_away(self, command: Command) -> None:
        """Two hundred connections at once to a queue of five."""
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
        cell = only_cell(command.run("sweep", *words, *BRIEFLY))
        assert cell["external_counts"]["listen_drops"] > 0
        assert "retransmissions add 1, 3 or 7 s" in checks_of(cell)["kernel-drops"]
