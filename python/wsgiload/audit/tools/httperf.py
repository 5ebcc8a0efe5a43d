"""The text output of httperf."""

from __future__ import annotations

import re

import msgspec

from wsgiload.audit import text
from wsgiload.audit.run import AuditTool
from wsgiload.documents.audit import ErrorKind, Figures
from wsgiload.units import NS_PER_S

# The median is the middle of a bin of this width.
_BIN_NS = 1_000_000
_START = r"^httperf --"
_TOTAL = rf"^Total: connections (\d+) requests (\d+) replies (\d+) test-duration ({text.NUMBER}) s"
_CONNECTION_TIME = (
    rf"^Connection time \[ms\]: min ({text.NUMBER}) avg ({text.NUMBER}) max ({text.NUMBER}) "
    rf"median ({text.NUMBER}) stddev ({text.NUMBER})"
)
_REPLY_TIME = rf"^Reply time \[ms\]: response ({text.NUMBER}) transfer ({text.NUMBER})"
_BURST = r"^Maximum connect burst length: (\d+)"
_STATUS = r"^Reply status: 1xx=\d+ 2xx=\d+ 3xx=\d+ 4xx=(\d+) 5xx=(\d+)"
_ERRORS = r"client-timo (\d+) socket-timo (\d+) connrefused (\d+) connreset (\d+)"
_CLIENT_ERRORS = r"fd-unavail (\d+) addrunavail (\d+) ftab-full (\d+) other (\d+)"


def _figures(piece: str) -> Figures:
    total = text.required(_TOTAL, piece, "'Total: connections'")
    text.required(rf"^Errors: {_CLIENT_ERRORS}", piece, "'Errors: fd-unavail'")
    connections, _, replies = (text.count(one) for one in total.groups()[:3])
    took_ns = text.seconds_ns(total[4])
    rate_per_s, calls = _option(piece, "rate"), _option(piece, "num-calls") or 1.0
    is_session = "--wsess" in piece.split("\n", 1)[0]

    return msgspec.structs.replace(
        _times(piece, is_one_call=calls == 1),
        load="open" if rate_per_s else "closed",
        requested_per_s=rate_per_s * calls if rate_per_s and not is_session else None,
        achieved_per_s=replies * NS_PER_S / took_ns if took_ns else None,
        duration_ns=took_ns,
        requests=replies,
        errors=_errors(piece),
        keepalive=calls > 1,
        reused=max(0, replies - connections),
        max_send_lag_ns=_late_ns(piece, rate_per_s),
        resolution_ns=_BIN_NS,
    )


def _option(piece: str, name: str) -> float | None:
    match = re.search(rf" --{name}=({text.NUMBER})", piece.split("\n", 1)[0])
    return float(match[1]) if match else None


def _late_ns(piece: str, rate_per_s: float | None) -> int | None:
    """The lateness of connections that were opened in one burst although they were due one after
    another."""
    burst = text.find_count(_BURST, piece)
    if burst is None or not rate_per_s:
        return None
    return round(max(0, burst - 1) / rate_per_s * NS_PER_S)


def _errors(piece: str) -> dict[ErrorKind, int]:
    status, of_server, of_client = (
        [text.count(one) for one in match.groups()] if match else [0] * 4
        for match in (text.find(pattern, piece) for pattern in (_STATUS, _ERRORS, _CLIENT_ERRORS))
    )
    return text.present(
        {
            "status": status[0] + status[1],
            "timeout": of_server[0] + of_server[1],
            "connect": of_server[2],
            "read": of_server[3],
            "client": sum(of_client[:3]),
            "other": of_client[3],
        }
    )


def _times(piece: str, *, is_one_call: bool) -> Figures:
    """The mean reply time. httperf has no other reply times, so with one call per connection, the
    others are connection times."""
    reply = text.find(_REPLY_TIME, piece)
    parts = [text.milliseconds_ns(one) for one in reply.groups()] if reply else []
    mean_ns, transfer_ns = (sum(parts), parts[1]) if parts else (None, None)
    connection = text.find(_CONNECTION_TIME, piece)
    if connection is None or not is_one_call:
        return Figures(mean_ns=mean_ns, transfer_ns=transfer_ns)

    least, _, longest, median, deviation = map(text.milliseconds_ns, connection.groups())
    return Figures(
        min_ns=least,
        mean_ns=mean_ns,
        transfer_ns=transfer_ns,
        deviation_ns=deviation,
        max_ns=longest,
        quantiles_ns={"0.5": median} if median else {},
    )


HTTPERF = AuditTool("httperf", text.has_line(_START), text.each_run(_START, _figures))
