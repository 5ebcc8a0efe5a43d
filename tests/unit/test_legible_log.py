"""The log of a server in a run directory is readable and short, whatever the server wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsgiload.foreign_text import legible_log, make_legible


def test_control_characters_and_invalid_bytes_are_escaped(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"\x1b]0;owned\x07\r\n" + "\u202egnp Grüße\n".encode() + b"\xff\n")
    make_legible(log)
    assert log.read_text() == "\\x1b]0;owned\\x07\n\\u202egnp Grüße\n\\xff\n"


def test_a_plain_log_is_not_rewritten(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("two\nlines\n")
    before = log.stat().st_ino
    make_legible(log)
    assert (log.read_text(), log.stat().st_ino) == ("two\nlines\n", before)


def test_a_long_log_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"first" + b"x" * 5000 + b"last")
    make_legible(log, max_bytes=100)
    text = log.read_text()
    assert text.startswith("first") and text.endswith("last")
    assert "[… 4,909 bytes left out …]" in text and len(text) < 200


def test_a_line_at_the_cut_is_removed_completely(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("token=abcdefghij\n" * 100)
    make_legible(log, max_bytes=100)
    first, gap, last = log.read_text().splitlines()[1:-1][0:3]
    assert (first, last) == ("token=abcdefghij",) * 2 and "left out" in gap


def test_a_log_is_made_legible_even_after_an_error(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with pytest.raises(KeyboardInterrupt), legible_log(log):
        log.write_bytes(b"\x1b")
        raise KeyboardInterrupt
    assert log.read_text() == "\\x1b"


def test_a_server_that_never_started_has_no_log(tmp_path: Path) -> None:
    with legible_log(tmp_path / "none.log"):
        pass
    assert list(tmp_path.iterdir()) == []
