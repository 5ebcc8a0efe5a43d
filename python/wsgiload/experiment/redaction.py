"""Replaces secrets in stored data and output by keyed hashes, so that runs can still be compared.
The key is kept in the user's cache, never in a run directory."""

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

# Names of variables, header fields and parameters whose values are probably secret.
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API[-_]?KEY|PRIVATE|AUTH|COOKIE|SESSION"
    r"|(?:^|[-_])(?:KEY|PASS|DSN)(?:$|[-_])|[-_]PWD$",
    re.IGNORECASE,
)
# Up to the last @, because a password may contain one.
_URL_PASSWORD = re.compile(r"(?<=://)([^/?#@:\s]*):([^/?#\s]+)(?=@)")
# A token in place of a user name.
_URL_TOKEN = re.compile(r"(?<=https://)([^/?#@:\s]+)(?=@)")
_PARAMETER = re.compile(r"(?<=[?&])([^=&#\s]+)=([^&#\s]+)")
# The end of the text may be cut off.
_JSON_FIELD = re.compile(r'(?<=")([^"\\]+)("\s*:\s*")((?:[^"\\]|\\.)+)(?="|\\?\Z)')
# Without spaces, so that it can be part of a path.
_REDACTED = re.compile(rf"\(redacted-[0-9a-f]{{{HASH_DIGITS}}}\)")
# A placeholder names the source of a secret but does not contain it.
_PLACEHOLDER = re.compile(r"\{\{[^{}]+\}\}")


def is_secret(name: str) -> bool:
    """Whether a variable, header field or parameter with this name probably has a secret value."""
    return _SECRET_NAME.search(name) is not None


def redacted(secret: str) -> str:
    """The hash that is stored instead of a secret; equal secrets of one user have equal hashes.
    From now on, it also replaces the secret in all output."""
    if is_redacted(secret) or _PLACEHOLDER.fullmatch(secret):
        return secret
    digest = hmac.new(_key(), secret.encode(errors="surrogatepass"), "sha256").hexdigest()
    instead = f"(redacted-{digest[:HASH_DIGITS]})"
    hide(secret, instead)
    return instead


def is_redacted(value: str) -> bool:
    """Whether the value is the hash of a secret."""
    return _REDACTED.fullmatch(value) is not None


def holds_redacted(text: str) -> bool:
    """Whether the text contains the hash of a secret."""
    return _REDACTED.search(text) is not None


def public_value(name: str, value: str) -> str:
    """The value of a variable or parameter without secrets."""
    return redacted(value) if is_secret(name) else public_url(value)


def public_field(name: str, value: str) -> tuple[str, str]:
    """A header field without secrets."""
    if not is_secret(name):
        return name, value
    for part in _credentials(value):
        redacted(part)  # an app may log a token without its scheme
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
    """The hash that replaces a request body, which may contain anything."""
    text = body.decode(errors="surrogateescape")
    public_url(f"?{text}")  # an app may log single form fields
    return redacted(text).encode()


def _credentials(value: str) -> list[str]:
    """The token after the scheme, and the values of cookies."""
    words = re.split(r"[;\s]+", value)
    values = [word.partition("=")[2] for word in words if "=" in word.rstrip("=")]
    return [*values, *words[1:]]


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
        unfinished = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(new_key)
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
