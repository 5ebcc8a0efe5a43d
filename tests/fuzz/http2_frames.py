"""The output of an HTTP/2 server as bytes that can be mutated: frames and marks.

An input consists of a greeting, which the server sends on each new connection, and of replies, one
per request. Marks separate these parts, pause, or close the connection. Marks are searched for as
bytes, because the length of a mutated frame may be wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .mutation import MAX_BYTES, mutated

# Length, type, flags and stream of a frame: RFC 9113, section 4.1.
HEADER_BYTES = 9
HEADERS = 1
# The types that RFC 9113 defines, and one that it does not.
TYPES = (*range(10), 0xEE)
FLAGS = (0, 1, 4, 5, 8, 0x20, 0x2D, 0xFF)
# Stream 1 is replaced by the stream of the request.
STREAMS = (0, 1, 1, 1, 2, 3, 7, 0x7FFFFFFF, 0xFFFFFFFF)
LENGTHS = (0, 1, 4, 5, 6, 8, 16_384, 16_385, 0xFFFFFF)

MAX_FRAMES = 4_000
MAX_COPIES = 2_000


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame with a correct length."""
    return _header(len(payload), kind, flags, stream) + payload


def _header(length: int, kind: int, flags: int, stream: int) -> bytes:
    return length.to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4)


# Marks have an undefined frame type, so that a client ignores them if they are sent.
NEXT, PAUSE, CLOSE = (frame(0xFA, 0, 0, name) for name in (b"next", b"pause", b"close"))
_STEPS = re.compile(b"(%b|%b)" % (re.escape(PAUSE), re.escape(CLOSE)))
_MARKS = re.compile(b"(%b|%b|%b)" % (re.escape(NEXT), re.escape(PAUSE), re.escape(CLOSE)))
# As encoded in a frame header.
_STREAM_1 = (1).to_bytes(4)

# Each step is bytes to send, or a mark.
Steps = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Script:
    """The output of a server."""

    greeting: Steps
    replies: Sequence[Steps]


def script_of(data: bytes) -> Script:
    """The script that an input encodes. Without replies, the server sends only the greeting."""
    greeting, *replies = (
        [step for step in _STEPS.split(part) if step] for part in data.split(NEXT)
    )
    return Script(greeting, replies)


def frames_of(data: bytes) -> list[bytes]:
    """The frames, split by their declared lengths, and the marks. A frame before a mark may be
    incomplete."""
    return [item for part in _MARKS.split(data) for item in _frames_between_marks(part)]


def _frames_between_marks(data: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(data):
        end = start + HEADER_BYTES + int.from_bytes(data[start : start + 3])
        yield data[start:end]
        start = end


def addressed(data: bytes, stream: int) -> bytes:
    """The data with stream 1 replaced by this stream in each frame."""
    return b"".join(
        item[:5] + stream.to_bytes(4) + item[HEADER_BYTES:]
        if item[5:HEADER_BYTES] == _STREAM_1
        else item
        for item in frames_of(data)
    )


Change = Callable[[list[bytes], Sequence[bytes], random.Random], list[bytes]]


def mutated_frames(corpus: Sequence[bytes], rng: random.Random) -> bytes:
    """An input from the corpus with one to eight changes: in four of five cases of frames, otherwise
    of bytes."""
    if rng.random() < 0.2:
        return mutated(corpus, rng)
    frames = frames_of(rng.choice(corpus))
    for _ in range(1 << rng.randrange(4)):
        frames = rng.choice(CHANGES)(frames, corpus, rng)[:MAX_FRAMES]
    return _joined(frames)


def _joined(frames: Sequence[bytes]) -> bytes:
    """The joined frames, up to the maximum length of an input."""
    data = bytearray()
    for item in frames:
        data += item
        if len(data) >= MAX_BYTES:
            break
    return bytes(data[:MAX_BYTES])


def swap(frames: list[bytes], corpus: Sequence[bytes], rng: random.Random) -> list[bytes]:
    if frames:
        first, second = rng.randrange(len(frames)), rng.randrange(len(frames))
        frames[first], frames[second] = frames[second], frames[first]
    return frames


def drop(frames: list[bytes], corpus: Sequence[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(frames) + 1)
    return frames[:at] + frames[at + rng.randrange(1, 4) :]


def repeat(frames: list[bytes], corpus: Sequence[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(frames) + 1)
    copies = int(MAX_COPIES ** rng.random())
    return frames[:at] + frames[at : at + 1] * copies + frames[at:]


def splice(frames: list[bytes], corpus: Sequence[bytes], rng: random.Random) -> list[bytes]:
    others = frames_of(rng.choice(corpus))
    at, begin = rng.randrange(len(frames) + 1), rng.randrange(len(others) + 1)
    end = begin + rng.randrange(1, 6)
    return frames[:at] + others[begin:end] + frames[at:]


def insert(frames: list[bytes], corpus: Sequence[bytes], rng: random.Random) -> list[bytes]:
    at = rng.randrange(len(frames) + 1)
    return [*frames[:at], random_frame(rng), *frames[at:]]


def random_frame(rng: random.Random) -> bytes:
    """A mark or a random frame."""
    if rng.random() < 0.3:
        return rng.choice((NEXT, PAUSE, CLOSE))
    payload = rng.randbytes(rng.choice((0, 1, 4, 5, 8, 20, 300)))
    return frame(rng.choice(TYPES), rng.choice(FLAGS), rng.choice(STREAMS), payload)


def _random_index(frames: Sequence[bytes], rng: random.Random) -> int | None:
    """The index of a random frame with a complete header; None if there is none."""
    indices = [index for index, item in enumerate(frames) if len(item) >= HEADER_BYTES]
    return rng.choice(indices) if indices else None


def change_header(frames: list[bytes], corpus: Sequence[bytes], rng: random.Random) -> list[bytes]:
    """Replace the length, type, stream or flags. A wrong length shifts all later frames."""
    index = _random_index(frames, rng)
    if index is None:
        return frames

    item = frames[index]
    length, kind, flags = int.from_bytes(item[:3]), item[3], item[4]
    stream = int.from_bytes(item[5:HEADER_BYTES])
    field = rng.randrange(4)
    header = _header(
        rng.choice(LENGTHS) if field == 0 else length,
        rng.choice(TYPES) if field == 1 else kind,
        rng.choice(FLAGS) if field == 2 else flags,
        rng.choice(STREAMS) if field == 3 else stream,
    )
    frames[index] = header + item[HEADER_BYTES:]
    return frames


def change_payload(frames: list[bytes], corpus: Sequence[bytes], rng: random.Random) -> list[bytes]:
    """Mutate the payload and set the correct length."""
    index = _random_index(frames, rng)
    if index is None:
        return frames

    header, payload = frames[index][:HEADER_BYTES], frames[index][HEADER_BYTES:]
    payload = mutated([payload], rng)
    frames[index] = len(payload).to_bytes(3) + header[3:] + payload
    return frames


def cut(frames: list[bytes], corpus: Sequence[bytes], rng: random.Random) -> list[bytes]:
    """Cut off the end of a frame."""
    if frames:
        index = rng.randrange(len(frames))
        frames[index] = frames[index][: rng.randrange(len(frames[index]) + 1)]
    return frames


CHANGES: Sequence[Change] = (
    *(swap, drop, repeat, splice, insert, cut),
    *(change_header, change_header, change_payload, change_payload),
)
