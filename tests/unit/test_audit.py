"""`wsgiload audit`: input files, output, and findings for tools that the tests do not run.

The files of oha, k6, Locust, FunkLoad and wrk2 follow the documented formats of those tools, with
made-up figures. Real output is in tests/integration/test_audit.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from wsgiload.audit.findings import FINDINGS
from wsgiload.audit.read import Stated, audit, read_files
from wsgiload.audit.run import Part, Run
from wsgiload.audit.tools import TOOLS
from wsgiload.cli import run
from wsgiload.documents.audit import AuditReport, Figures
from wsgiload.documents.schema import load_schema
from wsgiload.foreign_files import OTHER_RESULT

WRK = """\
Running 10s test @ http://127.0.0.1:8000/
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    97.50ms    2.10ms 110.20ms   90.00%
    Req/Sec   102.00     10.00   120.00     80.00%
  Latency Distribution
     50%   97.20ms
     75%   98.00ms
     90%   99.00ms
     99%  104.00ms
  1020 requests in 10.00s, 120.00KB read
Requests/sec:    102.00
Transfer/sec:     12.00KB
"""
HEALTHY = WRK.replace("Requests/sec:    102.00", "Requests/sec:   1020.00").replace(
    "  1020 requests", "  10200 requests"
)
WRK2 = """\
Running 30s test @ http://127.0.0.1:8000/
  2 threads and 100 connections
  Thread calibration: mean lat.: 9.747ms, rate sampling interval: 21ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     9.70ms    4.50ms  31.30ms   61.16%
    Req/Sec     1.05k     1.1k    2.50k    64.84%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    9.60ms
 75.000%   13.20ms
 90.000%   15.50ms
 99.000%   21.00ms
 99.900%   27.00ms
100.000%   31.31ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.690     0.000000            1         1.00
#[Mean    =        9.747, StdDeviation   =        4.500]
#[Max     =       31.296, Total count    =        39500]
#[Buckets =           27, SubBuckets     =         2048]
----------------------------------------------------------
  60018 requests in 30.00s, 19.81MB read
