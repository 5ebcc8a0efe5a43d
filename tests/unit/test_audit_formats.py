"""What tools print to the console, tables and docker stats: clean results have no finding, and each
format gives the findings of its faults. The texts are invented, in the format of each tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.audit.read import Stated, audit, read_files
from wsgiload.cli import run
from wsgiload.documents.audit import AuditReport

OHA = """\
Summary:
  Success rate:\t100.00%
  Total:\t10.0002 sec
  Slowest:\t0.0310 sec
  Fastest:\t0.0201 sec
  Average:\t0.0204 sec
  Requests/sec:\t490.0000

  Total data:\t23.93 KiB
  Size/request:\t5 B

Response time histogram:
  0.020 [1]    |
  0.022 [4890] |■■■■■■■■

Response time distribution:
  10.00% in 0.0202 sec
  50.00% in 0.0203 sec
  90.00% in 0.0206 sec
  99.00% in 0.0229 sec

Details (average, fastest, slowest):
  DNS+dialup:\t0.0010 sec, 0.0008 sec, 0.0012 sec

Status code distribution:
  [200] 4900 responses

Error distribution:
  [10] aborted due to deadline
"""
OHA_NEW = OHA.replace(" sec", "").replace("Total:\t10.0002", "Total:\t10000.2000 ms")
for seconds, milliseconds in (
    ("0.0310", "31.0000 ms"), ("0.0201", "20.1000 ms"), ("0.0204", "20.4000 ms"),
    ("0.0202", "20.2000 ms"), ("0.0203", "20.3000 ms"), ("0.0206", "20.6000 ms"),
    ("0.0229", "22.9000 ms"),
):  # fmt: skip
    OHA_NEW = OHA_NEW.replace(seconds, milliseconds)
K6 = """\
          /\\      Grafana   /‾‾/
     scenarios: (100.00%) 1 scenario, 10 max VUs, 40s max duration

     data_received..................: 1.2 MB 118 kB/s
     http_req_duration..............: avg=20.1ms min=19.9ms med=20ms max=41ms p(90)=20.5ms p(95)=21ms
       { expected_response:true }...: avg=20.1ms min=19.9ms med=20ms max=41ms p(90)=20.5ms p(95)=21ms
     http_req_failed................: 0.00%  ✓ 0         ✗ 5000
     http_req_receiving.............: avg=30µs   min=10µs   med=28µs max=1ms  p(90)=40µs   p(95)=50µs
     http_reqs......................: 5000   500.1/s
     vus............................: 10     min=10      max=10
     vus_max........................: 10     min=10      max=10
"""
K6_NEW = K6.replace("✓ 0         ✗ 5000", "0 out of 5000").replace("     http", "    http")
LOCUST = """\
[2026-11-28 10:00:00,000] host/INFO/locust.main: Starting Locust
Type     Name        # reqs      # fails |    Avg     Min     Max    Med |   req/s  failures/s
--------|-----------|-------|-------------|-------|-------|-------|-------|--------|-----------
GET      /              12     0(0.00%) |     20      18      25     20 |   10.00        0.00
--------|-----------|-------|-------------|-------|-------|-------|-------|--------|-----------
         Aggregated     12     0(0.00%) |     20      18      25     20 |   10.00        0.00

Type     Name        # reqs      # fails |    Avg     Min     Max    Med |   req/s  failures/s
--------|-----------|-------|-------------|-------|-------|-------|-------|--------|-----------
GET      /             6000     0(0.00%) |     21      18      90     20 |  100.00        0.00
POST     /order        2000     0(0.00%) |    205     180     400    200 |   33.30        0.00
--------|-----------|-------|-------------|-------|-------|-------|-------|--------|-----------
         Aggregated    8000     0(0.00%) |     67      18     400     20 |  133.30        0.00

Response time percentiles (approximated)
Type     Name           50%    66%    75%    80%    90%    95%    98%    99%  99.9% 99.99%   100% # reqs
--------|-------------|------|------|------|------|------|------|------|------|------|------|------|------
GET      /               20     20     21     21     22     24     27     30     60     90     90   6000
POST     /order         200    200    210    210    220    240    270    300    380    400    400   2000
--------|-------------|------|------|------|------|------|------|------|------|------|------|------|------
         Aggregated      20     21    180    200    210    220    240    270    370    400    400   8000
