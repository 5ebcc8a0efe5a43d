"""Secrets and hostile strings, planted wherever a user, a server or an app can: in no output, no
file of a run and no process list, but for what the user typed."""

from __future__ import annotations

import base64
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from .command import Command, Done, Running, read_json, until
from .stored import only_run
from .target import CountingServer
from .test_hostile_text import PLANTED, RAW

BRIEFLY = ("--duration", "500ms", "--warmup", "0s", "--cooldown", "0s")
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


@pytest.fixture
def planted(command: Command) -> Command:
    """A folder with secrets in files, and apps that repeat them."""
    files = {"headers": HEADERS, "body": f"pin={BODY}", "vars": VARIABLES}
    for name, text in (files | {"repeats.py": REPEATS, "fails.py": FAILS}).items():
        (command.folder / name).write_text(text)
    return command


REQUEST = ("-H", "@headers", "-X", "POST", "--body-file", "body")
SWEEP = ("--env-file", "vars", *REQUEST)


def texts_of(run: Path) -> Iterator[tuple[str, str]]:
    for path in run.rglob("*"):
        if path.is_file():
            yield path.name, path.read_text()


def require_clean(done: Done, run: Path | None, typed: Sequence[str] = ()) -> None:
    """Neither secrets nor raw hostile strings in what was printed and stored."""
    texts = [("stdout", done.out), ("stderr", done.err), *(texts_of(run) if run else ())]
    searched = [*RAW, *(one for one in SECRETS if one not in typed), ENCODED]
    found = [(name, one) for name, text in texts for one in searched if one in text]
    assert found == []


def until_it_ends(running: Running, command: Command) -> tuple[Done, set[str]]:
    """Its end, and every command line that was seen meanwhile."""
    seen: set[str] = set()
    while running.process.poll() is None:
        seen |= set(command.processes().values())
    return running.end(), seen


@pytest.mark.servers
@pytest.mark.limits
def test_a_sweep_keeps_them_to_itself(planted: Command) -> None:
    words = ("sweep", "repeats:app", "--servers", "wsgiref,waitress", "--rates", 40, *BRIEFLY)
    words += ("--json", "out.json", "--html", "out.html")
    running = planted.start(*words, *SWEEP, "--path", f"/x?token={PARAMETER}")
    done, lines = until_it_ends(running, planted)

    assert done.code in (0, 98), done.err
    require_clean(done, done.run_dir)
    (done.run_dir / "more").mkdir()
    for name in ("out.json", "out.html"):
        (planted.folder / name).rename(done.run_dir / "more" / name)
    require_clean(done, done.run_dir)
    for server in ("wsgiref", "waitress"):
        log = (done.run_dir / "server" / f"{server}@40#1.log").read_text()
        assert "(redacted-" in log and "owned" in log, "the app has repeated what it got"
    assert any("_driver" in line for line in lines) and any("waitress" in line for line in lines)
    assert not [line for line in lines for one in SECRETS if one in line and PARAMETER not in line]

    for later in (("report", done.run_dir), ("report", "--no-verbose", done.run_dir)):
        require_clean(planted.run(*later), done.run_dir)


@pytest.mark.servers
def test_a_failing_import_repeats_none(planted: Command) -> None:
    words = ("sweep", "fails:app", "--servers", "wsgiref", "--rates", 40, "--limits", "none")
    done = planted.run(*words, *BRIEFLY, *SWEEP)
    assert done.code == 97
    assert "RuntimeError: (redacted-" in done.out + done.err
    require_clean(done, None)


@pytest.mark.servers
def test_a_capacity_search_keeps_them_to_itself(planted: Command) -> None:
    words = ("capacity", "repeats:app", "--servers", "wsgiref", "--slo", "p99<50ms")
    quickly = (*BRIEFLY, "--trials", 1, "--confirmations", 0, "--width", "50%", "--settle", "0s")
    running = planted.start(*words, *quickly, "--limits", "none", *SWEEP, "--json", "out.json")
    done, lines = until_it_ends(running, planted)
    require_clean(done, only_run(planted))
    assert any("_driver" in line for line in lines)
    assert not [line for line in lines for one in SECRETS if one in line]
    assert not [one for one in SECRETS if one in (planted.folder / "out.json").read_text()]


def test_a_load_keeps_them_to_itself(planted: Command, target: CountingServer) -> None:
    words = ("load", target.url, "-R", 100, "-d", "300ms", "--json", "out.json")
    running = planted.start(*words, *REQUEST)
    done, lines = until_it_ends(running, planted)
    require_clean(done, None)
    assert not [one for one in SECRETS if one in (planted.folder / "out.json").read_text()]
    assert not [line for line in lines for one in SECRETS if one in line]
    assert target.seen[0][2]["authorization"] == f"Bearer {TOKEN}", "it was sent all the same"

    planted.run(*words, *REQUEST, "--store-secrets")
    plan = read_json(planted.folder / "out.json")["plan"]
    assert ["Authorization", f"Bearer {TOKEN}"] in plan["headers"]


@pytest.mark.servers
def test_a_sweep_is_resumed_with_its_secrets(planted: Command) -> None:
    """They are asked for one by one, each with the words that give it."""
    words = ("sweep", "--servers", "wsgiref", "--rates", "20,30", *BRIEFLY, "--limits", "none")
    running = planted.start(*words, *REQUEST, "--expect-status", "200,405")
    until(lambda: "[2/2]" in running.err, "the second cell")
    os.killpg(running.pid, signal.SIGINT)
    run = running.end().run_dir

    for given, says in (
        ((), "the value of Authorization was not stored"),
        (("-H", "@headers"), "the value of --body was not stored"),
        (("-H", "@headers", "-b", "pin=1"), "another body, or none"),
        (("-H", "Authorization: x"), "another header field Authorization, or none"),
    ):
        refused = planted.run("sweep", "--resume", run, *given)
        assert refused.code == 2
        (line,) = refused.complaints
        assert says in line

    done = planted.run("sweep", "--resume", run, "-H", "@headers", "--body-file", "body")
    assert done.code in (0, 98), done.err
    assert len(done.cells) == 2
    require_clean(done, run)
