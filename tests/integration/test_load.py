"""One load from Python and from both command lines, against a target that counts for itself."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
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
CLEARLY_HALF_A_SECOND_S = 1.5  # what half a second may become on a busy machine


def require_whole(report: Mapping[str, Any]) -> None:
    """The document keeps its schema, and the outcomes and the intervals account for every
    arrival."""
    assert [
        error.json_path for error in Draft202012Validator(load_schema("load-2")).iter_errors(report)
    ] == []
    outcomes = dict(report["outcomes"])
    scheduled = outcomes.pop("scheduled")
    assert scheduled == sum(outcomes.values())
    for name in ("scheduled", "ok"):
        assert sum(interval[name] for interval in report["intervals"]) == report["outcomes"][name]


def reasons(report: Mapping[str, Any]) -> set[str]:
    return {reason["check"] for reason in report["verdict"]["reasons"]}


def expected_code(report: dict[str, Any]) -> int:
    """Whether the host was quiet enough is the host's business; the code must say what the verdict
    says."""
    return 98 if report["verdict"]["status"] == "invalid" else 0


# --- from Python


def test_an_open_loop_sends_what_was_scheduled_and_counts_as_the_server_does(
    target: CountingServer,
) -> None:
    request = RequestOptions(expect_body=BODY)
    report = wsgiload.load(target.url, rate=500, duration=1, request=request)
    told = report.to_dict()
    require_whole(told)
    assert report.outcomes["ok"] == report.outcomes["scheduled"] == target.response_count > 300
    assert told["status_codes"] == {"200": target.response_count}
    assert told["tool"]["name"] == "wsgiload"
    assert told["plan"]["load"]["open"]["rate_per_s"] == 500
    assert report.rate["offered_per_s"] == report.outcomes["scheduled"]


def test_the_views_of_a_report_agree_with_its_document(target: CountingServer) -> None:
    report = wsgiload.load(target.url, rate=300, duration=1)
    told = report.to_dict()
    for view, name in (
        (report.response_time, "response_time_ns"),
        (report.service_time, "service_time_ns"),
        (report.send_lag, "send_lag_ns"),
    ):
        assert view is not None
        assert view.count == told[name]["count"] == report.outcomes["ok"]
        assert view.quantile(0.5) == told[name]["quantiles"]["0.5"]
        assert view.quantile(0.9) == told[name]["quantiles"]["0.9"]
    assert report.verdict.status == told["verdict"]["status"]
    assert {reason.check for reason in report.verdict.reasons} == reasons(told)
    bounds = told["offered_quantiles_ns"]["0.5"]
    assert bounds["low"] == bounds["high"] == told["response_time_ns"]["quantiles"]["0.5"], (
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
    assert len(set(counts)) > 1, "three seeds, one number of arrivals"


def test_constant_arrivals_are_exactly_as_many_as_the_rate_says(target: CountingServer) -> None:
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
def test_a_load_that_varies_offers_what_was_asked_for_second_by_second(
    target: CountingServer, offered: dict[str, Any], by_interval: list[int]
) -> None:
    report = wsgiload.load(target.url, options=CONSTANT, **offered)
    told = report.to_dict()
    require_whole(told)
    assert [interval["scheduled"] for interval in told["intervals"]] == by_interval
    assert report.outcomes["ok"] == target.response_count == sum(by_interval)
    assert report.rate["offered_per_s"] == pytest.approx(sum(by_interval) / len(by_interval))
    assert ("mixed-rates" in reasons(told)) == (not isinstance(offered["schedule"], Replay))
    assert "arrival-count" not in reasons(told)


def test_a_closed_loop_never_has_more_users_than_asked_for(target: CountingServer) -> None:
    report = wsgiload.load(target.url, connections=3, duration=0.5)
    told = report.to_dict()
    require_whole(told)
    assert told["rate"]["offered_per_s"] is None
    assert told["plan"]["load"] == {"closed": {"connections": 3, "think_time_ns": 0}}
    assert told["connections"]["opened"] == told["connections"]["peak"] == 3
    assert report.outcomes["ok"] > 0
    # Each user may have had one request under way when the measurement ended.
    assert 0 <= target.response_count - report.outcomes["ok"] <= 3


def test_the_request_is_the_one_asked_for(target: CountingServer) -> None:
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


def test_warm_up_is_sent_and_not_measured(target: CountingServer) -> None:
    options = LoadOptions(warmup=0.5, arrivals="constant")
    report = wsgiload.load(target.url, rate=200, duration=0.5, options=options)
    assert report.outcomes["ok"] == 100
    assert target.response_count == 200


def test_without_keepalive_each_request_has_a_connection_of_its_own(target: CountingServer) -> None:
    options = LoadOptions(arrivals="constant", keepalive="off")
    report = wsgiload.load(target.url, rate=100, duration=0.5, options=options)
    told = report.to_dict()
    assert told["connections"]["opened"] == told["connect_time_ns"]["count"] == 50
    assert told["connections"]["reused"] == 0


def test_another_status_or_body_is_no_right_answer(target: CountingServer) -> None:
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


def test_an_answer_that_never_comes_is_a_timeout_and_bounds_the_quantiles_from_below(
    target: CountingServer,
) -> None:
    report = wsgiload.load(
        f"{target.url}never",
        rate=20,
        duration=0.5,
        options=LoadOptions(arrivals="constant", timeout=0.3),
    )
    told = report.to_dict()
    require_whole(told)
    assert report.outcomes["timeout"] == report.outcomes["scheduled"] == 10
    bounds = told["offered_quantiles_ns"]["0.5"]
    assert bounds["high"] is None
    assert bounds["low"] >= 300_000_000


def test_a_url_where_nobody_listens_is_refused_every_time_and_no_quantile_is_made_up() -> None:
    report = wsgiload.load(f"http://127.0.0.1:{unused_port()}/", rate=100, duration=0.5)
    told = report.to_dict()
    require_whole(told)
    assert report.outcomes["refused"] == report.outcomes["scheduled"] > 0
    assert told["offered_quantiles_ns"]["0.5"] == {"low": None, "high": None}
    assert told["response_time_ns"] is None
    assert report.response_time is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "only http:// and https:// are supported"),
        ("ftp://127.0.0.1/", "only http:// and https:// are supported"),
        ("http://127.0.0.1/a b", "invalid uri character"),
        ("http://does-not-exist.invalid/", "cannot resolve does-not-exist.invalid"),
    ],
)
def test_a_url_that_cannot_be_driven_is_a_usage_error(url: str, says: str) -> None:
    with pytest.raises(wsgiload.UsageError, match=says):
        wsgiload.load(url, rate=10, duration=1)


def test_a_load_can_be_awaited_while_other_tasks_run(target: CountingServer) -> None:
    async def both() -> tuple[wsgiload.Report, int]:
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

    report, turns = asyncio.run(both())
    assert report.outcomes["ok"] == 50
    assert turns > 10, "the event loop stood still"


def test_cancelling_the_task_stops_the_load(target: CountingServer) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(wsgiload.aload(target.url, rate=100, duration=60))
        while target.response_count < 5:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancel(), 30))


def test_a_load_that_is_stopped_reports_what_it_measured_and_that_it_was_interrupted(
    target: CountingServer,
) -> None:
    """Requests that were due and not answered are accounted for as unfinished."""
    handle = wsgiload.start(f"{target.url}never", rate=200, duration=60, options=CONSTANT)
    with handle:
        assert not handle.wait(0.5)
        assert not handle.done()
        handle.stop()
        report = handle.result()
    assert handle.done()
    told = report.to_dict()
    require_whole(told)
    assert (report.verdict.status, report.verdict.blame) == ("invalid", "method")
    assert "interrupted" in reasons(told)
    assert report.outcomes["unfinished"] == report.outcomes["scheduled"] > 0
    assert handle.result() is report, "a report may be asked for again"


POLICIES_DURING_A_LOAD = """
import os, sys
from pathlib import Path
import wsgiload

