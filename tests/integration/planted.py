"""What the tests of secrets and hostile text plant, the apps that repeat it, and the search for
it."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import sleep

from .command import Command, Done, Running

# Strings that would steer a terminal, reorder a line or end it.
RAW = ("\x1b]0;owned", "\x07", "\u202egnp", "\u2028", "\x9b31m")
# As Python source writes them.
PLANTED = "\\x1b]0;owned\\x07 \\u202egnp \\u2028 \\x9b31m"
HOSTILE = PLANTED.encode().decode("unicode_escape")
# Those that are no bytes of a program by chance.
DISTINCT = ("\x1b]0;owned", "owned\x07", "\u202egnp", "\x9b31m")

TOKEN, COOKIE, KEY = "tok-5e3c7e7a11", "cook-5e3c7e7a12", "key-5e3c7e7a13"
PARAMETER, BODY = "par-5e3c7e7a14", "body-5e3c7e7a15"
VARIABLE, PASSWORD = "var-5e3c7e7a16", "pass-5e3c7e7a17"
SECRETS = (TOKEN, COOKIE, KEY, PARAMETER, BODY, VARIABLE, PASSWORD)
# As a plan holds a body.
ENCODED = base64.b64encode(f"pin={BODY}".encode()).decode()

HEADERS = f"Authorization: Bearer {TOKEN}\nCookie: id={COOKIE}\nX-Api-Key: {KEY}\n"
VARIABLES = f"API_TOKEN={VARIABLE}\nDATABASE_URL=postgres://shop:{PASSWORD}@db/shop\n"
# Repeats in its log, its responses and its exceptions what it is sent and what it was started with.
REPEATS = f"""
import os, sys

sys.stderr.write(f"{{os.environ['API_TOKEN']}} {{os.environ['DATABASE_URL']}}\\n")
asked = 0

def app(environ, start_response):
    global asked
    asked += 1
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
    said = " ".join(value for value in environ.values() if isinstance(value, str)) + body
    sys.stderr.write(f"{{said}} {PLANTED}\\n")
    sys.stderr.flush()
    if asked > 8 and asked % 3 == 0:
        raise RuntimeError(f"{{said}} {PLANTED}")
    start_response("200 OK", [("Set-Cookie", said.replace("\\r", "").replace("\\n", ""))])
    return [f"{{said}} {PLANTED}".encode()]
"""
FAILS = "import os\nraise RuntimeError(os.environ['API_TOKEN'] + os.environ['DATABASE_URL'])\n"
FILES = {
    "headers": HEADERS,
    "body": f"pin={BODY}",
    "vars": VARIABLES,
    "repeats.py": REPEATS,
    "fails.py": FAILS,
}
# The options that take the secrets from these files.
REQUEST = ("-H", "@headers", "-X", "POST", "--body-file", "body")
SWEEP = ("--env-file", "vars", *REQUEST)


def plant(folder: Path) -> None:
    """Write the files with the secrets, and the apps that repeat them."""
    for name, text in FILES.items():
        (folder / name).write_text(text)


def texts_in(places: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Name and content of each file; folders are searched. All are UTF-8."""
    for place in places:
        for path in (place, *place.rglob("*")):
            if path.is_file():
                yield path.name, path.read_text()


def require_clean(done: Done, *places: Path, typed: Sequence[str] = ()) -> None:
    """Neither secrets nor raw hostile strings in what was printed and in these files, but for what
    the user typed."""
    texts = [("stdout", done.out), ("stderr", done.err), *texts_in(places)]
    searched = [*RAW, *(one for one in SECRETS if one not in typed), ENCODED]
    found = [(name, one) for name, text in texts for one in searched if one in text]
    assert found == [], found


def require_clean_cache(cache: Path) -> None:
    """The same in a cache, which also holds programs."""
    searched = [one.encode() for one in (*DISTINCT, *SECRETS, ENCODED)]
    files = [path for path in cache.rglob("*") if path.is_file() and not path.is_symlink()]
    contents = ((path, path.read_bytes()) for path in files)
    found = [(path.name, one) for path, content in contents for one in searched if one in content]
    assert files and found == [], found


def until_it_ends(running: Running, command: Command) -> tuple[Done, set[str]]:
    """Its end, and every command line that was seen meanwhile."""
    seen: set[str] = set()
    while running.process.poll() is None:
        seen |= set(command.processes().values())
        sleep(0.005)
    return running.end(), seen


def require_unseen(lines: Iterable[str], typed: Sequence[str] = ()) -> None:
    """No secret on a command line but on that of the user, which holds what was typed."""
    others = [line for line in lines if not any(one in line for one in typed)]
    found = [(line, one) for line in others for one in SECRETS if one in line]
    assert found == [], found
