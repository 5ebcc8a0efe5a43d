"""Why a server gives a wrong response or none: the nearest known cause, and a fix. A fix that
changes the request has been tested; more time is suggested only for a server that is alive, still
works, and shows no other cause."""

from __future__ import annotations

import re
import shlex
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from wsgiload.errors import UsageError
from wsgiload.experiment.redaction import public_text, public_url
from wsgiload.foreign_text import quotation
from wsgiload.loads.request import Request
from wsgiload.sampling.listen_queue import listener_pids, listening_ports
from wsgiload.serving.exchange import Response
from wsgiload.serving.launch import HOST, ServerProcess, require_free_port
from wsgiload.serving.log import last_line
from wsgiload.units import NS_PER_S

# Bytes of a body that are read for a quotation.
READ_BYTES = 8_000

REDIRECTS = (301, 302, 303, 307, 308)
HTTPS_FIELD = ("X-Forwarded-Proto", "https")
_LOGIN = re.compile(r"log-?in|sign-?in|oauth|sso", re.IGNORECASE)
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?")
_OF_STATUS = {
    401: "the path needs credentials: add -H 'Authorization: …' or -H 'Cookie: …', or choose "
    "another --path",
    403: "the app refuses this request: add the credentials it needs with -H 'Authorization: …' or "
    "-H 'Cookie: …', or choose another --path",
    404: "choose a path that the app serves (--path)",
    429: "disable the app's rate limit for the measurement",
}

# Sends a request; None if there was no complete response.
Resend = Callable[[Request], Response | None]


def describe_response(request: Request, response: Response) -> str:
    """Describe a wrong response: its status if unexpected, and its redirect target or the beginning
    of its body."""
    exchange = f"{request.method} {public_url(request.path)} returned"
    text = f"{exchange} an unexpected body"
    if response.status not in request.statuses:
        text = f"{exchange} status {response.status}"
    if response.status in REDIRECTS and response.headers.get("Location"):
        return f"{text} to {public_text(response.headers['Location'])}"
    body = excerpt(response)
    return f'{text}, "{body}"' if body else text


def excerpt(response: Response) -> str:
    """The beginning of a body as one line of text: decompressed, and without markup."""
    body, encoding = response.body[:READ_BYTES], response.headers.get("Content-Encoding", "")
    if encoding.lower() in ("gzip", "deflate"):
        try:
            body = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, READ_BYTES)
        except zlib.error:
            return f"({encoding})"
    elif encoding and encoding.lower() != "identity":
        return f"({encoding})"

    return quotation(public_text(body.decode(errors="replace")))


def fix_of(request: Request, response: Response, hosts: Iterable[str], resend: Resend) -> str:
    """A suggested fix; ``hosts`` are host names that the app may accept."""
    status = response.status
    if status in request.statuses:
        return _fix_of_body(response)
    if status >= 500:
        return "see the server's log"
    if status in REDIRECTS:
        return _fix_of_redirect(request, response, resend)
    if status == 400:
        return _fix_of_host(request, hosts, resend)
    if status == 405 and response.headers.get("Allow"):
        method = response.headers["Allow"].partition(",")[0].strip()
        return f"choose another --path, or use --method {shlex.quote(method)}"
    usual = f"choose another --path or change the request; if {status} is correct, add "
    return _OF_STATUS.get(status, f"{usual}--expect-status {status}")


def exception_in(log: str) -> str | None:
    """The exception of the last traceback in a log; None if there is none."""
    _, heading, block = log.rpartition("Traceback (most recent call last)")
    lines = block.splitlines()[1:] if heading else []
    return next((line for line in lines if _EXCEPTION.fullmatch(line)), None)


def _fix_of_body(response: Response) -> str:
    encoding = response.headers.get("Content-Encoding")
    if encoding:
        return (
            f"bodies are checked without decoding, but this one has Content-Encoding: {encoding}; "
            "omit the header Accept-Encoding"
        )
    return "choose another --path, or correct the --expect options"


