"""Damaged run directories: the error names the file, and the rest of the run is reported.

The corruptions are generated from fixed seeds, so each is reproducible by its number.
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
    def damage(data: bytes, rng: random.Random) -> bytes:
        return json.dumps(change(json.loads(data), rng)).encode()

    return damage


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Each key or index of a document, with its container."""
    if isinstance(document, dict | list):
        for name in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, name
            yield from places(document[name])


def at_random_place(change: Callable[[Any, Any], None]) -> Damage:
    def damage(document: Any, rng: random.Random) -> Any:
        container, name = rng.choice(list(places(document)))
        change(container, name)
        return document

    return as_json(damage)


def replace_with(value: Any) -> Damage:
    return at_random_place(lambda container, name: container.__setitem__(name, value))


def drop(container: Any, name: Any) -> None:
    del container[name]


def flip_bit(data: bytes, rng: random.Random) -> bytes:
    position = rng.randrange(len(data))
    return (
        data[:position] + bytes([data[position] ^ (1 << rng.randrange(8))]) + data[position + 1 :]
    )


def double_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    position = rng.randrange(len(lines))
    return b"".join(lines[: position + 1] + lines[position:])


BYTES: dict[str, Damage] = {
    "deleted": lambda data, rng: None,
    "empty": lambda data, rng: b"",
    "truncated": lambda data, rng: data[: rng.randrange(1, len(data))],
    "cut in its last line": lambda data, rng: data[:-3],
    "not UTF-8": lambda data, rng: data[:20] + b"\xff\xfe" + data[20:],
    "UTF-16": lambda data, rng: data.decode().encode("utf-16"),
    "NUL bytes": lambda data, rng: data[: len(data) // 2] + bytes(len(data) // 2),
    "bit flipped": flip_bit,
    "line doubled": double_line,
    "binary": lambda data, rng: rng.randbytes(500),
}
JSON: dict[str, Damage] = {
    "a list": as_json(lambda document, rng: [document]),
    "a number": lambda data, rng: b"7",
    "an empty object": lambda data, rng: b"{}",
    "nested": lambda data, rng: b"[" * 100_000,
    "newer": as_json(lambda document, rng: document | {"schema_version": 99}),
    "version of text": as_json(lambda document, rng: document | {"schema_version": "1"}),
    "key dropped": at_random_place(drop),
    "null": replace_with(None),
    "negative": replace_with(-1),
    "immense": replace_with(10**18),
    "beyond 64 bits": replace_with(10**30),
    "text": replace_with("zz"),
    "a lone surrogate": replace_with("\udc80"),
    "a terminal's title": replace_with("\x1b]0;x\x07"),
    "an empty list": replace_with([]),
}
CSV: dict[str, Damage] = {
    "no number": lambda data, rng: data.replace(b",", b",x", 40),
    "not finite": lambda data, rng: data.replace(b",1", b",inf", 40),
    "an immense field": lambda data, rng: data + b"a," + b"9" * 200_000 + b"\n",
    "open quote": lambda data, rng: data + b'"a,1\n' * 20,
    "short line": lambda data, rng: data + b"a\n",
    "no heading": lambda data, rng: data.partition(b"\n")[2],
}


def corruptions() -> list[tuple[str, str, Damage, int]]:
    """The file, kind, damage and seed of each corruption."""
    generated = []
    for file in ("summary.json", "run.json", "load", NAME):
        for kind, damage in (BYTES | JSON).items():
            repetitions = 4 if kind in ("truncated", "bit flipped") else 3 if kind in JSON else 1
            generated += [(file, kind, damage, seed) for seed in range(repetitions)]
    for file in ("intervals.csv", "resources.csv"):
        for kind, damage in (BYTES | CSV).items():
            repetitions = 4 if kind in ("truncated", "bit flipped", "binary") else 1
            generated += [(file, kind, damage, seed) for seed in range(repetitions)]
    return generated


CORRUPTIONS = corruptions()


@pytest.fixture(scope="module")
def intact_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run directory with its manifest."""
    run = write_run(tmp_path_factory.mktemp("runs") / "intact")
    summary = json.loads((run / "summary.json").read_text())
    cells = [cell for cell in summary["cells"] if cell["failure"] is None][:KEPT_CELLS]
    summary["cells"], kept_ids = cells, {cell["id"] for cell in cells}
    summary["order"] = sorted(kept_ids)
    (run / "summary.json").write_text(json.dumps(summary))
    for path in (run / "load").iterdir():
        if path.stem not in kept_ids:
            path.unlink()
    for name in ("intervals.csv", "resources.csv"):
        header, *lines = (run / name).read_text().splitlines()
        lines = [line for line in lines if line.partition(",")[0] in kept_ids]
        (run / name).write_text("\n".join([header, *lines]) + "\n")

    digests = Digests()
    for path in sorted(run.rglob("*")):
        if path.is_file():
            digests.take(run, str(path.relative_to(run)))
    (run / NAME).write_bytes(encode_bytes(digests.manifest()))
    return run


def test_there_are_many_corruptions() -> None:
    assert len(CORRUPTIONS) >= 290


def test_an_intact_run_has_no_damage(intact_run: Path) -> None:
    assert damages(intact_run) == []


def damage_and_report(number: int, intact_run: Path, tmp_path: Path, capsys: Captured) -> None:
    """Report a damaged copy of the run; the error must name the file, and the report be written."""
    file, kind, damage, seed = CORRUPTIONS[number]
    run = tmp_path / f"run-{number}"
    shutil.copytree(intact_run, run)
    path = sorted((run / "load").iterdir())[0] if file == "load" else run / file
    before = path.read_bytes()
    damaged = damage(before, random.Random(seed))
    if damaged is None:
        path.unlink()
    else:
        path.write_bytes(damaged)

    code = cli.run(["report", str(run)])

    output = capsys.readouterr()
    description = f"corruption {number}: {file}, {kind}, seed {seed}: {output.err}"
    assert code in (EXIT_OK, EXIT_USAGE), description
    assert "Traceback" not in output.err, description
    assert "\x1b" not in output.out + output.err, description
    if damaged != before and not (file == NAME and code == EXIT_OK):
        assert str(path) in output.err, description
    if code == EXIT_OK and file != "summary.json":
        assert (run / "report.html").stat().st_size > 10_000, description
    shutil.rmtree(run)


@pytest.mark.parametrize("part", range(8))
def test_each_damaged_file_is_named_and_the_rest_is_reported(
    part: int, intact_run: Path, tmp_path: Path, capsys: Captured
) -> None:
    for number in range(part, len(CORRUPTIONS), 8):
        damage_and_report(number, intact_run, tmp_path, capsys)


def test_a_damaged_run_does_not_stop_reports_of_other_runs(
    intact_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged, intact = tmp_path / "damaged", tmp_path / "intact"
    shutil.copytree(intact_run, damaged)
    shutil.copytree(intact_run, intact)
    (damaged / "summary.json").write_bytes(b"{")

    assert cli.run(["report", str(damaged), str(intact)]) == EXIT_USAGE

    output = capsys.readouterr()
    assert str(damaged / "summary.json") in output.err
    assert f"report: {intact / 'report.html'}" in output.out
