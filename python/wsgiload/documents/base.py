"""The base of all stored documents: frozen, validated when read, and documented key by key.

The string below a field is its documentation: the meaning and, if they apply, ``Unit: ...``,
``Source: ...`` (where the value comes from) and ``Null: ...`` (when the key is null).
``docs/metrics.md`` and the JSON Schemas are generated from these strings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from wsgiload.first_use import BUILDING

NonNegativeInt = Annotated[int, msgspec.Meta(ge=0)]
PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
NonNegativeFloat = Annotated[float, msgspec.Meta(ge=0)]
PositiveFloat = Annotated[float, msgspec.Meta(gt=0)]
QuantileKey = Annotated[str, msgspec.Meta(pattern=r"^0(\.[0-9]+)?$")]
StatusCode = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{2}$")]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Part of a stored document. Times are integer nanoseconds, sizes are bytes, and rates are per
    second."""


T = TypeVar("T")


# msgspec stores the description of a type in the type itself before it is complete: a second
# thread, or a forked child, that decodes the type for the first time at that moment crashes the
# process. Therefore, only this module builds these descriptions, under one lock.
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
