"""Hostile text from servers, apps and stored files is escaped in all output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.table import Table
from rich.text import Text

from wsgiload.cli._output import complain, print_status, say, write_json
from wsgiload.documents.cell_result import CellFailure
from wsgiload.documents.codec import encode, read, to_plain
from wsgiload.documents.load_report import LoadReport
from wsgiload.documents.summary import Summary
from wsgiload.errors import ServerError, WsgiloadError
from wsgiload.foreign_text import MAX_MESSAGE_CHARACTERS, MAX_TAIL_CHARACTERS, visible, visible_json
from wsgiload.report import print_first_screen, print_sweep, terminal, write_html
from wsgiload.results.record import failure_of

from .report_fixture import write_run

TITLE = "\x1b]0;owned\x07"
HOSTILE = {
    "terminal title": TITLE,
    "colour": "\x1b[31m",
    "C1 control": "\x9b31m",
    "carriage return": "\rfine",
    "backspace": "\b\b",
    "delete": "\x7f",
    "NUL": "\x00",
    "right to left": "\u202egnp.exe",
    "isolate": "\u2066x",
    "line separator": "\u2028",
    "lone surrogate": "\udc80",
    "tag": "\U000e0041",
    "zero-width space": "\u200b",
    "soft hyphen": "\u00ad",
    "word joiner": "\u2060",
}
HOSTILE_TEXT = "".join(HOSTILE.values())
RAW_CHARACTERS = [text[0] for text in HOSTILE.values() if text != "\rfine"] + ["\r"]


def raw_characters_in(text: str) -> list[str]:
    return [character for character in RAW_CHARACTERS if character in text]


@pytest.mark.parametrize("name", HOSTILE)
def test_each_hostile_character_is_escaped(name: str) -> None:
    shown = visible(f"a{HOSTILE[name]}b")
    assert shown.startswith("a\\") and shown.endswith("b")
    assert not raw_characters_in(shown)


@pytest.mark.parametrize(
    "text", ["plain", "two\nlines\tand a tab", "Grüße, 漢字, עברית, 🙂", "می\u200cخواهم", "–"]
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert visible(text) == text


def test_escaped_json_decodes_to_the_same_value() -> None:
    text = json.dumps({"a": HOSTILE_TEXT.replace("\udc80", "")}, ensure_ascii=False)
    shown = visible_json(text)
    assert not raw_characters_in(shown)
    assert json.loads(shown) == json.loads(text)


def test_errors_are_escaped_and_truncated() -> None:
    error = ServerError(
        HOSTILE_TEXT + "x" * 5_000_000, "see " + TITLE, log_tail=TITLE + "y" * 5_000_000
    )
    assert not raw_characters_in(str(error) + error.log_tail + str(error.args))
    assert len(error.cause) < MAX_MESSAGE_CHARACTERS + 100
    assert len(error.log_tail) <= MAX_TAIL_CHARACTERS


def test_the_failure_of_a_cell_is_escaped_before_it_is_stored() -> None:
    failure = failure_of(ServerError(HOSTILE_TEXT, log_tail=HOSTILE_TEXT))
    assert not raw_characters_in(msgspec.json.encode(failure).decode())


def test_the_output_of_commands_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE_TEXT)
    print_status(HOSTILE_TEXT)
    complain(str(WsgiloadError(HOSTILE_TEXT)))
    write_json({"a": HOSTILE_TEXT.replace("\udc80", "")}, "-")
    write_json({"a": HOSTILE_TEXT}, "-")
    shown = capsys.readouterr()
    assert not raw_characters_in(shown.out + shown.err)


def test_tables_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(HOSTILE_TEXT)
    table.add_row(Text(HOSTILE_TEXT))
    console = terminal()
    console.print(table)
    console.print(HOSTILE_TEXT)
    assert not raw_characters_in(capsys.readouterr().out)


def plant(document: Any) -> Any:
    """The document with hostile text appended to every free text."""
    planted = HOSTILE_TEXT.replace("\udc80", "")
    match document:
        case dict():
            return {name: plant_at(name, value, planted) for name, value in document.items()}
        case list():
            return [plant(value) for value in document]
    return document


FREE_TEXT_KEYS = {
    "message",
    "fix",
    "log_tail",
    "notes",
    "sentence",
    "question",
    "needs",
    "command_line",
}


def plant_at(name: str, value: Any, planted: str) -> Any:
    if name in FREE_TEXT_KEYS and isinstance(value, str):
        return value + planted
    if (
        name in FREE_TEXT_KEYS
        and isinstance(value, list)
        and all(isinstance(text, str) for text in value)
    ):
        return [text + planted for text in value] or [planted]
    return plant(value)


def test_hostile_text_in_a_stored_run_is_escaped_in_every_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run")
    for name, kind in (("summary.json", Summary), ("load", LoadReport)):
        for path in [run / name] if name != "load" else (run / name).glob("*.json"):
            stored = plant(json.loads(path.read_text()))
            path.write_text(json.dumps(stored))
            read(kind, path)

    print_sweep(read(Summary, run / "summary.json"), terminal())
    print_first_screen(read(Summary, run / "summary.json"), terminal())
    page = write_html(run).read_text()

    shown = capsys.readouterr().out
    assert "\\x1b" in shown and "\\x1b]0;owned" in page
    assert not raw_characters_in(shown) and not raw_characters_in(page)


def test_a_lone_surrogate_in_a_failure_can_be_stored(tmp_path: Path) -> None:
    failure = CellFailure(step="start", message="a\udc80", log_tail=HOSTILE["right to left"])
    run = read(Summary, write_run(tmp_path / "run") / "summary.json")
    cell = msgspec.structs.replace(run.cells[0], failure=failure)
    text = encode(msgspec.structs.replace(run, cells=(cell,)))
    assert not raw_characters_in(text)
    assert to_plain(msgspec.json.decode(text, type=Summary))["cells"][0]["failure"]["message"] == (
        "a\\udc80"
    )
