"""What an HTTP/2 server sends, as bytes that can be mutated: frames, and marks between them.

An input is a greeting, which a server sends on each new connection, and then replies, each for one
request. Marks separate them, pause, or close the connection. They are looked for as bytes, because
a mutated frame may lie about its length.
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
# 1 stands for the stream of the request.
STREAMS = (0, 1, 1, 1, 2, 3, 7, 0x7FFFFFFF, 0xFFFFFFFF)
LENGTHS = (0, 1, 4, 5, 6, 8, 16_384, 16_385, 0xFFFFFF)

MAX_FRAMES = 4_000
MAX_COPIES = 2_000


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame with a correct length."""
    return _header(len(payload), kind, flags, stream) + payload


def _header(length: int, kind: int, flags: int, stream: int) -> bytes:
    return length.to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4)


# Of a type that has no meaning, so that a client ignores it if it is sent after all.
NEXT, PAUSE, CLOSE = (frame(0xFA, 0, 0, word) for word in (b"next", b"pause", b"close"))
_STEPS = re.compile(b"(%b|%b)" % (re.escape(PAUSE), re.escape(CLOSE)))
_MARKS = re.compile(b"(%b|%b|%b)" % (re.escape(NEXT), re.escape(PAUSE), re.escape(CLOSE)))
# As it is written in a frame.
_STREAM_1 = (1).to_bytes(4)

# Bytes to send, or a mark.
Steps = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Script:
    """What a server sends."""

    greeting: Steps
    replies: Sequence[Steps]


def script_of(data: bytes) -> Script:
    """The script that an input describes; without replies, the server is silent."""
    greeting, *replies = (
        [step for step in _STEPS.split(part) if step] for part in data.split(NEXT)
    )
    return Script(greeting, replies)


def frames_of(data: bytes) -> list[bytes]:
    """The frames by their declared lengths, and the marks; a frame before a mark may be
    incomplete."""
    return [one for part in _MARKS.split(data) for one in _frames_between_marks(part)]


def _frames_between_marks(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = at + HEADER_BYTES + int.from_bytes(data[at : at + 3])
        yield data[at:end]
        at = end


def addressed(data: bytes, stream: int) -> bytes:
    """The same with the request's stream in place of stream 1."""
    return b"".join(
        one[:5] + stream.to_bytes(4) + one[HEADER_BYTES:]
        if one[5:HEADER_BYTES] == _STREAM_1
        else one
        for one in frames_of(data)
    )


Change = Callable[[list[bytes], Sequence[bytes], random.Random], list[bytes]]


def mutated_frames(corpus: Sequence[bytes], chance: random.Random) -> bytes:
    """One of the corpus with one to eight changes: of frames, or one in five times of bytes."""
    if chance.random() < 0.2:
        return mutated(corpus, chance)
    frames = frames_of(chance.choice(corpus))
    for _ in range(1 << chance.randrange(4)):
        frames = chance.choice(CHANGES)(frames, corpus, chance)[:MAX_FRAMES]
    return _joined(frames)


def _joined(frames: Sequence[bytes]) -> bytes:
    """As far as an input may be long: of many copies of a long frame, only the first."""
    data = bytearray()
    for one in frames:
        data += one
        if len(data) >= MAX_BYTES:
            break
    return bytes(data[:MAX_BYTES])


def exchange(frames: list[bytes], corpus: Sequence[bytes], chance: random.Random) -> list[bytes]:
    if frames:
        one, other = chance.randrange(len(frames)), chance.randrange(len(frames))
        frames[one], frames[other] = frames[other], frames[one]
    return frames


def drop(frames: list[bytes], corpus: Sequence[bytes], chance: random.Random) -> list[bytes]:
    at = chance.randrange(len(frames) + 1)
    return frames[:at] + frames[at + chance.randrange(1, 4) :]


def repeat(frames: list[bytes], corpus: Sequence[bytes], chance: random.Random) -> list[bytes]:
    at = chance.randrange(len(frames) + 1)
    copies = int(MAX_COPIES ** chance.random())
    return frames[:at] + frames[at : at + 1] * copies + frames[at:]


def splice(frames: list[bytes], corpus: Sequence[bytes], chance: random.Random) -> list[bytes]:
    others = frames_of(chance.choice(corpus))
    at, begin = chance.randrange(len(frames) + 1), chance.randrange(len(others) + 1)
    end = begin + chance.randrange(1, 6)
    return frames[:at] + others[begin:end] + frames[at:]


def insert(frames: list[bytes], corpus: Sequence[bytes], chance: random.Random) -> list[bytes]:
    at = chance.randrange(len(frames) + 1)
    return [*frames[:at], random_frame(chance), *frames[at:]]


def random_frame(chance: random.Random) -> bytes:
    """A mark, or any frame."""
    if chance.random() < 0.3:
        return chance.choice((NEXT, PAUSE, CLOSE))
    payload = chance.randbytes(chance.choice((0, 1, 4, 5, 8, 20, 300)))
    return frame(chance.choice(TYPES), chance.choice(FLAGS), chance.choice(STREAMS), payload)


def _whole_frame(frames: Sequence[bytes], chance: random.Random) -> int | None:
    """Where one with a complete header is; None if there is none."""
    where = [at for at, one in enumerate(frames) if len(one) >= HEADER_BYTES]
    return chance.choice(where) if where else None


def change_header(
    frames: list[bytes], corpus: Sequence[bytes], chance: random.Random
) -> list[bytes]:
    """Another length, type, stream or flags; a length that lies shifts all that follows."""
    at = _whole_frame(frames, chance)
    if at is None:
        return frames
    one = frames[at]
    length, kind, flags = int.from_bytes(one[:3]), one[3], one[4]
    stream = int.from_bytes(one[5:HEADER_BYTES])
    field = chance.randrange(4)
    header = _header(
        chance.choice(LENGTHS) if field == 0 else length,
        chance.choice(TYPES) if field == 1 else kind,
        chance.choice(FLAGS) if field == 2 else flags,
        chance.choice(STREAMS) if field == 3 else stream,
    )
    frames[at] = header + one[HEADER_BYTES:]
    return frames


def change_payload(
    frames: list[bytes], corpus: Sequence[bytes], chance: random.Random
) -> list[bytes]:
    """Other bytes in a frame of the same type, with their correct length."""
    at = _whole_frame(frames, chance)
    if at is None:
        return frames
    header, payload = frames[at][:HEADER_BYTES], frames[at][HEADER_BYTES:]
    payload = mutated([payload], chance)
    frames[at] = len(payload).to_bytes(3) + header[3:] + payload
    return frames


def cut(frames: list[bytes], corpus: Sequence[bytes], chance: random.Random) -> list[bytes]:
    """A frame without its end."""
    if frames:
        at = chance.randrange(len(frames))
        frames[at] = frames[at][: chance.randrange(len(frames[at]) + 1)]
    return frames


CHANGES: Sequence[Change] = (
    *(exchange, drop, repeat, splice, insert, cut),
    *(change_header, change_header, change_payload, change_payload),
)
