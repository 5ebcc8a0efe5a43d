"""Each alarm goes off at its limit, says what it means, and stays silent for a sound load."""

from __future__ import annotations

from typing import Any

import pytest

from wsgiload.analysis.alarms import (
    Alarm,
    ServerUse,
    alarms_of_cell,
    alarms_of_load,
    alarms_over_cells,
    flat_throughput,
    runs_differ,
)

Json = dict[str, Any]
NS_PER_MS = 1_000_000


def sound(closed: int | None = None, **changes: Any) -> Json:
    """100 answers a second for 10 s, of 10 ms each; or 10 users who get 100 ms each."""
    outcomes = dict.fromkeys(("http_status", "bad_body", "client_error", "timeout"), 0)
    model = (
        {"open": {"rate_per_s": 100.0}}
        if closed is None
        else {"closed": {"connections": closed, "think_time_ns": 0}}
    )
    mean_ns = 10 * NS_PER_MS if closed is None else closed * 10 * NS_PER_MS
    quantiles = {"0.5": mean_ns}
    return {
        "plan": {"load": model, "keepalive": "on"},
        "measured_ns": 10_000 * NS_PER_MS,
        "outcomes": {"scheduled": 1_000, "ok": 1_000} | outcomes,
        "rate": {
            "offered_per_s": None if closed else 100.0,
            "achieved_per_s": 100.0,
            "goodput_per_s": 100.0,
        },
        "response_time_ns": {"count": 1_000, "mean": mean_ns, "quantiles": quantiles},
        "service_time_ns": {"quantiles": quantiles},
        "first_byte_ns": {"quantiles": {"0.5": mean_ns - 100_000}},
        "connections": {
            "opened": closed or 4,
            "closed_by_server": 0,
            "peak": closed or 4,
            "requests_per_connection": {"min": 90, "mean": 100.0, "max": 110},
            "local_ports": {"free": 28_000},
            "tracked": {"before": 10, "after": 800, "max": 1_000},
        },
        "intervals": [{"scheduled": 100, "ok": 100, "length_ns": 1_000 * NS_PER_MS}] * 10,
    } | changes


def of(load: Json, name: str) -> Alarm:
    """The one alarm that it raises."""
    (alarm,) = alarms_of_load(load)
    assert alarm.name == name
    assert alarm.source
    assert alarm.reason()["check"] == name
    return alarm


def outcomes(**changes: int) -> Json:
    return sound()["outcomes"] | changes


def connections(load: Json, **changes: Any) -> Json:
    return load | {"connections": load["connections"] | changes}


@pytest.mark.parametrize("load", [sound(), sound(closed=10)], ids=["open", "closed"])
def test_a_sound_load_raises_none(load: Json) -> None:
    assert alarms_of_cell(load, ServerUse(0.5, 1.0)) == []


def test_v1_wrong_answers() -> None:
    alarm = of(sound(outcomes=outcomes(ok=990, http_status=3, bad_body=7)), "wrong-responses")
    assert "10 of 1,000 answers were wrong: 3 by their status, 7 by their body" in alarm.message


@pytest.mark.parametrize(
    ("mean_ms", "said"),
    [(50.0, "X·R accounts for 5 of 10 users"), (150.0, "accounts for 15 of 10")],
)
def test_v2_users_who_are_in_no_time(mean_ms: float, said: str) -> None:
    times = {"count": 1_000, "mean": mean_ms * NS_PER_MS, "quantiles": {"0.5": 1}}
    assert said in of(sound(closed=10, response_time_ns=times), "littles-law").message


@pytest.mark.parametrize("mean_ms", [91.0, 109.0])
def test_v2_allows_a_tenth(mean_ms: float) -> None:
    times = {"count": 1_000, "mean": mean_ms * NS_PER_MS, "quantiles": {"0.5": 1}}
    assert alarms_of_load(sound(closed=10, response_time_ns=times)) == []


@pytest.mark.parametrize(
    "carried", [{"min": 1, "mean": 50.0, "max": 100}, {"min": 2, "mean": 10.0, "max": 51}]
)
def test_v3_starved_connections(carried: Json) -> None:
    assert (
        "not served alike"
        in of(
            connections(sound(closed=10), requests_per_connection=carried), "uneven-connections"
        ).message
    )


def test_v3_is_of_closed_loops_because_an_open_one_prefers_some_connections() -> None:
    carried = {"min": 1, "mean": 50.0, "max": 900}
    assert alarms_of_load(connections(sound(), requests_per_connection=carried)) == []


def test_v4_dead_time() -> None:
    intervals = sound()["intervals"]
    dead = {"scheduled": 100, "ok": 0, "length_ns": 1_000 * NS_PER_MS}
    nothing_due = {"scheduled": 0, "ok": 0, "length_ns": 1_000 * NS_PER_MS}
    assert (
        "for 2 s of 10 s"
        in of(sound(intervals=[*intervals[:8], dead, dead]), "dead-interval").message
    )
    assert alarms_of_load(sound(intervals=[*intervals, nothing_due])) == []


def test_v5_ports_and_errors_of_the_client() -> None:
    few = connections(sound(), peak=71, local_ports={"free": 100})
    assert "71 connections at once, of 100 free ports" in of(few, "network-resources").message
    assert of(few, "network-resources").blame == "client"
    assert alarms_of_load(connections(sound(), peak=70, local_ports={"free": 100})) == []
    assert (
        "5 requests failed on this side"
        in of(sound(outcomes=outcomes(ok=995, client_error=5)), "network-resources").message
    )
    assert alarms_of_load(connections(sound(), local_ports=None)) == []


