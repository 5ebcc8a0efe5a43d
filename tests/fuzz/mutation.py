"""Makes inputs out of inputs, from a seed: bytes, lines and JSON values changed, and two spliced."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MAX_BYTES = 64 * 1024
INTERESTING = (
    *(b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\n\n", b"\xc3\x28", b"\xed\xa0\x80"),
    *(b"\x1b]0;x\x07", b"-1", b"0", b"1e999", b"nan", b"inf", b"18446744073709551616", b"9" * 400),
    *(b"--weight ", b"--name ", b"--expect-regex ", b"GET ", b"http://", b"@", b"#", b"{", b'"'),
    *(b"(a+)+$", b"%00", b"..", b"a" * 5000, b"[" * 500, b"\xe2\x80\xae"),
)
VALUES: Sequence[Any] = (
    *(None, True, -1, 0, 1, 2**31, 2**53, 2**63, 2**64, 10**30, 0.5, -0.5, 1e308, 1e-308),
    *("", "x", "\x00", "\x1b[2J", "9" * 100, "http://127.0.0.1:1/", "-", "a" * 5000),
    *([], {}, [[]], [None], {"": None}),
)


def mutated(corpus: Sequence[bytes], chance: random.Random) -> bytes:
    """One of the corpus, with one to eight changes."""
    data = chance.choice(corpus)
    for _ in range(1 << chance.randrange(4)):
        change = chance.choice(CHANGES)
        data = change(data, corpus, chance)[:MAX_BYTES]
    return data


def flip(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def insert(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(INTERESTING) + data[at:]


def delete(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.randrange(1, 40) :]


def repeat(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    at, length = chance.randrange(len(data) + 1), chance.randrange(1, 200)
    return data[:at] + data[at : at + length] * chance.randrange(2, 20) + data[at + length :]


def splice(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    other = chance.choice(corpus)
    return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]


def shuffle_lines(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines)


def change_value(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    """Another value, or none, at a place of a JSON document; of lines of JSON, in one of them."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return change_a_line(data, corpus, chance)
    found = list(places(document))
    if not found:
        return data
    holder, name = chance.choice(found)
    if chance.random() < 0.2:
        del holder[name]
    else:
        holder[name] = chance.choice(VALUES)
    return json.dumps(document).encode()


def change_a_line(data: bytes, corpus: Sequence[bytes], chance: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    at = chance.randrange(len(lines))
    lines[at] = change_value(lines[at], corpus, chance)
    return b"".join(lines)


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every key or index of a document, with what holds it."""
    if isinstance(document, dict | list):
        for name in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, name
            yield from places(document[name])


CHANGES: Sequence[Callable[[bytes, Sequence[bytes], random.Random], bytes]] = (
    *(flip, insert, delete, repeat, splice, shuffle_lines),
    *(change_value, change_value, change_value),
)
