"""The command line, and whether limits can be enforced."""

from __future__ import annotations

from tests.integration.conftest import command, limits_error, skip_without_limits

__all__ = ["command", "limits_error", "skip_without_limits"]
