"""Explanations of the findings that only ``wsgiload audit`` reports; it shares the others with the
alarms."""

from __future__ import annotations

from wsgiload.analysis.explanation import explain

OF_AUDITS = (
    explain(
        "failed-connections",
        "other tools' results: failed connections, compared with all connections",
        "No request got a response, or the tool did not reopen failed connections, so the load was "
        "lower than stated.",
        "check the server's log and backlog and the client's ports, then repeat the run",
    ),
    explain(
        "saturated-client",
        "other tools' results: the sent rate, compared with the requested rate, and the length of "
        "the largest burst (httperf)",
        "The sent rate was below 99 % of the requested rate, or the tool was late by more than "
        "50 ms and more than the mean response time: the client limited the load.",
        "use a faster client, or several clients, on separate cores",
    ),
    explain(
        "errors-as-responses",
        "other tools' results: failed requests that the tool counts as responses",
        "More than 0.1 % of the requests failed. Errors are often faster than correct responses, "
        "so throughput and times look better than they are.",
        "compare goodput and the response times of correct responses only",
    ),
    explain(
        "failures-left-out",
        "other tools' results: failed requests that the tool excludes from its response times",
        "More than 0.1 % of the requests failed, so the times describe only the successful ones.",
        "count a failed request as slower than all others",
    ),
    explain(
        "too-few-requests",
        "other tools' results: the number of requests beyond the highest reported quantile from "
        "p50 to p99",
        "Fewer than ten requests lie beyond the quantile, so another run may give a very "
        "different value.",
        "send more requests, or quote a lower quantile",
    ),
    explain(
        "coarse-resolution",
        "other tools' results: the resolution of the response times, compared with the median",
        "The rounding error (half the resolution) is more than 10 % of the median, so servers with "
        "the same figure may differ severalfold.",
        "measure with a tool that records microseconds",
    ),
    explain(
        "averaged-percentiles",
        "other tools' results: the percentiles of an aggregated result, compared with those of the "
        "individual results",
        "At least three percentiles equal the mean of the individual percentiles, unweighted or "
        "weighted by request count. A mean of percentiles is not a percentile.",
        "merge the histograms or the individual response times, then compute the percentile",
    ),
    explain(
        "capped-concurrency",
        "other tools' results: throughput × mean response time at three or more numbers of "
        "connections",
        "The product varies by at most 10 % while the number of connections at least doubles, "
        "and never exceeds half of the largest number: the server serves a fixed number of "
        "connections, and the others get no responses.",
        "use no more connections than the server serves, or compare at fixed rates",
    ),
    explain(
        "missing-run",
        "other tools' results: runs without any response",
        "A file is empty, or no request got a response. A table that counts the missing result "
        "as 0 ranks the server last, although its result is unknown.",
        "repeat the run, or report it as missing",
    ),
)
