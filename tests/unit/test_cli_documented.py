"""The command line: documented options, help pages and one-line errors."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from wsgiload import LoadOptions, RequestOptions, ServerOptions, SweepOptions, TransportOptions
from wsgiload.cli import run, wsgiload
from wsgiload.cli._declared import described, descriptions

LOADGEN = Path(__file__).parents[2] / "target" / "release" / "loadgen"

# The documented flags by command.
BOTH = """
    --rate --connections --duration --warmup --header --method --body --body-file --targets
    --sessions --timeout --deadline --arrivals --keepalive --on-busy --max-connections
    --threads --seed --threshold --json --quiet
    --config --dry-run -R -c -d -H -X -b
"""
LOAD_ONLY = """
    --attach-cgroup --attach-pid --unix-socket --source-addresses --http2 --streams --http1.0
    --insecure --ca-file --max-pending --check-threshold --precision --ramp --steps --replay
    --replay-speed --max-duration --html --requests --reruns --processes
"""
SWEEP_ONLY = """
    --rates --runs --servers --cpus --memory --pids --limits --server-cpus --client-cpus --out
    --html --chdir --python --app-name --compare --settle --resume -o
"""

# implemented by the orchestrator only
ONLY_LOAD = {"--threshold", "--config", "--attach-cgroup", "--attach-pid", "--store-secrets"}
ONLY_LOAD |= {"--show", "--live", "--html", "--verbose", "--reruns", "--trust-folder"}
ONLY_LOADGEN = {"--cooldown", "--interval", "--version", "--wire", "--explain", "--schema"}


def commands(group: click.Group = wsgiload, path: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


COMMANDS = dict(commands())


def flags(command: click.Command) -> set[str]:
    options = [
        param for param in command.params if isinstance(param, click.Option) and not param.hidden
    ]
    return {flag for option in options for flag in (*option.opts, *option.secondary_opts)}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text(name: str) -> None:
    command = COMMANDS[name]
    assert (command.help or "").strip().endswith((".", "check"))

    undocumented = [
        param.opts
        for param in command.params
        if isinstance(param, click.Option) and not param.hidden and not (param.help or "").strip()
    ]
    assert undocumented == []


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help(name: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*name.split(), flag]) == 0
    output = capsys.readouterr()
    assert output.out.startswith(f"Usage: wsgiload {name}")
    assert output.err == ""


def test_all_documented_commands_exist() -> None:
    names = """
        sweep run reproduce load capacity calibrate compare report servers doctor audit explain
        import init
    """
    imports = {f"import {name}" for name in ("har", "curl", "access-log", "openapi")}
    servers = {f"servers {name}" for name in ("list", "show", "install", "check")}
    assert set(COMMANDS) >= set(names.split()) | imports | servers


def test_sweep_has_the_documented_flags() -> None:
    assert set(f"{BOTH} {SWEEP_ONLY}".split()) - flags(COMMANDS["sweep"]) == set()


def test_capacity_has_the_applicable_flags_of_sweep() -> None:
    capacity_only = "--slo --slo-strict --url --width"
    fixed_by_the_search = """
        --rate --rates -R --connections -c --runs --html --compare --resume
    """
    shared = set(f"{BOTH} {SWEEP_ONLY}".split()) - set(fixed_by_the_search.split())
    assert (shared | set(capacity_only.split())) - flags(COMMANDS["capacity"]) == set()


def test_load_has_the_documented_flags() -> None:
    assert set(f"{BOTH} {LOAD_ONLY}".split()) - flags(COMMANDS["load"]) == set()


def test_the_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    codes = ["0", "2", "97", "98", "99", "130"]
    assert [code for code in codes if re.search(rf"\b{code} +[a-z]", text)] == codes


@pytest.mark.skipif(not LOADGEN.exists(), reason="target/release/loadgen is not built")
def test_loadgen_has_the_options_of_load() -> None:
    text = subprocess.run([LOADGEN, "--help"], capture_output=True, text=True, check=True).stdout
    loadgen_flags = set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z0-9.-]*)", text, flags=re.MULTILINE))
    loadgen_flags |= set(re.findall(r"\[alias(?:es)?: (--[a-z-]+)\]", text))
    load_flags = {flag for flag in flags(COMMANDS["load"]) if flag.startswith("--")} | {"--help"}
    assert load_flags - loadgen_flags == ONLY_LOAD
    assert loadgen_flags - load_flags == ONLY_LOADGEN


@pytest.mark.skipif(not LOADGEN.exists(), reason="target/release/loadgen is not built")
@pytest.mark.parametrize("option", ["-R=5", "-c=3", "-d=1s", "-H=A: 1", "-X=POST", "-b=x"])
def test_loadgen_has_the_short_options_of_load(option: str) -> None:
    flag, _, value = option.partition("=")
    command = [str(LOADGEN), "http://127.0.0.1:9/", flag, value, "--dry-run", "--json", "-"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("-t", "use --threads, --timeout or --duration"),
        ("-D", "use --body, --body-file or --duration"),
    ],
)
@pytest.mark.parametrize(
    "command", [["load", "http://127.0.0.1:9/"], ["sweep"]], ids=lambda arguments: arguments[0]
)
def test_ambiguous_flags_of_other_tools_are_rejected_with_a_hint(
    command: list[str], flag: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, flag, "5"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert hint in output.err


@pytest.mark.parametrize(
    "alias",
    [["-q", "50"], ["--qps", "50"], ["--rate=50"], ["-R50"]],
    ids=lambda arguments: arguments[0],
)
def test_rate_options_of_other_tools_are_accepted(
    alias: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["load", "http://127.0.0.1:9/", *alias, "--dry-run", "--json", "-"]) == 0
    assert '"rate_per_s": 50.0' in capsys.readouterr().out


LOAD = ["load", "http://127.0.0.1:9/"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lod"], "No such command 'lod'. Did you mean 'load'?"),
        (["servers", "lst"], "No such command 'lst'"),
        (["load"], "Missing argument 'URL'"),
        (["report"], "Missing argument 'RUNS"),
        (
            ["compare", "/nonexistent", "/x"],
            "/nonexistent/summary.json cannot be read: No such file or directory",
        ),
        (
            ["sweep", "--resume", "/nonexistent"],
            "/nonexistent/run.json cannot be read: No such file or directory",
        ),
        (
            ["sweep", "--connections", "5", "--warmup-requests", "9"],
            "--warmup-requests requires --rates; use --warmup",
        ),
        (
            ["sweep", "--servers", "gunicorn=waitress", "--dry-run", "--json", "-"],
            "'gunicorn' is a server's name",
        ),
        (
            ["report", "/nonexistent"],
            "/nonexistent/summary.json cannot be read: No such file or directory",
        ),
        (["servers", "show", "watress"], "unknown server 'watress'; did you mean waitress?"),
        (
            ["servers", "list", "--python", "/nonexistent/python"],
            "--python /nonexistent/python: no such interpreter",
        ),
        (
            ["doctor", "--json", "/nonexistent/x"],
            "cannot write /nonexistent/x: No such file or directory",
        ),
        (["audit", "/nonexistent"], "/nonexistent: cannot be read: No such file or directory"),
        (["audit", "x", "--rate", "0"], "the rate must be above 0"),
        ([*LOAD, "--rat", "5"], "No such option '--rat'"),
        (
            [*LOAD, "--rate", "nan"],
            "the rate must be above 0 and at most 10,000,000 per second, not nan",
        ),
        ([*LOAD, "--rate", "fast"], "'fast' is not a rate; write it like 500, 500/s, 3000/m or"),
        ([*LOAD, "--duration", "0"], "the duration must be longer than 0"),
        ([*LOAD, "--duration", "1e400s"], "'1e400s' is too large"),
        (
            [*LOAD, "--seed", str(2**64)],
            "18446744073709551616 is out of range (0 to 2^64-1)",
        ),
        ([*LOAD, "--connections", "0"], "0 is out of range (minimum: 1)"),
        ([*LOAD, "--keepalive", "0"], "invalid keep-alive '0'"),
        ([*LOAD, "-H", "nonsense"], "'nonsense' is not a header field"),
        ([*LOAD, "-X", "A B"], "'A B' is not a request method"),
        ([*LOAD, "--expect-status", "99"], "'99' is not a list of status codes"),
        (
            [*LOAD, "--body", "a", "--body-file", "b"],
            "--body and --body-file are mutually exclusive",
        ),
        (
            [*LOAD, "--body-file", "/nonexistent"],
            "cannot read /nonexistent: No such file or directory",
        ),
        ([*LOAD, "--threshold", "p99"], "'p99' is not a threshold"),
        ([*LOAD, "--precision", "5"], "'5' is not a precision; write it like 5% or p99.9:2%"),
        (
            [*LOAD, "--precision", "p98:5%"],
            "p98 has no confidence interval; choose one of p50, p90",
        ),
        ([*LOAD, "--precision", "80%"], "the precision must be above 0% and at most 50%"),
        (
            [*LOAD, "--max-duration", "60s"],
            "--max-duration needs --precision; add --precision p99:5%",
        ),
        (
            [*LOAD, "-R", "9", "--precision", "5%", "--max-duration", "9s"],
            "must be at least twice the duration",
        ),
        (
            [*LOAD, "--precision", "5%", "--max-duration", "60s"],
            "only an open loop at a constant rate can be extended",
        ),
        (
            [*LOAD, "--check-threshold", "send-lag=1"],
            "'send-lag=1' is not a threshold; write it like send-lag.warn=0.02",
        ),
        ([*LOAD, "--check-threshold", "send-lag.warn=much"], "'much' is not a number"),
        (
            [*LOAD, "--check-threshold", "send-lag.warn=-1"],
            "the threshold send-lag.warn must be 0 or more, not -1",
        ),
        (
            [*LOAD, "--check-threshold", "C99.warn=1"],
            "the check C99 has no thresholds; checks with thresholds: arrival-count",
        ),
        (
            [*LOAD, "--check-threshold", "app-calls.warn=1"],
            "app-calls.warn: only `wsgiload sweep` runs the check app-calls; omit it",
        ),
        (
            [*LOAD, "--config", "/nonexistent"],
            "cannot read /nonexistent: No such file or directory",
        ),
        (["sweep", "--rates", "100,abc"], "'abc' is not a rate"),
        (["sweep", "--rates", "1:2"], "'1:2' is not a range from:to:step of rates"),
        (
            ["sweep", "--rates", "1e9"],
            "the rate must be above 0 and at most 10,000,000 per second, not 1e+09",
        ),
        (
            ["sweep", "--rates", "5", "--connections", "5"],
            "--rates and --connections are mutually exclusive",
        ),
        (
            ["sweep", "--path", "json"],
            "the path 'json' must start with a slash; write --path /json",
        ),
        (["sweep", "--path", "/é"], "the path '/é' is not a URL path"),
        (["sweep", "-H", "X: ☃"], "header X: '☃' has characters that HTTP forbids"),
        (
            ["sweep", "--app-name", "nope"],
            "unknown bundled app 'nope'; choose one of hello, ok, unsized, json1k",
        ),
        (["sweep", "a:b", "--app-name", "cpu"], "APP 'a:b' and --app-name are mutually exclusive"),
        (["sweep", "a:b", "--chdir", "/nonexistent"], "directory /nonexistent does not exist"),
        (
            ["sweep", "--servers", "guncorn", "--dry-run", "--json", "-"],
            "unknown server 'guncorn'; did you mean gunicorn",
        ),
        (["sweep", "--servers", "", "--dry-run", "--json", "-"], "--servers is empty"),
        (["sweep", "--cpus", "0"], "'0' is not a number of CPUs"),
        (["sweep", "--memory", "much"], "'much' is not a size"),
        (["sweep", "--server-cpus", "x"], "'x' is not a core or a range of cores"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_usage_error_is_one_line_with_exit_code_2(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command runs in this process, so an uncaught exception fails the test."""
    monkeypatch.chdir(tmp_path)

    assert run(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert output.err.startswith("wsgiload: ")
    assert message in output.err
    assert list(tmp_path.iterdir()) == [], "a usage error left files behind"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON: "),
        ("\x00", "is not JSON: "),
        ("{}", "is not a valid summary of a sweep: "),
        ("[]", "is not a valid summary of a sweep: "),
        ('{"schema_version": 1}', "is not a valid summary of a sweep: "),
        ('{"schema_version": 1, "cells": []}', "is not a valid summary of a sweep: "),
        (
            '{"schema_version": 9, "cells": []}',
            "has schema version 9, but this wsgiload reads only up to 1; ",
        ),
    ],
)
def test_a_report_of_an_invalid_summary_is_rejected(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "summary.json").write_text(text)
    assert run(["report", str(tmp_path)]) == 2
    output = capsys.readouterr()
    assert len(output.err.splitlines()) == 1
    assert f"{tmp_path / 'summary.json'} {message}" in output.err


