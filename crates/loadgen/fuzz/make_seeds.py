"""Write the fuzzer's initial corpus of responses: make_seeds.py DIRECTORY."""

import sys
from pathlib import Path

CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n"
EARLY_COOKIE = "HTTP/1.1 103 Early Hints\r\nSet-Cookie: no=1\r\n\r\n"
LENGTH_AND_CODING = (
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
)
STREAMS = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close, keep-alive\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX-Empty:\r\nX-Spaces:  a\t \r\nServer: s\r\n\r\nuntil the end",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "HTTP/1.0 200\r\n\r\nold",
    "HTTP/1.1 204 No Content\r\nContent-Length: none\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 404 Not Found\nContent-Length: 2\n\nno",
    CONTINUE + "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    EARLY_COOKIE + "HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nSet-Cookie: b\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
    "HTTP/1.1 099 OK\r\n\r\n",
    "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n folded: no\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nzip",
    LENGTH_AND_CODING + "1\r\nx\r\n0\r\n\r\n",
    "SSH-2.0-OpenSSH_9.2\r\n",
    CHUNKED + "5\r\nhello\r\n0\r\n\r\n",
    CHUNKED + '00000000000000000001;a=b\r\nx\r\nA \t; c="d e"\r\n0123456789\r\n0;\r\n\r\n',
    CHUNKED + "1\r\nx\r\n000\r\nT: v\r\nU:\r\n\r\nsurplus",
    CHUNKED + "FFFFFFFFFFFFFFFF\r\nx",
    CHUNKED + "10000000000000000\r\nx",
    CHUNKED + "1 0\r\nx\r\n",
    CHUNKED + "1\r\nxy\r\n",
    CHUNKED + "0\r\nno colon\r\n\r\n",
    CHUNKED + "0\r\nT: v\n\r\n",
    "HTTP/1.1 200 OK\r\n" + "a: b\r\n" * 101 + "\r\n",
]
# The target reads its options before the stream: one byte with a HEAD bit, a cookie bit and the
# number of cuts, then the cuts.
PREFIXES = [b"\x00", b"\x80", b"\x03\x01\x07\x28", b"\x42\x01\x07"]


def main() -> None:
    """Write each stream with each prefix to a separate file."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for number, stream in enumerate(STREAMS):
        for kind, prefix in enumerate(PREFIXES):
            (directory / f"seed-{number:02}-{kind}").write_bytes(prefix + stream.encode("latin-1"))


if __name__ == "__main__":
    main()
