"""Mutates inputs: changes bytes, lines and JSON values, and splices two inputs."""

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


def mutated(corpus: Sequence[bytes], rng: random.Random) -> bytes:
    """An input from the corpus with one to eight changes."""
    data = rng.choice(corpus)
    for _ in range(1 << rng.randrange(4)):
        change = rng.choice(CHANGES)
        data = change(data, corpus, rng)[:MAX_BYTES]
    return data


def flip(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def insert(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(INTERESTING) + data[at:]


def delete(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.randrange(1, 40) :]


def repeat(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    at, length = rng.randrange(len(data) + 1), rng.randrange(1, 200)
    return data[:at] + data[at : at + length] * rng.randrange(2, 20) + data[at + length :]


def splice(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    other = rng.choice(corpus)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def shuffle_lines(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def change_value(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    """Replace or delete a value of a JSON document, or of one line of JSON lines."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return change_line(data, corpus, rng)

    places = list(places_in(document))
    if not places:
        return data

    container, key = rng.choice(places)
    if rng.random() < 0.2:
        del container[key]
    else:
        container[key] = rng.choice(VALUES)
    return json.dumps(document).encode()


def change_line(data: bytes, corpus: Sequence[bytes], rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) < 2:
        return data
    at = rng.randrange(len(lines))
    lines[at] = change_value(lines[at], corpus, rng)
    return b"".join(lines)


def places_in(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every key or index in a document, with its container."""
    if isinstance(document, dict | list):
        for key in list(document) if isinstance(document, dict) else range(len(document)):
            yield document, key
            yield from places_in(document[key])


CHANGES: Sequence[Callable[[bytes, Sequence[bytes], random.Random], bytes]] = (
    *(flip, insert, delete, repeat, splice, shuffle_lines),
    *(change_value, change_value, change_value),
)
