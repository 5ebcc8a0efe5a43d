"""The base of all stored documents: frozen, validated when read, and documented key by key.

The string below a field is its documentation: the meaning and, if they apply, ``Unit: ...``,
``Source: ...`` (where the value comes from) and ``Null: ...`` (when the key is null).
``docs/metrics.md`` and the JSON Schemas are generated from these strings.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

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
