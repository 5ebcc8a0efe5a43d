"""The stored corpus is read, some mutations of it too, and a fault is found and kept."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from .__main__ import complaint_of, fuzz, main
from .targets import INPUTS, Input, complaint_of_message
from .test_http2 import needs_loadgen

COUNTS = dict.fromkeys(INPUTS, 300) | {"runs": 25, "http2": 12}

NEEDS = {"http2": needs_loadgen}


@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDS.get(name, ())) for name in INPUTS])
def test_what_is_stored_and_what_is_made_of_it_is_read_or_refused(name: str) -> None:
    inputs, chance = INPUTS[name](), random.Random(1)
    made = [(one, data) for one in inputs for data in one.corpus]
    for _ in range(COUNTS[name]):
        one = chance.choice(inputs)
        made.append((one, one.mutate(one.corpus, chance)))
    assert len(made) > COUNTS[name]
    assert [complaint for one, data in made if (complaint := complaint_of(one, data))] == []


def test_a_fault_is_found_and_its_input_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_at_an_x(data: bytes) -> str | None:
        return complaint_of_message(lambda: {}[data] if b"x" in data else None)

    monkeypatch.setitem(INPUTS, "faulty", lambda: [Input([b"a\nx\n", b"b\n"], fails_at_an_x)])
    count, complaint = fuzz("faulty", 20.0, 1, tmp_path)
    assert count >= 1
    assert complaint is not None and complaint.startswith("KeyError: ")
    (path,) = tmp_path.iterdir()
    assert str(path) in complaint
    assert b"x" in path.read_bytes()

    assert main(["faulty", "--input", str(path)]) == 1
    path.write_bytes(b"a")
    assert main(["faulty", "--input", str(path)]) == 0
