"""The alarm about wrong responses: their number, their content, and the fix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from wsgiload.documents.load_report import LoadReport, WrongResponse
from wsgiload.experiment.stored_secrets import public_response
from wsgiload.findings.finding import Finding, Fired
from wsgiload.foreign_text import quotation

# The load report contains further kinds.
MAX_QUOTED = 3

_LOGIN = re.compile(r"log-?in|sign-?in|oauth|sso", re.IGNORECASE)
# The response of a TLS server to plain text.
_TLS_ALERT = "\x15\x03"
_CREDENTIALS = "add the required credentials with -H 'Authorization: …' or -H 'Cookie: …'"
_OF_STATUS = {
    400: "if the app accepts only its own host names (Django's ALLOWED_HOSTS), add "
    "-H 'Host: NAME'; otherwise correct the request",
    401: _CREDENTIALS,
    403: _CREDENTIALS,
    404: "request a path that the app serves",
    405: "choose another path or --method",
    429: "disable the app's rate limit for the measurement",
}
WRONG_RESPONSES = Finding(
    name="wrong-responses",
    examines="responses with an unexpected status or body",
    premise="At least one response was incorrect. Errors can be faster than correct responses.",
    fix="check what the server returns before comparing servers",
    misleads="rankings of servers that returned errors or truncated responses",
)


def wrong_responses(load: LoadReport) -> Fired | None:
    """Responses with a wrong status or body."""
    outcomes = load.outcomes
    wrong = outcomes.http_status + outcomes.bad_body
    if not wrong:
        return None

    message = (
        f"{wrong:,} of {outcomes.scheduled:,} requests got an incorrect response (status: "
        f"{outcomes.http_status:,}, body: {outcomes.bad_body:,})"
    )
    if load.wrong_responses:
        message += f": {_quoted(load.wrong_responses)}"
    return WRONG_RESPONSES.fired(message, wrong, 0, fix=_fix_of(load.wrong_responses))


def _quoted(responses: Sequence[WrongResponse]) -> str:
    """The first response of each kind."""
    kinds = [_in_words(public_response(one)) for one in responses[:MAX_QUOTED]]
    left = len(responses) - MAX_QUOTED
    return "; ".join(kinds) + (f"; and {left} more kinds" if left > 0 else "")


def _in_words(response: WrongResponse) -> str:
    text = f"status {response.status}"
    if response.outcome == "bad_body":
        text = response.reason or "unexpected body"
    if response.location is not None:
        return f"{text} to {quotation(response.location)}"
    if response.content_encoding is not None:
        return f"{text}, Content-Encoding: {quotation(response.content_encoding)}"
    body = quotation(response.first_line if response.body is None else response.body)
    return f'{text}, "{body}"' if body else text


def _fix_of(responses: Sequence[WrongResponse]) -> str | None:
    """The fix for the first kind that has its own."""
    fixes = (_fix_of_status(one) or _fix_of_body(one) for one in responses)
    return next((fix for fix in fixes if fix is not None), None)


def _fix_of_body(response: WrongResponse) -> str | None:
    if response.first_line.startswith(_TLS_ALERT):
        return "the server expects TLS on this port: use https://"
    if response.outcome == "bad_body" and response.content_encoding is not None:
        return (
            "bodies are checked without decoding: omit the header Accept-Encoding, or check "
            "the compressed body"
        )
    return None


def _fix_of_status(response: WrongResponse) -> str | None:
    status = response.status
    if response.outcome != "http_status" or status is None:
        return None
    if status >= 500:
        return "see the server's log"
    if response.location is None:
        return _OF_STATUS.get(status)

    where = urlsplit(response.location)
    if where.scheme == "https":
        return (
            "the app redirects to https: add -H 'X-Forwarded-Proto: https', or turn the redirect "
            "off for the measurement"
        )
    if _LOGIN.search(where.path):
        return "the path needs a login: add its cookie with -H 'Cookie: …'"
    return "request the target of the redirect instead"
