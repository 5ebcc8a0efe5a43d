"""Typed decoding that may be used first by several threads at once, and in forked children.

msgspec stores the description of a type in the type itself before it is complete: a second thread
that decodes the type for the first time at that moment crashes the process. Therefore, only this
module builds these descriptions, under one lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from wsgiload.first_use import BUILDING

T = TypeVar("T")


DecodeHook = Callable[[type, Any], Any]

_decoders: dict[tuple[object, DecodeHook | None], msgspec.json.Decoder[Any]] = {}


def decode_json(
    data: bytes | str | msgspec.Raw, kind: type[T], dec_hook: DecodeHook | None = None
) -> T:
    """The typed content of JSON. Raises like ``msgspec.json.decode``."""
    content: T = _decoder(kind, dec_hook).decode(data)
    return content


def convert(value: object, kind: type[T]) -> T:
    """Plain data as this type. Raises like ``msgspec.convert``."""
    _decoder(kind, None)
    return msgspec.convert(value, kind)


def _decoder(kind: object, dec_hook: DecodeHook | None) -> msgspec.json.Decoder[Any]:
    with BUILDING:
        key = (kind, dec_hook)
        if key not in _decoders:
            _decoders[key] = msgspec.json.Decoder(kind, dec_hook=dec_hook)
        return _decoders[key]
