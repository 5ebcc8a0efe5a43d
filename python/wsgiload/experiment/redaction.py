"""Replaces secrets in stored data and output by keyed hashes, so that runs can still be compared.
The key is kept in the user's cache, never in a run directory.

A value is a secret unless its name is harmless (docs/secrets.md lists them), or the user permits to
show it. Secrets are also taken apart, because an app may log one field of a body, one key of a list
or one part of a connection string.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

from wsgiload.environments.cache import cache_folder
from wsgiload.foreign_files import new_sibling
from wsgiload.foreign_text import hide, without_secrets

KEY_BYTES = 32
HASH_DIGITS = 16

# Up to the last @, because a password may contain one.
_CREDENTIALS_IN_URL = re.compile(r"(?<=://)[^/?#\s]+(?=@)")
_PARAMETER = re.compile(r"(?<=[?&;#])([^=&?;#\s]*)=([^&#\s]+)")
# In text, a URL may be followed by markup.
_PARAMETER_IN_TEXT = re.compile(r"""(?<=[?&;#])([^=&?;#\s"'<>]+)=([^&#\s"'<>]+)""")
# The end of the text may be cut off.
_JSON_FIELD = re.compile(r'(?<=")([^"\\]+)("\s*:\s*")((?:[^"\\]|\\.)+)(?="|\\?\Z)')
# Without spaces, so that it can be part of a path.
_REDACTED = re.compile(rf"\(redacted-[0-9a-f]{{{HASH_DIGITS}}}\)")
# A placeholder names the source of a secret but does not contain it.
_PLACEHOLDER = re.compile(r"\{\{[^{}]+\}\}")

_shown_names: set[str] = set()  # lower case


def show_values_of(names: Iterable[str]) -> None:
    """From now on, the values with only these names (of any case) are shown, apart from harmless
    ones."""
    _shown_names.clear()
    _shown_names.update(name.lower() for name in names)


def redacted(secret: str) -> str:
    """The hash that is stored instead of a secret; equal secrets of one user have equal hashes.
    From now on, it also replaces the secret in all output."""
    instead = _hash_of(secret)
    if instead != secret and not _is_ordinary(secret):
        hide(secret, instead)
    return instead


def _is_ordinary(value: str) -> bool:
    """Whether other text, such as the path of a log, must stay legible if it contains this."""
    # Unlike Path.exists, false for any text that cannot be a path.
    is_path = value.startswith("/") and os.path.exists(value)  # noqa: PTH110
    return is_path or value.lower() in ORDINARY_WORDS


def _hash_of(secret: str) -> str:
    if not secret or is_redacted(secret) or _PLACEHOLDER.fullmatch(secret):
        return secret
    digest = hmac.new(_key(), secret.encode(errors="surrogatepass"), "sha256").hexdigest()
    return f"(redacted-{digest[:HASH_DIGITS]})"


def is_redacted(value: str) -> bool:
    """Whether the value is the hash of a secret."""
    return _REDACTED.fullmatch(value) is not None


def holds_redacted(text: str) -> bool:
    """Whether the text contains the hash of a secret."""
    return _REDACTED.search(text) is not None


def public_value(name: str, value: str) -> str:
    """The value of an environment variable; of a connection string, only host and database."""
    if name.lower() in _shown_names:
        return value
    return public_url(value) if name in VARIABLES else _public_connection(value)


def public_field(name: str, value: str) -> tuple[str, str]:
    """A header field without secrets."""
    lower = name.lower()
    if lower in _shown_names or _PLACEHOLDER.fullmatch(value):
        return name, value
    if lower in HEADER_FIELDS:
        return name, public_url(value)
    if lower == "cookie":
        return name, ";".join(map(_public_cookie, value.split(";")))
    for part in credentials_in(value):
        redacted(part)  # an app may log a token without its scheme
    return name, redacted(value)


def public_url(url: str) -> str:
    """A URL or path without its credentials, and with the values of harmless parameters only."""
    return _public_url(url, redacted, _PARAMETER)


def public_text(text: str) -> str:
    """The beginning of a response: without what it repeats of secrets, and with the values of
    harmless parameters and JSON fields only."""

    def field(match: re.Match[str]) -> str:
        is_shown = match[1].lower() in _shown_names | RESPONSE_FIELDS
        return f"{match[1]}{match[2]}{match[3] if is_shown else _hash_of(match[3])}"

    # Values of the server do not replace other text, so it cannot make output unreadable.
    text = _public_url(without_secrets(text), _hash_of, _PARAMETER_IN_TEXT)
    return _JSON_FIELD.sub(field, text)


def public_body(body: bytes) -> bytes:
    """The hash that replaces a request body, which may contain anything."""
    text = body.decode(errors="surrogateescape")
    for part in values_in(text):
        redacted(part)  # an app may log single fields
    return redacted(text).encode()


def _public_cookie(text: str) -> str:
    name, equals, value = text.partition("=")
    if name.strip().lower() in _shown_names:
        return text
    redacted(value.strip(' "'))
    return f"{name}={redacted(value)}" if equals else redacted(text.strip())


def _public_url(url: str, replace: Callable[[str], str], pattern: re.Pattern[str]) -> str:
    def parameter(match: re.Match[str]) -> str:
        name = match[1].lower()
        # After one of these, there may be another parameter.
        is_harmless = name in URL_PARAMETERS and not {";", "?"} & set(match[2])
        is_shown = name in _shown_names or is_harmless
        return f"{match[1]}={match[2] if is_shown else replace(match[2])}"

    def credentials(match: re.Match[str]) -> str:
        return ":".join(map(replace, match[0].split(":", 1)))

    return pattern.sub(parameter, _CREDENTIALS_IN_URL.sub(credentials, url))


def _public_connection(value: str) -> str:
    """The value of a variable: host and database of a connection string, otherwise its hash."""
    for part in values_in(value):
        redacted(part)
    parts = connection_parts(value)
    return "".join(text if is_shown else redacted(text) for text, is_shown in parts)


@cache
def _key() -> bytes:
    """The user's key, generated on first use or if it is damaged. If it cannot be stored, only this
    process uses it: nothing leaks, but runs cannot be compared."""
    path = cache_folder() / "redaction.key"
    stored_key = _stored_key(path)
    if stored_key is not None:
        return stored_key
    new_key = secrets.token_bytes(KEY_BYTES)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = new_sibling(path, new_key, 0o600)
        if path.exists():
            unfinished.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(unfinished, path)  # atomic; of two threads or processes, the first wins
            unfinished.unlink()
    return _stored_key(path) or new_key


def _stored_key(path: Path) -> bytes | None:
    """The key in the file; None if it is missing or damaged."""
    with suppress(OSError):
        key = path.read_bytes()
        if len(key) == KEY_BYTES:
            return key
    return None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VARIABLES = _words("""
    CONN_MAX_AGE DATABASE_HOST DATABASE_NAME DATABASE_PORT DB_HOST DB_NAME DB_POOL_SIZE DB_PORT
    DEBUG DJANGO_CONFIGURATION DJANGO_DEBUG DJANGO_SETTINGS_MODULE FLASK_APP FLASK_DEBUG FLASK_ENV
    HOME HOST LANG LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME
    LD_LIBRARY_PATH LD_PRELOAD LOGLEVEL LOG_LEVEL MALLOC_ARENA_MAX OMP_NUM_THREADS PATH PGDATABASE
    PGHOST PGPORT POOL_SIZE PORT PYTHONASYNCIODEBUG PYTHONDEVMODE PYTHONDONTWRITEBYTECODE
    PYTHONFAULTHANDLER PYTHONHASHSEED PYTHONMALLOC PYTHONOPTIMIZE PYTHONPATH PYTHONSAFEPATH
    PYTHONUNBUFFERED PYTHONUTF8 PYTHONWARNINGS PYTHON_GIL REDIS_HOST REDIS_PORT TERM THREADS TMPDIR
    TZ VIRTUAL_ENV WEB_CONCURRENCY WORKERS WSGILOAD_RUNNER_APP WSGILOAD_RUNNER_THREADS
    WSGILOAD_UPSTREAM
""")
HEADER_FIELDS = _words("""
    accept accept-charset accept-encoding accept-language cache-control connection
    content-encoding content-language content-length content-type date dnt expect host
    if-modified-since if-none-match keep-alive origin pragma priority range sec-fetch-dest
    sec-fetch-mode sec-fetch-site sec-fetch-user te transfer-encoding upgrade
    upgrade-insecure-requests user-agent x-forwarded-host x-forwarded-port x-forwarded-proto
    x-requested-with
""")
URL_PARAMETERS = _words("""
    desc dir fields format lang limit locale offset order page page_size per_page size sort
""")
# JSON fields of a quoted response, most of which are error messages.
RESPONSE_FIELDS = _words("""
    cause description detail details error errors exception field instance loc message method msg
    path reason status timestamp title type
""")
# Fields of connection strings such as `host=db dbname=shop user=ada password=…`.
CONNECTION_FIELDS = _words("""
    database dbname defaultendpointsprotocol endpointsuffix host hostaddr port server
""") | {"data source", "initial catalog"}
# Schemes of URLs whose path is the name of a database.
DATABASE_SCHEMES = _words("""
    amqp amqps clickhouse cockroachdb mariadb memcached mongodb mongodb+srv mssql mysql
    mysql+pymysql oracle postgis postgres postgresql postgresql+asyncpg postgresql+psycopg
    postgresql+psycopg2 redis rediss
""")
# Schemes of URLs whose path may be a secret.
HOST_SCHEMES = _words("http https")

# Values that are no secrets elsewhere: hidden in their own place, but not where text repeats them.
ORDINARY_WORDS = _words("""
    0.0.0.0 127.0.0.1 application application/json cherrypy development fastpysgi gunicorn hypercorn
    localhost meinheld mod_wsgi password postgres postgresql production pyruvate supervisor username
    waitress werkzeug wsgiload
""")


# More parts would make each search for secrets slow.
MAX_PARTS = 1_000

# Text and whether it may be shown.
Part = tuple[str, bool]

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][\w+.-]*)://(?:(?P<user>[^\s/?#:]*)(?P<password>:[^\s/?#]*)?@)?"
    r"(?P<host>[\w.,\[\]-]*(?::\d+)?(?:,[\w.-]+:\d+)*)(?P<path>/[^\s?#@]*)?(?P<query>[?#][^\s@]*)?"
)
_DATABASE = re.compile(r"/[\w.-]*")
_VALUES = (
    re.compile(r"=([^&\r\n]+)"),
    re.compile(r"""=\s*["']?([^&;,\s"'<>]+)"""),
    re.compile(r">([^<>]+)<"),
)
# The fields of a part of a multipart body.
_PART_HEAD = re.compile(r"(?im)^content-.*$")


