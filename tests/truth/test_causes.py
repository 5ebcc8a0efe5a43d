"""Real servers with one known cause each: the first screen names it, and names no other."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.integration.command import Command

pytestmark = [pytest.mark.servers, pytest.mark.limits]

SERVER = Path(__file__).with_name("caused.py")
# What names each cause, and the load that shows it.
CAUSES = {
    "nagle": (r"Nagle's algorithm.*TCP_NODELAY", "--rates 30"),
    "quota": (r"the CPU limit throttled the server in \d+ % .*--cpus", "--rates 20 --cpus 0.2"),
    "queue": (
        r"full accept queue.* dropped [\d,]+ connection attempts|dropped connections",
        "--rates 60",
    ),
    "oom": (r"the kernel OOM-killed \d+ process.*--memory", "--rates 40 --memory 64MiB"),
    "gc": (r"garbage collection or a long computation .*gc\.freeze", "--rates 50"),
    "pool": (r"of its CPU limit; threads, connections or a backend", "--rates 150"),
    "lock": (r"No server saturated at 40/s", "--rates 40"),
    "none": (r"No server saturated at 40/s", "--rates 40"),
}
# The server does not tell a lock or a pool from other waits.
OPEN = ("pool", "lock", "none")
NAMED = {name: pattern for name, (pattern, _) in CAUSES.items() if name not in OPEN}
NEVER = r"infinite \(0 %|--ready-timeout"
# The limit of the lock is 71/s, however little CPU time its requests need.
NEVER_OF_LOCK = r"near [1-9],\d{3}/s"


@pytest.mark.parametrize("cause", CAUSES)
def test_the_first_screen_names_the_cause_and_no_other(cause: str, command: Command) -> None:
    pattern, load = CAUSES[cause]
    started = f"app={sys.executable} {SERVER} {cause} {{port}}"
    result = command.run(
        *("sweep", "--command", started, *shlex.split(load), "--no-verbose"),
        *("--duration", "5s", "--warmup", "0s", "--cooldown", "0s", "--settle", "0s"),
    )
    text = re.sub(r"\s+", " ", result.out)
    # If the server waits for a core, neither a busy nor an idle CPU shows anything.
    is_hidden = cause in ("gc", "pool") and "(contaminated)" in text
    assert is_hidden or re.search(pattern, text), result.out + result.err
    others = [name for name, other in NAMED.items() if name != cause and re.search(other, text)]
    assert not others, result.out
    assert not re.search(NEVER, text), result.out
    assert cause != "lock" or not re.search(NEVER_OF_LOCK, text), result.out
