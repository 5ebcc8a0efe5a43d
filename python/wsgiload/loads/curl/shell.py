"""Splits a text with curl commands into the words of each command, and decodes bash's ``$'…'``
quotes. Pure: runs nothing, and rejects everything that needs a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from wsgiload.errors import UsageError

# Quoted text, and characters with a special meaning outside of quotes.
_PIECE = re.compile(
    r"""
      (?P<continued>\\\r?\n)
    | (?P<escaped>\\.)
    | (?P<literal>'[^']*')
    | \$'(?P<ansi>(?:\\.|[^'\\])*)'
    | "(?P<quoted>(?:\\.|[^"\\])*)"
    | (?P<comment>(?<!\S)\#[^\n]*)
    | (?P<redirect>(?:(?<!\S)\d|&)?>>?\s*(?:&\d|'[^']*'|"[^"]*"|[^\s;&|<>'"]*))
    | (?P<separator>&&|;|\r?\n)
    | (?P<operator>\|\||[|&<])
    | (?P<variable>\$(?:\w+|[({])|`)
    | (?P<windows>\^["\r\n])
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE_QUOTES = re.compile(r"\\(?P<escaped>.)|(?P<variable>\$(?:\w+|[({])|`)", re.DOTALL)


@dataclass(slots=True)
class Commands:
    """The words after ``curl`` of each command, why others have none, and the parts of the text
    that only affect output."""

    words: list[list[str]] = field(default_factory=list)
    failures: list[UsageError] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def commands_in(text: str) -> Commands:
    """The commands, in order."""
    commands = Commands()
    for segment, is_output, failure in _segments(text, commands.ignored):
        if is_output:
            commands.ignored.append(f"| {segment.strip()}")
            continue
        try:
            if failure is not None:
                raise failure
            if words := _words(segment):
                commands.words.append(_without_curl(words))
        except UsageError as error:
            commands.failures.append(error)
    if not commands.words and not commands.failures:
        raise UsageError("no curl command found", "write it in quotes: 'curl http://…'")
    return commands


def _segments(text: str, ignored: list[str]) -> Iterator[tuple[str, bool, UsageError | None]]:
    """The text between separators, quoted for shlex, whether it follows a pipe, and why it cannot
    be quoted."""
    segment, is_output, position = "", False, 0
    failure: UsageError | None = None
    for piece in _PIECE.finditer(text):
        segment += text[position : piece.start()]
        position = piece.end()
        kind = piece.lastgroup
        if kind == "redirect":
            ignored.append(piece.group().strip())
        elif kind == "separator" or piece.group() == "|":
            yield segment, is_output, failure
            segment, is_output, failure = "", piece.group() == "|", None
        else:
            try:
                segment += piece.group() if is_output else _rewritten(piece)
            except UsageError as error:
                failure = failure or error
    yield segment + text[position:], is_output, failure


def _rewritten(piece: re.Match[str]) -> str:
    """The piece, rewritten so that shlex parses it like a shell."""
    kind, text = piece.lastgroup, piece.group()
    if kind in ("escaped", "literal"):
        return text
    if kind == "ansi":
        return shlex.quote(ansi_text(piece["ansi"]))
    if kind == "quoted":
        return shlex.quote(_IN_DOUBLE_QUOTES.sub(_in_double_quotes, piece["quoted"]))
    if kind == "variable":
        raise _shell_only(text)
    if kind == "operator":
        raise UsageError(
            f"{text} outside quotes ends a curl command",
            "put the URL or the value that contains it in single quotes",
        )
    if kind == "windows":
        raise UsageError(
            "the command is quoted for cmd.exe", "copy it as cURL (bash) from the browser"
        )
    return ""  # a comment or a line continuation


def _in_double_quotes(match: re.Match[str]) -> str:
    if match["variable"]:
        raise _shell_only(match["variable"])
    character = match["escaped"]
    if character == "\n":
        return ""
    return character if character in '$`"\\' else f"\\{character}"


def _shell_only(expansion: str) -> UsageError:
    return UsageError(
        f"the command has {expansion}, which only a shell expands",
        "write its value, or put it in single quotes to send it unchanged",
    )


def _words(segment: str) -> list[str]:
    try:
        words = shlex.split(segment)
    except ValueError as error:
        raise UsageError("a quote is not closed", "paste the whole command") from error
    return words[1:] if words[:1] == ["$"] else words  # a prompt


def _without_curl(words: list[str]) -> list[str]:
    if PurePath(words[0]).name not in ("curl", "curl.exe"):
        raise UsageError(f"{words[0][:40]!r} is not curl", "begin each command with curl")
    return words[1:]


_ESCAPE = re.compile(
    r"""\\(?:
      u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})
    | (?:u(?P<short>[0-9a-fA-F]{1,4}) | U(?P<long>[0-9a-fA-F]{1,8}))
    | x(?P<hexadecimal>[0-9a-fA-F]{1,2})
    | (?P<octal>[0-7]{1,3})
    | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_NAMED = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_REPLACEMENT = 0xFFFD
_MAX_CODE_POINT = 0x10FFFF


def ansi_text(quoted: str) -> str:
    """The text as bash decodes it; bytes that are not UTF-8 are surrogates, as in ``sys.argv``."""
    parts, position = [], 0
    for escape in _ESCAPE.finditer(quoted):
        parts += [_bytes(quoted[position : escape.start()]), _decoded(escape)]
        position = escape.end()
    parts.append(_bytes(quoted[position:]))
    return b"".join(parts).decode(errors="surrogateescape")


def _decoded(escape: re.Match[str]) -> bytes:
    if escape["high"]:  # a surrogate pair, as browsers write characters such as emoji
        high, low = int(escape["high"], 16), int(escape["low"], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).encode()
    if code := escape["short"] or escape["long"]:
        number = int(code, 16)
        number = number if number <= _MAX_CODE_POINT else _REPLACEMENT
        return chr(number).encode(errors="surrogatepass")
    if code := escape["hexadecimal"]:
        return bytes([int(code, 16)])
    if code := escape["octal"]:
        return bytes([int(code, 8) & 0xFF])
    return _bytes(_NAMED.get(escape["other"], f"\\{escape['other']}"))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
