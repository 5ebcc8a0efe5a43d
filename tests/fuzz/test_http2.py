"""The HTTP/2 fuzzer generates the same inputs from the same seed, its server responds to requests,
and it detects each kind of failure."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from .http2_frames import (
    CLOSE,
    NEXT,
    PAUSE,
    Script,
    addressed,
    frame,
    frames_of,
    mutated_frames,
    script_of,
)
from .http2_load import (
    ALL_OPTIONS,
    LOADGEN,
    MAX_RESIDENT_BYTES,
    LoadOptions,
    LoadResult,
    load_failure,
    run_load,
)

needs_loadgen = pytest.mark.skipif(
    not LOADGEN.exists(), reason="target/release/loadgen is not built"
)

SETTINGS, HEAD, BODY = frame(4, 0, 0), frame(1, 4, 1, b"\x88"), frame(0, 1, 1, b"hello")
RESPONSE = SETTINGS + NEXT + HEAD + BODY
GOOD = LoadResult(0, 0.3, 20_000_000, "", {"scheduled": 10, "ok": 9, "timeout": 1})


def test_the_same_seed_generates_the_same_inputs() -> None:
    def inputs(seed: int) -> list[bytes]:
        rng = random.Random(seed)
        return [mutated_frames([RESPONSE, SETTINGS], rng) for _ in range(100)]

    assert inputs(1) == inputs(1)
    assert inputs(1) != inputs(2)
    assert len(set(inputs(1))) > 80


def test_an_input_consists_of_a_greeting_and_replies() -> None:
    data = SETTINGS + NEXT + HEAD + PAUSE + BODY + NEXT + CLOSE
    assert script_of(data) == Script([SETTINGS], [[HEAD, PAUSE, BODY], [CLOSE]])
    assert script_of(SETTINGS) == Script([SETTINGS], [])
    assert frames_of(HEAD + BODY[:-2]) == [HEAD, BODY[:-2]]


def test_a_reply_is_addressed_to_the_stream_of_its_request() -> None:
    ping = frame(6, 0, 0, bytes(8))
    expected = frame(1, 4, 7, b"\x88") + ping + frame(0, 1, 7, b"hello")[:-2]
    assert addressed(HEAD + ping + BODY[:-2], 7) == expected


@needs_loadgen
@pytest.mark.parametrize("options", ALL_OPTIONS, ids=str)
def test_a_correct_server_is_measured(options: LoadOptions) -> None:
    result = run_load(RESPONSE, options)
    assert load_failure(result) is None
    assert result.outcomes is not None
    assert result.outcomes["ok"] >= (10 if options.is_open else 4)
    assert result.peak_bytes > 1_000_000


@needs_loadgen
def test_every_request_to_a_server_that_closes_its_connections_is_reset() -> None:
    result = run_load(SETTINGS + NEXT + HEAD + CLOSE, ALL_OPTIONS[0])
    assert load_failure(result) is None
    assert result.exit_code == 97
    assert result.outcomes is not None
    assert result.outcomes["reset"] == result.outcomes["scheduled"] == 10


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        (replace(GOOD, exit_code=101, messages="thread panicked at"), "exit code 101"),
        (replace(GOOD, exit_code=-9), "exit code -9"),
        (replace(GOOD, messages="thread 'engine' panicked at"), "panicked"),
        (replace(GOOD, duration_s=1.3), "took 1.30 s"),
        (replace(GOOD, peak_bytes=MAX_RESIDENT_BYTES + 1), "64,000,001 bytes"),
        (replace(GOOD, outcomes=None), "no report"),
        (replace(GOOD, outcomes={"scheduled": 10, "ok": 9}), "not the sum"),
        (replace(GOOD, outcomes={"scheduled": 10, "ok": 9, "reset": 2}), "not the sum"),
        (replace(GOOD, outcomes={"scheduled": 0, "ok": 0}), "scheduled is 0"),
    ],
)
def test_each_kind_of_failure_is_detected(result: LoadResult, failure: str) -> None:
    assert load_failure(GOOD) is None
    assert failure in str(load_failure(result))