def connection_parts(value: str) -> list[Part]:
    """The parts of a connection string; a value of another kind has one part."""
    url = _URL.fullmatch(value)
    if url is not None and url["scheme"].lower() in DATABASE_SCHEMES | HOST_SCHEMES:
        return _url_parts(url)
    separator = ";" if ";" in value else r"\s+"
    fields = [_field_parts(text) for text in re.split(f"({separator})", value)]
    is_connection = any(len(parts) > 1 and parts[-1][1] for parts in fields)
    return [part for parts in fields for part in parts] if is_connection else [(value, False)]


def _url_parts(url: re.Match[str]) -> list[Part]:
    parts = [(f"{url['scheme']}://", True)]
    if url["user"] is not None:
        password = url["password"] or ""
        parts += [(url["user"], False), (password[:1], True), (password[1:], False), ("@", True)]
    path = url["path"] or ""
    is_database = url["scheme"].lower() in DATABASE_SCHEMES and _DATABASE.fullmatch(path)
    parts += [(url["host"], True), (path[:1], True), (path[1:], bool(is_database))]
    for text in re.split("([?&#])", url["query"] or ""):
        parts += [(text, True)] if text in "?&#" else _field_parts(text)
    return parts


def _field_parts(text: str) -> list[Part]:
    name, equals, value = text.partition("=")
    if not equals:
        return [(text, not text.strip("; \t\r\n"))]
    return [(name + equals, True), (value, name.strip().lower() in CONNECTION_FIELDS)]


def credentials_in(value: str) -> Iterator[str]:
    """The token of a header field without its scheme, the user and the password of basic
    authentication, and the values of parameters."""
    scheme, _, rest = value.strip().partition(" ")
    yield rest.strip()
    if scheme.lower() == "basic":
        try:
            decoded = base64.b64decode(rest).decode()
        except ValueError:
            return
        yield decoded
        yield from decoded.split(":", 1)
    yield from values_in(value)


def values_in(text: str) -> list[str]:
    """The values in JSON, a form, XML, a list or lines of text."""
    return list(islice(_values_in(text), MAX_PARTS))


def _values_in(text: str) -> Iterator[str]:
    try:
        yield from _leaves(json.loads(text))
    except (ValueError, RecursionError):
        text = _PART_HEAD.sub("", text)
    for values in _VALUES:
        yield from (match[1].strip() for match in values.finditer(text))
    for line in map(str.strip, text.splitlines()):
        if not line.startswith("--"):
            yield line
            yield from () if " " in line else line.split(",")


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
