"""No target fails for the stored corpus and some mutations of it, and a failing input is stored."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from .__main__ import failure_of, fuzz, main
from .targets import INPUTS, Input, message_failure
from .test_http2 import needs_loadgen

COUNTS = dict.fromkeys(INPUTS, 300) | {"runs": 25, "http2": 12}

NEEDS = {"http2": needs_loadgen}


@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDS.get(name, ())) for name in INPUTS])
def test_the_corpus_and_its_mutations_are_accepted_or_rejected(name: str) -> None:
    inputs, rng = INPUTS[name](), random.Random(1)
    cases = [(source, data) for source in inputs for data in source.corpus]
    for _ in range(COUNTS[name]):
        source = rng.choice(inputs)
        cases.append((source, source.mutate(source.corpus, rng)))

    assert len(cases) > COUNTS[name]
    assert [failure for source, data in cases if (failure := failure_of(source, data))] == []


def test_a_failing_input_is_found_and_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_at_x(data: bytes) -> str | None:
        return message_failure(lambda: {}[data] if b"x" in data else None)

    monkeypatch.setitem(INPUTS, "faulty", lambda: [Input([b"a\nx\n", b"b\n"], fail_at_x)])

    count, failure = fuzz("faulty", 20.0, 1, tmp_path)

    assert count >= 1
    assert failure is not None and failure.startswith("KeyError: ")
    (path,) = tmp_path.iterdir()
    assert str(path) in failure
    assert b"x" in path.read_bytes()

    assert main(["faulty", "--input", str(path)]) == 1
    path.write_bytes(b"a")
    assert main(["faulty", "--input", str(path)]) == 0
