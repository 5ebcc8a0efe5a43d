"""``wsgiload servers`` and ``wsgiload doctor``: what is there, whether it works here, and what
would spoil a run."""

from __future__ import annotations

import json

import pytest

from .command import Command

FIRST = {
    ("gunicorn", "sync"),
    ("gunicorn", "gthread"),
    ("gunicorn", "gevent"),
    ("waitress", "default"),
    ("cheroot", "default"),
    ("gevent", "pywsgi"),
    ("wsgiref", "default"),
    ("uwsgi", "http-socket"),
}


def test_the_list_has_a_row_per_variant_with_the_keys_of_the_contract(command: Command) -> None:
    done = command.run("servers", "list", "--json")
    assert (done.code, done.err) == (0, "")
    rows = json.loads(done.out)
    assert {(row["name"], row["variant"]) for row in rows} >= FIRST
    for row in rows:
        assert set(row) == {"name", "variant", "profiles", "python", "status", "legacy", "reason"}
        assert row["status"] in ("installed", "available", "refused")
        assert (row["reason"] is not None) == (row["status"] == "refused")


def test_the_list_as_a_table_names_every_server(command: Command) -> None:
    done = command.run("servers", "list")
    assert done.code == 0
    assert all(name in done.out for name, _ in FIRST)


def test_a_server_is_shown_with_its_pins_and_the_reasons_of_its_settings(command: Command) -> None:
    done = command.run("servers", "show", "gunicorn-gthread")
    assert (done.code, done.err) == (0, "")
    for words in ("gunicorn", "gthread", "https://gunicorn.org/", "--timeout 0"):
        assert words in done.out


@pytest.mark.parametrize("verb", ["show", "install", "check"])
def test_an_unknown_name_is_one_line_and_exit_code_2(command: Command, verb: str) -> None:
    done = command.run("servers", verb, "watress")
    assert (done.code, done.out) == (2, "")
    assert done.err == "wsgiload: unknown server 'watress'; did you mean waitress?\n"


@pytest.mark.servers
def test_a_server_is_installed_once(command: Command) -> None:
    command.run("servers", "install", "waitress")
    again = command.run("servers", "install", "waitress")
    assert again.code == 0
    assert again.out.startswith("waitress ")
    assert again.out.endswith(" already installed\n")
    rows = json.loads(command.run("servers", "list", "--json").out)
    assert {row["status"] for row in rows if row["name"] == "waitress"} == {"installed"}


@pytest.mark.servers
def test_a_check_proves_what_each_server_claims(command: Command) -> None:
    done = command.run("servers", "check", "waitress", "gunicorn-sync", "wsgiref", "--json", "-")
    rows = {row["server"]: row for row in json.loads(done.out)}
    assert list(rows) == ["waitress", "gunicorn-sync", "wsgiref"]
    for row in rows.values():
        assert row["failure"] is None
        assert (
            row["right_body"]
            and row["keepalive_as_claimed"]
            and row["clean_stop"]
            and row["passed"]
        )
        assert row["version"]
        assert row["backlog"] is None or row["backlog"] >= 100
        assert row["ready_s"] > 0
    assert {name: row["keepalive"] for name, row in rows.items()} == {
        "waitress": True,
        "gunicorn-sync": False,
        "wsgiref": False,
    }
    assert done.code == 0
    shown = command.run("servers", "show", "wsgiref").out
    assert "tuned" in shown and "1,024" in shown, "what was found is told"
    assert [line for line in done.err.splitlines() if line.startswith("checking ")] == [
        f"checking {name}" for name in rows
    ]


def test_the_doctor_tells_findings_with_fixes(command: Command) -> None:
    done = command.run("doctor", "--json")
    assert (done.code, done.err) == (0, "")
    findings = json.loads(done.out)
    assert len(findings) >= 5
    checks = [finding["check"] for finding in findings]
    assert len(set(checks)) == len(checks)
    for finding in findings:
        assert set(finding) == {"check", "level", "value", "message", "fix"}
        assert finding["level"] in ("green", "amber", "red")
        assert finding["message"]
    shown = command.run("doctor")
    assert shown.code == 0
    assert all(check in shown.out for check in checks)
