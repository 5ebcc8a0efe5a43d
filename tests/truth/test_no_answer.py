"""Why a server did not answer: the cause is named in words, for eight servers and ten endings."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
from pathlib import Path

import pytest

from tests.integration.command import Command

from .programs import programs_of

pytestmark = [pytest.mark.servers, pytest.mark.limits]

# How each server is started by hand; {bin} is the folder of its programs.
COMMANDS = {
    "gunicorn": "{bin}/gunicorn --threads 2 --bind 127.0.0.1:PORT ending:app",
    "waitress": "{bin}/waitress-serve --listen 127.0.0.1:PORT ending:app",
    "uwsgi": "{bin}/uwsgi --master --die-on-term --need-app --http-socket 127.0.0.1:PORT "
    "--module ending:app",
    "granian": "{bin}/granian --interface wsgi --host 127.0.0.1 --port PORT ending:app",
    "cheroot": "{bin}/python -m cheroot --bind 127.0.0.1:PORT ending:app",
    "gevent-pywsgi": "{bin}/python -c 'from gevent.pywsgi import WSGIServer; from ending import app; "
    'WSGIServer(("127.0.0.1", PORT), app).serve_forever()\'',
    "bjoern": "{bin}/python -c 'import bjoern; from ending import app; "
    'bjoern.run(app, "127.0.0.1", PORT)\'',
    "werkzeug": "{bin}/python -c 'from werkzeug.serving import run_simple; from ending import app; "
    'run_simple("127.0.0.1", PORT, app)\'',
}
EXITED = r"exited with code \d+|were? restarted|are restarted|its log contains"
CAUSES = {
    "oom": r"the kernel OOM-killed \d+ process(es)? while it started. Raise --memory",
    "exit": EXITED,
    "exception": r"RuntimeError: the licence has expired",
    "in use": r"cannot listen, because another process uses its address",
    "daemon": r"put itself into the background",
    "endless": r"GET / got status 200 .*a body that did not end in time",
    "stream": r"GET / got status 200 \(text/event-stream\) and a body that did not end in time",
    "503": r'GET / returned status 503, "pool exhausted"',
    "redirect": r"GET / returned status 302 to /login.*needs a login",
    "never": r"is alive, but opened no port .* uses no CPU|listens on port \d+, but sends no resp"
    r"onse and uses no CPU",
}


@pytest.fixture(scope="module")
def commands() -> dict[str, str]:
    """The command of each server, with the folder of its installed environment."""
    return {
        name: command.replace("{bin}", str(programs_of(name))) for name, command in COMMANDS.items()
    }


@pytest.mark.parametrize("ending", CAUSES)
def test_the_cause_is_named_in_words(
    ending: str, command: Command, commands: dict[str, str]
) -> None:
    shutil.copy(Path(__file__).with_name("ending.py"), command.folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        # A command whose port wsgiload does not choose needs a placeholder elsewhere.
        is_fixed = ending == "in use"
        port = f"{taken.getsockname()[1]}" if is_fixed else "{port}"
        prefix = "env UNUSED={port} " if is_fixed else ""
        words = []
        for name, text in commands.items():
            one = prefix + text.replace("PORT", port)
            one = f"sh -c {shlex.quote(f'{one} &')}" if ending == "daemon" else one
            words += ["--command", f"own-{name}={one}"]
        result = command.run(
            *("sweep", *words, "--env", f"ENDING={ending}", "--memory", "160MiB", "--no-verbose"),
            *("--rates", "20", "--duration", "1s", "--warmup", "0s", "--cooldown", "0s"),
            *("--ready-timeout", "4s", "--timeout", "1s", "--settle", "0s", "--quiet"),
        )

    failures = {cell["server"]: (cell["failure"] or {}) for cell in result.cells.values()}
    messages = {name: failure.get("message", "answered") for name, failure in failures.items()}
    assert set(messages) == {f"own-{name}" for name in COMMANDS}
    wrong = {name: text for name, text in messages.items() if not _is_named(ending, text)}
    assert not wrong, wrong
    assert result.code == 97
    assert not re.search(r"--ready-timeout", result.out)


def _is_named(ending: str, message: str) -> bool:
    return "--ready-timeout" not in message and bool(re.search(CAUSES[ending], message, re.I))
