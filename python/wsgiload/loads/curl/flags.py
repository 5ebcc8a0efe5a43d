"""The flags of curl and their meaning for a load. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from wsgiload.errors import UsageError

# Long names of the one-letter flags.
_LETTERS = {
    "0": "http1.0", "4": "ipv4", "6": "ipv6", "#": "progress-bar",
    "A": "user-agent", "b": "cookie", "c": "cookie-jar", "C": "continue-at", "d": "data",
    "D": "dump-header", "e": "referer", "E": "cert", "f": "fail", "F": "form", "g": "globoff",
    "G": "get", "H": "header", "i": "include", "I": "head", "j": "junk-session-cookies",
    "J": "remote-header-name", "k": "insecure", "K": "config", "L": "location", "m": "max-time",
    "N": "no-buffer", "o": "output", "O": "remote-name", "q": "disable", "r": "range",
    "R": "remote-time", "s": "silent", "S": "show-error", "T": "upload-file", "u": "user",
    "v": "verbose", "w": "write-out", "x": "proxy", "X": "request", "Z": "parallel",
}  # fmt: skip
# Flags that affect the requests.
_SWITCHES = frozenset(("get", "globoff", "head"))
_VALUES = frozenset([
    "cookie", "data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "header",
    "json", "oauth2-bearer", "referer", "request", "url", "url-query", "user", "user-agent",
])  # fmt: skip
# Flags that only affect curl's output, connections or timeouts.
_IGNORED_SWITCHES = frozenset([
    "basic", "compressed", "create-dirs", "disable", "fail", "fail-early", "fail-with-body",
    "http0.9", "http1.0", "http1.1", "http2", "http2-prior-knowledge", "http3", "include",
    "insecure", "ipv4", "ipv6", "junk-session-cookies", "location", "no-alpn", "no-buffer",
    "no-keepalive", "no-progress-meter", "no-sessionid", "parallel", "path-as-is",
    "progress-bar", "raw", "remote-header-name", "remote-name", "remote-name-all",
    "remote-time", "retry-all-errors", "retry-connrefused", "show-error", "show-headers",
    "silent", "ssl-no-revoke", "styled-output", "tcp-fastopen", "tcp-nodelay", "tlsv1",
    "tlsv1.0", "tlsv1.1", "tlsv1.2", "tlsv1.3", "verbose",
])  # fmt: skip
_IGNORED_VALUES = frozenset([
    "cacert", "capath", "ciphers", "connect-timeout", "cookie-jar", "dump-header",
    "keepalive-time", "limit-rate", "max-redirs", "max-time", "output", "output-dir", "retry",
    "retry-delay", "retry-max-time", "speed-limit", "speed-time", "stderr", "tls-max", "trace",
    "trace-ascii", "write-out",
])  # fmt: skip
# Flags for which a load has a replacement, or behaves differently.
_HINTS = {
    "compressed": "no Accept-Encoding is sent",
    "insecure": "use `wsgiload load --insecure`",
    "cacert": "use `wsgiload load --ca-file`",
    "location": "redirects are not followed",
    "http2": "use `wsgiload load --http2`",
}
_MULTIPART = (
    "multipart bodies are not supported; write the whole body to a file, then use "
    "--data-binary @FILE and its Content-Type"
)
_CHALLENGE = "use -u with basic authentication; the server's challenges are not supported"
_REFUSED = {
    "form": _MULTIPART,
    "form-string": _MULTIPART,
    "upload-file": "use -X PUT --data-binary @FILE instead",
    "config": "add the options in that file to the command",
    "digest": _CHALLENGE,
    "ntlm": _CHALLENGE,
    "negotiate": _CHALLENGE,
    "anyauth": _CHALLENGE,
    "aws-sigv4": "remove it; each request would need a new signature",
    "range": "remove it; range requests are not supported",
    "continue-at": "remove it; range requests are not supported",
    "proxy": "remove it; proxies are not supported",
    "cert": "remove it, and use `wsgiload load --client-cert`",
    "key": "remove it, and use `wsgiload load --client-key`",
    "connect-to": "remove it, and use `wsgiload load --connect-to`",
    "resolve": "remove it, and use `wsgiload load --connect-to`",
    "unix-socket": "remove it, and use `wsgiload load --unix-socket`",
}


@dataclass(slots=True)
class Flags:
    """The flags of one command line that affect its requests, in order, by long names."""

    urls: list[str] = field(default_factory=list)
    entries: list[tuple[str, str]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def values(self, name: str) -> list[str]:
        """The values of a flag, in order."""
        return [value for flag, value in self.entries if flag == name]

    def last(self, name: str) -> str | None:
        """The last value of a flag, which overrides the earlier ones."""
        return next(iter(reversed(self.values(name))), None)

    def has(self, name: str) -> bool:
        """Whether a switch is on."""
        return bool(self.values(name))


def flags_of(words: Sequence[str]) -> Flags:
    """The flags after ``curl``."""
    flags = Flags()
    rest = iter(words)
    for word in rest:
        if word == "--":
            flags.urls.extend(rest)
        elif word.startswith("--"):
            _process(flags, word, word[2:], None, rest)
        elif word.startswith("-") and word != "-":
            _process_letters(flags, word, rest)
        else:
            flags.urls.append(word)
    flags.urls.extend(flags.values("url"))
    return flags


def _process_letters(flags: Flags, word: str, rest: Iterator[str]) -> None:
    """Several switches in one word; a flag with a value takes the rest of the word or the next
    word."""
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _LETTERS.get(letter)
        if name is None:
            raise _unknown(f"-{letter}")
        if _process(flags, f"-{letter}", name, letters or None, rest):
            return


def _process(flags: Flags, written: str, name: str, value: str | None, rest: Iterator[str]) -> bool:
    """Process one flag; returns whether it takes a value."""
    if name in _REFUSED:
        raise UsageError(f"{written} of curl cannot be imported", _REFUSED[name])
    if name in _SWITCHES:
        flags.entries.append((name, ""))
        return False
    if name in _IGNORED_SWITCHES:
        flags.ignored.append(_ignored(written, name))
        return False
    if name not in _VALUES and name not in _IGNORED_VALUES:
        raise _unknown(written)

    value = next(rest, None) if value is None else value
    if value is None:
        raise UsageError(f"{written} of curl needs a value", "paste the whole command")
    if name in _VALUES:
        flags.entries.append((name, value))
    else:
        flags.ignored.append(_ignored(written, name))
    return True


def _ignored(written: str, name: str) -> str:
    hint = _HINTS.get(name)
    return f"{written} ({hint})" if hint else written


def _unknown(written: str) -> UsageError:
    return UsageError(
        f"{' '.join(written.split())[:40]} of curl cannot be imported",
        "remove it, or edit the targets file by hand (docs/requests.md)",
    )
