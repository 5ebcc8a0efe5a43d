"""Where environments, locks and what was found of servers are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``WSGILOAD_CACHE_DIR``, else ``wsgiload`` in the user's cache folder."""
    configured = os.environ.get("WSGILOAD_CACHE_DIR")
    if configured:
        return Path(configured).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(shared).expanduser().absolute() / "wsgiload"
