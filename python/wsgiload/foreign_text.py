"""Makes untrusted text (of a server, an app or a stored file) safe to print: escapes terminal
control, bidirectional and unencodable characters, limits the length, and replaces secrets in every
spelling in which a program may repeat them. Logs on disk are made legible the same way."""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote, quote_plus, unquote, unquote_plus

# A shorter text may be an ordinary word that also occurs elsewhere.
MIN_SECRET_CHARACTERS = 8
# The parts of a longer text are secrets of their own.
MAX_SPELLED_CHARACTERS = 8_000

_ESCAPE = re.compile("%[0-9A-F]{2}")


class SecretIndex:
    """Secrets and what replaces them, found in time proportional to the text."""

    def __init__(self) -> None:
        self._replacements: dict[str, str] = {}
        self._by_prefix: dict[str, set[str]] = {}
        self._lengths: dict[str, list[int]] = {}  # by prefix, longest first

    def add(self, secret: str, instead: str) -> None:
        """Replace this secret from now on, in all its spellings."""
        for text in spellings(secret):
            if len(text) < MIN_SECRET_CHARACTERS or text in self._replacements:
                continue
            prefix = text[:MIN_SECRET_CHARACTERS]
            self._replacements[text] = instead
            self._by_prefix.setdefault(prefix, set()).add(text)
            lengths = self._lengths.setdefault(prefix, [])
            if len(text) not in lengths:
                lengths.append(len(text))
                lengths.sort(reverse=True)

    def replaced(self, text: str) -> str:
        """The text without secrets, and without the beginning of a secret at its end, where the
        text may have been cut."""
        parts = []
        done = 0
        for start, end, instead in self._found(text):
            parts += [text[done:start], instead]  # the first is empty if two secrets overlap
            done = end
        return "".join((*parts, text[done:])) if parts else text

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and replacement of each secret that does not lie within another."""
        prefixes, width, done = self._by_prefix, MIN_SECRET_CHARACTERS, 0
        if not prefixes:
            return
        starts = [at for at in range(len(text) - width + 1) if text[at : at + width] in prefixes]
        for start in starts:
            secret = self._at(text, start)
            if secret is not None and start + len(secret) > done:
                yield start, min(start + len(secret), len(text)), self._replacements[secret]
                done = start + len(secret)

    def _at(self, text: str, start: int) -> str | None:
        """The longest secret that begins here, or one of which the end was cut off."""
        prefix = text[start : start + MIN_SECRET_CHARACTERS]
        lengths = self._lengths[prefix]
        if start + lengths[0] > len(text):
            rest = text[start:]
            # A copy, because another thread may add a secret.
            cut = [one for one in tuple(self._by_prefix[prefix]) if one.startswith(rest)]
            if cut:
                return min(cut)  # the same in each call
        candidates = (text[start : start + length] for length in lengths)
        return next((one for one in candidates if one in self._replacements), None)


def spellings(secret: str) -> set[str]:
    """The text as it is, decoded or escaped as in URLs, JSON and HTML, and all of these in
    base64, as part of any text."""
    if len(secret) > MAX_SPELLED_CHARACTERS:
        return {secret}
    plain = {secret, unquote(secret), unquote_plus(secret)}
    escaped = {spelling for text in plain for spelling in _escaped(text)}
    encoded = {part for text in plain | escaped for part in _base64_parts(text)}
    return plain | escaped | encoded | {quote(text, safe="") for text in encoded}


def _escaped(text: str) -> Iterator[str]:
    data = _bytes_of(text)
    for url in (quote(data), quote(data, safe=""), quote_plus(data)):
        yield url
        yield _ESCAPE.sub(lambda match: match[0].lower(), url)
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield html.escape(text)


def _base64_parts(text: str) -> Iterator[str]:
    """The base64 digits that depend only on this text, for each of its places in a group of three
    bytes, in both alphabets."""
    data = _bytes_of(text)
    for before in range(3):
        digits = base64.b64encode(b"\0" * before + data).decode()
        part = digits[-(-8 * before // 6) : 8 * (before + len(data)) // 6]
        yield part
        yield part.replace("+", "-").replace("/", "_")


def _bytes_of(text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


# The log contains the full message.
MAX_MESSAGE_CHARACTERS = 2_000
MAX_TAIL_CHARACTERS = 4_000
MAX_QUOTED_CHARACTERS = 100

_MARKUP = re.compile(r"(?is)<(head|title|script|style)\b.*?</\1>|<[^>]*>")
_UNSAFE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional formatting
    "\u2028\u2029"  # line and paragraph separators
    # Invisible. Joiners (U+200C, U+200D) stay: words of some scripts and emoji need them.
    "\u00ad\u180e\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
    "\ud800-\udfff"  # surrogates, which cannot be encoded
    "]"
)


_secrets = SecretIndex()


@cache  # many requests have the same secret
def hide(secret: str, instead: str) -> None:
    """Replace this secret in all text from now on, also where it is escaped or in base64."""
    _secrets.add(secret, instead)


def show_all() -> None:
    """Forget all secrets."""
    global _secrets
    _secrets = SecretIndex()
    hide.cache_clear()


def visible(text: str) -> str:
    """The text without secrets and with unsafe characters escaped (``\\x1b``, ``\\u202e``,
    ``\\udc80``). Newlines and tabs stay."""
    return _UNSAFE.sub(_escape, without_secrets(text))


def visible_json(text: str) -> str:
    """JSON with the same characters written as JSON escapes, so that it parses to the same
    strings."""
    return _UNSAFE.sub(_json_escape, text)


def message(text: str) -> str:
    """A message that may quote untrusted text: visible, and without its middle if it is too
    long."""
    # Secrets first, because a secret that was cut is not recognized.
    return _shortened(visible(_shortened(without_secrets(text))))


def tail(text: str) -> str:
    """The end of a log, which shows the cause of a failure more often than the beginning."""
    return visible(without_secrets(text)[-MAX_TAIL_CHARACTERS:])[-MAX_TAIL_CHARACTERS:]


def without_secrets(text: str) -> str:
    """The text without secrets, and without the beginning of a secret at its end, where the text
    may have been cut."""
    return _secrets.replaced(text)


def quotation(body: str) -> str:
    """The beginning of a response as one line, without HTML markup."""
    if body.lstrip().startswith("<"):
        body = html.unescape(_MARKUP.sub(" ", body))
    text = visible(" ".join(body.split()))
    is_whole = len(text) <= MAX_QUOTED_CHARACTERS
    return text if is_whole else f"{text[:MAX_QUOTED_CHARACTERS]}…"


def _shortened(text: str) -> str:
    left_out = len(text) - MAX_MESSAGE_CHARACTERS
    if left_out <= 0:
        return text
    half = MAX_MESSAGE_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]}"


def _escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


MAX_LOG_BYTES = 8 << 20


@contextmanager
def legible_log(path: Path) -> Iterator[None]:
    """Escape and shorten the log when the block ends. Nothing may write to it after that."""
    try:
        yield
    finally:
        if path.exists():
            make_legible(path)


def after_cut(text: bytes) -> bytes:
    """The text without its first line, which was cut: half of a secret is not recognized."""
    return text.partition(b"\n")[2] or text


def left_out(omitted_bytes: int) -> bytes:
    """The line in a log in place of what was not kept."""
    return f"[… {omitted_bytes:,} bytes left out …]\n".encode()


def _before_cut(text: bytes) -> bytes:
    return text.rpartition(b"\n")[0] or text


def make_legible(path: Path, max_bytes: int = MAX_LOG_BYTES) -> None:
    """Escape control characters in the file, and keep only its beginning and end if it is too
    long."""
    size_bytes = path.stat().st_size
    with path.open("rb") as log:
        if size_bytes <= max_bytes:
            text = log.read(max_bytes)
        else:
            half = max_bytes // 2
            omitted = size_bytes - 2 * half
            text = _before_cut(log.read(half)) + b"\n" + left_out(omitted)
            log.seek(-half, os.SEEK_END)
            text += after_cut(log.read(half))

    legible = visible(text.decode(errors="backslashreplace").replace("\r\n", "\n")).encode()
    if len(legible) == size_bytes and legible == text:
        return
    temporary = path.with_name(f".{os.urandom(8).hex()}.unfinished")
    with temporary.open("xb") as file:  # follows no link
        file.write(legible)
    temporary.rename(path)
