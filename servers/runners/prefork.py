"""Runs another runner in several processes, each with its own listening socket (SO_REUSEPORT).

    prefork.py --workers N RUNNER ARGUMENT...

With one worker, or without --workers, the runner runs in this process. Standard library only.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys


def main() -> int:
    """Run the runner in this process, or start it in several child processes."""
    words, workers = sys.argv[1:], 1
    if words[0] == "--workers":
        workers, words = int(words[1]), words[2:]
    if workers == 1:
        return become(words)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    children = []
    for _ in range(workers):
        child = os.fork()
        if child == 0:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
            return become([*words, "--reuse-port"])
        children.append(child)
    is_stopped = signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGTERM
    for child in children:
        os.kill(child, signal.SIGTERM)
    for child in children:
        os.waitpid(child, 0)
    return 0 if is_stopped else 1


def become(words: list[str]) -> int:
    """Run the runner in this process as the main program."""
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
