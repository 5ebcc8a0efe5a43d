"""Secrets and hostile strings from users, servers and apps appear in no output, no file of a run or
of the cache, and no process list, except where the user typed them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from .command import Command, CommandResult, read_json, until
from .planted import (
    DISTINCT,
    HOSTILE,
    PARAMETER,
    PASSWORD,
    PLANTED,
    REQUEST,
    SECRETS,
    SWEEP,
    TOKEN,
    require_clean,
    require_clean_cache,
    require_no_secrets_in,
    wait_and_watch,
    write_planted_files,
)
from .raw import RawResponse, raw_server
from .stored import only_run
from .target import CountingServer
from .test_live_page import address_of, events_of

BRIEFLY = ("--duration", "500ms", "--warmup", "0s", "--cooldown", "0s")
# A user-defined server that writes to its log for each request.
LOGGING_SERVER = f'''"""talkative: wsgiref, with a line in the log for each request."""

from pathlib import Path

from wsgiload.catalogue.contract import LaunchContext, Server, Variant

PROGRAM = r"""
import importlib, sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

class Handler(WSGIRequestHandler):
    def log_message(self, *arguments):
        sys.stderr.write("{PLANTED}" + chr(10))

module, _, name = sys.argv[1].partition(":")
host, _, port = sys.argv[2].rpartition(":")
app = getattr(importlib.import_module(module), name)
make_server(host, int(port), app, handler_class=Handler).serve_forever()
"""


def command(variant: Variant, context: LaunchContext) -> list[str]:
    return [str(context.python), "-c", PROGRAM, context.app, context.address]


SERVER = Server(
    name="talkative",
    summary="single process, single thread",
    homepage="https://talkative.example/",
    source=Path(__file__),
    requirements=(),
    distribution=None,
    variants=(
        Variant("default", "one thread", keepalive=False, uses_workers=False, uses_threads=False),
    ),
    default_variant="default",
    command=command,
)
'''


@pytest.fixture
def planted(command: Command) -> Command:
    """A directory with secrets in files, and apps that repeat them."""
    write_planted_files(command.folder)
    return command


@pytest.mark.servers
@pytest.mark.limits
def test_a_sweep_reveals_no_secrets(planted: Command) -> None:
    words = ("sweep", "repeats:app", "--servers", "wsgiref,waitress", "--rates", 40, *BRIEFLY)
    words += ("--json", "out.json", "--html", "out.html")
    running = planted.start(*words, *SWEEP, "--path", f"/x?token={PARAMETER}")
    result, command_lines = wait_and_watch(running, planted)

    assert result.code in (0, 98), result.err
    require_clean(result, result.run_dir, planted.folder / "out.json", planted.folder / "out.html")
    for server in ("wsgiref", "waitress"):
        log = (result.run_dir / "server" / f"{server}@40#1.log").read_text()
        assert "(redacted-" in log and "owned" in log, (
            "the app logged its secrets and the hostile strings"
        )
    assert any("_driver" in line for line in command_lines) and any(
        "waitress" in line for line in command_lines
    )
    require_no_secrets_in(command_lines, typed=[PARAMETER])

    _require_clean_reports(planted, result.run_dir)


def _require_clean_reports(planted: Command, run: Path) -> None:
    """No command that reads a stored run prints its secrets."""
    for words in (("report",), ("report", "--no-verbose"), ("report", "--slo", "p99<50ms")):
        require_clean(planted.run(*words, run), run)

    other = run.with_name("other")
    shutil.copytree(run, other)
    compared = planted.run("compare", run, other, "--html", "change.html", "--json", "change.json")
    assert compared.code == 0, compared.err
    require_clean(compared, planted.folder / "change.json", planted.folder / "change.html")


@pytest.mark.servers
@pytest.mark.limits
def test_the_cache_contains_no_secrets(planted: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = planted.folder / "cache"
    monkeypatch.setenv("WSGILOAD_CACHE_DIR", str(cache))
    server_dir = planted.folder / "further"
    server_dir.mkdir()
    (server_dir / "talkative.py").write_text(LOGGING_SERVER)

    words = ("sweep", "repeats:app", "--servers", "wsgiref", "--rates", 40, *BRIEFLY, *SWEEP)
    assert planted.run(*words).code in (0, 98)

    checked = planted.run("servers", "check", "talkative", "--servers-from", server_dir)
    assert "it logged" in checked.out and "owned" in checked.out
    require_clean(checked)

    shown = planted.run("servers", "show", "talkative", "--servers-from", server_dir)
    assert "it logged" in shown.out and "owned" in shown.out
    require_clean(shown)

    assert {path.name for path in cache.iterdir()} >= {"checks.json", "environments", "logs"}
    require_clean_cache(cache)


@pytest.mark.servers
def test_a_failed_import_reveals_no_secrets(planted: Command) -> None:
    words = ("sweep", "fails:app", "--servers", "wsgiref", "--rates", 40, "--limits", "none")
    result = planted.run(*words, *BRIEFLY, *SWEEP)

    assert result.code == 97
    assert "RuntimeError: (redacted-" in result.out + result.err
    require_clean(result)


@pytest.mark.servers
def test_a_capacity_search_reveals_no_secrets(planted: Command) -> None:
    words = ("capacity", "repeats:app", "--servers", "wsgiref", "--slo", "p99<50ms")
    options = (*BRIEFLY, "--width", "50%", "--settle", "0s", "--budget", "1m")
    running = planted.start(*words, *options, "--limits", "none", *SWEEP, "--json", "out.json")
    result, command_lines = wait_and_watch(running, planted)

    require_clean(result, only_run(planted), planted.folder / "out.json")
    assert any("_driver" in line for line in command_lines)
    require_no_secrets_in(command_lines)


def _repeat_request() -> Callable[[bytes], RawResponse]:
    """Responses that repeat the request in their bodies. In turn, they have status 500, the request
    in the status line, or a redirect with secrets."""
    location = f"Location: http://u:{PASSWORD}@h/?token={PARAMETER}\r\n".encode()
    numbers = count()

    def respond(request: bytes) -> RawResponse:
        body = HOSTILE.encode() + request.replace(b"\r\n", b" ")
        status_line, fields = [
            (b"500 Error", b""),
            (b"200 %s" % body, b""),
            (b"302 Found", location),
        ][next(numbers) % 3]
        head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n" % (status_line, len(body), fields)
        return RawResponse([head, body])

    return respond


def strings_in(value: object) -> Iterator[str]:
    """All strings of plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from strings_in([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings_in(item)


def test_a_load_and_its_live_page_reveal_no_secrets(planted: Command) -> None:
    words = ("-R", 100, "-d", "3s", "--json", "out.json", "--live", 0, *REQUEST)
    with raw_server(_repeat_request()) as url, ThreadPoolExecutor(1) as pool:
        running = planted.start("load", f"{url}/x?token={PARAMETER}", *words)
        address = address_of(running)
        watching = pool.submit(wait_and_watch, running, planted)
        events = list(events_of(address))
        result, command_lines = watching.result()

    assert any(" load " in line for line in command_lines), command_lines
    assert result.code == 97
    for reason in ("status 500", "invalid status", "status 302"):
        assert reason in result.err, result.err
    assert "owned" in result.err

    shown = "\n".join(strings_in(events))
    assert "token=(redacted-" in shown and "p99" in shown
    for out in (result.out, shown):
        require_clean(CommandResult(result.code, out, result.err), planted.folder / "out.json")
    require_no_secrets_in(command_lines, typed=[PARAMETER])


def test_a_load_sends_the_secrets_and_stores_them_on_request(
    planted: Command, target: CountingServer
) -> None:
    words = ("load", target.url, "-R", 100, "-d", "300ms", "--json", "out.json", *REQUEST)
    planted.run(*words, "--store-secrets")

    assert target.requests[0][2]["authorization"] == f"Bearer {TOKEN}"
    plan = read_json(planted.folder / "out.json")["plan"]
    assert ["Authorization", f"Bearer {TOKEN}"] in plan["headers"]


def test_a_client_key_is_in_no_output(planted: Command) -> None:
    """Whether the key is usable or damaged."""
    pair = Path(__file__).parents[1] / "fuzz" / "certificate.pem"
    _, key = pair.read_text().split("-----BEGIN PRIVATE KEY-----\n")
    (planted.folder / "usable.pem").write_text(pair.read_text())
    (planted.folder / "damaged.pem").write_text(pair.read_text().replace(key, TOKEN + key))
    words = ("-R", 50, "-d", "200ms", "--timeout", "200ms", "--json", "out.json")

    for name, code in (("usable.pem", 97), ("damaged.pem", 2)):
        with socket.create_server(("127.0.0.1", 0)) as listener:  # never says anything
            url = f"https://127.0.0.1:{listener.getsockname()[1]}/"
            running = planted.start(
                "load", url, *words, "--client-cert", pair, "--client-key", name
            )
            result, command_lines = wait_and_watch(running, planted)
        assert result.code == code, result.err
        stored = [path.read_text() for path in planted.folder.glob("out.json")]
        for secret in (*key.splitlines()[:2], TOKEN):
            assert not [
                text for text in (result.out, result.err, *stored, *command_lines) if secret in text
            ]


@pytest.mark.servers
def test_a_sweep_is_resumed_only_with_its_secrets(planted: Command) -> None:
    """Each secret that is missing or different is named in an error."""
    words = ("sweep", "--servers", "wsgiref", "--rates", "20,30", *BRIEFLY, "--limits", "none")
    load = ("--expect-status", "200,405", "--duration", "4s")
    running = planted.start(*words, *SWEEP, *load)
    until(lambda: "[2/2]" in running.err, "the second cell")
    os.killpg(running.pid, signal.SIGINT)
    run = running.end().run_dir

    for options, message in (
        ((), "the value of Authorization was not stored"),
        (("-H", "@headers"), "the value of --body was not stored"),
        (("-H", "@headers", "-b", "pin=1"), "the value of body differs from that of the run"),
        (REQUEST[:2] + REQUEST[4:], "the value of API_TOKEN was not stored"),
        (
            (*REQUEST[:2], *REQUEST[4:], "--env", "API_TOKEN=1"),
            "the value of API_TOKEN differs from that of the run",
        ),
        (
            ("-H", "Authorization: x"),
            "the value of header field Authorization differs from that of the run",
        ),
    ):
        refused = planted.run("sweep", "--resume", run, *options)
        assert refused.code == 2
        (line,) = refused.messages
        assert message in line

    resumed = planted.start(
        "sweep", "--resume", run, "-H", "@headers", "--body-file", "body", "--env-file", "vars"
    )
    result, command_lines = wait_and_watch(resumed, planted)
    assert result.code in (0, 98), result.err
    assert len(result.cells) == 2
    require_clean(result, run)
    assert any("_driver" in line for line in command_lines), (
        "the process list was sampled during the load"
    )
    require_no_secrets_in(command_lines)


def test_doctor_reveals_no_secrets(planted: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """``doctor`` reads the names of programs and environment variables."""
    programs = planted.folder / f"programs-{DISTINCT[0]}"
    programs.mkdir()
    (programs / "uv").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("API_TOKEN", SECRETS[5])
    monkeypatch.setenv("HTTPS_PROXY", f"http://u:{PASSWORD}@127.0.0.1:9/")

    for words in (("doctor",), ("doctor", "--json"), ("doctor", "--json", "found.json")):
        result = planted.run(*words)
        assert result.code == 0
        require_clean(result)
    require_clean(result, planted.folder / "found.json")


WRK = f"""Running 10s test @ http://shop:{PASSWORD}@host/x?token={PARAMETER}{HOSTILE}
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.05ms    2.00ms  50.00ms   90.00%
    Req/Sec     1.00k     0.10k    1.20k    70.00%
  20000 requests in 10.00s, 2.00MB read
Requests/sec:   2000.00
Transfer/sec:    200.00KB
"""
LOCUST = f"""Type,Name,Request Count,Failure Count,Average Response Time,Requests/s,50%,99%
GET,/x?token={PARAMETER}{DISTINCT[0]},100,0,1,10,1,10
GET,/y?password={PASSWORD},100,0,1,10,1,10
,Aggregated,200,0,1,20,1,10
"""
RESULTS = {
    "wrk.txt": WRK,
    f"wrk-{DISTINCT[1]}{DISTINCT[2]}.txt": WRK,
    "cut.txt": WRK.splitlines()[0],
    "locust_stats.csv": LOCUST,
    "cut_stats.csv": LOCUST[: LOCUST.index("100,0,1,10,1,10", 120)],
    "cut.json": f'{{"metrics": {{"http://shop:{PASSWORD}@host/?token={PARAMETER}": ',
    f"note-{DISTINCT[3]}.txt": HOSTILE,
}


def test_an_audit_reveals_no_secrets(planted: Command) -> None:
    results = planted.folder / "results"
    results.mkdir()
    for name, text in RESULTS.items():
        (results / name).write_text(text)

    result = planted.run("audit", results, "--json", "audit.json")

    assert result.code == 2 and len(result.messages) == 1 + 2, result.err
    assert "owned" in result.out and "cut off at line 1" in result.err
    require_clean(result, planted.folder / "audit.json")
    require_clean(planted.run("audit", results, "--json"))
