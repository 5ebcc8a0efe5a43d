"""Names the limit on processes and threads (``ulimit -u``) when the system refuses another one."""

from __future__ import annotations

import errno
import os
import resource

from wsgiload.errors import UsageError

USUAL_LIMIT = 4096
NO_NEW_THREAD = "can't start new thread"  # Python's words
_REFUSALS = (NO_NEW_THREAD, os.strerror(errno.EAGAIN))


def process_limit_error(error: object) -> UsageError | None:
    """The error to report if this error or text says that the system refused a process or thread;
    otherwise None."""
    if not any(words in str(error) for words in _REFUSALS):
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    most = "" if limit == resource.RLIM_INFINITY else f" (ulimit -u is {limit:,})"
    return UsageError(
        f"this user may start no further process or thread{most}",
        f"ulimit -u {USUAL_LIMIT}, or end other processes of this user; in a container, raise "
        "its limit on processes",
    )