os.setpriority(os.PRIO_PROCESS, 0, 0)  # a niceness that was chosen would be kept
with wsgiload.start(sys.argv[1], rate=100, duration=60) as handle:
    handle.wait(0.5)
    for task in Path("/proc/self/task").iterdir():
        policy = os.sched_getscheduler(int(task.name))
        print((task / "comm").read_text().strip(), policy == os.SCHED_RR)
    handle.stop()
    print("reported", handle.result().document.client.scheduling == "realtime")
"""


def may_be_real_time() -> bool:
    """Whether a child process may take real-time priority, and has a core to spare."""
    script = (
        "import os; os.setpriority(os.PRIO_PROCESS, 0, 0); "
        "os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    )
    tried = subprocess.run([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    return tried.returncode == 0 and len(os.sched_getaffinity(0)) > 1


@pytest.mark.skipif(not may_be_real_time(), reason="real-time priority is not permitted here")
def test_only_the_generator_of_a_python_program_has_real_time_priority(
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
    done = command.run("load", target.url, "-R", 500, "-d", "1s", "--json")
    report = json.loads(done.out)
    require_whole(report)
    assert done.code == expected_code(report)
    assert report["outcomes"]["ok"] == target.response_count
    assert report["tool"]["name"] == "wsgiload"
    assert done.err.splitlines() == [f"loading {target.url} …"]


def test_the_command_shows_a_table(target: CountingServer, command: Command) -> None:
    done = command.run("load", target.url, "-c", 2, "-d", "300ms", "--quiet")
    assert done.code in (0, 98)
    assert done.err == ""
    for word in ("response time", "service time", "p99", "requests: scheduled ", ", ok "):
        assert word in done.out


def test_it_also_runs_as_a_module(target: CountingServer, command: Command) -> None:
    words = ("load", target.url, "-c", 1, "-d", "100ms", "--json", "-", "--quiet")
    done = command.run(*words, program=[sys.executable, "-m", "wsgiload"])
    require_whole(json.loads(done.out))


def test_a_threshold_that_fails_is_named_and_ends_with_99_where_the_measurement_stands(
    target: CountingServer, command: Command
) -> None:
    words = (
        "load",
        target.url,
        "-R",
        100,
        "-d",
        "500ms",
        "--json",
        "out.json",
        "--threshold",
        "goodput>=1000000",
    )
    done = command.run(*words, "--threshold", "error_rate<=0")
    report = json.loads((command.folder / "out.json").read_text())
    assert done.code == (expected_code(report) or 99)
    told = [line for line in done.messages if not line.startswith("wsgiload: V")]
    assert told == ["wsgiload: threshold goodput>=1000000 failed"]


def test_a_threshold_that_three_requests_cannot_decide_ends_with_98(
    target: CountingServer, command: Command
) -> None:
    words = ("load", target.url, "-R", 3, "-d", "1s", "--arrivals", "constant")
    done = command.run(*words, "--threshold", "p99.9<500ms")
    assert done.code == 98
    (told,) = [line for line in done.messages if "threshold" in line]
    assert told.startswith("wsgiload: threshold p99.9<500ms undecided: p99.9 needs 10,000 requests")


def test_a_target_that_refuses_everything_is_97(command: Command) -> None:
    done = command.run(
        "load", f"http://127.0.0.1:{unused_port()}/", "-R", 100, "-d", "300ms", "--json", "--quiet"
    )
    report = json.loads(done.out)
    assert report["outcomes"]["refused"] == report["outcomes"]["scheduled"] > 0
    assert done.code == 97


def test_a_bad_url_is_one_line_and_exit_code_2(command: Command) -> None:
    done = command.run("load", "nonsense", "-R", 10, "--quiet")
    assert done.code == 2
    assert done.out == ""
    assert done.err.splitlines() == [
        'wsgiload: plan: url "nonsense": only http:// and https:// are supported'
    ]


def test_a_progress_that_nobody_reads_changes_nothing(
    target: CountingServer, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [
        str(SCRIPT),
        "load",
        target.url,
        "-R",
        "100",
        "-d",
        "300ms",
        "--think-time",
        "1s",
        "--json",
        "-",
    ]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=writing, check=False, timeout=60, cwd=tmp_path
    )
    os.close(writing)
    report = json.loads(done.stdout)
    require_whole(report)
    assert done.returncode == expected_code(report)


def test_ctrl_c_ends_the_command_with_130_and_what_was_measured(
    target: CountingServer, command: Command
) -> None:
    running = command.start("load", target.url, "-R", 200, "-d", "60s", "--json", "out.json")
    wait_for_responses(target, 50)
    took_s = running.press_ctrl_c()
    done = running.end()
    assert took_s < CLEARLY_HALF_A_SECOND_S
    assert done.code == 130
    assert "Traceback" not in done.err
    report = json.loads((command.folder / "out.json").read_text())
    require_whole(report)
    assert "interrupted" in reasons(report)
    assert report["outcomes"]["ok"] >= 50
    command.require_no_leftovers()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_is_heeded_like_ctrl_c(
    target: CountingServer, command: Command, number: signal.Signals
) -> None:
    running = command.start(
        "load", target.url, "-R", 200, "-d", "60s", "--json", "out.json", "--quiet"
    )
    wait_for_responses(target, 20)
    os.kill(running.pid, number)
    assert running.end().code == 130
    assert "interrupted" in reasons(json.loads((command.folder / "out.json").read_text()))


def test_ctrl_c_ends_a_load_of_a_python_program_within_half_a_second(
    target: CountingServer, command: Command
) -> None:
    text = f"import wsgiload; wsgiload.load({target.url!r}, rate=200, duration=30)"
    running = command.start("-c", text, program=[sys.executable])
    wait_for_responses(target, 20)
    took_s = running.press_ctrl_c()
    done = running.end()
    assert took_s < CLEARLY_HALF_A_SECOND_S
    assert done.code in (130, -signal.SIGINT), "Python's own way to end with an interrupt"
    assert done.err.strip().endswith("KeyboardInterrupt")


def test_an_interrupt_during_result_stops_the_load_behind_it(
    target: CountingServer, command: Command
) -> None:
    """The program catches the interrupt and goes on; the load must not go on with it."""
    text = (
        "import sys, wsgiload\n"
        f"handle = wsgiload.start({target.url!r}, rate=200, duration=30)\n"
        "try:\n    handle.result()\nexcept KeyboardInterrupt:\n    print(handle.wait(10), "
        "handle.done())\n"
    )
    running = command.start("-c", text, program=[sys.executable])
    wait_for_responses(target, 20)
    running.press_ctrl_c()
    done = running.end()
    assert (done.code, done.out) == (0, "True True\n")


# --- the generator alone


@needs_loadgen
def test_the_generator_alone_refuses_a_place_where_its_report_could_not_be_written(
    target: CountingServer, command: Command
) -> None:
    for place, why in (
        ("gone/out.json", "directory gone does not exist; create it"),
        (".", "it is a directory"),
    ):
        done = command.run(
            target.url, "-R", 200, "-d", "60s", "--json", place, program=[str(LOADGEN)]
        )
        assert (done.code, done.out) == (2, "")
        assert f"cannot write {place}: {why}" in done.err
    assert target.response_count == 0


@needs_loadgen
def test_the_generator_alone_writes_the_same_document(target: CountingServer) -> None:
    words = [str(LOADGEN), target.url, "-R", "500", "-d", "1s", "--json", "-", "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    report = json.loads(done.stdout)
    require_whole(report)
    assert done.returncode == expected_code(report)
    assert report["outcomes"]["ok"] == target.response_count


@needs_loadgen
def test_both_schedule_the_same_arrivals_for_the_same_seed(
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
def test_both_mean_the_same_by_a_schedule(
    target: CountingServer, command: Command, words: list[str]
) -> None:
    (command.folder / "trace.txt").write_text(
        "# bursts\n" + "".join(f"{k // 3 * 0.0301}\n" for k in range(60))
    )
    words = [target.url, *words, "--seed", "9", "--json", "-", "--quiet"]
    ours = json.loads(command.run("load", *words).out)
    alone = subprocess.run(
        [LOADGEN, *words], capture_output=True, check=False, timeout=60, cwd=command.folder
    )
    theirs = json.loads(alone.stdout)
    require_whole(theirs)
    assert ours["plan"] == theirs["plan"]
    assert ours["outcomes"]["scheduled"] == theirs["outcomes"]["scheduled"] > 10
    assert ours["rate"]["offered_per_s"] == theirs["rate"]["offered_per_s"]


@needs_loadgen
def test_ctrl_c_ends_the_generator_alone_with_130(target: CountingServer, command: Command) -> None:
    running = command.start(
        target.url, "-R", 200, "-d", "60s", "--json", "out.json", program=[str(LOADGEN)]
    )
    wait_for_responses(target, 20)
    running.press_ctrl_c()
    assert running.end().code == 130
    until((command.folder / "out.json").exists, "a partial report")
    require_whole(json.loads((command.folder / "out.json").read_text()))


@needs_loadgen
def test_the_generator_alone_keeps_its_report_when_it_is_asked_to_end(
    target: CountingServer, command: Command
) -> None:
    running = command.start(
        target.url, "-R", 200, "-d", "60s", "--json", "out.json", program=[str(LOADGEN)]
    )
    wait_for_responses(target, 20)
    os.kill(running.pid, signal.SIGTERM)
    assert running.end().code == 130
    require_whole(json.loads((command.folder / "out.json").read_text()))


@needs_loadgen
def test_remarks_that_nobody_reads_end_no_load(target: CountingServer) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [str(LOADGEN), target.url, "-R", "200", "-d", "200ms", "--on-busy", "queue"]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=writing, text=True, check=False, timeout=60
    )
    os.close(writing)
    report = json.loads(done.stdout)
    assert (done.returncode, report["outcomes"]["ok"]) == (
        expected_code(report),
        target.response_count,
    )


@needs_loadgen
def test_a_process_without_descriptors_for_a_connection_is_told_so(target: CountingServer) -> None:
    shell = f"ulimit -n 64; exec {LOADGEN} {target.url} -R 100 -d 100ms"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, target.response_count) == (2, 0)
    assert done.stderr.strip().endswith("raise the limit with: ulimit -n 65")


def test_a_table_that_nobody_reads_costs_no_report(
    target: CountingServer, command: Command
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [
        "load",
        target.url,
        "-R",
        "200",
        "-d",
        "200ms",
        "--json",
        "out.json",
        "--threshold",
        "goodput>=1000000",
    ]
    done = subprocess.run(
        [str(SCRIPT), *words],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        cwd=command.folder,
    )
    os.close(writing)
    report = json.loads((command.folder / "out.json").read_text())
    require_whole(report)
    assert done.returncode == (expected_code(report) or 99), "the threshold is judged all the same"
    assert "threshold goodput>=1000000 failed" in done.stderr and "Traceback" not in done.stderr


def test_a_load_writes_its_page(command: Command, target: CountingServer) -> None:
    words = ("-R", 300, "-d", "2s", "--header", "Authorization: Bearer hunter2")
    done = command.run("load", target.url, *words, "--html", "load.html")
    assert done.code in (0, 98)
    page = (command.folder / "load.html").read_text(encoding="utf-8")
    assert f"How does {target.url} respond at" in page
    assert 'id="time-0"' in page and 'id="spectrum"' in page
    assert "hunter2" not in page


def test_a_page_that_cannot_be_written_is_refused_before_the_load(
    command: Command, target: CountingServer
) -> None:
    done = command.run("load", target.url, "-R", 300, "--html", "nowhere/load.html")
    assert done.code == 2 and "does not exist" in done.err
    assert target.response_count == 0
