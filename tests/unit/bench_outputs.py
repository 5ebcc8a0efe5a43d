"""Captured output of the benchmarked generators, shortened.

The output of zrk is the example from its documentation.
"""

LOADGEN = """\
{"measured_ns": 1000000000,
 "verdict": {"status": "invalid", "reasons": [{"check": "run-queue-wait", "level": "invalid"}, {"check": "send-lag", "level": "warn"}]},
 "outcomes": {"bad_body": 0, "client_error": 0, "dropped": 1, "ok": 996, "scheduled": 1000,
              "timeout": 1, "unfinished": 2},
 "response_time_ns": {"count": 1000, "quantiles": {"0.5": 2069503, "0.9": 3256319, "0.99": 6828031, "0.999": null}},
 "send_lag_ns": {"count": 1000, "quantiles": {"0.5": 1278, "0.99": 3768319, "0.999": 4788223, "0.9999": null}},
 "connections": {"opened": 10, "peak": 10, "max_connections": 64},
 "client": {"cpu_seconds": 0.069214683, "busy_share": 0.030545410464617905, "scheduling": "sched_other"}}
"""

WRK = """\
Running 1s test @ http://127.0.0.1:9556/
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   101.74us  349.31us   5.33ms   97.62%
    Req/Sec   116.38k    15.93k  122.92k    90.00%
  Latency Distribution
     50%   54.00us
     75%   64.00us
     90%   75.00us
     99%    2.03ms
  115458 requests in 1.00s, 16.74MB read
Requests/sec: 115061.27
Transfer/sec:     16.68MB
"""

WRK_WITH_ERRORS = """\
  115458 requests in 1.01m, 16.74MB read
  Socket errors: connect 0, read 3, write 0, timeout 2
  Non-2xx or 3xx responses: 58
Requests/sec: 115061.27
"""

WRK2_SPECTRUM = """\
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.02ms
 75.000%    1.54ms
 99.000%    2.11ms
 99.900%    2.13ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       0.050     0.000000            1         1.00
       1.020     0.500000        10001         2.00
  19998 requests in 10.00s, 2.90MB read
"""

H2LOAD = """\
Main benchmark duration is over for thread #0. Stopping all clients.
Stopped all clients for thread #0

finished in 1.00s, 105493.00 req/s, 15.29MB/s
requests: 105493 total, 105501 started, 105493 done, 105490 succeeded, 3 failed, 1 errored, 0 timeout
status codes: 105493 2xx, 0 3xx, 0 4xx, 0 5xx
                     min         max         mean         sd        +/- sd
time for request:       26us      2.40ms        75us        37us    95.08%
"""

AB = """\
Benchmarking 127.0.0.1 (be patient).....done

Concurrency Level:      8
Time taken for tests:   1.000 seconds
Complete requests:      101482
Failed requests:        2
Keep-Alive requests:    101482
Requests per second:    101482.00 [#/sec] (mean)

Percentage of the requests served within a certain time (ms)
  50%      0
  99%      0
 100%      6 (longest request)
"""

OHA = """\
{
  "summary": {"successRate": 1.0, "total": 1.001366737, "slowest": 0.008239441, "requestsPerSec": 87732.09330199672},
  "latencyPercentiles": {"p10": 0.000044342, "p50": 0.00007393, "p99": 0.000185632, "p99.9": 0.004068039},
  "firstBytePercentiles": {"p50": 0.000073792},
  "statusCodeDistribution": {"200": 87844, "503": 1},
  "errorDistribution": {"aborted due to deadline": 8, "connection closed before message completed": 2}
}"""

HEY = """\

Summary:
  Total:\t1.0044 secs
  Slowest:\t0.0081 secs
  Requests/sec:\t43368.1587
  
  Total data:\t217805 bytes

Response time histogram:
  0.000 [1]\t|
  0.001 [43246]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■

Latency distribution:
  10%% in 0.0000 secs
  50%% in 0.0001 secs
  99%% in 0.0006 secs

Status code distribution:
  [200]\t43561 responses
  [503]\t4 responses

Error distribution:
  [3]\tGet "http://127.0.0.1:9557/": EOF
"""  # noqa: W293  # verbatim output

FORTIO = """\
{
  "RunType": "HTTP",
  "RequestedQPS": "500",
  "ActualQPS": 492.6089841859685,
  "ActualDuration": 1006883788,
  "NumThreads": 8,
  "Version": "1.63.9",
  "DurationHistogram": {
    "Count": 496,
    "Min": 0.000023197,
    "Percentiles": [
      {"Percentile": 50, "Value": 0.00008596774193548387},
      {"Percentile": 99, "Value": 0.00030100000000000087}
    ]
  },
  "RetCodes": {"200": 495, "-1": 1},
  "Sockets": [1, 1, 1, 1, 1, 1, 1, 1]
}"""

VEGETA = """\
{"latencies":{"total":252876805,"mean":2528768,"50th":2460715,"90th":2688094,"99th":5289690,"max":6918807},
 "bytes_in":{"total":509,"mean":5.09},"earliest":"2026-11-24T02:25:01.43972977Z",
 "end":"2026-11-24T02:25:02.432721916Z","duration":990530190,"wait":2461956,"requests":100,
 "rate":100.95603446473449,"throughput":98.69161643902872,"success":0.98,
 "status_codes":{"0":1,"200":98,"503":1},"errors":["503 Service Unavailable","unexpected EOF"]}"""

ZRK = """\
{
  "zrk_version": "0.1.0", "duration_s": 20.002, "requests": 19998, "achieved_rate": 999.80,
  "max_schedule_lag_us": 84,
  "latency_us": {"min": 106, "mean": 422.0, "p50": 251, "p75": 337, "p90": 471, "p99": 1913, "p99_9": 13364},
  "status_codes": {"1xx": 0, "2xx": 19990, "3xx": 0, "4xx": 0, "5xx": 8}
}"""

STRACE = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 63.33    0.193564      193564         1           clock_nanosleep
 16.10    0.049220           4     10730           write
 11.14    0.034066           1     21474           epoll_ctl
  0.00    0.000000           0         9         8 connect
------ ----------- ----------- --------- --------- ----------------
100.00    0.305664           6     32214         8 total
"""
