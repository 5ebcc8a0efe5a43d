"""Single loads from Python and from both command lines, on a target that counts its requests."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import wsgiload
from wsgiload import LoadOptions, Ramp, Replay, RequestOptions, Steps
from wsgiload.documents.schema import load_schema

from .command import SCRIPT, Command, until
from .target import BODY, CountingServer, unused_port, wait_for_responses

LOADGEN = Path(__file__).parents[2] / "target" / "release" / "loadgen"
needs_loadgen = pytest.mark.skipif(
    not LOADGEN.exists(), reason="target/release/loadgen is not built"
)

CONSTANT = LoadOptions(arrivals="constant")
MAX_END_S = 1.5  # half a second, with a margin for a busy machine


def require_consistent_report(report: Mapping[str, Any]) -> None:
    """The document matches its schema, and its outcomes and intervals account for every request."""
    assert [
        error.json_path for error in Draft202012Validator(load_schema("load-1")).iter_errors(report)
    ] == []

    outcomes = dict(report["outcomes"])
    scheduled = outcomes.pop("scheduled")
    assert scheduled == sum(outcomes.values())
    for name in ("scheduled", "ok"):
        assert sum(interval[name] for interval in report["intervals"]) == report["outcomes"][name]


def reasons(report: Mapping[str, Any]) -> set[str]:
    """The checks that fired."""
    return {reason["check"] for reason in report["verdict"]["reasons"]}


def expected_code(report: dict[str, Any]) -> int:
    """The exit code that follows from the verdict, which depends on how quiet the host was."""
    return 98 if report["verdict"]["status"] == "invalid" else 0


# --- from Python


def test_an_open_loop_sends_every_scheduled_request(
    target: CountingServer,
) -> None:
    request = RequestOptions(expect_body=BODY)
    report = wsgiload.load(target.url, rate=500, duration=1, request=request)

    document = report.to_dict()
    require_consistent_report(document)
    assert report.outcomes["ok"] == report.outcomes["scheduled"] == target.response_count > 300
    assert document["status_codes"] == {"200": target.response_count}
    assert document["tool"]["name"] == "wsgiload"
    assert document["plan"]["load"]["open"]["rate_per_s"] == 500
    assert report.rate["offered_per_s"] == report.outcomes["scheduled"]


def test_the_views_of_a_report_agree_with_its_document(target: CountingServer) -> None:
    report = wsgiload.load(target.url, rate=300, duration=1)
    document = report.to_dict()

    for view, name in (
        (report.response_time, "response_time_ns"),
        (report.service_time, "service_time_ns"),
        (report.send_lag, "send_lag_ns"),
    ):
        assert view is not None
        assert view.count == document[name]["count"] == report.outcomes["ok"]
        assert view.quantile(0.5) == document[name]["quantiles"]["0.5"]
        assert view.quantile(0.9) == document[name]["quantiles"]["0.9"]
    assert report.verdict.status == document["verdict"]["status"]
    assert {reason.check for reason in report.verdict.reasons} == reasons(document)

    bounds = document["offered_quantiles_ns"]["0.5"]
    assert bounds["low"] == bounds["high"] == document["response_time_ns"]["quantiles"]["0.5"], (
        "nothing failed"
    )


def test_the_same_seed_schedules_the_same_arrivals(target: CountingServer) -> None:
    counts = [
        wsgiload.load(target.url, rate=400, duration=0.5, options=LoadOptions(seed=seed)).outcomes[
            "scheduled"
        ]
        for seed in (5, 5, 6, 7)
    ]
    assert counts[0] == counts[1]
    assert len(set(counts)) > 1, "different seeds schedule different arrivals"


def test_constant_arrivals_match_the_rate_exactly(target: CountingServer) -> None:
    report = wsgiload.load(target.url, rate=200, duration=0.5, options=CONSTANT)
    assert report.outcomes["scheduled"] == report.outcomes["ok"] == 100


HUNDREDTHS = [0.01 * arrival for arrival in range(200)]


@pytest.mark.parametrize(
    ("offered", "by_interval"),
    [
        ({"schedule": Ramp(50, 150), "duration": 2}, [75, 125]),
        ({"schedule": Ramp(50, 150, over=1), "duration": 2}, [100, 150]),
        ({"schedule": Steps([(120, 1), (20, 1)])}, [120, 20]),
        ({"schedule": Replay(HUNDREDTHS), "duration": 3}, [100, 100, 0]),
        ({"schedule": Replay(HUNDREDTHS, speed=2)}, [200]),
    ],
)
def test_a_varying_load_offers_its_rate_in_every_interval(
    target: CountingServer, offered: dict[str, Any], by_interval: list[int]
) -> None:
    report = wsgiload.load(target.url, options=CONSTANT, **offered)

    document = report.to_dict()
    require_consistent_report(document)
    assert [interval["scheduled"] for interval in document["intervals"]] == by_interval
    assert report.outcomes["ok"] == target.response_count == sum(by_interval)
    assert report.rate["offered_per_s"] == pytest.approx(sum(by_interval) / len(by_interval))
    assert ("mixed-rates" in reasons(document)) == (not isinstance(offered["schedule"], Replay))
    assert "arrival-count" not in reasons(document)


def test_a_closed_loop_uses_the_requested_number_of_connections(target: CountingServer) -> None:
    report = wsgiload.load(target.url, connections=3, duration=0.5)

    document = report.to_dict()
    require_consistent_report(document)
    assert document["rate"]["offered_per_s"] is None
    assert document["plan"]["load"] == {"closed": {"connections": 3, "think_time_ns": 0}}
    assert document["connections"]["opened"] == document["connections"]["peak"] == 3
    assert report.outcomes["ok"] > 0
    # Each user may have had one request in flight when the measurement ended.
    assert 0 <= target.response_count - report.outcomes["ok"] <= 3


def test_the_server_receives_the_specified_request(target: CountingServer) -> None:
    wsgiload.load(
        f"{target.url}x?y=1",
        connections=1,
        duration=0.1,
        request=RequestOptions(method="POST", body=b"data", headers={"X-Sent": "a b"}),
    )

    assert target.response_count > 0
    for method, path, headers, body in target.requests:
        assert (method, path, body) == ("POST", "/x?y=1", b"data")
        assert headers["x-sent"] == "a b"
        assert headers["host"] == target.url.removeprefix("http://").removesuffix("/")


def test_warm_up_requests_are_sent_but_not_measured(target: CountingServer) -> None:
    options = LoadOptions(warmup=0.5, arrivals="constant")
    report = wsgiload.load(target.url, rate=200, duration=0.5, options=options)
    assert report.outcomes["ok"] == 100
    assert target.response_count == 200


def test_without_keepalive_each_request_opens_a_connection(target: CountingServer) -> None:
    options = LoadOptions(arrivals="constant", keepalive="off")
    report = wsgiload.load(target.url, rate=100, duration=0.5, options=options)

    document = report.to_dict()
    assert document["connections"]["opened"] == document["connect_time_ns"]["count"] == 50
    assert document["connections"]["reused"] == 0


def test_an_unexpected_status_or_body_is_a_failure(target: CountingServer) -> None:
    missing = wsgiload.load(f"{target.url}missing", rate=100, duration=0.3, options=CONSTANT)
    assert (missing.outcomes["http_status"], missing.outcomes["ok"]) == (30, 0)
    assert missing.response_time is None

    accepted = wsgiload.load(
        f"{target.url}missing",
        rate=100,
        duration=0.3,
        options=CONSTANT,
        request=RequestOptions(expect_status=404),
    )
    assert accepted.outcomes["ok"] == 30

    wrong = wsgiload.load(
        target.url,
        rate=100,
        duration=0.3,
        options=CONSTANT,
        request=RequestOptions(expect_body=b"other\n"),
    )
    assert (wrong.outcomes["bad_body"], wrong.outcomes["ok"]) == (30, 0)


def test_timeouts_are_lower_bounds_of_the_quantiles(
    target: CountingServer,
) -> None:
    report = wsgiload.load(
        f"{target.url}never",
        rate=20,
        duration=0.5,
        options=LoadOptions(arrivals="constant", timeout=0.3),
    )

    document = report.to_dict()
    require_consistent_report(document)
    assert report.outcomes["timeout"] == report.outcomes["scheduled"] == 10
    bounds = document["offered_quantiles_ns"]["0.5"]
    assert bounds["high"] is None
    assert bounds["low"] >= 300_000_000


def test_without_a_listener_all_requests_are_refused_and_quantiles_are_unknown() -> None:
    report = wsgiload.load(f"http://127.0.0.1:{unused_port()}/", rate=100, duration=0.5)

    document = report.to_dict()
    require_consistent_report(document)
    assert report.outcomes["refused"] == report.outcomes["scheduled"] > 0
    assert document["offered_quantiles_ns"]["0.5"] == {"low": None, "high": None}
    assert document["response_time_ns"] is None
    assert report.response_time is None


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "cannot resolve nonsense"),
        ("ftp://127.0.0.1/", "only http:// and https:// are supported"),
        ("http://127.0.0.1/a\tb", "invalid uri character"),
        ("http://does-not-exist.invalid/", "cannot resolve does-not-exist.invalid"),
    ],
)
def test_an_unusable_url_is_a_usage_error(url: str, message: str) -> None:
    with pytest.raises(wsgiload.UsageError, match=message):
        wsgiload.load(url, rate=10, duration=1)


def test_a_load_can_be_awaited_while_other_tasks_run(target: CountingServer) -> None:
    async def load_beside_others() -> tuple[wsgiload.Report, int]:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(others())
        report = await wsgiload.aload(target.url, rate=100, duration=0.5, options=CONSTANT)
        task.cancel()
        return report, turns

    report, turns = asyncio.run(load_beside_others())
    assert report.outcomes["ok"] == 50
    assert turns > 10, "the load blocks the event loop"


def test_cancelling_the_task_stops_the_load(target: CountingServer) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(wsgiload.aload(target.url, rate=100, duration=60))
        while target.response_count < 5:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancel(), 30))


def test_a_stopped_load_reports_its_measurement_as_interrupted(
    target: CountingServer,
) -> None:
    """Requests without a response count as unfinished."""
    handle = wsgiload.start(f"{target.url}never", rate=200, duration=60, options=CONSTANT)
    with handle:
        assert not handle.wait(0.5)
        assert not handle.done()
        handle.stop()
        report = handle.result()

    assert handle.done()
    document = report.to_dict()
    require_consistent_report(document)
    assert (report.verdict.status, report.verdict.blame) == ("invalid", "method")
    assert "interrupted" in reasons(document)
    assert report.outcomes["unfinished"] == report.outcomes["scheduled"] > 0
    assert handle.result() is report, "result() returns the same report again"


POLICIES_DURING_A_LOAD = """
import os, sys
from pathlib import Path
import wsgiload

