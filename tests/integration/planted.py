"""Secrets and hostile text for tests, apps that repeat them, and searches for them."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import sleep

from .command import Command, CommandResult, RunningCommand

# Strings that control a terminal, or reorder or end a line.
RAW = ("\x1b]0;owned", "\x07", "\u202egnp", "\u2028", "\x9b31m")
# The same in Python source.
PLANTED = "\\x1b]0;owned\\x07 \\u202egnp \\u2028 \\x9b31m"
HOSTILE = PLANTED.encode().decode("unicode_escape")
# Those that do not occur in binary files by chance.
DISTINCT = ("\x1b]0;owned", "owned\x07", "\u202egnp", "\x9b31m")

TOKEN, COOKIE, KEY = "tok-5e3c7e7a11", "cook-5e3c7e7a12", "key-5e3c7e7a13"
PARAMETER, BODY = "par-5e3c7e7a14", "body-5e3c7e7a15"
VARIABLE, PASSWORD = "var-5e3c7e7a16", "pass-5e3c7e7a17"
SECRETS = (TOKEN, COOKIE, KEY, PARAMETER, BODY, VARIABLE, PASSWORD)
# The request body as it is stored in a plan.
ENCODED = base64.b64encode(f"pin={BODY}".encode()).decode()

HEADERS = f"Authorization: Bearer {TOKEN}\nCookie: id={COOKIE}\nX-Api-Key: {KEY}\n"
VARIABLES = f"API_TOKEN={VARIABLE}\nDATABASE_URL=postgres://shop:{PASSWORD}@db/shop\n"
# Repeats its requests and its environment variables in its log, responses and exceptions.
REPEATS = f"""
import os, sys

sys.stderr.write(f"{{os.environ['API_TOKEN']}} {{os.environ['DATABASE_URL']}}\\n")
requests = 0

def app(environ, start_response):
    global requests
    requests += 1
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
    received = " ".join(value for value in environ.values() if isinstance(value, str)) + body
    sys.stderr.write(f"{{received}} {PLANTED}\\n")
    sys.stderr.flush()
    if requests > 8 and requests % 3 == 0:
        raise RuntimeError(f"{{received}} {PLANTED}")
    start_response("200 OK", [("Set-Cookie", received.replace("\\r", "").replace("\\n", ""))])
    return [f"{{received}} {PLANTED}".encode()]
"""
FAILS = "import os\nraise RuntimeError(os.environ['API_TOKEN'] + os.environ['DATABASE_URL'])\n"
FILES = {
    "headers": HEADERS,
    "body": f"pin={BODY}",
    "vars": VARIABLES,
    "repeats.py": REPEATS,
    "fails.py": FAILS,
}
# Options that read the secrets from these files.
REQUEST = ("-H", "@headers", "-X", "POST", "--body-file", "body")
SWEEP = ("--env-file", "vars", *REQUEST)


def write_planted_files(folder: Path) -> None:
    """Write the files with the secrets and the apps that repeat them."""
    for name, text in FILES.items():
        (folder / name).write_text(text)


def texts_in(places: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """The name and content of each file, folders searched recursively. All are UTF-8."""
    for place in places:
        for path in (place, *place.rglob("*")):
            if path.is_file():
                yield path.name, path.read_text()


def require_clean(result: CommandResult, *places: Path, typed: Sequence[str] = ()) -> None:
    """Neither the output nor these files contain a raw hostile string, or a secret other than those
    typed by the user."""
    texts = [("stdout", result.out), ("stderr", result.err), *texts_in(places)]
    forbidden = [*RAW, *(secret for secret in SECRETS if secret not in typed), ENCODED]
    leaks = [(name, string) for name, text in texts for string in forbidden if string in text]
    assert leaks == [], leaks


def require_clean_cache(cache: Path) -> None:
    """No file of a cache, which may be binary, contains a secret or a distinct hostile string."""
    forbidden = [string.encode() for string in (*DISTINCT, *SECRETS, ENCODED)]
    files = [path for path in cache.rglob("*") if path.is_file() and not path.is_symlink()]
    contents = ((path, path.read_bytes()) for path in files)
    leaks = [
        (path.name, item) for path, content in contents for item in forbidden if item in content
    ]
    assert files and leaks == [], leaks


def wait_and_watch(running: RunningCommand, command: Command) -> tuple[CommandResult, set[str]]:
    """Wait for the command to exit; returns also the command lines of all processes seen
    meanwhile."""
    command_lines: set[str] = set()
    while running.process.poll() is None:
        command_lines |= set(command.processes().values())
        sleep(0.005)
    return running.end(), command_lines


def require_no_secrets_in(lines: Iterable[str], typed: Sequence[str] = ()) -> None:
    """No command line contains a secret, except that of the user, which contains ``typed``."""
    others = [line for line in lines if not any(secret in line for secret in typed)]
    leaks = [(line, secret) for line in others for secret in SECRETS if secret in line]
    assert leaks == [], leaks
