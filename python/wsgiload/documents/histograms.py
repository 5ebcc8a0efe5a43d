"""The histogram behind a distribution of a document."""

from __future__ import annotations

import base64

from wsgiload._loadgen import Histogram
from wsgiload.documents.load_report import Distribution


def histogram_of(distribution: Distribution | None) -> Histogram | None:
    """The whole histogram; None if nothing was measured or no histogram was stored."""
    if distribution is None or distribution.hdr_v2 is None:
        return None
    return Histogram.from_hdr_v2(base64.b64decode(distribution.hdr_v2))
