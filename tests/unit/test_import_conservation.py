"""Each importer passes on or reports every row of its file, whatever is wrong with some of them."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from wsgiload.errors import UsageError
from wsgiload.loads.curl import targets_of_curl
from wsgiload.loads.har import targets_of_har
from wsgiload.loads.openapi import targets_of_openapi
from wsgiload.loads.recording import read_recording, targets_of_access_log
from wsgiload.loads.request import targets_of
from wsgiload.loads.targets_text import ImportedTargets

ROUNDS = 200
COMMON = 'h - - [25/Nov/2026:10:00:0{second} +0000] "{method} {path} HTTP/1.1" {status} 5 "-" "x"'
LOG_LINES = (
    COMMON,
    'h - - [25/Nov/2026:10:00:0{second} +0000] "{method} http://h{path} HTTP/2.0" {status} 5',
    '[2026-11-25T10:00:0{second}.310Z] "{method} {path} HTTP/2" {status} - 154 0 226 100 "h"',
    '{{"time": "2026-11-25T10:00:0{second}Z", "method": "{method}", "uri": "{path}", "status": {status}}}',
    '{{"ts": 1795600800.{second}, "request": {{"method": "{method}", "uri": "{path}"}}, "status": {status}}}',
    '{{"timestamp": "2026-11-25T10:00:0{second}.5Z", "httpRequest": {{"requestMethod": "{method}",'
    ' "requestUrl": "https://h{path}", "status": {status}}}}}',
    "h2 2026-11-25T10:00:0{second}.186641Z app/lb/50dc 192.0.2.1:2817 192.0.2.2:80 0.000 0.001 0.000"
    ' {status} {status} 34 366 "{method} https://h:443{path} HTTP/2.0" "curl" - - arn "Root=1"',
    "2026-11-25T10:00:0{second}.186641Z lb 192.0.2.1:2817 192.0.2.2:80 0.1 0.2 0.3 {status} 200 0 29"
    ' "{method} http://h:80{path} HTTP/1.1" "curl" - -',
    "Nov 25 10:00:0{second} lb haproxy[14]: 192.0.2.1:33317 [25/Nov/2026:10:00:0{second}.655] in s/s1"
    ' 10/0/30/69/109 {status} 2750 - - ---- 1/1/1/1/0 0/0 {{h}} {{}} "{method} {path} HTTP/1.1"',
)  # fmt: skip
NO_LINES = (
    b"nonsense",
    b"{",
    b'{"time": "noon", "uri": "/"}',
    b'{"uri": "/"}',
    b'h - - [31/Foo/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5',
    rb'h - - [25/Nov/2026:10:00:00 +0000] "\x16\x03\x01" 400 0',
    b'h - - [25/Nov/2026:10:00:00 +0000] "-" 408 0',
    b'h - - [25/Nov/2026:10:00:00 +0000] "CONNECT h:443 HTTP/1.1" 400 0',
    b'h - - [25/Nov/2026:10:00:00 +0000] "GET /live HTTP/1.1" 101 0',
    b'wss 2026-11-25T10:00:00.1Z app/lb/5 h:1 h:2 0 0 0 101 101 3 3 "GET wss://h/ HTTP/1.1" "x"',
    b'h - - [25/Nov/2026:10:00:00 +0000] "GET /cut',
)  # fmt: skip
PATHS = ("/", "/a?b=1", "/caf\\xC3\\xA9", "/ü", "/{{x}}", "/a|[b]")
METHODS = ("GET", "POST", "OPTIONS")


def passed_on(targets: ImportedTargets, tmp_path: Path) -> int:
    """How many requests a load would take from these targets."""
    path = tmp_path / "a.targets"
    path.write_text(targets.text)
    return round(sum(target.weight for target in targets_of(path)))


def reported(notes: Sequence[str]) -> tuple[int, int | None]:
    """How many rows were skipped, and of how many; they are in one note."""
    matches = [
        match for note in notes if (match := re.match(r"skipped ([\d,]+) of ([\d,]+)", note))
    ]
    assert len(matches) <= 1, notes
    if not matches:
        return 0, None
    [match] = matches
    return int(match[1].replace(",", "")), int(match[2].replace(",", ""))


def test_every_kind_of_line_is_read(tmp_path: Path) -> None:
    for number, template in enumerate(LOG_LINES):
        line = template.format(second=1, method="GET", path="/a", status=404)
        path = tmp_path / f"{number}.log"
        path.write_text(f"{line}\n")

        assert targets_of_access_log(path).text == "GET /a\n--expect-status 404\n", line


def random_log(rng: random.Random) -> list[bytes]:
    rows = []
    for _ in range(rng.randrange(1, 30)):
        template = rng.choice(LOG_LINES)
        line = template.format(
            second=rng.randrange(10),
            method=rng.choice(METHODS),
            path=rng.choice([path for path in PATHS if "{{" not in template or "\\" not in path]),
            status=rng.choice((200, 304, 404, 500)),
        )
        encoding = "utf-8" if line.startswith("{") else rng.choice(("utf-8", "latin-1"))
        rows.append(line.encode(encoding))
    return rows


@pytest.mark.parametrize("is_packed", [False, True])
def test_lines_of_an_access_log(tmp_path: Path, is_packed: bool) -> None:
    rng = random.Random(int(is_packed))
    path = tmp_path / "access.log"
    for _ in range(ROUNDS):
        good, bad = random_log(rng), rng.choices(NO_LINES, k=rng.randrange(8))
        rows = [*good, *bad]
        rng.shuffle(rows)
        text = b"\n".join(rows) + rng.choice((b"", b"\n", b"\r\n"))
        path.write_bytes(gzip.compress(text) if is_packed else text)

        imported = targets_of_access_log(path)

        assert passed_on(imported, tmp_path) == len(good), text
        assert reported(imported.notes) == (len(bad), len(rows) if bad else None), text


def test_lines_of_a_damaged_access_log(tmp_path: Path) -> None:
    rng = random.Random(5)
    path = tmp_path / "access.log"
    for _ in range(ROUNDS):
        text = bytearray(b"\n".join(random_log(rng)))
        for _ in range(rng.randrange(1, 20)):
            text[rng.randrange(len(text))] = rng.choice(b'\x00"[]{} /\\:0a\xff\n')
        text += b"\n" + COMMON.format(second=1, method="GET", path="/", status=200).encode()
        path.write_bytes(text)

        imported = targets_of_access_log(path)

        rows = [row for row in text.split(b"\n") if row.strip() and not row.startswith(b"#")]
        skipped, _ = reported(imported.notes)
        assert passed_on(imported, tmp_path) + skipped == len(rows), bytes(text)


def test_a_packed_log_without_its_end_keeps_what_is_there(tmp_path: Path) -> None:
    rng = random.Random(6)
    lines = [
        COMMON.format(second=1, method="GET", path=f"/{rng.random()}", status=200)
        for _ in range(20_000)
    ]
    path = tmp_path / "access.log.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode())[:-2_000])

    imported = targets_of_access_log(path)

    assert 10_000 < passed_on_without_reading(imported) < 20_000
    assert imported.notes[-1] == "the packed file is cut off; its end is missing"


def passed_on_without_reading(targets: ImportedTargets) -> int:
    return targets.text.count("GET /")


def test_lines_of_a_trace(tmp_path: Path) -> None:
    rng = random.Random(2)
    path = tmp_path / "trace"
    for _ in range(ROUNDS):
        offsets = sorted(rng.random() for _ in range(rng.randrange(1, 20)))
        rows = [f"{offset}" if rng.random() < 0.5 else f"{offset * 1e3}ms" for offset in offsets]
        bad = rng.choices(("1,5", "now", "5 parsecs", "-1"), k=rng.randrange(4))
        for row in bad:
            rows.insert(rng.randrange(len(rows) + 1), row)
        path.write_text("# a trace\n\n" + "\n".join(rows))

        recording = read_recording(path)

        assert len(recording.offsets_ns) == len(offsets)
        assert reported(recording.notes) == (len(bad), len(rows) if bad else None)


def har_entry(url: str, **more: object) -> dict[str, object]:
    return {"request": {"method": "GET", "url": url, **more}, "response": {"status": 200}}


HAR_ENTRIES = (
    har_entry("http://h/a"),
    har_entry("http://h/a?b=ü|"),
    har_entry("http://h/", postData={"params": [{"name": "a", "value": "b"}]}),
    har_entry("http://other/"),
    har_entry("ws://h/"),
    har_entry("data:,"),
    har_entry("moz-extension://x/"),
    har_entry("http://["),
    har_entry(""),
    har_entry("http://h/", headers=[{"name": "A", "value": "1\n2"}]),
    har_entry("http://h/", method="NO SUCH"),
    har_entry("http://h/", postData={"text": "!", "encoding": "base64"}),
    har_entry("http://h/", postData={"mimeType": "text/x", "params": [{"name": "a"}]}),
    {"request": None},
    {},
)


def test_entries_of_a_har_file(tmp_path: Path) -> None:
    rng = random.Random(3)
    for _ in range(ROUNDS):
        entries = [HAR_ENTRIES[0], *rng.choices((*HAR_ENTRIES, 7, None), k=rng.randrange(20))]

        imported = targets_of_har(json.dumps({"log": {"entries": entries}}).encode())

        skipped, _ = reported(imported.notes)
        assert passed_on(imported, tmp_path) + skipped == len(entries)


def test_curl_commands(tmp_path: Path) -> None:
    rng = random.Random(4)
    commands = (
        *("curl h/a", "curl -d x h/b", "curl other/", "curl -F a=@b h", "wget h", "curl h/?a&b"),
        *("curl h/$X", "curl ftp://h", "curl -d @missing h", "curl h -H nonsense"),
    )
    for _ in range(ROUNDS):
        rows = ["curl h/a", *rng.choices(commands, k=rng.randrange(10))]
        # An open quote extends to the next one.
        rows += rng.choice(([], ["curl 'h"]))

        imported = targets_of_curl(rng.choice(("\n", " ; ")).join(rows), missing)

        skipped, _ = reported(imported.notes)
        assert passed_on(imported, tmp_path) + skipped == len(rows), rows


def missing(name: str) -> bytes:
    raise UsageError(f"cannot read {name}")


def test_operations_of_a_description(tmp_path: Path) -> None:
    rng = random.Random(7)
    operations: tuple[object, ...] = (
        {},
        {"parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}]},
        {"parameters": [{"name": "q", "in": "query", "required": True, "schema": {}}]},
        {"parameters": [{"$ref": "other.json"}]},
        None,
    )
    for _ in range(ROUNDS):
        paths = {
            f"/{number}{rng.choice(('', '/{id}', ' x'))}": {"get": rng.choice(operations)}
            for number in range(rng.randrange(10))
        }
        document = {"openapi": "3.0.0", "paths": paths | {"/": {"get": {}}}}

        imported = targets_of_openapi(json.dumps(document).encode())

        skipped, _ = reported(imported.notes)
        assert passed_on(imported, tmp_path) + skipped == len(paths) + 1, paths


@pytest.mark.parametrize(
    "written", [lambda path: f"GET {path}\n\n", lambda path: f'{{"method":"GET","url":"{path}"}}\n']
)
def test_targets_are_all_read_or_the_file_is_refused(
    tmp_path: Path, written: Callable[[str], str]
) -> None:
    """Targets are written for a load, so an error in one is not skipped."""
    rng = random.Random(8)
    path = tmp_path / "a.targets"
    for _ in range(ROUNDS):
        names = [f"/{rng.randrange(5)}" for _ in range(rng.randrange(1, 20))]
        path.write_text("".join(map(written, names)))
        assert [target.request.url for target in targets_of(path)] == names

    path.write_text("".join(map(written, ["/a", "no path", "/b"])) + "--wieght 2\n")
    with pytest.raises(UsageError, match=r"a\.targets:\d+: "):
        targets_of(path)
