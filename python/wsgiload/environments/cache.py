"""The folder of cached environments, locks and check results."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``WSGILOAD_CACHE_DIR``, or ``wsgiload`` in the user's cache folder."""
    configured = os.environ.get("WSGILOAD_CACHE_DIR")
    if configured:
        return Path(configured).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser().absolute() / "wsgiload"
