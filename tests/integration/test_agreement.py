"""The commands of wsgiload reject the same options as the generator, before anything starts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wsgiload import cli

from .test_load import LOADGEN, needs_loadgen

URL = "http://127.0.0.1:1/"
# The maximum length of a URL is 65,534 bytes.
LONG = "/" + "a" * 65_534
INVALID = (
    *(("-X", "GET /"), ("-X", ""), ("-H", "no colon"), ("-H", "Bad Name: x"), ("-H", "A: b\nC: d")),
    *(("-H", "Content-Length: 5"), ("-H", "Transfer-Encoding: chunked"), ("-H", "@none")),
    *(("--timeout", "0s"), ("--timeout", "-1s")),
    *(("--timeout", "nan"), ("--timeout", "1 fortnight")),
    *(("-d", "0s"), ("-d", "inf"), ("--warmup", "nan"), ("--cooldown", "-1s")),
    *(("--keepalive", "0"), ("--keepalive", "maybe"), ("--arrivals", "weekly")),
    *(("--expect-status", "abc"),),
    *(("--expect-sha256", "zz"), ("--expect-length", "-1"), ("--expect-body-file", "none")),
    *(("--on-busy", "never"), ("--max-pending", "-1"), ("--deadline", "0s")),
    *(("--threads", "0"), ("--interval", "0s"), ("--seed", "-1"), ("--body-file", "none")),
    *(("--targets", "none"), ("--sessions", "none"), ("--check-threshold", "nosuch=1")),
    *(("--check-threshold", "send-lag.warn=nan"), ("--ramp", "1:nan"), ("--steps", "10")),
    *(("--replay", "none"), ("--precision", "p99"), ("--source-addresses", "x")),
    *(("--requests", "5"), ("--requests", "0")),
)


@needs_loadgen
@pytest.mark.parametrize("args", INVALID, ids=" ".join)
def test_options_rejected_by_the_generator_are_rejected_before_anything_starts(
    args: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rate = () if args[0] in ("--ramp", "--steps", "--replay") else ("--rate", "50")
    alone = subprocess.run(
        [LOADGEN, URL, *rate, *args], capture_output=True, text=True, check=False, timeout=60
    )
    assert alone.returncode == 2, alone.stdout + alone.stderr

    sweep = ("sweep", "--servers", "wsgiref", "--limits", "none")
    rates = ("--rates", "50") if rate else ()
    for command in (("load", URL, *rate, *args), (*sweep, *rates, *args)):
        assert cli.run(list(command)) == 2, command
        output = capsys.readouterr()
        assert output.out == ""
        message = output.err.splitlines()[-1]
        assert message.startswith("wsgiload: "), output.err
    assert list(tmp_path.iterdir()) == []


@needs_loadgen
@pytest.mark.parametrize(
    "path", ["/a\tb", "/\x00", "a", LONG], ids=["tab", "nul", "no-slash", "long"]
)
def test_an_invalid_path_starts_no_server(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    if "\x00" not in path:  # a command line cannot contain NUL
        args = [LOADGEN, f"http://127.0.0.1:1{path}", "-R", "50"]
        alone = subprocess.run(args, capture_output=True, check=False, timeout=60)
        assert alone.returncode == 2

    args = ["sweep", "--servers", "wsgiref", "--limits", "none", "--rates", "50", "--path", path]
    assert cli.run(args) == 2
    assert list(tmp_path.iterdir()) == []


@needs_loadgen
def test_values_too_long_for_an_http2_url_are_rejected_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    # The second value has 65,540 bytes after percent-encoding.
    (tmp_path / "values.csv").write_text(f"v\na\n{'é' * 10_923}aa\n")
    args = [f"{URL}{{{{csv:values.csv:v}}}}", "-R", "50", "-d", "100ms"]
    expected = "url of up to 65,541 bytes with placeholder values"

    for versions, code in (([], 97), (["--http2"], 2)):
        command = [LOADGEN, *args, *versions]
        alone = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert alone.returncode == code, alone.stderr
        assert cli.run(["load", *args, *versions]) == code
        err = capsys.readouterr().err
        assert (expected in err) == (expected in alone.stderr) == (code == 2)
