"""Parsers for the output of the benchmarked generators: counts, times and quantiles."""

from __future__ import annotations

import pytest

from bench import outputs
from bench.load import OutputError

from . import bench_outputs as captured


def test_loadgen_counts_responses_and_omits_unfinished_requests() -> None:
    output = outputs.parse_loadgen(captured.LOADGEN)
    assert (output.requests, output.failed, output.elapsed_s) == (996, 2, 1.0)
    assert output.quantiles_us == {"0.5": 2069.503, "0.99": 6828.031}
    assert output.remarks == {
        "verdict": "invalid",
        "checks": ["run-queue-wait", "send-lag"],
        "send_lag_us": {"0.5": 1.278, "0.99": 3768.319, "0.999": 4788.223},
        "scheduled": 1000,
        "unfinished": 2,
        "peak_connections": 10,
    }


def test_floor() -> None:
    output = outputs.parse_floor('{"requests": 254018, "elapsed_s": 1.000004}\n')
    assert (output.requests, output.failed, output.elapsed_s, output.quantiles_us) == (
        254_018,
        0,
        1.000004,
        {},
    )


def test_wrk() -> None:
    output = outputs.parse_wrk(captured.WRK)
    assert (output.requests, output.failed, output.elapsed_s) == (115_458, 0, 1.0)
    assert output.quantiles_us == pytest.approx({"0.5": 54.0, "0.99": 2030.0})


def test_wrk_errors_and_bad_statuses_are_failures() -> None:
    output = outputs.parse_wrk(captured.WRK_WITH_ERRORS)
    assert (output.requests, output.failed) == (115_400, 63)
    assert output.elapsed_s == pytest.approx(60.6)
    assert output.quantiles_us == {}


def test_the_percentile_spectrum_of_wrk2_is_ignored() -> None:
    output = outputs.parse_wrk(captured.WRK2_SPECTRUM)
    assert output.requests == 19_998
    assert output.quantiles_us == pytest.approx({"0.5": 1020.0, "0.99": 2110.0})


def test_h2load() -> None:
    output = outputs.parse_h2load(captured.H2LOAD)
    assert (output.requests, output.failed, output.elapsed_s, output.quantiles_us) == (
        105_490,
        3,
        1.0,
        {},
    )


def test_ab() -> None:
    output = outputs.parse_ab(captured.AB)
    assert (output.requests, output.failed, output.elapsed_s, output.quantiles_us) == (
        101_480,
        2,
        1.0,
        {},
    )


def test_requests_aborted_by_oha_at_the_deadline_are_not_failures() -> None:
    output = outputs.parse_oha(captured.OHA)
    assert (output.requests, output.failed, output.elapsed_s) == (87_844, 3, 1.001366737)
    assert output.quantiles_us == pytest.approx({"0.5": 73.93, "0.99": 185.632})


def test_hey() -> None:
    output = outputs.parse_hey(captured.HEY)
    assert (output.requests, output.failed, output.elapsed_s) == (43_561, 7, 1.0044)
    assert output.quantiles_us == pytest.approx({"0.5": 100.0, "0.99": 600.0})


def test_fortio() -> None:
    output = outputs.parse_fortio(captured.FORTIO)
    assert (output.requests, output.failed, output.elapsed_s) == (495, 1, 1.006883788)
    assert output.quantiles_us == pytest.approx({"0.5": 85.967742, "0.99": 301.0})


def test_vegeta() -> None:
    output = outputs.parse_vegeta(captured.VEGETA)
    assert (output.requests, output.failed, output.elapsed_s) == (98, 2, pytest.approx(0.992992146))
    assert output.quantiles_us == pytest.approx({"0.5": 2460.715, "0.99": 5289.690})


def test_zrk() -> None:
    output = outputs.parse_zrk(captured.ZRK)
    assert (output.requests, output.failed, output.elapsed_s) == (19_990, 8, 20.002)
    assert (output.quantiles_us, output.remarks) == (
        {"0.5": 251, "0.99": 1913},
        {"max_schedule_lag_us": 84},
    )


def test_strace_rows_with_and_without_errors() -> None:
    assert outputs.parse_strace(captured.STRACE) == {
        "clock_nanosleep": 1,
        "write": 10_730,
        "epoll_ctl": 21_474,
        "connect": 9,
    }


@pytest.mark.parametrize(
    "name", ["loadgen", "floor", "wrk", "h2load", "ab", "oha", "hey", "fortio", "vegeta", "zrk"]
)
@pytest.mark.parametrize("text", ["", "unable to connect to 127.0.0.1:1 Connection refused\n"])
def test_output_without_a_count_is_an_error_with_the_output(name: str, text: str) -> None:
    with pytest.raises(
        OutputError, match=f"{name} did not print .*{'Connection refused' if text else 'no output'}"
    ):
        getattr(outputs, f"parse_{name}")(text)


def test_a_refused_ptrace_is_an_error() -> None:
    with pytest.raises(OutputError, match="no table"):
        outputs.parse_strace("strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted\n")