Requests/sec:   2000.28
Transfer/sec:    676.18KB
"""
K6_EXPORT: dict[str, Any] = {
    "metrics": {
        "http_reqs": {"count": 5000, "rate": 500.0},
        "http_req_duration": {
            "avg": 20.1, "min": 19.9, "med": 20.0, "max": 41.0, "p(90)": 20.5, "p(95)": 21.0,
        },
        "http_req_failed": {"passes": 0, "fails": 5000, "value": 0},
        "vus": {"value": 20, "min": 20, "max": 20},
        "vus_max": {"value": 20, "min": 20, "max": 20},
    },
    "root_group": {"name": "", "path": ""},
}  # fmt: skip
OHA: dict[str, Any] = {
    "summary": {
        "successRate": 1.0, "total": 10.0, "slowest": 0.031, "fastest": 0.0201,
        "average": 0.0204, "requestsPerSec": 490.9, "totalData": 24545,
    },
    "latencyPercentiles": {
        "p10": 0.0201, "p25": 0.0202, "p50": 0.0203, "p75": 0.0204, "p90": 0.0206,
        "p95": 0.0208, "p99": 0.0229, "p99.9": 0.030, "p99.99": None,
    },
    "rps": {"mean": 491.0},
    "statusCodeDistribution": {"200": 4900},
    "errorDistribution": {"aborted due to deadline": 10},
}  # fmt: skip
LOCUST_HEAD = (
    "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,"
    "Min Response Time,Max Response Time,Average Content Size,Requests/s,Failures/s,"
    "50%,66%,75%,80%,90%,95%,98%,99%,99.9%,99.99%,100%\n"
)
LOCUST = LOCUST_HEAD + (
    "GET,/,6000,0,20,21.5,18,90,120,100.0,0.0,20,20,21,21,22,24,27,30,60,90,90\n"
    "GET,/slow,2000,0,200,205.1,180,400,120,33.3,0.0,200,200,210,210,220,240,270,300,380,400,400\n"
    ",Aggregated,8000,0,20,67.4,18,400,120,133.3,0.0,20,21,180,200,210,220,240,270,370,400,400\n"
)
LOCUST_AVERAGED = LOCUST.replace(
    ",20,21,180,200,210,220,240,270,370,400,400\n", ",110,110,116,116,121,132,149,165,220,245,400\n"
)
HISTORY = (
    "Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,66%,75%,80%,90%,95%,98%,99%,99.9%,"
    "99.99%,100%,Total Request Count,Total Failure Count,Total Median Response Time,"
    "Total Average Response Time,Total Min Response Time,Total Max Response Time,"
    "Total Average Content Size\n"
    "1000,0,,Aggregated,0.0,0.0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A,0,0,0,0.0,0,0,0\n"
    "1001,10,,Aggregated,9.0,0.0,20,20,20,20,20,20,20,20,20,20,20,9,0,20,20.0,18,25,120\n"
    "1060,10,,Aggregated,9.0,0.0,20,20,20,20,20,20,20,20,20,20,20,540,0,20,20.0,18,25,120\n"
)
RULE = " " + " ".join(["=" * 18] * 15) + "\n"
FUNKLOAD_NAMES = "CUs Apdex* Rating SPPS maxSPPS TOTAL SUCCESS ERROR MIN AVG MAX P10 MED P90 P95"
FUNKLOAD = (
    "======================\nFunkLoad_ bench report\n======================\n\n"
    "* Cycles of concurrent users: [50, 100]\n* Cycle duration: 120s\n\n"
    "Page stats\n----------\n\n" + RULE
    + " " + " ".join(f"{name:>18}" for name in FUNKLOAD_NAMES.split()) + "\n" + RULE
    + " 50 0.950 Excellent 200.0 220.0 24000 24000 0.00% 0.150 0.200 0.900 0.160 0.190 0.250 0.280\n"
    + " 100 0.500 POOR 150.0 220.0 18000 17100 5.00% 0.001 0.500 9.000 0.160 0.400 0.900 1.280\n"
    + RULE
)  # fmt: skip


def audited(tmp_path: Path, content: str, **stated: Any) -> AuditReport:
    path = tmp_path / "output.txt"
    path.write_text(content)
    return audit(read_files([path], Stated(**stated)))


def findings(report: AuditReport) -> list[list[str]]:
    return [[alarm.alarm for alarm in run.alarms] for run in report.files]


# --- output


def test_a_finding_has_a_message_its_arithmetic_and_a_fix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrk.txt"
    path.write_text(WRK)

    assert run(["audit", str(path)]) == 98
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out == (
        f"{path} (wrk): 100 connections, 10.0 s, 1,020 responses, 102/s, p50 97.2 ms, p99 104 ms\n"
        "  littles-law: only 9.95 of 100 connections had a request in flight on average: the others were "
        "starved by the server or idle in the client, and the response times do not include their waiting\n"
        "    102/s × 97.5 ms = 9.95 in flight / 100 connections = 0.0994 (expected: 0.9 to 1.1)\n"
        "    fix: measure at a fixed rate (`wsgiload load URL -R RATE`), or use no more connections "
        "than the server handles at once\n"
        "\n"
        "1 finding in 1 of 1 result; `wsgiload explain NAME` describes each\n"
    )


def test_without_findings_the_exit_code_is_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrk.txt"
    path.write_text(HEALTHY)
    assert run(["audit", str(path)]) == 0
    assert capsys.readouterr().out.endswith("\n\nno findings in 1 result\n")


def test_the_json_report_matches_the_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wrk.txt"
    path.write_text(WRK)

    assert run(["audit", "--json=-", str(path)]) == 98
    document = json.loads(capsys.readouterr().out)
    assert list(Draft202012Validator(load_schema("audit-1")).iter_errors(document)) == []

    (entry,) = document["files"]
    assert (entry["file"], entry["tool"]) == (str(path), "wrk")
    assert entry["figures"]["mean_ns"] == 97_500_000

    (alarm,) = entry["alarms"]
    assert set(alarm) == {"alarm", "message", "arithmetic", "fix", "value", "limit"}
    assert (alarm["alarm"], alarm["limit"]) == ("littles-law", 0.9)
    assert alarm["value"] == pytest.approx(0.09945)


# --- input files


def test_a_directory_is_searched_and_other_files_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subdirectory = tmp_path / "round 1"
    subdirectory.mkdir()
    (subdirectory / "wrk.txt").write_text(HEALTHY)
    (tmp_path / "README.md").write_text("# Results\n")
    (tmp_path / ".hidden").write_text(WRK)
    (tmp_path / "link").symlink_to(subdirectory / "wrk.txt")

    assert run(["audit", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert f"{subdirectory / 'wrk.txt'} (wrk)" in output.out
    assert output.err == (
        f"wsgiload: skipped, not the output of a known load generator: {tmp_path / 'README.md'}\n"
    )


def test_a_directory_without_results_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"wsgiload: no results in {tmp_path}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "not the output of a known load generator; audit reads wrk, wrk2, ab, "),
        (b"\x00\xff\xfe", "not the output of a known load generator"),
        (b"[" * 100_000, "not the output of a known load generator"),
        (b" " * (OTHER_RESULT.max_bytes + 1), "larger than 16 MiB"),
        (b'{"latencyPercentiles": {}, "summary": 3}', "not a result of oha: "),
        (b'{"latencies": {"50th": "x"}}', "not a result of vegeta: "),
        (b'{"latencies": {"50th": 1}' + b'[' * 100_000, "not JSON: "),
        (b'{"metrics": {"http_reqs": {"count": 1e400}}}', "not "),
        (b"Type,Name,Request Count,Failure Count\nGET,/,x,y\n", "the column "),
        (LOCUST.replace(",8000,", ",nan,").encode(), "'nan' is not a value that Locust writes"),
    ],
    ids=range(10),
)  # fmt: skip
def test_a_file_that_is_not_a_result_is_rejected_by_name(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, valid = tmp_path / "odd.txt", tmp_path / "wrk.txt"
    path.write_bytes(content)
    valid.write_text(HEALTHY)

    assert run(["audit", str(path), str(valid)]) == 2
    output = capsys.readouterr()
    assert output.err.startswith(f"wsgiload: {path}: ")
    assert message in output.err
    assert len(output.err.splitlines()) == 1
    assert f"{valid} (wrk)" in output.out, "the other files are still audited"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (WRK[: WRK.index("  1020 requests")], "cut off at line 10 ('99% 104.00ms'): the line with 'requests in' is missing"),
        (WRK[: WRK.index("Transfer")], "cut off at line 12 ('Requests/sec: 102.00'): the line with 'Transfer/sec' is missing"),
        (json.dumps(K6_EXPORT)[:300], "incomplete JSON"),
        (LOCUST[: LOCUST.rindex("133.3")], "all 22 columns is missing"),
        (LOCUST[: LOCUST.index(",Aggregated")], "the line with 'Aggregated' is missing"),
        (FUNKLOAD[: FUNKLOAD.index(" 100 0.5")], "the end of the table with SPPS is missing"),
    ],
    ids=range(6),
)  # fmt: skip
def test_a_truncated_file_is_reported_with_its_last_line(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.txt"
    path.write_text(content)

    assert run(["audit", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"wsgiload: {path}: cut off at line " in error
    assert message in error
    assert len(error.splitlines()) == 1


def test_terminal_control_sequences_are_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "locust\x1b[2J_stats.csv"
    path.write_text(LOCUST.replace("/slow", "/\x1b[31m\u202eevil"))

    run(["audit", str(path)])
    output = capsys.readouterr().out

    assert "\x1b" not in output
    assert "\u202e" not in output
    assert "\\x1b[31m" in output


def test_passwords_and_tokens_in_urls_are_redacted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "locust_stats.csv"
    path.write_text(LOCUST.replace("/slow", "http://shop:hunter22@h/?page=2&token=abcdefgh12"))

    run(["audit", str(path), "--json", str(tmp_path / "audit.json")])

    for text in (capsys.readouterr().out, (tmp_path / "audit.json").read_text()):
        assert "hunter22" not in text and "abcdefgh12" not in text
        assert "http://(redacted-" in text and "?page=2&token=(redacted-" in text


def test_several_runs_in_one_file_are_separated(tmp_path: Path) -> None:
    report = audited(tmp_path, HEALTHY + "some words\n" + WRK)
    assert [run.part for run in report.files] == ["run 1", "run 2"]
    assert findings(report) == [[], ["littles-law"]]


def test_a_missing_run_would_lower_the_mean_of_its_level(tmp_path: Path) -> None:
    (tmp_path / "wrk-100-1.txt").write_text(HEALTHY)

    failed = HEALTHY.replace("  10200 requests", "  0 requests").replace("1020.00", "0.00")
    (tmp_path / "wrk-100-2.txt").write_text(failed)

    report = audit(read_files([tmp_path], Stated()))
    assert findings(report) == [[], ["missing-run"]]
    assert report.files[1].alarms[0].arithmetic == (
        "mean of the 1 other results at this level: 1,020/s; with 0 for this one: 510/s"
    )


# --- tools that the tests do not run


def test_wrk2_is_an_open_loop_with_recorded_requests_after_calibration(tmp_path: Path) -> None:
    report = audited(tmp_path, WRK2, rate_per_s=2000.0)
    (entry,) = report.files
    assert (entry.tool, entry.figures.load, entry.figures.timed_requests) == (
        "wrk2",
        "open",
        39_500,
    )
    assert findings(report) == [[]]
    assert findings(audited(tmp_path, WRK2, rate_per_s=3000.0)) == [["rate-not-reached"]]


def test_oha(tmp_path: Path) -> None:
    """Requests aborted at the end of the load are not failures."""
    report = audited(tmp_path, json.dumps(OHA), connections=10)
    assert findings(report) == [[]]
    assert report.files[0].figures.quantiles_ns["0.999"] == 30_000_000
    assert findings(audited(tmp_path, json.dumps(OHA), connections=20)) == [["littles-law"]]

    errors = {"statusCodeDistribution": {"200": 4400, "503": 500}}
    assert findings(audited(tmp_path, json.dumps(OHA | errors))) == [["errors-as-responses"]]

    refused = {"error trying to connect: Connection refused (os error 111)": 50}
    no_responses = {"statusCodeDistribution": {}, "errorDistribution": refused}
    report = audited(tmp_path, json.dumps(OHA | no_responses))
    assert report.files[0].figures.errors == {"connect": 50}
    assert findings(report) == [["failed-connections"]]


def k6(**metrics: Any) -> dict[str, Any]:
    return K6_EXPORT | {"metrics": K6_EXPORT["metrics"] | metrics}


def to_handle_summary(document: dict[str, Any]) -> dict[str, Any]:
    metrics = {
        name: {"type": "trend", "contains": "time", "values": values}
        for name, values in document["metrics"].items()
    }
    return {"metrics": metrics, "state": {"testRunDurationMs": 10_000.0}}


@pytest.mark.parametrize("form", [dict, to_handle_summary])
def test_k6(form: Any, tmp_path: Path) -> None:
    assert findings(audited(tmp_path, json.dumps(form(k6())))) == [[]]

    failed = k6(http_req_failed={"passes": 500, "fails": 4500, "value": 0.1})
    assert findings(audited(tmp_path, json.dumps(form(failed)))) == [["errors-as-responses"]]

    dropped = k6(dropped_iterations={"count": 1000, "rate": 100.0})
    report = audited(tmp_path, json.dumps(form(dropped)))
    assert findings(report) == [["rate-not-reached"]]
    assert "= 16.7 %" in report.files[0].alarms[0].arithmetic


def test_locust(tmp_path: Path) -> None:
    report = audited(tmp_path, LOCUST)
    assert [run.part for run in report.files] == ["GET /", "GET /slow", "all requests"]
    assert findings(report) == [[], [], []]

    failing = LOCUST.replace("8000,0,20,67.4", "8000,400,20,67.4")
    assert findings(audited(tmp_path, failing))[2] == ["errors-as-responses"]


def test_averaged_percentiles_of_a_total_are_detected(tmp_path: Path) -> None:
    report = audited(tmp_path, LOCUST_AVERAGED)
    assert findings(report) == [[], [], ["averaged-percentiles"]]
    assert "(90.0 ms + 400 ms) / 2 = 245 ms" in report.files[2].alarms[0].arithmetic


def test_the_users_of_locust_are_read_from_its_history(tmp_path: Path) -> None:
    report = audited(tmp_path, HISTORY)
    assert report.files[0].figures.connections == 10
    assert findings(report) == [[]]
    # 9.2/s with 2 s each would need more than 10 users.
    assert findings(audited(tmp_path, HISTORY.replace(",20.0,", ",2000.0,"))) == [["littles-law"]]


def test_funkload_has_one_result_per_cycle(tmp_path: Path) -> None:
    report = audited(tmp_path, FUNKLOAD)
    assert [run.part for run in report.files] == ["50 users", "100 users"]
    assert findings(report) == [[], ["errors-as-responses"]]
    assert report.files[1].figures.quantiles_ns["0.95"] == 1_280_000_000


# --- single findings


def test_a_run_without_figures_has_no_findings() -> None:
    for tool in TOOLS:
        entry = Run("output.txt", tool, Part(Figures(requests=0)))
        assert [finding(entry) for finding in FINDINGS] == [None] * len(FINDINGS)


def _write_output(tmp_path: Path, content: str) -> Path:
    path = tmp_path / "output.txt"
    path.write_text(content)
    return path


def test_one_slow_response_among_many_connections_is_not_a_stall(tmp_path: Path) -> None:
    """A retransmitted SYN delays one of 50 connections by 1 s, which the mean includes."""
    hey = """
