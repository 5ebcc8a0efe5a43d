"""The fuzzer of HTTP/2 makes the same inputs from the same seed, its server answers requests, and it
notices each way in which a load can fail."""

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
from .http2_load import LOADGEN, MAX_RESIDENT_BYTES, WAYS, Ended, Way, complaint_of_end, load

needs_loadgen = pytest.mark.skipif(
    not LOADGEN.exists(), reason="target/release/loadgen is not built"
)

SETTINGS, HEAD, BODY = frame(4, 0, 0), frame(1, 4, 1, b"\x88"), frame(0, 1, 1, b"hello")
RESPONSE = SETTINGS + NEXT + HEAD + BODY
GOOD = Ended(0, 0.3, 20_000_000, "", {"scheduled": 10, "ok": 9, "timeout": 1})


def test_the_same_seed_makes_the_same_inputs() -> None:
    def made(seed: int) -> list[bytes]:
        chance = random.Random(seed)
        return [mutated_frames([RESPONSE, SETTINGS], chance) for _ in range(100)]

    assert made(1) == made(1)
    assert made(1) != made(2)
    assert len(set(made(1))) > 80


def test_an_input_is_a_greeting_and_replies() -> None:
    data = SETTINGS + NEXT + HEAD + PAUSE + BODY + NEXT + CLOSE
    assert script_of(data) == Script([SETTINGS], [[HEAD, PAUSE, BODY], [CLOSE]])
    assert script_of(SETTINGS) == Script([SETTINGS], [])
    assert frames_of(HEAD + BODY[:-2]) == [HEAD, BODY[:-2]]


def test_a_reply_is_addressed_to_the_stream_of_its_request() -> None:
    ping = frame(6, 0, 0, bytes(8))
    expected = frame(1, 4, 7, b"\x88") + ping + frame(0, 1, 7, b"hello")[:-2]
    assert addressed(HEAD + ping + BODY[:-2], 7) == expected


@needs_loadgen
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_correct_server_is_measured(way: Way) -> None:
    ended = load(RESPONSE, way)
    assert complaint_of_end(ended) is None
    assert ended.outcomes is not None
    assert ended.outcomes["ok"] >= (10 if way.is_open else 4)
    assert ended.peak_bytes > 1_000_000


@needs_loadgen
def test_a_server_that_closes_each_connection_fails_each_request() -> None:
    ended = load(SETTINGS + NEXT + HEAD + CLOSE, WAYS[0])
    assert complaint_of_end(ended) is None
    assert ended.exit_code == 97
    assert ended.outcomes is not None
    assert ended.outcomes["reset"] == ended.outcomes["scheduled"] == 10


@pytest.mark.parametrize(
    ("ended", "complaint"),
    [
        (replace(GOOD, exit_code=101, messages="thread panicked at"), "exit code 101"),
        (replace(GOOD, exit_code=-9), "exit code -9"),
        (replace(GOOD, messages="thread 'engine' panicked at"), "panicked"),
        (replace(GOOD, took_s=1.3), "took 1.30 s"),
        (replace(GOOD, peak_bytes=MAX_RESIDENT_BYTES + 1), "64,000,001 bytes"),
        (replace(GOOD, outcomes=None), "no report"),
        (replace(GOOD, outcomes={"scheduled": 10, "ok": 9}), "not the sum"),
        (replace(GOOD, outcomes={"scheduled": 10, "ok": 9, "reset": 2}), "not the sum"),
        (replace(GOOD, outcomes={"scheduled": 0, "ok": 0}), "scheduled is 0"),
    ],
)
def test_each_failure_of_a_load_is_noticed(ended: Ended, complaint: str) -> None:
    assert complaint_of_end(GOOD) is None
    assert complaint in str(complaint_of_end(ended))
