"""The text between ``$'`` and ``'``, the quotes in which browsers copy commands for bash. Pure."""

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
_LAST = 0x10FFFF


def ansi_text(quoted: str) -> str:
    """The text as bash sends it; bytes that are not UTF-8 are surrogates, as in ``sys.argv``."""
    parts, position = [], 0
    for escape in _ESCAPE.finditer(quoted):
        parts += [_bytes(quoted[position : escape.start()]), _meant(escape)]
        position = escape.end()
    parts.append(_bytes(quoted[position:]))
    return b"".join(parts).decode(errors="surrogateescape")


def _meant(escape: re.Match[str]) -> bytes:
    if escape["high"]:  # two UTF-16 units, as browsers write characters such as emoji
        high, low = int(escape["high"], 16), int(escape["low"], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).encode()
    if code := escape["short"] or escape["long"]:
        number = int(code, 16)
        return chr(number if number <= _LAST else _REPLACEMENT).encode(errors="surrogatepass")
    if code := escape["hexadecimal"]:
        return bytes([int(code, 16)])
    if code := escape["octal"]:
        return bytes([int(code, 8) & 0xFF])
    return _bytes(_NAMED.get(escape["other"], f"\\{escape['other']}"))


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