os.setpriority(os.PRIO_PROCESS, 0, 0)  # with another niceness, the generator keeps its policy
with wsgiload.start(sys.argv[1], rate=100, duration=60) as handle:
    handle.wait(0.5)
    for task in Path("/proc/self/task").iterdir():
        policy = os.sched_getscheduler(int(task.name))
        print((task / "comm").read_text().strip(), policy == os.SCHED_RR)
    handle.stop()
    print("reported", handle.result().document.client.scheduling == "realtime")
"""


def can_use_real_time_priority() -> bool:
    """Whether a child process may use real-time priority and has more than one core."""
    script = (
        "import os; os.setpriority(os.PRIO_PROCESS, 0, 0); "
        "os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    )
    result = subprocess.run([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    return result.returncode == 0 and len(os.sched_getaffinity(0)) > 1


@pytest.mark.skipif(
    not can_use_real_time_priority(), reason="real-time priority is not permitted here"
)
def test_only_the_generator_thread_of_a_python_program_has_real_time_priority(
    target: CountingServer,
) -> None:
    words = [sys.executable, "-c", POLICIES_DURING_A_LOAD, target.url]
    output = subprocess.run(words, capture_output=True, text=True, check=True).stdout

    is_real_time = dict(line.rsplit(" ", 1) for line in output.splitlines())
    assert is_real_time.pop("loadgen-0") == is_real_time.pop("reported") == "True"
    assert set(is_real_time.values()) == {"False"}


def test_leaving_the_block_stops_the_load(target: CountingServer) -> None:
    with wsgiload.start(target.url, rate=100, duration=60) as handle:
        wait_for_responses(target, 5)
    assert handle.done()


# --- from the command line


def test_the_command_writes_the_same_document(target: CountingServer, command: Command) -> None:
    result = command.run("load", target.url, "-R", 500, "-d", "1s", "--json")

    report = json.loads(result.out)
    require_consistent_report(report)
    assert result.code == expected_code(report)
    assert report["outcomes"]["ok"] == target.response_count
    assert report["tool"]["name"] == "wsgiload"
    assert result.err.splitlines() == [f"sending load to {target.url} …"]


def test_the_command_shows_a_table(target: CountingServer, command: Command) -> None:
    result = command.run("load", target.url, "-c", 2, "-d", "300ms", "--quiet")
    assert result.code in (0, 98)
    assert result.err == ""
    for word in ("response time", "service time", "p99", "requests: scheduled ", ", ok "):
        assert word in result.out


def test_the_command_also_runs_as_a_module(target: CountingServer, command: Command) -> None:
    words = ("load", target.url, "-c", 1, "-d", "100ms", "--json", "-", "--quiet")
    result = command.run(*words, program=[sys.executable, "-m", "wsgiload"])
    require_consistent_report(json.loads(result.out))


def test_a_failed_threshold_is_named_and_gives_exit_code_99_if_the_measurement_is_valid(
    target: CountingServer, command: Command
) -> None:
    load = ("load", target.url, "-R", 100, "-d", "500ms", "--json", "out.json")
    thresholds = ("--threshold", "goodput>=1000000", "--threshold", "error_rate<=0")
    result = command.run(*load, *thresholds)

    report = json.loads((command.folder / "out.json").read_text())
    assert result.code == (expected_code(report) or 99)
    complaints = [line for line in result.messages if not line.startswith("wsgiload: V")]
    assert complaints == ["wsgiload: threshold goodput>=1000000 failed"]


def test_a_threshold_with_too_few_requests_is_undecided_and_gives_exit_code_98(
    target: CountingServer, command: Command
) -> None:
    words = ("load", target.url, "-R", 3, "-d", "1s", "--arrivals", "constant")
    result = command.run(*words, "--threshold", "p99.9<500ms")
    assert result.code == 98
    (complaint,) = [line for line in result.messages if "threshold" in line]
    assert complaint.startswith(
        "wsgiload: threshold p99.9<500ms undecided: p99.9 needs 10,000 requests"
    )


@pytest.mark.parametrize("way", ["url", "no-scheme", "connect-to"])
def test_a_refused_connection_ends_a_load_at_once(command: Command, way: str) -> None:
    place = f"127.0.0.1:{unused_port()}"
    words = {
        "url": [f"http://{place}/"],
        "no-scheme": [place],
        "connect-to": ["http://app.example/", "--connect-to", place],
    }
    began_s = time.monotonic()
    result = command.run("load", *words[way], "-R", 100, "-d", "60s", "--json")

    assert time.monotonic() - began_s < 30
    assert (result.code, result.out) == (97, "")
    (line,) = result.err.splitlines()
    assert line.startswith("wsgiload: nothing listens on ")
    assert line.endswith("; start the server, or correct the address")
    assert place in line


def test_a_bad_url_is_one_line_and_exit_code_2(command: Command) -> None:
    result = command.run("load", "ftp://nonsense/", "-R", 10, "--quiet")
    assert result.code == 2
    assert result.out == ""
    assert result.err.splitlines() == [
        'wsgiload: plan: url "ftp://nonsense/": only http:// and https:// are supported'
    ]


def test_a_closed_stderr_does_not_affect_the_load(target: CountingServer, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    load = [str(SCRIPT), "load", target.url, "-R", "100", "-d", "300ms"]
    result = subprocess.run(
        [*load, "--think-time", "1s", "--json", "-"],
        stdout=subprocess.PIPE,
        stderr=writing,
        check=False,
        timeout=60,
        cwd=tmp_path,
    )
    os.close(writing)

    report = json.loads(result.stdout)
    require_consistent_report(report)
    assert result.returncode == expected_code(report)


def test_ctrl_c_gives_exit_code_130_and_a_partial_report(
    target: CountingServer, command: Command
) -> None:
    running = command.start("load", target.url, "-R", 200, "-d", "60s", "--json", "out.json")
    wait_for_responses(target, 50)
    took_s = running.press_ctrl_c()
    result = running.end()

    assert took_s < MAX_END_S
    assert result.code == 130
    assert "Traceback" not in result.err

    report = json.loads((command.folder / "out.json").read_text())
    require_consistent_report(report)
    assert "interrupted" in reasons(report)
    assert report["outcomes"]["ok"] >= 50
    command.require_no_leftovers()


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_act_like_ctrl_c(
    target: CountingServer, command: Command, signal_number: signal.Signals
) -> None:
    running = command.start(
        "load", target.url, "-R", 200, "-d", "60s", "--json", "out.json", "--quiet"
    )
    wait_for_responses(target, 20)
    os.kill(running.pid, signal_number)
    assert running.end().code == 130
    assert "interrupted" in reasons(json.loads((command.folder / "out.json").read_text()))


def test_ctrl_c_ends_a_load_of_a_python_program_within_half_a_second(
    target: CountingServer, command: Command
) -> None:
    text = f"import wsgiload; wsgiload.load({target.url!r}, rate=200, duration=30)"
    running = command.start("-c", text, program=[sys.executable])
    wait_for_responses(target, 20)
    took_s = running.press_ctrl_c()
    result = running.end()

    assert took_s < MAX_END_S
    assert result.code in (130, -signal.SIGINT), (
        "either exit status of an interrupted Python program"
    )
    assert result.err.strip().endswith("KeyboardInterrupt")


def test_an_interrupt_during_result_stops_the_load(
    target: CountingServer, command: Command
) -> None:
    """The program catches the interrupt and continues, but the load stops."""
    text = (
        "import sys, wsgiload\n"
        f"handle = wsgiload.start({target.url!r}, rate=200, duration=30)\n"
        "try:\n    handle.result()\nexcept KeyboardInterrupt:\n    print(handle.wait(10), "
        "handle.done())\n"
    )

    running = command.start("-c", text, program=[sys.executable])
    wait_for_responses(target, 20)
    running.press_ctrl_c()
    result = running.end()

    assert (result.code, result.out) == (0, "True True\n")


# --- the standalone generator


@needs_loadgen
def test_the_generator_rejects_a_report_path_that_is_not_writable(
    target: CountingServer, command: Command
) -> None:
    for path, reason in (
        ("gone/out.json", "directory gone does not exist; create it"),
        (".", "it is a directory"),
    ):
        result = command.run(
            target.url, "-R", 200, "-d", "60s", "--json", path, program=[str(LOADGEN)]
        )
        assert (result.code, result.out) == (2, "")
        assert f"cannot write {path}: {reason}" in result.err
    assert target.response_count == 0


@needs_loadgen
def test_the_generator_writes_the_same_document(target: CountingServer) -> None:
    words = [str(LOADGEN), target.url, "-R", "500", "-d", "1s", "--json", "-", "--quiet"]
    result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

    report = json.loads(result.stdout)
    require_consistent_report(report)
    assert result.returncode == expected_code(report)
    assert report["outcomes"]["ok"] == target.response_count


@needs_loadgen
def test_command_and_generator_schedule_the_same_arrivals_for_a_seed(
    target: CountingServer, command: Command
) -> None:
    words = (target.url, "-R", "300", "-d", "500ms", "--seed", "9", "--json", "-", "--quiet")
    ours = json.loads(command.run("load", *words).out)
    theirs = json.loads(
        subprocess.run([LOADGEN, *words], capture_output=True, check=False, timeout=60).stdout
    )

    assert ours["outcomes"]["scheduled"] == theirs["outcomes"]["scheduled"]
    assert ours["plan"] == theirs["plan"]


@needs_loadgen
@pytest.mark.parametrize(
    "words",
    [
        ["--ramp", "100:300", "-d", "500ms"],
        ["--ramp", "0:300@400ms", "--warmup", "100ms"],
        ["--steps", "300@200ms,0@100ms,100@200ms", "--threads", "2"],
        ["--replay", "trace.txt", "--replay-speed", "1.7", "--warmup", "50ms"],
    ],
)
def test_command_and_generator_interpret_schedules_alike(
    target: CountingServer, command: Command, words: list[str]
) -> None:
    (command.folder / "trace.txt").write_text(
        "# bursts\n" + "".join(f"{k // 3 * 0.0301}\n" for k in range(60))
    )

    words = [target.url, *words, "--seed", "9", "--json", "-", "--quiet"]
    ours = json.loads(command.run("load", *words).out)
    generator = subprocess.run(
        [LOADGEN, *words], capture_output=True, check=False, timeout=60, cwd=command.folder
    )
    theirs = json.loads(generator.stdout)

    require_consistent_report(theirs)
    assert ours["plan"] == theirs["plan"]
    assert ours["outcomes"]["scheduled"] == theirs["outcomes"]["scheduled"] > 10
    assert ours["rate"]["offered_per_s"] == theirs["rate"]["offered_per_s"]


@needs_loadgen
def test_ctrl_c_ends_the_generator_with_exit_code_130(
    target: CountingServer, command: Command
) -> None:
    running = command.start(
        target.url, "-R", 200, "-d", "60s", "--json", "out.json", program=[str(LOADGEN)]
    )
    wait_for_responses(target, 20)
    running.press_ctrl_c()

    assert running.end().code == 130
    until((command.folder / "out.json").exists, "a partial report")
    require_consistent_report(json.loads((command.folder / "out.json").read_text()))


@needs_loadgen
def test_the_generator_writes_its_report_after_sigterm(
    target: CountingServer, command: Command
) -> None:
    running = command.start(
        target.url, "-R", 200, "-d", "60s", "--json", "out.json", program=[str(LOADGEN)]
    )
    wait_for_responses(target, 20)
    os.kill(running.pid, signal.SIGTERM)
    assert running.end().code == 130
    require_consistent_report(json.loads((command.folder / "out.json").read_text()))


@needs_loadgen
def test_the_generator_survives_a_closed_stderr(target: CountingServer) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [str(LOADGEN), target.url, "-R", "200", "-d", "200ms", "--on-busy", "queue"]
    result = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=writing, text=True, check=False, timeout=60
    )
    os.close(writing)

    report = json.loads(result.stdout)
    assert (result.returncode, report["outcomes"]["ok"]) == (
        expected_code(report),
        target.response_count,
    )


@needs_loadgen
@pytest.mark.parametrize(
    ("limit", "load", "fix"),
    [
        (64, "-R 100", "raise the limit with: ulimit -n 65"),
        (164, "-c 250", "use --processes 3"),
        (164, "-c 250 --processes 2", "use --processes 3"),
        (164, "-c 250 --requests 1000", "raise the limit with: ulimit -n 314"),
        (68, "-c 12", "raise the limit with: ulimit -n 76"),
    ],
)
def test_too_few_file_descriptors_are_an_error_with_its_fix(
    target: CountingServer, limit: int, load: str, fix: str
) -> None:
    shell = f"ulimit -n {limit}; exec {LOADGEN} {target.url} {load} -d 100ms"
    result = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, timeout=60
    )
    assert (result.returncode, target.response_count) == (2, 0)
    assert result.stderr.strip().endswith(fix)


def test_a_closed_stdout_does_not_prevent_the_report(
    target: CountingServer, command: Command
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    load = [str(SCRIPT), "load", target.url, "-R", "200", "-d", "200ms", "--json", "out.json"]
    result = subprocess.run(
        [*load, "--threshold", "goodput>=1000000"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        cwd=command.folder,
    )
    os.close(writing)

    report = json.loads((command.folder / "out.json").read_text())
    require_consistent_report(report)
    assert result.returncode == (expected_code(report) or 99), "the threshold is still evaluated"
    assert "threshold goodput>=1000000 failed" in result.stderr and "Traceback" not in result.stderr


def test_a_load_writes_its_page(command: Command, target: CountingServer) -> None:
    words = ("-R", 300, "-d", "2s", "--header", "Authorization: Bearer hunter2")
    result = command.run("load", target.url, *words, "--html", "load.html")

    assert result.code in (0, 98)
    page = (command.folder / "load.html").read_text(encoding="utf-8")
    assert f"How does {target.url} respond at" in page
    assert 'id="time-0"' in page and 'id="spectrum"' in page
    assert "hunter2" not in page


def test_a_page_path_that_is_not_writable_is_refused_before_the_load(
    command: Command, target: CountingServer
) -> None:
    result = command.run("load", target.url, "-R", 300, "--html", "nowhere/load.html")
    assert result.code == 2 and "does not exist" in result.err
    assert target.response_count == 0
