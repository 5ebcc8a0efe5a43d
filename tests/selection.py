"""The cases that a run covers where all of them would take too long.

A seed chooses them, so that a failure can be repeated: ``make`` derives it from the commit and
prints it. The date chooses nothing.
"""

from __future__ import annotations

import os

SEED = int(os.environ.get("WSGILOAD_TEST_SEED", "0"))
IS_LONG = "WSGILOAD_LONG_TESTS" in os.environ