def _fix_of_redirect(request: Request, response: Response, resend: Resend) -> str:
    where = urlsplit(response.headers.get("Location", ""))
    name, value = HTTPS_FIELD
    if where.scheme == "https":
        if _is_correct(resend(_with(request, name, value)), request):
            return f"the app requires https: add -H '{name}: {value}'"
        return "the app requires https: turn that off for the measurement"
    if _LOGIN.search(where.path):
        return (
            "the path needs a login: add its cookie with -H 'Cookie: …', or choose another --path"
        )

    path = where.path + (f"?{where.query}" if where.query else "")
    if path.startswith("/") and _is_correct(resend(replace(request, path=path)), request):
        return f"request its target: --path {shlex.quote(path)}"
    return (
        f"choose another --path; if the redirect is correct, add --expect-status {response.status}"
    )


def _fix_of_host(request: Request, hosts: Iterable[str], resend: Resend) -> str:
    """The fix for status 400: frameworks send it for unknown host names, and the load's default is
    the server's address."""
    if any(name.lower() == "host" for name, _ in request.headers):
        return "correct -H 'Host: …', or change the request with --method, -H and --body"
    for host in dict.fromkeys((*hosts, "localhost")):
        other = resend(_with(request, "Host", host))
        if other is not None and other.status < 500 and other.status != 400:
            return f"the app accepts only its own host names: add -H {shlex.quote(f'Host: {host}')}"
    return (
        "if the app accepts only its own host names (Django's ALLOWED_HOSTS), add -H 'Host: NAME'; "
        "otherwise change the request with --method, -H and --body"
    )


def _with(request: Request, name: str, value: str) -> Request:
    return replace(request, headers=(*request.headers, (name, value)))


def _is_correct(response: Response | None, request: Request) -> bool:
    return response is not None and response.status in request.statuses


_IN_USE = re.compile(r"^.*(?:address|connection)(?: is)?(?: already)? in use.*$", re.I | re.M)
# A cause is searched in this much of the log's end: a backtrace may follow it.
SEARCHED_BYTES = 64 << 10
# A server that puts itself into the background listens soon after its first process exited.
BACKGROUND_S, POLL_S = 1.0, 0.05
# More processes end while a server starts only if it restarts them.
MANY_ENDED = 3
# A server that uses less CPU time does not load anything.
MIN_WORKING_SHARE = 0.05

CauseAndFix = tuple[str, str]


@dataclass(slots=True)
class Progress:
    """What a starting server has done so far: its processes, CPU time and output."""

    server: ServerProcess
    started_ns: int
    seen: set[int] = field(default_factory=set)
    half: tuple[int, int | None, int] | None = None

    def observe(self, now_ns: int, timeout_ns: int) -> None:
        """Note the processes, and once the CPU time and the length of the output at half time."""
        self.seen.update(self.server.group.pids())
        if self.half is None and now_ns - self.started_ns > timeout_ns / 2:
            self.half = self._reading(now_ns)

    @property
    def ended(self) -> int:
        """How many of its processes have ended."""
        return len(self.seen.difference(self.server.group.pids()))

    def is_working(self, now_ns: int) -> bool:
        """Whether it has used CPU time or written something since half time."""
        if self.half is None:
            return True
        (then_ns, then_cpu_ns, then_bytes), (_, cpu_ns, read_bytes) = self.half, self._reading(0)
        used_ns = 0 if cpu_ns is None or then_cpu_ns is None else cpu_ns - then_cpu_ns
        return read_bytes > then_bytes or used_ns > MIN_WORKING_SHARE * (now_ns - then_ns)

    def _reading(self, now_ns: int) -> tuple[int, int | None, int]:
        return now_ns, self.server.group.read_counters().cpu_usage_ns, self.server.log.mark()


