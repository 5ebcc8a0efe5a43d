"""The answer of an experiment, its ranking, its warnings and the first screen."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from wsgiload.analysis.over_cells import analyse
from wsgiload.analysis.ranking import rank
from wsgiload.documents.answer import Answer
from wsgiload.documents.cell_result import (
    CellFailure,
    CellResult,
    ServerSettings,
    Versions,
    server_of,
)
from wsgiload.documents.load_report import ErrorBudget, NotChecked
from wsgiload.documents.summary import Summary
from wsgiload.findings.alarms import NO_REUSE
from wsgiload.program import command_line
from wsgiload.report.answer import answer_of
from wsgiload.report.cells import read_sweep
from wsgiload.report.command_line import start_of_cell, to_paste, to_run
from wsgiload.report.first_screen import first_screen, markdown, print_first_screen, table_of
from wsgiload.report.recommendation import figure_words
from wsgiload.units import level_words

from .filled import distribution, filled_summary, outcomes, rates, reason, resources, verdict
from .invented_cells import cell, experiment, invalid, runs_of, with_p50, within


def summary_of(cells: Sequence[CellResult], **facts: Any) -> Summary:
    """An analysed summary of these cells."""
    runs = max(result.run for result in cells)
    servers = tuple(dict.fromkeys(server_of(result) for result in cells))
    rates = tuple(sorted({result.rate for result in cells if result.rate is not None}))
    defaults = {"runs": runs, "servers": servers, "rates": rates or None, "cpus": 1.0} | facts
    return analyse(filled_summary(defaults, cells))


def make_answer(cells: Sequence[CellResult], **facts: Any) -> Answer:
    return answer_of(summary_of(cells, **facts))


def overloaded(name: str, rate: float = 1000.0) -> CellResult:
    """A server that responds to seven of ten requests in time."""
    return cell(name, p99_ns=None, rate=rate, rate_result=rates(700.0, offered_per_s=rate))


def failed(name: str) -> CellResult:
    """A server that did not start."""
    failure = CellFailure(step="start", message="it died", log_tail="")
    return cell(
        name,
        outcomes=None,
        offered_quantiles_ns=None,
        failure=failure,
        verdict=verdict("invalid", "server"),
    )


# --- ranking


def test_levels_are_sorted_from_the_highest_and_servers_from_the_best() -> None:
    cells = [cell("slow", p99_ns=9e6), cell("fast", p99_ns=2e6), cell("fast", p99_ns=1e6, rate=500)]
    levels = rank(summary_of(cells).cells)
    assert [level.level for level in levels] == ["1,000/s", "500/s"]
    assert [entry.label for entry in levels[0].entries] == ["fast", "slow"]


def test_overloaded_failed_and_invalid_servers_have_different_statuses() -> None:
    cells = [overloaded("overloaded"), failed("failed"), invalid(cell("invalid")), cell("good")]

    levels = rank(summary_of(cells).cells)

    statuses = {entry.label: entry.status for entry in levels[0].entries}
    assert statuses == {
        "good": "ranked",
        "overloaded": "overloaded",
        "invalid": "invalid",
        "failed": "failed",
    }
    assert list(statuses) == ["good", "overloaded", "invalid", "failed"], (
        "ranked servers come first"
    )


def test_a_closed_loop_is_ranked_by_goodput() -> None:
    def closed(name: str, goodput: float) -> CellResult:
        return cell(name, rate=None, connections=50, rate_result=rates(goodput))

    levels = rank(summary_of([closed("a", 900.0), closed("b", 2000.0), closed("c", 1950.0)]).cells)
    assert [entry.label for entry in levels[0].entries] == ["b", "c", "a"]
    assert levels[0].entries[0].tied_with == ("c",), "2 % in one run is not significant"


# --- the answer


def test_six_rounds_give_the_winner_and_its_ratio() -> None:
    answer = make_answer(experiment(1, {"waitress": 3e6, "gevent": 1e6}))
    assert answer.status == "decided"
    assert answer.question == "Which of 2 servers has the lowest p99 at 1,000/s?"
    assert answer.sentence.startswith("gevent has the lowest p99 at 1,000/s: 1.00 ms [")
    assert re.search(
        r"; waitress's p99 is [23]\.\d+× \[.+\] this value \(6 runs each\)\.", answer.sentence
    )
    assert answer.needs is None


def test_the_question_counts_unmeasured_servers_of_an_interrupted_sweep() -> None:
    cells = experiment(1, {"waitress": 3e6, "gevent": 1e6})
    summary = summary_of(cells, servers=("waitress", "gevent", "bjoern"))
    unfinished = answer_of(replace(summary, status="interrupted"))
    assert unfinished.question == "Which of 3 servers has the lowest p99 at 1,000/s?"


def test_a_tie_gives_its_margin_and_recommends_the_leaner_server() -> None:
    sizes = {"a": 90_000_000, "b": 40_000_000, "c": 20_000_000}
    cells = [
        replace(result, resources=resources(memory_peak_bytes=sizes[result.server]))
        for result in experiment(2, {"a": 1e6, "b": 1.02e6, "c": 5e6})
    ]

    answer = make_answer(cells)

    assert answer.status == "tie"
    assert re.match(
        r"a and b are tied for the lowest p99 at 1,000/s: a has .+, and they differ by at most [\d.]+ %\.",
        answer.sentence,
    )
    assert " %. b needs less memory; the command below starts it." in answer.sentence


def test_a_tie_names_the_server_with_the_lower_median() -> None:
    tied = experiment(2, {"a": 1e6, "b": 1.02e6, "c": 5e6})
    answer = make_answer(with_p50(tied, {"a": 0.4e6, "b": 0.2e6, "c": 1e6}))
    assert re.search(
        r"at most [\d.]+ %\. b's p50 is 0\.\d\d× \[0\.\d\d, 0\.\d\d\] a's\.", answer.sentence
    )

    for medians in ({"a": 0.2e6, "b": 0.4e6}, {"a": 0.2e6, "b": 0.2e6}):
        assert "p50 is" not in make_answer(with_p50(tied, medians | {"c": 1e6})).sentence


def test_a_difference_that_may_be_large_is_no_tie_and_gives_the_number_of_runs() -> None:
    wide = make_answer(experiment(2, {"a": 1e6, "b": 1.02e6}, run_effect=0.3))
    assert wide.status == "undecided"

    match = re.fullmatch(
        r"(\d+) runs per server and load level \(--runs (\d+), about .+\) would detect "
        r"differences in p99 of 30 % or more",
        wide.needs or "",
    )
    assert match is not None and 6 < int(match[1]) == int(match[2]) < 100

    narrow = make_answer(experiment(2, {"a": 1e6, "b": 1.02e6}, run_effect=0.05))
    assert (narrow.status, narrow.needs) == ("tie", None)


def test_a_winner_with_a_higher_median_is_qualified() -> None:
    cells = experiment(1, {"waitress": 3e6, "gevent": 1e6})
    answer = make_answer(with_p50(cells, {"waitress": 0.2e6, "gevent": 0.4e6}))
    assert answer.status == "decided"
    assert re.search(r"\(6 runs each\)\. waitress's p50 is 0\.\d\d× .+ gevent's\.", answer.sentence)


def test_one_run_is_undecided_and_says_what_would_decide() -> None:
    answer = make_answer([cell("a", p99_ns=1e6), cell("b", p99_ns=9e6)])
    assert answer.status == "undecided"
    assert answer.sentence.startswith("In 1 run, a had the lowest p99 at 1,000/s, 1.00 ms")
    assert answer.needs is not None and answer.needs.startswith(
        "repeat without --runs and --duration"
    )


def test_more_runs_confirm_a_lead_or_decide_a_tie() -> None:
    def at_goodput(name: str, goodput_per_s: float) -> CellResult:
        return cell(name, rate=None, connections=8, rate_result=rates(goodput_per_s))

    lead, tied = (
        first_screen(summary_of([at_goodput("a", 1000.0), at_goodput("b", other)]))
        for other in (500.0, 999.0)
    )

    assert "Its lead exceeds the noise within a run" in lead.sentence
    assert "\nTo confirm this ranking: repeat without --runs and --duration (" in lead.markdown
    assert "\nTo decide: repeat without --runs and --duration (" in tied.markdown


def test_the_question_is_about_the_highest_sustained_level() -> None:
    cells = [
        *(cell(name, p99_ns=1e6, rate=1000.0) for name in "ab"),
        *(overloaded(name, 3000.0) for name in "ab"),
    ]
    answer = make_answer(cells)
    assert "at 1,000/s" in answer.question
    assert "a and b are the first not to sustain the rate, at 3,000/s." in answer.sentence


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (1, "1.00 ms [95 % CI 900 µs, unbounded]"),
        (3, "1.00 ms (range of the runs' 95 % CIs: from 900 µs, unbounded)"),
        (4, "1.00 ms [95 % CI 900 µs, unbounded]"),
    ],
)
def test_two_or_three_runs_give_the_range_of_their_intervals(runs: int, expected: str) -> None:
    (level,) = rank(summary_of(runs_of("a", [1e6] * runs)).cells)
    entry = replace(level.entries[0], interval_ns=(900_000.0, None))
    assert figure_words(entry, level) == expected


def test_a_tie_in_one_run_names_the_server_of_the_command() -> None:
    small, large = resources(memory_peak_bytes=10**7), resources(memory_peak_bytes=9 * 10**7)
    answer = make_answer(
        [
            cell("a", p99_ns=1e6, resources=large, uncertainty=within(0.9, 1.2)),
            cell("b", p99_ns=1.01e6, resources=small, uncertainty=within(0.9, 1.2)),
        ]
    )
    expected = "the difference from b is within the noise. b needs less memory; the command below starts it."
    assert expected in answer.sentence


def test_a_few_mebibytes_do_not_decide_a_tie() -> None:
    small, large = (resources(memory_peak_bytes=mebibytes * 2**20) for mebibytes in (20, 35))
    answer = make_answer(
        [cell("a", p99_ns=1e6, resources=large), cell("b", p99_ns=1.01e6, resources=small)]
    )
    assert "least memory" not in answer.sentence


def test_high_rates_keep_their_digits() -> None:
    assert level_words(1_500_000.0, None) == "1,500,000/s"
    assert level_words(None, 1) == "1 connection"


def test_without_saturation_the_answer_names_a_rate_that_would_saturate() -> None:
    cells = [_busy("a", cores=0.4), _busy("b", cores=0.1)]
    expected = (
        "No server saturated at 1,000/s. CPU use suggests that a would saturate first, "
        "near 2,500/s (try --rates 3000)."
    )
    assert make_answer(cells).sentence.endswith(expected)


def test_a_server_that_did_not_start_is_not_counted_as_overloaded() -> None:
    for other, sentence in (
        (failed("b"), "a sustains 1,000/s"),
        (overloaded("b"), "a is the only server that sustains 1,000/s"),
    ):
        assert make_answer([cell("a"), other]).sentence.startswith(sentence)


def test_the_effect_of_disturbed_seconds_on_p99_is_a_warning() -> None:
    def disturbed(
        name: str, undisturbed_ns: int | None, disturbed_s: float | None = 2.0
    ) -> CellResult:
        budget = ErrorBudget(
            value=9_000_000,
            generator=(9_000_000, 9_000_000),
            sampling_95=None,
            noise_floor=None,
            undisturbed=undisturbed_ns,
            band=None,
            bound_status="bounded",
        )
        return cell(name, p99_ns=9e6, error_budget_ns={"0.99": budget}, disturbed_s=disturbed_s)

    for unaffected in (disturbed("a", 8_950_000), *(disturbed("a", None, s) for s in (None, 0.0))):
        assert make_answer([unaffected, cell("b")]).warnings == ()

    answer = make_answer([disturbed("a", 1_200_000), disturbed("b", 3_000_000)])
    assert answer.warnings == (
        "other processes or the hypervisor disturbed both trials at 1,000/s, so the order "
        "of the servers may be wrong. Without the "
        "disturbed seconds, p99 of a at 1,000/s is 1.20 ms instead of 9.00 ms",
    )

    late = replace(disturbed("a", 1_200_000), verdict=verdict("warn", "host", reason("steal")))
    assert make_answer([late, cell("b")]).warnings[-1] == (
        "without the disturbed seconds, p99 of a at 1,000/s is 1.20 ms instead of 9.00 ms"
    ), "the previous warning names the disturbance"

    throughout = disturbed("c", None, 10.0)
    assert make_answer([disturbed("a", 1_200_000), cell("b"), throughout]).warnings == (
        "other processes or the hypervisor disturbed 2 of 3 trials at 1,000/s, so the order "
        "of the servers may be wrong. Without the "
        "disturbed seconds, p99 of a at 1,000/s is 1.20 ms instead of 9.00 ms",
    )
    assert make_answer([cell("b"), throughout]).warnings == (
        "other processes or the hypervisor disturbed 1 of 2 trials at 1,000/s, so the order "
        "of the servers may be wrong",
    )


def test_an_unchecked_warm_up_is_a_warning() -> None:
    few = (NotChecked(check="stationarity", reason="fewer than 50 correct responses"),)
    answer = make_answer([cell("a", not_checked=few), cell("b"), failed("c")])
    assert answer.warnings[-1] == (
        "p99 may include warm-up effects. In 1 of 2 trials at 1,000/s, response times were not "
        "checked for changes (stationarity): fewer than 50 correct responses"
    )


def test_the_answer_may_be_that_no_server_sustained_a_level() -> None:
    answer = make_answer([overloaded("a")])
    assert answer.sentence == "No server sustained any tested load level."
    assert answer.status == "undecided" and answer.needs


def test_at_most_five_warnings_are_listed_most_severe_first() -> None:
    checks = ("no-keepalive", "nagle-delay", "stationarity", "memory-growth", "cached-response")
    others = ("steal", "shared-cores", "limits")
    reasons = (reason(check) for check in (*checks, *others))
    warned = cell("a", verdict=verdict("warn", "host", *reasons))
    answer = make_answer([failed("crashed"), warned])
    assert len(answer.warnings) == 5
    assert answer.warnings[0] == "crashed failed and is not ranked: it died"
    assert answer.warnings[-1] == "5 more warnings: see --verbose or the HTML report"


def test_a_fix_for_this_case_replaces_the_general_one() -> None:
    def warnings_with(*fixes: str) -> str:
        drifts = [msgspec.structs.replace(reason("stationarity"), fix=fix) for fix in fixes]
        cells = [
            cell(name, verdict=verdict("warn", "server", drift))
            for name, drift in zip("ab", drifts, strict=True)
        ]
        return " ".join(make_answer(cells).warnings)

    assert "(stationarity). Warm up 3 s longer" in warnings_with(*["warm up 3 s longer"] * 2)
    differing = warnings_with("warm up 3 s longer", "warm up 4 s longer")
    assert "(stationarity). Use a longer --warmup" in differing


def test_the_first_screen_quotes_a_finding_that_says_more_than_its_record() -> None:
    slow = reason("stop-signal", message="it did not exit on SIGTERM; SIGINT ends it")
    slow = msgspec.structs.replace(slow, fix="set stop_signal")
    answer = make_answer([cell(name, verdict=verdict("warn", "server", slow)) for name in "ab"])
    assert answer.warnings == (
        "a and b: it did not exit on SIGTERM; SIGINT ends it (stop-signal). Set stop_signal",
    )


# --- the command to paste


def settings(*command: str, **environment: str) -> ServerSettings:
    return ServerSettings(
        command=command,
        workers=1,
        threads=4,
        backlog=None,
        keepalive=None,
        environment=environment,
        versions=Versions(server="1", python="3.12", packages={}),
    )


def _busy(
    name: str, cores: float, service_ms: float = 0.5, threads: int | None = None
) -> CellResult:
    """A server at 1,000/s with this CPU use and mean service time."""
    chosen = None if threads is None else replace(settings("serve"), threads=threads)
    used = resources(cpu_cores_mean=cores, cpu_ns_per_request=round(cores * 1e6))
    service = distribution(mean=service_ms * 1e6)
    return cell(name, resources=used, service_time_ns=service, settings=chosen)


@pytest.mark.parametrize(
    ("cells", "ending"),
    [
        ([_busy("lock", 0.1, 14.0)], "No server saturated at 1,000/s."),
        ([_busy("lock", 0.1, 14.0), _busy("a", 0.4)], "No server saturated at 1,000/s."),
        (
            [_busy("pool", 0.01, 3.0, threads=16), _busy("a", 0.1)],
            "With 16 requests at a time, 3.00 ms each, pool would saturate near 5,300/s at the "
            "latest (try --rates 6500).",
        ),
        # Less than four times the rate: requests may have queued.
        ([_busy("one", 0.01, 12.0, threads=1)], "No server saturated at 1,000/s."),
        ([_busy("pool", 0.01, 3.0, threads=8)], "No server saturated at 1,000/s."),
        ([_busy("queued", 0.4, 1.5, threads=1)], "No server saturated at 1,000/s."),
        ([_busy("a", 0.4, 1.5, threads=16)], "(try --rates 3000)."),
    ],
)
def test_a_saturation_is_predicted_only_if_nothing_else_can_be_the_limit(
    cells: list[CellResult], ending: str
) -> None:
    assert make_answer(cells).sentence.endswith(ending)


def test_a_pasted_command_has_no_internal_paths_and_a_usual_port() -> None:
    gunicorn = settings(
        "/cache/x/bin/gunicorn", "--bind", "127.0.0.1:40117", "--threads", "4", "a:app"
    )
    assert to_paste(gunicorn) == "gunicorn --bind 127.0.0.1:8000 --threads 4 a:app"

    waitress = settings("/x/bin/waitress-serve", "--port", "40117", "--backlog", "401170", "a:app")
    assert to_paste(waitress) == "waitress-serve --port 8000 --backlog 401170 a:app"

    uwsgi = settings("/x/bin/uwsgi", "--http-socket=127.0.0.1:4011", "app dir", UWSGI_X="a b")
    expected = "env 'UWSGI_X=a b' uwsgi --http-socket=127.0.0.1:8000 'app dir'"
    assert to_paste(uwsgi) == expected


def test_a_module_is_started_by_its_program_without_internal_settings() -> None:
    python, internal = (
        "/cache/gunicorn/bin/python",
        "/wsgiload/servers/runners/gunicorn_settings.py",
    )
    gunicorn = settings(
        python, "-m", "gunicorn", "--config", internal, "--bind", "127.0.0.1:40117", "a:b"
    )
    assert to_run(gunicorn) == "gunicorn --bind 127.0.0.1:8000 a:b"

    user_config = replace(
        gunicorn, command=(python, "-m", "gunicorn", "--config", "/app/conf.py", "a:b")
    )
    assert to_run(user_config) == "gunicorn --config /app/conf.py a:b"

    uwsgi = settings(
        "/x/bin/uwsgi", "--virtualenv", "/x", "--pythonpath", "/app", "--module", "a:b"
    )
    assert to_run(uwsgi) == "uwsgi --module a:b"

    user_path = replace(uwsgi, added_arguments=("--pythonpath", "/app"))
    assert to_run(user_path) == "uwsgi --pythonpath /app --module a:b"

    waitress = settings("/x/bin/python3", "-m", "waitress", "--listen", "127.0.0.1:4", "a:b")
    assert to_run(waitress) == "waitress-serve --listen 127.0.0.1:8000 a:b"


def test_an_app_expression_gets_a_module_with_a_plain_name() -> None:
    started = settings("gunicorn", "--bind", "127.0.0.1:4711", "wsgiload_app:application")
    result = cell("gunicorn", app='shop:create_app("x")', settings=started)

    module, command = (start_of_cell(result) or "").splitlines()
    assert command == "gunicorn --bind 127.0.0.1:8000 wsgiload_app:application"

    echo, source, end, file = shlex.split(module)
    assert (echo, end, file) == ("echo", ">", "wsgiload_app.py")
    app = "importlib.import_module('shop').create_app('x')"
    assert source == f"import importlib; application = {app}"


def test_the_command_of_a_runner_script_lists_its_requirements() -> None:
    directory = "/wsgiload/servers/runners"
    arguments = ("--host", "127.0.0.1", "--port", "4123", "a:b")
    single = replace(
        settings(
            "/x/bin/python", "-P", f"{directory}/prefork.py", f"{directory}/run_b.py", *arguments
        ),
        scripts=("prefork.py", "run_b.py"),
        requirements=("bjoern==3.2.2",),
        system_packages=("gcc", "libev-dev"),
    )
    assert to_run(single).splitlines() == [
        "apt-get install gcc libev-dev  # as root",
        "pip install bjoern==3.2.2",
        f"{command_line('servers', 'script', 'run_b.py')} > run_b.py",
        "python run_b.py --host 127.0.0.1 --port 8000 a:b",
    ]

    workers = ("--workers", "2", f"{directory}/run_b.py", *arguments)
    prefork = replace(single, command=(*single.command[:3], *workers))
    assert to_run(prefork).splitlines()[2:] == [
        f"{command_line('servers', 'script', 'prefork.py')} > prefork.py",
        f"{command_line('servers', 'script', 'run_b.py')} > run_b.py",
        "python prefork.py --workers 2 run_b.py --host 127.0.0.1 --port 8000 a:b",
    ]


def test_the_command_of_a_server_on_pypy_starts_pypy() -> None:
    started = settings("/x/bin/python", "/wsgiload/servers/runners/run_b.py", "a:b")
    pypy = replace(
        started,
        scripts=("run_b.py",),
        requirements=("gevent==26.7.0",),
        versions=replace(started.versions, python="PyPy 3.9.16"),
    )
    install, _, start = to_run(pypy).splitlines()
    assert install == "pypy3 -m venv pypy && pypy/bin/pip install gevent==26.7.0"
    assert start == "pypy/bin/python run_b.py a:b"


def test_the_server_and_packages_required_by_an_argument_are_installed_first() -> None:
    requirements = ("gunicorn[gevent,tornado]==27.0.1", "gevent==26.9.0", "tornado==6.6.1")
    sync = replace(settings("gunicorn", "--threads", "1", "a:b"), requirements=requirements)
    assert to_run(sync) == "pip install gunicorn==27.0.1\ngunicorn --threads 1 a:b"

    on_gevent = replace(sync, command=("gunicorn", "--worker-class=gevent", "a:b"))
    assert to_run(on_gevent).splitlines() == [
        "pip install 'gunicorn[gevent,tornado]==27.0.1' gevent==26.9.0",
        "gunicorn --worker-class=gevent a:b",
    ]


def test_a_pasted_command_has_no_temporary_directory() -> None:
    directory, scratch = "/wsgiload/servers/runners", "/tmp/wsgiload-scratch-7-x"
    front = replace(
        settings("/x/bin/python", "-P", f"{directory}/front.py", "--socket", f"{scratch}/g.sock"),
        scripts=("front.py",),
        environment={"PYTHONPATH": f"/app:{directory}"},
    )
    assert to_paste(front) == "env PYTHONPATH=. python front.py --socket /tmp/g.sock"


# --- warnings about the answer


def test_missing_keepalive_is_explained() -> None:
    closing = verdict("warn", "server", reason("no-keepalive"))
    answer = make_answer([cell("a", verdict=closing), cell("b"), cell("c", verdict=closing)])
    (line,) = [line for line in answer.warnings if "no-keepalive" in line]
    assert line.startswith(f"a and c: {NO_REUSE.consequence} (no-keepalive). Use --keepalive off")


def test_delays_of_the_generator_are_one_warning_about_the_deciding_level() -> None:
    sent_late, late_and_stalled = (
        verdict("warn", "client", *(reason(check) for check in checks))
        for checks in (("send-lag",), ("send-lag", "client-stalls"))
    )
    stolen = verdict("warn", "host", reason("steal"))

    answer = make_answer(
        [
            cell("a", verdict=sent_late),
            cell("b", verdict=late_and_stalled),
            cell("c"),
            *(cell(name, rate=500.0, verdict=stolen) for name in "abc"),
        ]
    )
    assert answer.warnings == (
        "p99 may be too high, so the order of the servers may be wrong. The generator sent requests "
        "late in 2 of 3 trials at 1,000/s (send-lag: a and b). The generator stalled during 1 of 3 "
        "trials (client-stalls: b). Repeat on an idle machine",
        "warnings at other load levels (no effect on this result): steal in 3 of 3 trials",
    )


def test_an_upper_bound_names_its_servers() -> None:
    budget = ErrorBudget(
        value=900_000,
        generator=(100_000, 900_000),
        sampling_95=None,
        noise_floor=None,
        undisturbed=None,
        band=None,
        bound_status="upper_bound",
    )
    answer = make_answer([cell("a", error_budget_ns={"0.99": budget}), cell("b")])
    assert answer.warnings == (
        "p99 of a at 1,000/s may be up to 800 µs lower than shown, because the generator sent "
        "requests late "
        "(send-lag)",
    )


# --- the screen


def screen(summary: Summary, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    print_first_screen(summary, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_first_screen_has_at_most_thirty_lines_and_fits_80_columns() -> None:
    names = [f"server-{number}-with-a-long-name" for number in range(9)]
    cells = [
        cell(name, p99_ns=1e6 * (place + 1), rate=rate)
        for place, name in enumerate(names)
        for rate in (1000.0, 2000.0, 3000.0)
    ]
    summary = summary_of(cells)

    for width in (80, 120, 200):
        lines = screen(summary, width).splitlines()
        assert len(lines) <= 30
        assert all(len(line) <= width for line in lines)
        assert all(any(name in line for line in lines) for name in names), "no name is wrapped"

    assert "p99 at 3,000/s" in screen(summary, 80)
    assert "at 1,000/s" in screen(summary, 200)


def test_a_narrow_screen_keeps_the_deciding_figure_of_every_app() -> None:
    cells = [
        cell(f"{app}-a-long-name", app=app, rate=rate)
        for app, rates_per_s in (("one:app", (1000.0, 2000.0)), ("two:app", (1000.0,)))
        for rate in rates_per_s
    ]
    rendered = first_screen(summary_of(cells))
    for headings, _ in rendered.tables:
        assert headings[4].startswith("p99 at ")
        assert headings[4] not in rendered.dispensable


def test_only_shared_ranks_are_marked() -> None:
    intervals = {"a": (1e6, 2e6), "b": (1.5e6, 4e6), "c": (3e6, 5e6)}
    cells = [cell(name, p99_ns=low) for name, (low, _) in intervals.items()]
    level = rank(summary_of(cells).cells)[0]
    ties = {"a": ("b",), "b": ("a", "c"), "c": ("b",)}
    entries = tuple(
        replace(entry, tied_with=ties[entry.label], undecided_with=()) for entry in level.entries
    )

    _, rows = table_of(replace(level, entries=entries), ())
    assert [row[0] for row in rows] == ["1=", "1=", "3"]


def test_p99_has_its_interval_at_every_rate() -> None:
    cells = [
        cell("a", run, p99_ns=p99_ns * (1 + 0.01 * run), rate=rate)
        for rate, p99_ns in ((1000.0, 2e6), (2000.0, 4e6))
        for run in range(1, 5)
    ]
    ranking = rank(summary_of(cells).cells)
    headings, [row] = table_of(ranking[0], ranking)
    for heading in ("p99 at 2,000/s", "p99 at 1,000/s"):
        assert re.fullmatch(r"[\d.]+ ms \[[\d.]+ ms, [\d.]+ ms\]", row[headings.index(heading)])


def test_servers_with_different_p99s_have_different_ranks() -> None:
    text = screen(summary_of(runs_of("a", [1e6] * 6) + runs_of("b", [9e6] * 6)), 120)
    assert "1 a" in " ".join(text.split()) and "2 b" in " ".join(text.split())


def test_markdown_has_the_same_answer() -> None:
    summary = summary_of(experiment(1, {"waitress": 3e6, "gevent": 1e6}))
    text = markdown(summary)
    answer = answer_of(summary)
    assert answer.question in text and answer.sentence in text
    assert "| 1 | gevent |" in text


def test_the_command_follows_its_label_in_both_formats() -> None:
    started = settings("/x/bin/python", "-m", "waitress", "--listen", "127.0.0.1:4", "a:b")
    summary = summary_of([cell("waitress", settings=started)])
    assert "To run waitress yourself:\n  waitress-serve --listen" in screen(summary, 80)
    assert "To run waitress yourself:\n\n```sh\nwaitress-serve --listen" in markdown(summary)


def test_a_failed_server_is_listed_with_the_cause() -> None:
    refusing = cell("refusing", outcomes=outcomes(100, ok=0, refused=97, reset=3))
    answer = make_answer([failed("a"), failed("b"), refusing, cell("good")])
    assert answer.warnings[:2] == (
        "a and b failed and are not ranked: it died",
        "refusing failed and is not ranked: no correct response (refused: 97, reset: 3)",
    )


def test_the_fix_of_a_failure_is_never_truncated() -> None:
    fix = "add -H 'Host: shop.example'"
    cells = [cell("good")]
    for name in ("a", "b"):
        failure = CellFailure(
            step="readiness", message=f"{name}: {'long ' * 90}; {fix}", log_tail=None
        )
        cells.append(replace(failed(name), failure=failure))

    line = make_answer(cells).warnings[0]
    assert line.startswith("a and b failed and are not ranked: long long ")
    assert line.endswith(f"long … {fix[:1].upper()}{fix[1:]}")


def test_a_long_cause_is_truncated_to_one_line() -> None:
    failure = CellFailure(step="start", message="word " * 100 + "\nsecond", log_tail="")
    answer = make_answer([replace(failed("a"), failure=failure), cell("good")])
    assert answer.warnings[0].endswith(" …") and len(answer.warnings[0]) < 190
    assert "second" not in answer.warnings[0]


def test_a_p99_of_few_requests_is_marked_and_explained() -> None:
    few = {"outcomes": outcomes(900), "rate": 100.0}
    summary = summary_of([cell("a", p99_ns=2e6, **few), cell("b", p99_ns=9e6, **few)])
    answer = answer_of(summary)

    level = answer.ranking[0]
    assert [entry.few_requests_beyond for entry in level.entries] == [True, True]
    assert "had the lowest p99 at 100/s, ≈ 2.00 ms" in answer.sentence
    assert table_of(level, answer.ranking)[1][0][4] == "≈ 2.00 ms"
    assert answer.warnings[0] == (
        "p99 at 100/s is imprecise (≈), so the order of the servers may be wrong. It needs at least "
        "1,000 requests per run. Use --duration 11s"
    )

    alone = make_answer([cell("a", p99_ns=2e6, **few)]).warnings[0]
    assert alone.startswith("p99 at 100/s is imprecise (≈). It needs")
    # The tables below show the same mark.
    sweep = read_sweep(summary)
    assert [shown_cell.quantile_words(0.99) for shown_cell in sweep.cells] == [
        "≈ 1.00 µs to 2.00 ms",
        "≈ 1.00 µs to 9.00 ms",
    ]


def test_a_p99_of_enough_requests_is_not_marked() -> None:
    answer = make_answer([cell("a", p99_ns=2e6), cell("b", p99_ns=9e6)])
    assert not any(entry.few_requests_beyond for entry in answer.ranking[0].entries)
    assert "≈" not in answer.sentence + "".join(answer.warnings)