Summary:
  Total:\t5.0000 secs
  Slowest:\t1.0100 secs
  Fastest:\t0.0098 secs
  Average:\t0.0101 secs
  Requests/sec:\t4950.0

Response time histogram:

Latency distribution:
  10%% in 0.0099 secs
  25%% in 0.0100 secs
  50%% in 0.0100 secs
  75%% in 0.0101 secs
  90%% in 0.0102 secs
  95%% in 0.0103 secs
  99%% in 0.0105 secs

Status code distribution:
  [200]\t24750 responses
"""

    assert findings(audited(tmp_path, hey, connections=50)) == [[]]
    # A single connection would have stalled for a fifth of the time.
    single = hey.replace("24750 responses", "396 responses").replace(
        "0.0101 secs\n  Req", "0.0126 secs\n  Req"
    )
    assert "closed-loop-stalls" in findings(audited(tmp_path, single, connections=1))[0]


def series_of(tmp_path: Path, in_flight: dict[int, float]) -> list[list[str]]:
    """The findings in a series of levels with these mean numbers of requests in flight."""
    for connections, value in in_flight.items():
        rate = 100 + 2 * connections
        content = WRK.replace("100 connections", f"{connections} connections")
        (tmp_path / f"wrk-{connections:04}.txt").write_text(
            content.replace("Latency    97.50ms", f"Latency  {value / rate * 1e3:.2f}ms")
            .replace("  1020 requests", f"  {1020 * connections} requests")
            .replace("Requests/sec:    102.00", f"Requests/sec:    {rate:.2f}")
        )
    return findings(audit(read_files([tmp_path], Stated())))


def test_levels_that_serve_the_same_few_connections_are_capped(tmp_path: Path) -> None:
    results = series_of(tmp_path, {100: 9.9, 200: 9.7, 400: 9.5})
    assert results[:2] == [["littles-law"], ["littles-law"]]
    assert results[2] == ["littles-law", "capped-concurrency"]


def test_levels_that_serve_all_connections_have_no_findings(tmp_path: Path) -> None:
    assert series_of(tmp_path, {10: 10.0, 20: 19.0, 40: 38.0}) == [[], [], []]