"""
LOCUST_OLD = """\
 Name          # reqs      # fails     Avg     Min     Max  |  Median   req/s
--------------------------------------------------------------------------------
 GET /           6000     0(0.00%)      21      18      90  |      20  100.00
 GET /slow       2000     0(0.00%)     205     180     400  |     200   33.30
--------------------------------------------------------------------------------
 Aggregated      8000     0(0.00%)      67      18     400  |      20  133.30
"""
LOCUST_OLD_CSV = (
    '"Method","Name","# requests","# failures","Median response time","Average response time",'
    '"Min response time","Max response time","Average Content Size","Requests/s"\n'
    '"GET","/",6000,0,20,21,18,90,120,100.00\n'
    '"GET","/slow",2000,0,200,205,180,400,120,33.30\n'
    '"None","Total",8000,0,20,67,18,400,120,133.30\n'
)
LOCUST_OLD_DISTRIBUTION = (
    '"Name","# requests","50%","66%","75%","80%","90%","95%","98%","99%","100%"\n'
    '"GET /",6000,20,20,21,21,22,24,27,30,90\n'
    '"None Total",8000,20,21,180,200,210,220,240,270,400\n'
)
BOMBARDIER = """\
Bombarding http://127.0.0.1:8000 for 10s using 10 connection(s)
[==================================================================] 10s
Done!
Statistics        Avg      Stdev        Max
  Reqs/sec       490.10      20.11     560.00
  Latency       20.40ms   800.00us    31.00ms
  Latency Distribution
     50%    20.30ms
     75%    20.40ms
     90%    20.60ms
     95%    20.80ms
     99%    22.90ms
  HTTP codes:
    1xx - 0, 2xx - 4900, 3xx - 0, 4xx - 0, 5xx - 0
    others - 0
  Throughput:   100.10KB/s
"""
DOCKER = (
    "\x1b[2J\x1b[HCONTAINER           CPU %               MEM USAGE / LIMIT     MEM %\n"
    "5b6e1aebbecc        {}%               3.551 MB / 536.9 MB   0.66%\n"
)
DOCKER_NEW = (
    "CONTAINER ID   NAME      CPU %     MEM USAGE / LIMIT   MEM %     NET I/O       BLOCK I/O   PIDS\n"
    "5b6e1aebbecc   shop      98.10%    20.5MiB / 512MiB    4.00%     1.2kB / 0B    0B / 0B     5\n"
)
TABLE = (
    "\nREQUESTS\nserver,100,200\nalpha,1020.00,\nbeta,900.5,910\n\nLATENCIES\nserver,100\nalpha,1\n"
)
WRK = """\
Running 10s test @ http://127.0.0.1:8000
  2 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    97.50ms    2.10ms 104.00ms   90.00%
    Req/Sec   510.00     12.00   560.00     80.00%
  Latency Distribution
     50%   97.20ms
     75%   98.00ms
     90%  100.00ms
     99%  103.00ms
  10200 requests in 10.00s, 1.20MB read
