"""Run directories damaged in every way: one line names the file, and the rest is reported.

The corruptions are generated, from a fixed seed, so that each can be found again by its number.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wsgiload import cli
from wsgiload.documents.codec import encode_bytes
from wsgiload.errors import EXIT_OK, EXIT_USAGE
from wsgiload.results.integrity import damages
from wsgiload.results.manifest import NAME, Digests

from .report_fixture import write_run

KEPT_CELLS = 2
Captured = pytest.CaptureFixture[str]
Damage = Callable[[bytes, random.Random], bytes | None]


def as_json(change: Callable[[Any, random.Random], Any]) -> Damage:
    def damage(data: bytes, chance: random.Random) -> bytes:
        return json.dumps(change(json.loads(data), chance)).encode()

    return damage


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every key or index of a document, with what holds it."""
    if isinstance(document, dict | list):
        for name in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, name
            yield from places(document[name])


def at_a_place(change: Callable[[Any, Any], None]) -> Damage:
    def damage(document: Any, chance: random.Random) -> Any:
        holder, name = chance.choice(list(places(document)))
        change(holder, name)
        return document

    return as_json(damage)


def put(value: Any) -> Damage:
    return at_a_place(lambda holder, name: holder.__setitem__(name, value))


def drop(holder: Any, name: Any) -> None:
    del holder[name]


def flipped(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def doubled_line(data: bytes, chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    return b"".join(lines[: at + 1] + lines[at:])


BYTES: dict[str, Damage] = {
    "deleted": lambda data, chance: None,
    "empty": lambda data, chance: b"",
    "truncated": lambda data, chance: data[: chance.randrange(1, len(data))],
    "cut in its last line": lambda data, chance: data[:-3],
    "not UTF-8": lambda data, chance: data[:20] + b"\xff\xfe" + data[20:],
    "UTF-16": lambda data, chance: data.decode().encode("utf-16"),
    "NUL bytes": lambda data, chance: data[: len(data) // 2] + bytes(len(data) // 2),
    "bit flipped": flipped,
    "line doubled": doubled_line,
    "binary": lambda data, chance: chance.randbytes(500),
}
JSON: dict[str, Damage] = {
    "a list": as_json(lambda document, chance: [document]),
    "a number": lambda data, chance: b"7",
    "an empty object": lambda data, chance: b"{}",
    "nested": lambda data, chance: b"[" * 100_000,
    "newer": as_json(lambda document, chance: document | {"schema_version": 99}),
    "older": as_json(lambda document, chance: document | {"schema_version": 1}),
    "version of text": as_json(lambda document, chance: document | {"schema_version": "2"}),
    "key dropped": at_a_place(drop),
    "null": put(None),
    "negative": put(-1),
    "immense": put(10**18),
    "beyond 64 bits": put(10**30),
    "text": put("zz"),
    "a lone surrogate": put("\udc80"),
    "a terminal's title": put("\x1b]0;x\x07"),
    "an empty list": put([]),
}
CSV: dict[str, Damage] = {
    "no number": lambda data, chance: data.replace(b",", b",x", 40),
    "not finite": lambda data, chance: data.replace(b",1", b",inf", 40),
    "an immense field": lambda data, chance: data + b"a," + b"9" * 200_000 + b"\n",
    "open quote": lambda data, chance: data + b'"a,1\n' * 20,
    "short line": lambda data, chance: data + b"a\n",
    "no heading": lambda data, chance: data.partition(b"\n")[2],
}


def corruptions() -> list[tuple[str, str, Damage, int]]:
    """File, kind, damage and seed of each."""
    made = []
    for file in ("summary.json", "run.json", "load", NAME):
        for kind, damage in (BYTES | JSON).items():
            times = 4 if kind in ("truncated", "bit flipped") else 3 if kind in JSON else 1
            made += [(file, kind, damage, seed) for seed in range(times)]
    for file in ("intervals.csv", "resources.csv"):
        for kind, damage in (BYTES | CSV).items():
            times = 4 if kind in ("truncated", "bit flipped", "binary") else 1
            made += [(file, kind, damage, seed) for seed in range(times)]
    return made


CORRUPTIONS = corruptions()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with its manifest."""
    run = write_run(tmp_path_factory.mktemp("runs") / "whole")
    summary = json.loads((run / "summary.json").read_text())
    measured = [cell for cell in summary["cells"] if cell["failure"] is None][:KEPT_CELLS]
    summary["cells"], kept = measured, {cell["id"] for cell in measured}
    summary["order"] = sorted(kept)
    (run / "summary.json").write_text(json.dumps(summary))
    for path in (run / "load").iterdir():
        if path.stem not in kept:
            path.unlink()
    for name in ("intervals.csv", "resources.csv"):
        heading, *lines = (run / name).read_text().splitlines()
        lines = [line for line in lines if line.partition(",")[0] in kept]
        (run / name).write_text("\n".join([heading, *lines]) + "\n")

    digests = Digests()
    for path in sorted(run.rglob("*")):
        if path.is_file():
            digests.take(run, str(path.relative_to(run)))
    (run / NAME).write_bytes(encode_bytes(digests.manifest()))
    return run


def test_there_are_enough() -> None:
    assert len(CORRUPTIONS) >= 300


def test_a_whole_run_has_no_damage(whole: Path) -> None:
    assert damages(whole) == []


def report_one(number: int, whole: Path, tmp_path: Path, capsys: Captured) -> None:
    """Damage a copy of the run and report it: its message names the file, and the rest is shown."""
    file, kind, damage, seed = CORRUPTIONS[number]
    run = tmp_path / f"run-{number}"
    shutil.copytree(whole, run)
    path = sorted((run / "load").iterdir())[0] if file == "load" else run / file
    before = path.read_bytes()
    damaged = damage(before, random.Random(seed))
    if damaged is None:
        path.unlink()
    else:
        path.write_bytes(damaged)

    code = cli.run(["report", str(run)])

    shown = capsys.readouterr()
    what = f"corruption {number}: {file}, {kind}, seed {seed}: {shown.err}"
    assert code in (EXIT_OK, EXIT_USAGE), what
    assert "Traceback" not in shown.err, what
    assert "\x1b" not in shown.out + shown.err, what
    if damaged != before and not (file == NAME and code == EXIT_OK):
        assert str(path) in shown.err, what
    if code == EXIT_OK and file != "summary.json":
        assert (run / "report.html").stat().st_size > 10_000, what
    shutil.rmtree(run)


@pytest.mark.parametrize("part", range(8))
def test_each_is_named_and_the_rest_is_reported(
    part: int, whole: Path, tmp_path: Path, capsys: Captured
) -> None:
    for number in range(part, len(CORRUPTIONS), 8):
        report_one(number, whole, tmp_path, capsys)


def test_a_damaged_run_does_not_stop_the_others(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, good = tmp_path / "broken", tmp_path / "good"
    shutil.copytree(whole, broken)
    shutil.copytree(whole, good)
    (broken / "summary.json").write_bytes(b"{")

    assert cli.run(["report", str(broken), str(good)]) == EXIT_USAGE

    shown = capsys.readouterr()
    assert str(broken / "summary.json") in shown.err
    assert f"report: {good / 'report.html'}" in shown.out