def test_without_a_command_the_help_is_shown_with_exit_code_2(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 2
    assert "Commands:" in capsys.readouterr().err


# --- the help


SECTIONS = ("Load:", "Server:", "Limits:", "Procedure:", "Output:", "Request:")
OPTIONS_OBJECTS = {
    "load": (LoadOptions, TransportOptions, RequestOptions),
    "sweep": (LoadOptions, RequestOptions, ServerOptions, SweepOptions),
}


def help_of(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert run([*name.split(), "--help"]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("sweep", SECTIONS),
        ("capacity", SECTIONS),
        ("load", ("Load:", "Server:", "Procedure:", "Output:", "Request:")),
        ("calibrate", ("Load:", "Server:", "Limits:", "Output:")),
    ],
)
def test_options_are_grouped_in_this_order(
    name: str, sections: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = help_of(name, capsys)
    assert tuple(line for line in lines if line in SECTIONS) == sections
    # Only -h has no section.
    rest = lines[lines.index("Options:") + 1 :]
    rest = rest[: rest.index("Rarely needed:")] if "Rarely needed:" in rest else rest
    assert [line.split()[0] for line in rest if line.startswith("  -")] == ["-h,"]


@pytest.mark.parametrize(
    "name", ["", "sweep", "load", "capacity", "calibrate", "compare", "report", "audit", "explain"]
)
def test_the_help_starts_with_three_valid_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = help_of(name, capsys)
    start = lines.index("Examples:")
    assert start == 2, "directly below the usage line"

    examples = lines[start + 1 : lines.index("", start)]
    assert len(examples) == 3
    for example in examples:
        program, command, *arguments = shlex.split(example)
        assert program == "wsgiload"
        parsed = COMMANDS[command].make_context(command, arguments, resilient_parsing=False)
        assert not name or command == name, parsed


@pytest.mark.parametrize("name", OPTIONS_OBJECTS)
def test_the_help_is_the_docstring_of_the_options_object(name: str) -> None:
    """Except for options whose flag needs other words, or whose default depends on the command."""
    exceptions = {"check_thresholds", "headers", "path", "expect_body", "seed", "max_connections"}
    exceptions |= {"warmup", "cooldown"}

    options = {
        flag.lstrip("-").replace("-", "_"): param.help
        for param in COMMANDS[name].params
        if isinstance(param, click.Option)
        for flag in param.opts
    }

    compared = 0
    for kind in OPTIONS_OBJECTS[name]:
        for field in (set(descriptions(kind)) - exceptions) & set(options):
            assert options[field] == described(kind, field)
            compared += 1
    assert compared > 15


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("load", "4,096, or fewer if there are not enough file descriptors or ports"),
        *((name, "1,000") for name in ("sweep", "run", "reproduce", "capacity")),
    ],
)
def test_the_help_shows_only_the_default_of_the_command(name: str, default: str) -> None:
    (text,) = [
        param.help
        for param in COMMANDS[name].params
        if isinstance(param, click.Option) and "--max-connections" in param.opts
    ]
    assert text == f"Maximum number of connections of an open loop.  [default: {default}]"
