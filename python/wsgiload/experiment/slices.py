"""How long a race measures at a load level. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from wsgiload.loads.options import Level
from wsgiload.units import NS_PER_S

# p99 needs 1,000 requests; 99.9 % of Poisson loads with this mean have them.
SLICE_REQUESTS = 1_100
_QUANTILE = re.compile(r"p([\d.]+)")


def slice_ns(level: Level, slo: Sequence[str] = ()) -> int:
    """The shortest measurement that gives p99, or the highest quantile of an objective, in nearly
    every load; at least one second."""
    rate = level.rate_per_s
    if rate is None:
        return NS_PER_S
    found = [_QUANTILE.match(text) for text in slo]
    beyond_percent = min([1.0, *(100 - float(one[1]) for one in found if one is not None)])
    return max(NS_PER_S, math.ceil(SLICE_REQUESTS / beyond_percent / rate * NS_PER_S))
