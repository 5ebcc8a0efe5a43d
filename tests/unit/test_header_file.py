"""``-H @FILE``: header fields from a file, which may contain secrets."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from wsgiload.cli import run
from wsgiload.errors import UsageError
from wsgiload.loads.request import parse_headers

SECRET = "5e3c7e7"
FIELDS = (("Authorization", "Bearer a"), ("Accept", "*/*"))


def test_a_field_can_be_given_on_the_command_line() -> None:
    assert parse_headers("Accept: */*") == (("Accept", "*/*"),)


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer a\nAccept: */*\n",
        "Authorization: Bearer a\nAccept: */*",
        "Authorization: Bearer a\r\nAccept: */*\r\n",
        "\ufeffAuthorization: Bearer a\nAccept: */*\n",
        "# a remark\n\nAuthorization:Bearer a\n   \n  # Accept: none\n  Accept:  */*  \n",
    ],
)
def test_fields_are_read_from_a_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "fields").write_bytes(text.encode())
    assert parse_headers(f"@{tmp_path / 'fields'}") == FIELDS


def test_a_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell does not expand a tilde after ``@``."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "fields").write_text("Accept: */*\n")
    assert parse_headers("@~/fields") == (("Accept", "*/*"),)


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    """The shell passes a pipe for ``-H @<(command)``."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("Accept: */*\n",))
    writer.start()
    assert parse_headers(f"@{tmp_path / 'pipe'}") == (("Accept", "*/*"),)
    writer.join()


@pytest.mark.parametrize(
    ("content", "start"),
    [
        (b"", "FILE has no header fields; write one 'Name: value' on each line"),
        (b"\n# nothing\n", "FILE has no header fields; write one 'Name: value' on each line"),
        (b"Accept: a\n5e3c7e7\n", "FILE:2 is not a header field; write it as 'Name: value'"),
        (b"5e3c7e7 b: a\n", "FILE:1 is not a header field; write it as 'Name: value'"),
        (b"\nX: 5e3c7e7\x01\n", "FILE:2: X has characters that HTTP forbids; use ASCII"),
        ("X: 5e3c7e7☃\n".encode(), "FILE:1: X has characters that HTTP forbids; use ASCII"),
        (b"X: 5e3c7e7\xff\n", "FILE is not UTF-8; use ASCII"),
        (b"X: 5e3c7e7\n" * 100_000, "FILE is larger than 1 MiB; name a file with one header"),
    ],
)
def test_an_invalid_file_is_named_but_never_quoted(
    tmp_path: Path, content: bytes, start: str
) -> None:
    path = tmp_path / "fields"
    path.write_bytes(content)
    with pytest.raises(UsageError) as raised:
        parse_headers(f"@{path}")
    message = str(raised.value)
    assert message.replace(str(path), "FILE").startswith(start)
    assert SECRET not in message


@pytest.mark.parametrize("command", [["load", "http://127.0.0.1:1/"], ["sweep"], ["capacity"]])
def test_a_missing_file_is_a_usage_error(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "-H", "@gone/fields"]) == 2
    assert "cannot read gone/fields: No such file or directory" in capsys.readouterr().err


def test_the_file_name_is_required() -> None:
    with pytest.raises(UsageError, match="-H @ is not followed by a file name"):
        parse_headers("@")


def test_a_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory"):
        parse_headers(f"@{tmp_path}")
