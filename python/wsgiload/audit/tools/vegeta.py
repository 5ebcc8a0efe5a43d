"""The reports of vegeta, as JSON and as text. They contain the sent rate but not the requested
one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from wsgiload.audit import text
from wsgiload.audit.run import ALL_ERRORS, AuditTool, Part
from wsgiload.documents.audit import ErrorKind, Figures

# The code of a request without a response.
_NO_RESPONSE = "0"
_START = r"^Requests\s+\[total, rate(?:, throughput)?\]\s+"
_QUANTILES = {"50th": "0.5", "90th": "0.9", "95th": "0.95", "99th": "0.99"}
_NAMES = {"50": "0.5", "90": "0.9", "95": "0.95", "99": "0.99"}


class _Result(msgspec.Struct):
    latencies: dict[str, int]
    duration: int
    requests: int
    rate: float
    status_codes: dict[str, int]
    errors: list[str] | None = None
    wait: int = 0


def _is_vegeta(content: str) -> bool:
    is_json = content.lstrip().startswith("{") and '"latencies"' in content
    return (is_json and '"50th"' in content) or text.has_line(_START)(content)


def _parse(content: str) -> Sequence[Part]:
    if content.lstrip().startswith("{"):
        return [Part(_of_json(text.decode(content, _Result, "vegeta")))]
    return text.each_run(_START, _of_text)(content)


def _of_json(result: _Result) -> Figures:
    known = result.latencies
    times = {"min": known.get("min"), "mean": known.get("mean"), "max": known.get("max")}
    quantiles = {_QUANTILES[name]: known[name] for name in _QUANTILES if name in known}
    return _figures(
        (result.requests, result.rate),
        (result.duration, result.wait),
        (times, quantiles),
        result.status_codes,
        result.errors or [],
    )


def _of_text(piece: str) -> Figures:
    requests = _row("Requests", piece)
    duration, latencies = _row("Duration", piece), _row("Latencies", piece)
    codes = text.required(r"^Status Codes\s+\[code:count\]\s*(.*)$", piece, "'Status Codes'")
    _, _, errors = text.required(r"^Error Set:", piece, "'Error Set'").string.partition(
        "\nError Set:"
    )

    return _figures(
        (text.count(requests["total"]), float(requests["rate"])),
        (text.duration_ns(duration["attack"]), text.duration_ns(duration["wait"])),
        (
            {
                name: text.duration_ns(latencies[name])
                for name in ("min", "mean", "max")
                if name in latencies
            },
            {
                _NAMES[name]: text.duration_ns(latencies[name])
                for name in _NAMES
                if name in latencies
            },
        ),
        {code: text.count(number) for code, number in re.findall(r"(\d+):(\d+)", codes[1])},
        [line for line in errors.splitlines() if line.strip()],
    )


def _row(name: str, piece: str) -> dict[str, str]:
    """``Duration  [total, attack, wait]  2s, 2s, 1ms``: values by name."""
    match = text.required(rf"^{name}\s+\[([^\]]+)\]\s+(\S.*)$", piece, f"'{name}'")
    names, values = ([one.strip() for one in part.split(",")] for part in match.groups())
    if len(names) != len(values):
        text.cut_off(piece[: match.end()], f"'{name}'")
    return dict(zip(names, values, strict=True))


def _figures(
    sent: tuple[int, float],
    spans_ns: tuple[int, int],
    times: tuple[Mapping[str, int | None], dict[str, int]],
    codes: Mapping[str, int],
    messages: Sequence[str],
) -> Figures:
    took_ns = spans_ns[0] + spans_ns[1]
    responses = sum(number for code, number in codes.items() if code != _NO_RESPONSE)
    known, quantiles = times
    return Figures(
        load="open",
        sent_per_s=sent[1],
        achieved_per_s=responses * 1e9 / took_ns if took_ns else None,
        duration_ns=took_ns,
        requests=responses,
        timed_requests=sent[0],
        errors=_errors(codes, messages),
        min_ns=known.get("min"),
        mean_ns=known.get("mean"),
        max_ns=known.get("max"),
        quantiles_ns=quantiles,
    )


def _errors(codes: Mapping[str, int], messages: Sequence[str]) -> dict[ErrorKind, int]:
    """vegeta does not count its messages, so all requests without a response get one kind: the
    first one, but kinds of client errors take precedence."""
    kinds = Counter(
        text.kind_of_error(message) for message in messages if not re.match(r"\d{3} ", message)
    )
    kind: ErrorKind = "other"
    if kinds:
        kind = "client" if kinds["client"] else next(iter(kinds))
    status = sum(number for code, number in codes.items() if code >= "400")
    return text.present({"status": status, kind: codes.get(_NO_RESPONSE, 0)})


VEGETA = AuditTool("vegeta", _is_vegeta, _parse, ALL_ERRORS)
