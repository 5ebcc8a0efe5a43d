"""Secrets of any name, given in any place, appear in no output and no file, however the app encodes
them when it repeats them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from tests.secret_names import SECRET_NAMES

from .command import Command
from .planted import texts_in
from .raw import RawResponse, raw_server
from .test_live_page import address_of, events_of

BRIEFLY = ("--duration", "500ms", "--warmup", "0s", "--cooldown", "0s")
PLACES = ("variable", "header", "parameter", "cookie", "field")
CHARACTERS_FOUND = 10


def secret_of(place: str, number: int) -> str:
    """Different in each place, with characters that are escaped in URLs."""
    return f"{place[:3]}{number:02}+5e/3c~{place[::-1][:3]}{number:02}"


SECRETS = [secret_of(place, number) for place in PLACES for number in range(len(SECRET_NAMES))]
NAMED = {
    place: [(name, secret_of(place, number)) for number, name in enumerate(SECRET_NAMES)]
    for place in PLACES
}
QUERY = "&".join(f"{name}={value}" for name, value in NAMED["parameter"])
COOKIE = "; ".join(f"{name}={value}" for name, value in NAMED["cookie"])
HEADERS = [*(f"{name}: {value}" for name, value in NAMED["header"]), f"Cookie: {COOKIE}"]
VARIABLES = [(re.sub(r"\W", "_", name), value) for name, value in NAMED["variable"]]
BODY = json.dumps(dict(NAMED["field"]))
FILES = {
    "headers": "\n".join(HEADERS),
    "body": BODY,
    "vars": "".join(f"{name}={value}\n" for name, value in VARIABLES),
    "requests.targets": "".join(f"{line}\n" for line in (f"GET /x?{QUERY}", *HEADERS)),
    "echo.py": f"""
import base64, os, sys
from urllib.parse import parse_qs, quote, unquote

NAMES = {[name for name, _ in VARIABLES]!r}

def encoded(text):
    data = text.encode()
    yield from (text, unquote(text), quote(text), quote(text, safe=""), base64.b64encode(data))
    yield from (base64.urlsafe_b64encode(b"-" * n + data) for n in range(3))

def app(environ, start_response):
    items = [os.environ.get(name, "") for name in NAMES]
    items += [value for value in environ.values() if isinstance(value, str)]
    items += [one for values in parse_qs(environ["QUERY_STRING"]).values() for one in values]
    items.append(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode())
    app.requests += 1
    texts = [str(text) for item in items for text in encoded(item)]
    place = app.requests * 53 % len(texts)
    sys.stderr.write(chr(10).join(texts) + chr(10))
    sys.stderr.flush()
    if app.requests % 4 == 3:
        raise RuntimeError(texts[place])
    start_response("500 No" if app.requests > 4 else "200 OK", [("Content-Type", "text/plain")])
    return [" ".join(texts[place:] + texts[:place]).encode()]

