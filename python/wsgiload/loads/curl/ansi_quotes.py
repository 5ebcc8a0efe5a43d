"""Decodes bash's ``$'…'`` quotes, which browsers use when they copy commands. Pure."""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"""\\(?:
      u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})
    | (?:u(?P<short>[0-9a-fA-F]{1,4}) | U(?P<long>[0-9a-fA-F]{1,8}))
    | x(?P<hexadecimal>[0-9a-fA-F]{1,2})
    | (?P<octal>[0-7]{1,3})
    | (?P<other>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_NAMED = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_REPLACEMENT = 0xFFFD
_MAX_CODE_POINT = 0x10FFFF


def ansi_text(quoted: str) -> str:
    """The text as bash decodes it; bytes that are not UTF-8 are surrogates, as in ``sys.argv``."""
    parts, position = [], 0
    for escape in _ESCAPE.finditer(quoted):
        parts += [_bytes(quoted[position : escape.start()]), _decoded(escape)]
        position = escape.end()
    parts.append(_bytes(quoted[position:]))
    return b"".join(parts).decode(errors="surrogateescape")


def _decoded(escape: re.Match[str]) -> bytes:
    if escape["high"]:  # a surrogate pair, as browsers write characters such as emoji
        high, low = int(escape["high"], 16), int(escape["low"], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).encode()
    if code := escape["short"] or escape["long"]:
        number = int(code, 16)
        number = number if number <= _MAX_CODE_POINT else _REPLACEMENT
        return chr(number).encode(errors="surrogatepass")
    if code := escape["hexadecimal"]:
        return bytes([int(code, 16)])
    if code := escape["octal"]:
        return bytes([int(code, 8) & 0xFF])
    return _bytes(_NAMED.get(escape["other"], f"\\{escape['other']}"))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
