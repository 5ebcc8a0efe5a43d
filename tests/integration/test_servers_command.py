"""``wsgiload servers`` lists, shows, installs and checks servers; ``wsgiload doctor`` checks the
host."""

from __future__ import annotations

import json

import pytest

from .command import Command

SOME_SERVERS = {
    ("gunicorn", "sync"),
    ("gunicorn", "gthread"),
    ("gunicorn", "gevent"),
    ("waitress", "default"),
    ("cheroot", "default"),
    ("gevent", "pywsgi"),
    ("wsgiref", "default"),
    ("uwsgi", "http-socket"),
}


def test_the_json_list_has_a_row_with_all_keys_for_each_variant(command: Command) -> None:
    result = command.run("servers", "list", "--json")
    assert (result.code, result.err) == (0, "")
    rows = json.loads(result.out)
    assert {(row["name"], row["variant"]) for row in rows} >= SOME_SERVERS
    for row in rows:
        keys = {"id", "name", "variant", "profiles", "python", "status", "legacy", "reason"}
        assert set(row) == keys
        assert row["status"] in ("installed", "available", "refused")
        assert (row["reason"] is not None) == (row["status"] == "refused")


def test_the_table_names_every_server(command: Command) -> None:
    result = command.run("servers", "list")
    assert result.code == 0
    assert all(name in result.out for name, _ in SOME_SERVERS)


def test_show_prints_a_servers_homepage_and_settings(command: Command) -> None:
    result = command.run("servers", "show", "gunicorn-gthread")
    assert (result.code, result.err) == (0, "")
    for words in ("gunicorn", "gthread", "https://gunicorn.org/", "--timeout 0"):
        assert words in result.out


@pytest.mark.parametrize("verb", ["show", "install", "check"])
def test_an_unknown_server_is_a_one_line_error_with_a_suggestion(
    command: Command, verb: str
) -> None:
    result = command.run("servers", verb, "watress")
    assert (result.code, result.out) == (2, "")
    assert result.err == "wsgiload: unknown server 'watress'; did you mean waitress?\n"


@pytest.mark.servers
def test_a_server_is_installed_once(command: Command) -> None:
    command.run("servers", "install", "waitress")
    second = command.run("servers", "install", "waitress")
    assert second.code == 0
    assert second.out.startswith("waitress ")
    assert second.out.endswith(" already installed\n")

    rows = json.loads(command.run("servers", "list", "--json").out)
    assert {row["status"] for row in rows if row["name"] == "waitress"} == {"installed"}


@pytest.mark.servers
def test_check_verifies_the_properties_of_each_server(command: Command) -> None:
    result = command.run("servers", "check", "waitress", "gunicorn-sync", "wsgiref", "--json", "-")

    rows = {row["server"]: row for row in json.loads(result.out)}
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
    assert result.code == 0

    shown = command.run("servers", "show", "wsgiref").out
    assert "tuned" in shown and "1,024" in shown, "show includes the results of the check"
    assert [line for line in result.err.splitlines() if line.startswith("checking ")] == [
        f"checking {name}" for name in rows
    ]


def test_doctor_lists_findings_with_fixes(command: Command) -> None:
    result = command.run("doctor", "--json")
    assert (result.code, result.err) == (0, "")

    findings = json.loads(result.out)
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