@pytest.mark.parametrize(("before", "after"), [(801, 10), (10, 801)])
def test_v5_a_table_of_tracked_connections_that_is_nearly_full(before: int, after: int) -> None:
    full = connections(sound(), tracked={"before": before, "after": after, "max": 1_000})
    alarm = of(full, "network-resources")
    assert (alarm.blame, alarm.value, alarm.limit) == ("client", 0.801, 0.8)
    assert (
        "801 connections in a table of 1,000" in alarm.message
        and "nf_conntrack_max" in alarm.message
    )


def test_v5_where_nothing_is_tracked_or_an_older_report_does_not_tell() -> None:
    assert alarms_of_load(connections(sound(), tracked=None)) == []
    older = sound()
    del older["connections"]["tracked"]
    assert alarms_of_load(older) == []


def test_v6_a_connection_for_every_answer() -> None:
    closing = connections(sound(), opened=1_000, closed_by_server=1_000)
    assert "1,000 connections for 1,000 answers" in of(closing, "no-keepalive").message
    asked_for = closing | {"plan": closing["plan"] | {"keepalive": "off"}}
    assert alarms_of_load(asked_for) == []
    few = sound(outcomes=outcomes(scheduled=19, ok=19))
    just_begun = connections(few, opened=19, closed_by_server=19)
    assert alarms_of_load(just_begun) == [], "each of 19 connections may just be new"
    assert alarms_of_load(connections(sound(), opened=1_000)) == [], (
        "closed by the client, after timeouts"
    )


def test_v8_behind_and_idle() -> None:
    behind = sound(rate={"offered_per_s": 100.0, "achieved_per_s": 90.0, "goodput_per_s": 80.0})
    below, alarm = alarms_of_cell(behind, ServerUse(0.2, 1.0))
    assert (below.name, alarm.name, alarm.value) == ("rate-not-reached", "idle-server", 0.2)
    assert alarm.message.startswith(
        "90/s of 100/s were answered while the server used 20% of its CPU limit"
    )
    assert alarms_of_cell(behind, ServerUse(0.6, 1.0)) == [below]
    assert alarms_of_cell(behind, ServerUse(None, 1.0)) == [below]
    assert alarms_of_cell(sound(), ServerUse(0.2, 1.0)) == []


def test_v8_is_not_of_wrong_answers_that_come_in_time() -> None:
    wrong = sound(
        rate={"offered_per_s": 100.0, "achieved_per_s": 100.0, "goodput_per_s": 80.0},
        outcomes=outcomes(ok=800, http_status=200),
    )
    assert [alarm.name for alarm in alarms_of_cell(wrong, ServerUse(0.2, 1.0))] == [
        "wrong-responses"
    ]


def test_v9_a_rate_that_was_not_reached() -> None:
    missed = sound(rate={"offered_per_s": 100.0, "achieved_per_s": 98.0, "goodput_per_s": 98.0})
    assert "98/s were answered of 100/s offered (98.0%)" in of(missed, "rate-not-reached").message
    assert (
        alarms_of_load(
            sound(rate={"offered_per_s": 100.0, "achieved_per_s": 99.0, "goodput_per_s": 99.0})
        )
        == []
    )


def test_v8_and_v9_leave_out_what_may_just_be_on_its_way_at_the_end() -> None:
    short = {"offered_per_s": 100.0, "achieved_per_s": 90.0, "goodput_per_s": 90.0}
    assert alarms_of_cell(sound(rate=short, measured_ns=900_000_000), ServerUse(0.2, 1.0)) == []
    assert (
        len(alarms_of_cell(sound(rate=short, measured_ns=1_000_000_000), ServerUse(0.2, 1.0))) == 2
    )
    assert alarms_of_load(sound(rate=short, measured_ns=900_000_000)) == [], "9 of 90"
    assert (
        "(90.0%)" in of(sound(rate=short, measured_ns=1_000_000_000), "rate-not-reached").message
    ), "10 of 100"


def test_v10_runs_that_differ() -> None:
    alarm = runs_differ("waitress@100", [100.0, 130.0, 70.0])
    assert alarm is not None
    assert "varies by 30% between 3 runs" in alarm.message
    assert runs_differ("waitress@100", [100.0, 105.0, 95.0]) is None
    assert runs_differ("waitress@100", [100.0]) is None


def test_v11_a_flat_line() -> None:
    alarm = flat_throughput("cheroot", [(50, 500.0), (100, 510.0), (200, 505.0)])
    assert alarm is not None
    assert "505/s with 50 users and with 200" in alarm.message
    assert flat_throughput("cheroot", [(50, 500.0), (100, 560.0), (200, 505.0)]) is None
    assert flat_throughput("cheroot", [(50, 500.0), (200, 500.0)]) is None, "two levels are no line"
    assert flat_throughput("cheroot", [(50, 500.0), (60, 500.0), (70, 500.0)]) is None, (
        "hardly more users"
    )


def cell(name: str, connections: int | None, goodput: float, **changes: Any) -> Json:
    verdict = {"status": "valid", "blame": None, "reasons": []}
    shown = {"goodput_per_s": goodput}
    return {
        "id": name,
        "connections": connections,
        "rate_result": shown,
        "failure": None,
        "verdict": verdict,
    } | changes


def test_over_cells_runs_of_one_level_and_levels_of_one_server_are_compared() -> None:
    flat = [cell(f"cheroot@c{users}#1", users, 500.0) for users in (50, 100, 200)]
    varied = [
        cell(f"waitress@100#{run}", None, goodput) for run, goodput in enumerate((60.0, 100.0), 1)
    ]
    assert [alarm.name for alarm in alarms_over_cells([*flat, *varied])] == [
        "run-spread",
        "flat-throughput",
    ]
    invalid = {"verdict": {"status": "invalid", "blame": "host", "reasons": []}}
    assert alarms_over_cells([varied[0] | invalid, varied[1]]) == []