app.requests = 0
""",
    "wsgiload.toml": "[servers.own]\ncommand = 'echo {port}'\n[servers.own.env]\n"
    + "".join(f"{name} = '{value}'\n" for name, value in VARIABLES)
    + "[services.db]\nattach = 1\n[services.db.env]\n"
    + "".join(f"{name} = '{value}'\n" for name, value in VARIABLES),
    "own.toml": f"app = 'echo:app'\nservers = 'wsgiref'\nenv_file = 'vars'\n"
    f"header = {json.dumps(HEADERS)}\npath = '/x?{QUERY}'\nmethod = 'POST'\nbody = '{BODY}'\n",
}
REQUEST = ("-H", "@headers", "-X", "POST", "--body-file", "body")


def spellings(secret: str) -> Iterator[str]:
    yield from (secret, quote(secret), quote(secret, safe=""), secret.replace("+", " "))
    for before in range(3):
        data = b"-" * before + secret.encode()
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(data).decode()[4:-4]


# Half of each spelling, to find parts of secrets as well.
FORBIDDEN = {
    half
    for secret in SECRETS
    for text in spellings(secret)
    for half in (text[:CHARACTERS_FOUND], text[-CHARACTERS_FOUND:])
}
_WIDTHS = {len(text) for text in FORBIDDEN}


def require_no_secrets(texts: Iterable[tuple[str, str]]) -> None:
    """No text contains half of a secret in any spelling."""
    leaks = {
        (name, text[at : at + width])
        for name, text in texts
        for width in _WIDTHS
        for at in range(len(text) - width + 1)
        if text[at : at + width] in FORBIDDEN
    }
    assert leaks == set(), sorted(leaks)[:20]


@pytest.fixture
def echoing(command: Command) -> Command:
    for name, text in FILES.items():
        if not name.endswith(".toml"):
            (command.folder / name).write_text(text)
    return command


def outputs(command: Command, *words: object) -> list[tuple[str, str]]:
    """Run a command; returns its output."""
    result = command.run(*words)
    return [(f"{words[0]} out", result.out), (f"{words[0]} err", result.err)]


def test_the_search_finds_secrets() -> None:
    assert len(SECRET_NAMES) >= 60
    for secret in SECRETS[::30]:
        for text in (
            secret,
            quote(secret, safe=""),
            base64.b64encode(f"ab{secret}".encode()).decode(),
        ):
            with pytest.raises(AssertionError):
                require_no_secrets([("a", f"got {text}.")])


@pytest.mark.servers
@pytest.mark.limits
@pytest.mark.timeout(300)
def test_a_sweep_hides_secrets_of_any_name(echoing: Command) -> None:
    words = ("sweep", "echo:app", "--servers", "wsgiref", "--rates", 20, *BRIEFLY)
    words += ("--env-file", "vars", *REQUEST, "--path", f"/x?{QUERY}")
    planned = outputs(echoing, *words, "--dry-run", "--json", "-")
    assert "(redacted-" in planned[0][1] and all(name in planned[0][1] for name in SECRET_NAMES[:5])
    require_no_secrets(planned)

    running = echoing.start(*words, "--live", 0, "--html", "out.html", "--json", "out.json")
    address = address_of(running)
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(lambda: list(events_of(address)))
        page = urlopen(address, timeout=10).read().decode()
        result = running.end(200)
        events = watching.result()

    folder = echoing.folder
    log = (result.run_dir / "server" / "wsgiref@20#1.log").read_text()
    assert log.count("(redacted-") > len(SECRETS), "the app repeated the secrets"
    assert "incorrect response" in result.out + result.err
    require_no_secrets(
        [
            ("out", result.out),
            ("err", result.err),
            ("page", page),
            ("events", repr(events)),
            *texts_in([result.run_dir, folder / "out.html", folder / "out.json"]),
            *outputs(echoing, "report", result.run_dir),
            *outputs(echoing, "report", "--no-verbose", result.run_dir),
        ]
    )


def _refuse(request: bytes) -> RawResponse:
    """An error that repeats the request, as it is and in base64."""
    body = b" ".join([request.splitlines()[-3], base64.b64encode(request)])
    return RawResponse([b"HTTP/1.1 500 Error\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)])


@pytest.mark.parametrize("options", [("--targets", "requests.targets"), ("-H", "@headers")])
def test_a_load_hides_secrets_of_any_name(echoing: Command, options: tuple[str, ...]) -> None:
    with raw_server(_refuse) as url:
        words = ("load", f"{url}/x?{QUERY}" if options[0] == "-H" else url, *options)
        words += ("-R", 50, "-d", "500ms", "--json", "out.json", "--html", "out.html")
        shown = [
            *outputs(echoing, *words),
            *outputs(echoing, *words[:-4], "--dry-run", "--json", "-"),
        ]
        assert "(redacted-" in shown[2][1] and "status 500" in shown[1][1]
    require_no_secrets(
        [*shown, *texts_in([echoing.folder / "out.json", echoing.folder / "out.html"])]
    )


def test_files_with_secrets_are_shown_without_them(echoing: Command) -> None:
    (echoing.folder / "own.toml").write_text(FILES["own.toml"])
    experiment = outputs(echoing, "run", "own.toml", "--dry-run", "--json", "-")
    (echoing.folder / "wsgiload.toml").write_text(FILES["wsgiload.toml"])
    tables = outputs(echoing, "sweep", "--dry-run", "--json", "-")
    for shown in (experiment, tables):
        assert shown[0][1].count("(redacted-") > len(SECRET_NAMES), shown
        require_no_secrets(shown)


def test_values_are_shown_on_request(echoing: Command) -> None:
    words = ("load", f"http://127.0.0.1:9/x?{QUERY}", "-H", "@headers", "--dry-run", "--json", "-")
    (shown, _), _ = outputs(echoing, *words, "--show", "SIG"), None
    plan: dict[str, Any] = json.loads(shown[1])
    number = SECRET_NAMES.index("sig")
    assert f"sig={secret_of('parameter', number)}" in plan["url"]
    assert ["sig", secret_of("header", number)] in plan["headers"]
    assert plan["headers"][-1][1].count("(redacted-") == len(SECRET_NAMES) - 1
