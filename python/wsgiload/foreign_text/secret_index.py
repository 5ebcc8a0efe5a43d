"""Finds secrets in text, in every spelling in which a program may repeat them. Pure."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
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
