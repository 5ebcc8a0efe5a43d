"""The program of ``test_first_use``: uses one part of the public API for the first time in its
process, in eight threads, eight tasks or eight forked children at once, and checks every result."""

from __future__ import annotations

import asyncio
import os
import pickle
import shutil
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import wsgiload

AT_ONCE = 8
# A process that hangs ends itself.
LONGEST_S = 60


def use_load(url: str, folder: Path) -> None:
    _check(wsgiload.load(url, rate=100, duration=0.1, options=_constant()))


def use_aload(url: str, folder: Path) -> None:
    asyncio.run(use_aload_in_task(url, folder))


async def use_aload_in_task(url: str, folder: Path) -> None:
    _check(await wsgiload.aload(url, rate=100, duration=0.1, options=_constant()))


def use_start(url: str, folder: Path) -> None:
    with wsgiload.start(url, connections=2, duration=5.0) as handle:
        assert isinstance(handle, wsgiload.Handle)
        assert not handle.wait(0.1)
        handle.stop()
        report = handle.result()
        assert handle.done()
    assert any(reason.check == "interrupted" for reason in report.document.verdict.reasons)


def use_sweep(url: str, folder: Path) -> None:
    result = sweep_in(folder / os.urandom(4).hex())
    assert isinstance(result, wsgiload.SweepResult)
    assert isinstance(result.summary, wsgiload.Summary)
    (cell,) = result.summary.cells
    assert isinstance(cell, wsgiload.CellResult)
    assert cell.failure is None, cell.failure
    assert cell.outcomes is not None and cell.outcomes.ok == cell.outcomes.scheduled > 0


def use_resume(url: str, folder: Path) -> None:
    """Only reads the plan and the results: the run is complete."""
    (run,) = (folder / "complete").iterdir()
    copy = shutil.copytree(run, folder / os.urandom(8).hex())  # only one thread may resume it
    try:
        wsgiload.resume(copy)
    except wsgiload.UsageError as error:
        assert "is complete" in str(error), error
    else:
        raise AssertionError("no error")


def use_types(url: str, folder: Path) -> None:
    weighted = wsgiload.RequestOptions(targets=[{"request": {"url": "/"}, "weight": 1}])
    report = wsgiload.load(url, rate=100, duration=0.1, options=_constant(), request=weighted)
    _check(report)
    for schedule in (wsgiload.Ramp(1, 2), wsgiload.Steps([(1, 1), (2, 1)])):
        try:
            wsgiload.start(url, rate=1, schedule=schedule)
        except wsgiload.WsgiloadError as error:
            assert isinstance(error, wsgiload.UsageError)
    for name in wsgiload.__all__:
        assert getattr(wsgiload, name).__name__ == name


def use_histogram(url: str, folder: Path) -> None:
    one = wsgiload.Histogram.from_values([1000, 2000, 3000])
    two = pickle.loads(pickle.dumps(wsgiload.Histogram.from_hdr_v2(one.to_hdr_v2())))
    both = one + two
    assert both == one.merge(two)
    assert (both.count, len(both), both.min, both.quantile(0.5)) == (6, 6, 1000, 2000)
    assert both.max is not None and both.max >= 3000 and both.mean is not None
    assert sum(count for _, count in both.buckets()) == 6 == both.count_above(0)


USES: dict[str, Callable[[str, Path], None]] = {
    "load": use_load,
    "aload": use_aload,
    "start": use_start,
    "sweep": use_sweep,
    "resume": use_resume,
    "types": use_types,
    "histogram": use_histogram,
}


def _constant() -> wsgiload.LoadOptions:
    return wsgiload.LoadOptions(arrivals="constant", seed=1, threads=1)


def _check(report: wsgiload.Report) -> None:
    assert isinstance(report, wsgiload.Report)
    assert isinstance(report.document, wsgiload.LoadReport)
    assert isinstance(report.verdict, wsgiload.Verdict)
    assert report.outcomes["ok"] == report.outcomes["scheduled"] == 10, report.outcomes
    histograms = (report.response_time, report.service_time, report.send_lag)
    assert all(one is not None and one.count == 10 for one in histograms)
    assert report.to_dict()["outcomes"]["ok"] == 10
    assert report.rate["offered_per_s"] is not None


def sweep_in(out: Path) -> wsgiload.SweepResult:
    return wsgiload.sweep(
        rates=[20],
        servers=["mine"],
        duration=0.5,
        load=wsgiload.LoadOptions(warmup=0, cooldown=0),
        server=wsgiload.ServerOptions(
            command={"mine": f"{sys.executable} -m http.server --bind {{host}} {{port}}"}
        ),
        limits=wsgiload.ResourceLimits(policy="none"),
        options=wsgiload.SweepOptions(runs=1, settle=0, reruns=0),
        out=out,
    )


def in_threads(use: Callable[[], None]) -> int:
    """How many of the threads that began together succeeded."""
    barrier = threading.Barrier(AT_ONCE)
    succeeded = []

    def begin() -> None:
        barrier.wait()
        use()
        succeeded.append(1)

    threads = [threading.Thread(target=begin) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(succeeded)


async def in_tasks(name: str, url: str, folder: Path) -> int:
    """How many tasks succeeded."""

    async def begin() -> None:
        await asyncio.sleep(0)
        if name == "aload":
            await use_aload_in_task(url, folder)
        else:
            USES[name](url, folder)

    await asyncio.gather(*(begin() for _ in range(AT_ONCE)))
    return AT_ONCE


def in_children(use: Callable[[], None]) -> int:
    """How many forked children succeeded. Other threads of this process use the same part."""
    other = threading.Thread(target=use)
    other.start()
    children = []
    for _ in range(AT_ONCE):
        pid = os.fork()
        if pid == 0:
            signal.alarm(LONGEST_S)
            code = 1
            try:
                use()
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    other.join()
    return codes.count(0)


def main() -> int:
    place, name, url, folder = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
    signal.alarm(LONGEST_S)
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads

    def use() -> None:
        USES[name](url, folder)

    match place:
        case "threads":
            succeeded = in_threads(use)
        case "tasks":
            succeeded = asyncio.run(in_tasks(name, url, folder))
        case _:
            succeeded = in_children(use)
    return 0 if succeeded == AT_ONCE else 1


if __name__ == "__main__":
    sys.exit(main())
