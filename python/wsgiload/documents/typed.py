"""Typed decoding that may be used first by several threads at once, and in forked children.

msgspec stores the description of a type in the type itself before it is complete: a second thread
that decodes the type for the first time at that moment crashes the process. Therefore, only this
module builds these descriptions, under one lock.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from wsgiload.first_use import BUILDING

T = TypeVar("T")


def decode_json(
    data: bytes | str | msgspec.Raw,
    kind: type[T],
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> T:
    """The typed content of JSON. Raises like ``msgspec.json.decode``."""
    with BUILDING:
        decoder = _decoder(kind, dec_hook)
    content: T = decoder.decode(data)
    return content


def convert(value: object, kind: type[T]) -> T:
    """Plain data as this type. Raises like ``msgspec.convert``."""
    with BUILDING:
        _decoder(kind, None)
    return msgspec.convert(value, kind)


@functools.cache
def _decoder(kind: type[T], dec_hook: Callable[[type, Any], Any] | None) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind, dec_hook=dec_hook)
