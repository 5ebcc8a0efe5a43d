"""The boundary for text that a server, an app or a stored file brought: what could steer a
terminal, reorder a line or not be encoded is shown as an escape, and no text is longer than anybody
reads. What was hidden here before stands in it nowhere."""

from __future__ import annotations

import html
import re
from bisect import insort

# As much of a message as tells what it is about; the log has the whole.
MOST_MESSAGE_CHARACTERS = 2_000
MOST_TAIL_CHARACTERS = 4_000
# As much of a response as tells what it is about.
MOST_QUOTED_CHARACTERS = 100
# Shorter ones are words like any other, and stand where they are no secret.
LEAST_HIDDEN_CHARACTERS = 8

_MARKUP = re.compile(r"(?is)<(head|title|script|style)\b.*?</\1>|<[^>]*>")
_STEERING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of writing
    "\u2028\u2029"  # ends of a line to some readers
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # invisible
    "\ud800-\udfff"  # halves of a pair, which no encoding has
    "]"
)


_instead_of: dict[str, str] = {}
_hidden: list[str] = []  # the longest first: it may hold another


def hide(secret: str, instead: str) -> None:
    """From now on show something else in place of a secret, wherever a text repeats it."""
    if len(secret) >= LEAST_HIDDEN_CHARACTERS and secret not in _instead_of:
        _instead_of[secret] = instead
        insort(_hidden, secret, key=lambda one: -len(one))


def show_all() -> None:
    """Hide nothing any more."""
    _instead_of.clear()
    _hidden.clear()


def visible(text: str) -> str:
    """The text with everything invisible that does more than stand there as an escape: ``\\x1b``,
    ``\\u202e``, ``\\udc80``. Lines and tabs stay."""
    return _STEERING.sub(_escape, without_hidden(text))


def visible_json(text: str) -> str:
    """JSON with the same in its strings written as JSON writes it: it reads back unchanged."""
    return _STEERING.sub(_json_escape, text)


def message(text: str) -> str:
    """A message that may quote somebody: visible, and its middle left out when it is too long."""
    # A secret that is cut in two is not found any more.
    return _shortened(visible(_shortened(without_hidden(text))))


def tail(text: str) -> str:
    """The end of a log, which holds the cause more often than the beginning."""
    return visible(without_hidden(text)[-MOST_TAIL_CHARACTERS:])[-MOST_TAIL_CHARACTERS:]


def without_hidden(text: str) -> str:
    """The text without secrets, and without the beginning of one at its end: it may have been
    cut."""
    for secret in _hidden:
        if secret in text:
            text = text.replace(secret, _instead_of[secret])
        cut = text.find(secret[:LEAST_HIDDEN_CHARACTERS], max(0, len(text) - len(secret)))
        if cut >= 0 and secret.startswith(text[cut:]):
            text = text[:cut] + _instead_of[secret]
    return text


def quotation(body: str) -> str:
    """The beginning of a response as one line, a page without its markup."""
    if body.lstrip().startswith("<"):
        body = html.unescape(_MARKUP.sub(" ", body))
    text = visible(" ".join(body.split()))
    is_whole = len(text) <= MOST_QUOTED_CHARACTERS
    return text if is_whole else f"{text[:MOST_QUOTED_CHARACTERS]}…"


def _shortened(text: str) -> str:
    left_out = len(text) - MOST_MESSAGE_CHARACTERS
    if left_out <= 0:
        return text
    half = MOST_MESSAGE_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]}"


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