Requests/sec:   1020.00
Transfer/sec:    122.88KB
"""
CLEAN = {
    "oha.txt": OHA,
    "oha-new.txt": OHA_NEW,
    "k6.txt": K6,
    "k6-new.txt": K6_NEW,
    "locust.txt": LOCUST,
    "locust-old.txt": LOCUST_OLD,
    "locust_requests.csv": LOCUST_OLD_CSV,
    "locust_distribution.csv": LOCUST_OLD_DISTRIBUTION,
    "bombardier.txt": BOMBARDIER,
    "stats.txt": DOCKER.format("0.00") + DOCKER.format("98.10"),
    "stats-new.txt": DOCKER_NEW,
    "results.csv": TABLE,
    "alpha-100.txt": WRK,
    "alpha-flask-100.txt": WRK,
    "alpha-wsgi-100.txt": WRK.replace("1020", "1060").replace("97.50ms", "94.00ms"),
}


def audited(tmp_path: Path, files: dict[str, str], **stated: int) -> AuditReport:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    return audit(read_files([tmp_path], Stated(**stated)))


def findings(report: AuditReport) -> dict[str, list[str]]:
    return {
        f"{Path(run.file).name} {run.part or ''}".strip(): [one.alarm for one in run.alarms]
        for run in report.files
        if run.alarms
    }


def test_clean_results_of_every_format_have_no_finding(tmp_path: Path) -> None:
    report = audited(tmp_path, CLEAN)
    assert {Path(run.file).name for run in report.files} == set(CLEAN)
    assert report.rejected == ()
    assert findings(report) == {}


@pytest.mark.parametrize(
    ("content", "tool", "connections", "requests", "mean_ms", "p90_ms"),
    [
        (OHA, "oha", None, 4900, 20.4, 20.6),
        (OHA_NEW, "oha", None, 4900, 20.4, 20.6),
        (K6, "k6", 10, 5000, 20.1, 20.5),
        (K6_NEW, "k6", 10, 5000, 20.1, 20.5),
        (LOCUST, "locust", None, 8000, 67, 210),
        (LOCUST_OLD, "locust", None, 8000, 67, None),
        (LOCUST_OLD_CSV, "locust", None, 8000, 67, None),
        (LOCUST_OLD_DISTRIBUTION, "locust", None, 8000, None, 210),
        (BOMBARDIER, "bombardier", 10, 4900, 20.4, 20.6),
    ],
    ids=range(9),
)
def test_figures(
    tmp_path: Path,
    content: str,
    tool: str,
    connections: int | None,
    requests: int,
    mean_ms: float | None,
    p90_ms: float | None,
) -> None:
    last = audited(tmp_path, {"output.txt": content}).files[-1]
    figures = last.figures
    assert (last.tool, figures.connections, figures.requests) == (tool, connections, requests)
    assert figures.mean_ns == (mean_ms and round(mean_ms * 1e6))
    assert figures.quantiles_ns.get("0.9") == (p90_ms and round(p90_ms * 1e6))


@pytest.mark.parametrize(
    ("content", "old", "new", "expected"),
    [
        (OHA, "[200] 4900", "[200] 4400 responses\n  [503] 500", ["errors-as-responses"]),
        (
            OHA.replace("[200] 4900 responses", ""),
            "aborted due to deadline",
            "tcp connect error: Connection refused",
            ["failed-connections"],
        ),
        (K6, "0.00%  ✓ 0  ", "10.00% ✓ 500", ["errors-as-responses"]),
        (
            K6,
            "     http_reqs",
            "     dropped_iterations.............: 1000   100/s\n     http_reqs",
            ["rate-not-reached"],
        ),
        (LOCUST, "8000     0(0.00%)", "8000     400(5.00%)", ["errors-as-responses"]),
        (LOCUST_OLD_CSV, "8000,0,", "8000,400,", ["errors-as-responses"]),
        (BOMBARDIER, "using 10 ", "using 100 ", ["littles-law"]),
        (
            BOMBARDIER,
            "4xx - 0, 5xx - 0",
            "4xx - 0, 5xx - 500",
            ["littles-law", "errors-as-responses"],
        ),
    ],
    ids=range(8),
)
def test_faults(tmp_path: Path, content: str, old: str, new: str, expected: list[str]) -> None:
    assert old in content
    report = audited(tmp_path, {"a.txt": content.replace(old, new)})
    assert [one.alarm for one in report.files[-1].alarms] == expected


def test_docker_stats(tmp_path: Path) -> None:
    [old, new] = audited(
        tmp_path, {"a": DOCKER.format("0.00") + DOCKER.format("50.00"), "b": DOCKER_NEW}
    ).files
    assert (old.figures.mean_cpu_cores, old.figures.idle_ratio) == (0.25, 0.5)
    assert old.figures.max_memory_bytes == 3_551_000
    assert new.figures.max_memory_bytes == round(20.5 * 2**20)


def test_an_idle_server_of_a_closed_loop_is_found(tmp_path: Path) -> None:
    starved = WRK.replace("97.50ms", " 9.75ms")
    idle, busy = (DOCKER.format(share) * 20 for share in ("0.00", "99.00"))
    report = audited(
        tmp_path, {"a.log": starved, "a.stats": idle, "b.log": starved, "b.stats": busy,
                   "c.log": WRK, "c.stats": idle},
    )  # fmt: skip
    assert findings(report) == {"a.log": ["littles-law", "idle-server"], "b.log": ["littles-law"]}


def test_an_average_with_a_zero_for_a_missing_run_is_found(tmp_path: Path) -> None:
    dead = WRK.replace("10200 requests", "0 requests").replace("1020.00", "0.00")
    runs = {"alpha-100-1.txt": WRK, "alpha-100-2.txt": dead}
    cell = findings(audited(tmp_path, {**runs, "r.csv": "server,100\nalpha,510\n"}))
    assert cell == {"alpha-100-2.txt": ["missing-run"], "r.csv alpha at 100": ["zero-average"]}

    for right in ("alpha,1020", "alpha,", "beta,510"):
        table = {"r.csv": f"server,100\n{right}\n"}
        assert "r.csv" not in str(findings(audited(tmp_path, table))), right


def test_a_bare_app_slower_than_a_framework_is_found(tmp_path: Path) -> None:
    slow = WRK.replace("1020", "510").replace("97.50ms", "195.00ms")
    report = audited(
        tmp_path, {"alpha-wsgi.txt": slow, "alpha-flask.txt": WRK, "beta-flask.txt": WRK}
    )
    assert findings(report) == {"alpha-wsgi.txt": ["slower-bare-app"]}


@pytest.mark.parametrize(
    ("quantiles", "is_found"),
    [
        (("1.00ms", "1.50ms", "41.00ms", "44.00ms"), True),
        (("0.50ms", "40.50ms", "41.00ms", "43.00ms"), True),
        (("1.00ms", "1.50ms", "2.00ms", "44.00ms"), False),
        (("20.00ms", "30.00ms", "38.00ms", "44.00ms"), False),
        (("1.00ms", "8.00ms", "37.00ms", "49.00ms"), False),
        (("1.00ms", "1.50ms", "80.00ms", "84.00ms"), False),
    ],
)  # fmt: skip
def test_a_share_of_responses_delayed_by_40_ms_is_found(
    tmp_path: Path, quantiles: tuple[str, ...], is_found: bool
) -> None:
    content = WRK.replace("100 connections", "10 connections").replace("97.50ms", "9.80ms")
    for old, new in zip(("97.20ms", "98.00ms", "100.00ms", "103.00ms"), quantiles, strict=True):
        content = content.replace(f"{old}\n", f"{new}\n")
    found = findings(audited(tmp_path, {"a.txt": content}))
    assert ("nagle-delay" in str(found)) == is_found


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "empty, so not a result; repeat the run"),
        ('{"type":"Point","metric":"http_reqs"}', "samples of k6; add --summary-export FILE"),
        ("response-time,DNS+dialup,DNS\n0.1,0,0\n", "requests of hey; save its output"),
        ("starttime\tseconds\tctime\n", "a table of ab; save its output"),
        ('{"attack":"","seq":0}', "requests of vegeta; save: vegeta report -type=json FILE"),
        ("Method,Name,Error,Occurrences\n", "audit NAME_stats.csv"),
        ("<html><head><title>Test Report - Locust</title>", "audit NAME_stats.csv"),
        ('{"spec":{"numberOfConnections":10}}', "JSON of bombardier; save its output"),
        ("\x1f\x8b", "packed; unpack it"),
    ],
    ids=range(9),
)
def test_a_file_that_is_no_summary_is_named_with_how_to_save_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, reason: str
) -> None:
    (tmp_path / "odd.txt").write_text(content)
    (tmp_path / "wrk.txt").write_text(WRK)

    assert run(["audit", str(tmp_path)]) == 0, "in a folder, it is left out"
    output = capsys.readouterr()
    assert "no findings in 1 result" in output.out
    assert reason in output.err

    assert run(["audit", str(tmp_path / "odd.txt")]) == 2
    assert reason in capsys.readouterr().err
