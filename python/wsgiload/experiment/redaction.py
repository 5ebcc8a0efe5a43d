"""Keeps secrets out of what is stored and shown: a keyed hash stands in the place of each, so that
two runs still compare. The key stays in the user's cache and out of every run directory."""

from __future__ import annotations

import hmac
import os
import re
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path

from wsgiload.environments.cache import cache_folder
from wsgiload.foreign_text import hide, without_secrets

KEY_BYTES = 32
HASH_DIGITS = 16

# Names of variables, header fields and parameters whose values nobody should read in a report.
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API[-_]?KEY|PRIVATE|AUTH|COOKIE|SESSION"
    r"|(?:^|[-_])(?:KEY|PASS|DSN)(?:$|[-_])|[-_]PWD$",
    re.IGNORECASE,
)
# To the last @: a password may hold one.
_URL_PASSWORD = re.compile(r"(?<=://)([^/?#@:\s]*):([^/?#\s]+)(?=@)")
# In place of a user's name.
_URL_TOKEN = re.compile(r"(?<=https://)([^/?#@:\s]+)(?=@)")
_PARAMETER = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s]+)")
# Its end may have been cut off.
_JSON_FIELD = re.compile(r'(?<=")([^"\\]+)("\s*:\s*")((?:[^"\\]|\\.)+)(?="|\\?\Z)')
# Without a space, so that it can stand in a path.
_REDACTED = re.compile(rf"\(redacted-[0-9a-f]{{{HASH_DIGITS}}}\)")
# Says where a secret comes from, and is none itself.
_PLACEHOLDER = re.compile(r"\{\{[^{}]+\}\}")


def is_secret(name: str) -> bool:
    """Whether the value of a variable, header field or parameter of this name looks like one."""
    return _SECRET_NAME.search(name) is not None


def redacted(secret: str) -> str:
    """What is stored in place of a secret, equal for equal secrets of one user. From now on it
    stands in its place in all text that is shown."""
    if is_redacted(secret) or _PLACEHOLDER.fullmatch(secret):
        return secret
    digest = hmac.new(_key(), secret.encode(errors="surrogatepass"), "sha256").hexdigest()
    instead = f"(redacted-{digest[:HASH_DIGITS]})"
    hide(secret, instead)
    return instead


def is_redacted(value: str) -> bool:
    """Whether it stands in the place of a secret."""
    return _REDACTED.fullmatch(value) is not None


def holds_redacted(text: str) -> bool:
    """Whether something in the text stands in the place of a secret."""
    return _REDACTED.search(text) is not None


def public_value(name: str, value: str) -> str:
    """The value of a variable or parameter as it may be stored."""
    return redacted(value) if is_secret(name) else public_url(value)


def public_field(name: str, value: str) -> tuple[str, str]:
    """A header field as it may be stored."""
    if not is_secret(name):
        return name, value
    for part in _credentials(value):
        redacted(part)  # an app logs a token without its scheme
    return name, redacted(value)


def public_url(url: str) -> str:
    """A URL or path without its password and without parameters that look like secrets."""
    url = _URL_PASSWORD.sub(lambda match: f"{match[1]}:{redacted(match[2])}", url)
    url = _URL_TOKEN.sub(lambda match: redacted(match[1]), url)
    return _PARAMETER.sub(lambda match: f"{match[1]}={public_value(match[1], match[2])}", url)


def public_text(text: str) -> str:
    """The beginning of a response, without what it repeats of secrets and without fields that look
    like some."""
    text = public_url(without_secrets(text))
    return _JSON_FIELD.sub(
        lambda match: f"{match[1]}{match[2]}{public_value(match[1], match[3])}", text
    )


def public_body(body: bytes) -> bytes:
    """What stands in the place of a request body: it may hold anything."""
    text = body.decode(errors="surrogateescape")
    public_url(f"?{text}")  # of a form the app may log single fields
    return redacted(text).encode()


def _credentials(value: str) -> list[str]:
    """The token behind its scheme, the values of cookies."""
    words = re.split(r"[;\s]+", value)
    values = [word.partition("=")[2] for word in words if "=" in word.rstrip("=")]
    return [*values, *words[1:]]


@cache
def _key() -> bytes:
    """The user's key, made at its first use, and anew where it is damaged. Where none can be kept,
    it holds for this process: nothing leaks, and runs do not compare."""
    path = cache_folder() / "redaction.key"
    kept = _kept_key(path)
    if kept is not None:
        return kept
    made = secrets.token_bytes(KEY_BYTES)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(made)
        if path.exists():
            unfinished.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(unfinished, path)  # whole or not at all; the first of two processes wins
            unfinished.unlink()
    return _kept_key(path) or made


def _kept_key(path: Path) -> bytes | None:
    """The key in the file; None where that is missing or damaged."""
    with suppress(OSError):
        kept = path.read_bytes()
        if len(kept) == KEY_BYTES:
            return kept
    return None
