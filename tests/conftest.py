"""What every test needs, however the run was started."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """A shell starts a background job with SIGINT ignored, and ``nohup`` any job with SIGHUP, which
    the commands under test would inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