def cause_of_exit(server: ServerProcess, port: int) -> CauseAndFix:
    """Why the first process exited."""
    log = server.log_tail(SEARCHED_BYTES)
    in_use = _IN_USE.search(log)
    if in_use is not None:
        return _in_use(server, in_use[0])
    if server.exit_code() == 0 and _has_background(server, port):
        return (
            f"{server.variant.id} put itself into the background: its first process exited with "
            "code 0, and others continue",
            "start it in the foreground, without --daemon, --daemonize or &",
        )
    raised = exception_in(log)
    logged = f"; its log contains {raised}" if raised and raised != last_line(log) else ""
    return f"{server.variant.id} {server.describe_exit()}{logged}", "see the end of its log"


def _has_background(server: ServerProcess, port: int) -> bool:
    """Whether a process continues or listens after the first one exited."""
    until = time.monotonic() + BACKGROUND_S
    while time.monotonic() < until:
        if listener_pids(port) != set():
            return True
        time.sleep(POLL_S)
    return bool(server.group.pids())


def lost_port(server: ServerProcess, port: int) -> CauseAndFix | None:
    """Whether another process took the port after it was chosen for this server."""
    owners = listener_pids(port) or set()
    is_logged = _IN_USE.search(server.log_tail(SEARCHED_BYTES)) is not None
    if not is_logged or owners & set(server.group.pids()):
        return None
    try:
        require_free_port(port)
    except UsageError as error:
        return f"{server.variant.id} {error.cause}", "end that process, or measure again"
    return None


def _in_use(server: ServerProcess, line: str) -> CauseAndFix:
    return (
        f"{server.variant.id} cannot listen, because another process uses its address: "
        f"{line.strip()}",
        "end the other process, or let the command listen on {address}",
    )


def cause_of_silence(
    server: ServerProcess, port: int, problem: str | None, progress: Progress
) -> CauseAndFix:
    """Why the server, which is alive, gave no response before its time was over."""
    name, now_ns = server.variant.id, time.monotonic_ns()
    waited = f"within {(now_ns - progress.started_ns) / NS_PER_S:.2g} s"
    log = server.log_tail(SEARCHED_BYTES)
    if (in_use := _IN_USE.search(log)) is not None:
        return _in_use(server, in_use[0])
    if progress.ended >= MANY_ENDED:
        why = exception_in(log) or last_line(log)
        logged = f"; its log contains {why}" if why else ""
        return (
            f"the processes of {name} end and are restarted ({progress.ended} ended {waited})"
            f"{logged}",
            "see its log for why they end",
        )
    if (raised := exception_in(log)) is not None:
        cause = f"{name} gave no response {waited}; its log contains {raised}"
        return cause, "see its log"

    if listener_pids(port) == set():
        return _not_listening(server, port, waited, progress.is_working(now_ns))
    if progress.is_working(now_ns):
        cause = f"{name} listens, but gave no correct response {waited} ({problem})"
        return cause, "raise --ready-timeout and --timeout, or see its log"
    return (
        f"{name} listens on port {port}, but sends no response and uses no CPU: it waits for "
        f"something ({problem} {waited})",
        "see its log; check what the app waits for while it is imported or in this request",
    )


def _not_listening(server: ServerProcess, port: int, waited: str, is_working: bool) -> CauseAndFix:
    name = server.variant.id
    others = sorted(listening_ports(server.group.pids()))
    if others:
        return (
            f"{name} listens on port {', '.join(map(str, others))} instead of {port}",
            f"let its command listen on {{address}} ({HOST}:{port} in this run)",
        )
    last = last_line(server.log_tail())
    logged = f"; the last line of its log is: {last}" if last else "; its log is empty"
    if is_working:
        cause = f"{name} is still starting: it opened no port {waited}{logged}"
        return cause, "raise --ready-timeout"
    return (
        f"{name} is alive, but opened no port {waited} and uses no CPU{logged}",
        "check that its command starts a server on {address}, and what it waits for",
    )
