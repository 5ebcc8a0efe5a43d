"""Makes untrusted text (of a server, an app or a stored file) safe to print: escapes terminal
control, bidirectional and unencodable characters, limits the length, and replaces secrets."""

from __future__ import annotations

import html
import re
from functools import cache

from wsgiload.foreign_text.secret_index import SecretIndex

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
