"""run.json: stores an experiment, reads it back, and checks that nothing has changed before a
resume. Reads the summary of a run: summary.json and, if the run was killed, the cells stored after
it.

Pure, apart from reading files and running git.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

import msgspec

from wsgiload.account import require_own
from wsgiload.documents.base import decode_json
from wsgiload.documents.cell_result import CellResult, server_of
from wsgiload.documents.codec import decode, encode_bytes, read, read_cellwise
from wsgiload.documents.load_report import Distribution, Uncertainty
from wsgiload.documents.run_info import HostFacts, RunInfo
from wsgiload.documents.summary import Summary
from wsgiload.errors import UsageError
from wsgiload.experiment.build import require_own_folders
from wsgiload.experiment.plan import Cell, Experiment, plain
from wsgiload.experiment.redaction import show_values_of
from wsgiload.experiment.stored_secrets import NO_SECRETS, Secrets, restore_secrets
from wsgiload.foreign_files import SUMMARY, RefusedFile, read_lines, require_plain, too_deep
from wsgiload.host.cpus import CpuPlan
from wsgiload.host.facts import revision_of

# Facts that results depend on; other facts about the host may change during a run.
HOST_FACTS = (
    "kernel",
    "machine",
    "cpu_model",
    "cpus",
    "available_cpus",
    "memory_bytes",
    "wsgiload",
    "generator",
)
# Options whose names differ from the part of the plan that they set.
_OPTIONS_OF = {
    "levels": ("rates", "connections"),
    "sizes": ("workers", "server_threads", "grid"),
    "policy": ("limits",),
    "app_dir": ("chdir",),
    "variables": ("env", "env_file"),
    "own_servers": ("command",),
    "adjustments": ("server_args", "server_config"),
}
# Parts of a plan that may differ in a resumed run.
_MAY_DIFFER = ("out", "slo", "app_revision", "store_secrets", "title", "source", "notes")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredExperiment(Experiment):
    """An experiment with the other contents of the plan in run.json: the order of the cells, and
    the cores."""

    order: tuple[str, ...]
    cpu_plan: CpuPlan | None = None


def stored_plan(
    experiment: Experiment, order: Sequence[Cell], cpu_plan: CpuPlan
) -> StoredExperiment:
    """The plan of a sweep with everything resolved."""
    names = [field.name for field in fields(Experiment)]
    public = experiment.without_secrets()
    return StoredExperiment(
        **{name: getattr(public, name) for name in names},
        order=tuple(cell.id for cell in order),
        cpu_plan=cpu_plan,
    )


def raw_plan(plan: object) -> msgspec.Raw:
    """Any plan in the format of run.json."""
    return msgspec.Raw(encode_bytes(plain(plan)))


def read_plan(
    run_dir: Path, secrets: Secrets = NO_SECRETS
) -> tuple[Experiment, list[str], HostFacts]:
    """The experiment of a run directory, its order, and its host. ``secrets`` contains the values
    that were not stored."""
    require_plain(run_dir)
    path = run_dir / "run.json"
    require_own([run_dir, path], "start what its plan names", "its owner's account")
    run = read(RunInfo, path)

    try:
        plan = msgspec.json.decode(run.plan)
        if isinstance(plan, dict) and "order" not in plan:
            raise UsageError(f"{run_dir} is a search, which cannot be resumed", "start a new one")
        stored = revive(run.plan)
    except RecursionError as error:
        raise too_deep(path) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise UsageError(
            f"{path} was written by another version of wsgiload ({error})", "start a new run"
        ) from error

    names = [field.name for field in fields(Experiment)]
    experiment = Experiment(**{name: getattr(stored, name) for name in names})
    show_values_of(experiment.show)
    request = restore_secrets(experiment.request, secrets.request)
    experiment = replace(experiment.with_secrets(secrets.variables), request=request)
    require_own_folders(experiment)
    return experiment, list(stored.order), run.host


def revive(plan: msgspec.Raw | bytes) -> StoredExperiment:
    """The plan that ``raw_plan`` stored. Raises ValueError if this version does not support it."""
    experiment = decode_json(plan, StoredExperiment, dec_hook=_path)
    unknown = sorted(_unknown(msgspec.json.decode(plan), plain(experiment)))
    if unknown:
        raise ValueError(f"unknown option {unknown[0]}")
    return experiment


def _path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"{kind} cannot be read")


def _unknown(stored: object, known: object) -> Iterator[str]:
    """Keys that this version does not know; decoding ignores them."""
    if isinstance(stored, dict) and isinstance(known, dict):
        yield from stored.keys() - known.keys()
        for name in stored.keys() & known.keys():
            yield from _unknown(stored[name], known[name])
    elif isinstance(stored, list) and isinstance(known, list):
        for item, known_item in zip(stored, known, strict=False):
            yield from _unknown(item, known_item)


def require_same_plan(
    stored: Experiment,
    requested: Experiment,
    without: Experiment | None = None,
    given: Collection[str] = (),
) -> None:
    """Raise UsageError if the options ``given`` describe a different experiment from the stored
    one. ``without`` is the experiment without these options: what it has in common with the
    requested one was not asked for, unless an option of this name was given."""
    before = dict(_flat(plain(stored.without_secrets())))
    now = dict(_flat(plain(requested.without_secrets())))
    usual = {} if without is None else dict(_flat(plain(without.without_secrets())))
    for name in before | now:
        is_usual = name in usual and usual[name] == now.get(name) and not _is_named(name, given)
        if before.get(name) != now.get(name) and not is_usual:
            raise UsageError(
                f"--resume: {name} is {now.get(name)!r} here but {before.get(name)!r} in the "
                "stored plan",
                "use --resume alone: the plan is in the run directory",
            )


def _is_named(name: str, options: Collection[str]) -> bool:
    """Whether one of the options sets this part of a plan, such as duration: load.duration_ns."""
    part = name.rpartition(".")[2]
    others = _OPTIONS_OF.get(part, ())
    return any(part.startswith(option) or option in others for option in options)


def _flat(plan: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in plan.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif name not in _MAY_DIFFER:
            yield prefix + name, value


def require_same_host(stored: HostFacts, now: HostFacts) -> None:
    """Raise UsageError if the machine, the kernel or wsgiload's version has changed."""
    for name in HOST_FACTS:
        before, after = getattr(stored, name), getattr(now, name)
        if before != after:
            raise UsageError(
                f"--resume: the host has changed: {name} was {before!r} and is now {after!r}",
                "start a new run, and compare the two with `wsgiload compare`",
            )


def require_same_revision(stored: Experiment) -> None:
    """Raise UsageError if the revision of the app has changed."""
    before, now = stored.app_revision, revision_of(stored.app_dir)
    if before not in (None, now):
        raise UsageError(
            f"--resume: the app has changed: it is at revision {now} and was at {before}",
            "start a new run, and compare the two with `wsgiload compare`",
        )


def require_same_versions(
    cells: Sequence[CellResult], versions: Mapping[str, tuple[str | None, str | None]]
) -> None:
    """Raise UsageError if the version of a server or interpreter has changed; ``versions`` is
    (server, Python) by server identifier."""
    for cell in cells:
        before = (cell.version, cell.python)
        now = versions.get(cell.id.rpartition("@")[0])
        if now is not None and before[0] is not None and before != now:
            raise UsageError(
                f"--resume: {server_of(cell)} was measured with version {before[0]} on Python "
                f"{before[1]}, but now has version {now[0]} on Python {now[1]}",
                "start a new run, and compare the two with `wsgiload compare`",
            )


# The cells that summary.json lacks, one a line.
NAME = "cells.jsonl"
Keep = Callable[[CellResult], CellResult]
T = TypeVar("T")


def read_summary(run_dir: Path, *, is_lean: bool = False) -> Summary:
    """The summary with all stored cells. ``is_lean``: without what reports do not show. Raises
    UsageError if there is none."""
    path, keep = run_dir / "summary.json", _Lean().cell if is_lean else _unchanged
    summary = read_cellwise(path, keep) if is_lean else read(Summary, path)
    known = {cell.id for cell in summary.cells}
    later = [cell for cell in _later(run_dir / NAME, keep) if cell.id not in known]
    return msgspec.structs.replace(summary, cells=(*summary.cells, *later)) if later else summary


def _later(path: Path, keep: Keep) -> list[CellResult]:
    """The cells up to the first damaged line: a process that was killed leaves a part of one."""
    cells: list[CellResult] = []
    try:
        for line in read_lines(SUMMARY, path):
            cells.append(keep(decode(CellResult, line, str(path))))
    except FileNotFoundError:
        return []
    except RefusedFile:
        raise
    except (UsageError, UnicodeError):
        pass
    return cells


def _unchanged(cell: CellResult) -> CellResult:
    return cell


class _Lean:
    """Leaves out histograms and intervals that no report shows, and keeps equal parts of cells only
    once."""

    def __init__(self) -> None:
        self._seen: dict[bytes, object] = {}

    def cell(self, cell: CellResult) -> CellResult:
        """The lean cell."""
        return msgspec.structs.replace(
            cell,
            response_time_ns=_without_histogram(cell.response_time_ns),
            service_time_ns=_without_histogram(cell.service_time_ns),
            send_lag_ns=_without_histogram(cell.send_lag_ns),
            connect_time_ns=None,
            uncertainty=_of_all_requests(cell.uncertainty),
            settings=self._once(cell.settings),
            limits=self._once(cell.limits),
            not_checked=self._once(cell.not_checked),
            verdict=self._once(cell.verdict),
        )

    def _once(self, part: T) -> T:
        return self._seen.setdefault(encode_bytes(part), part)  # type: ignore[return-value]


def _of_all_requests(uncertainty: Uncertainty | None) -> Uncertainty | None:
    return uncertainty and msgspec.structs.replace(uncertainty, response_time_ns={})


def _without_histogram(times: Distribution | None) -> Distribution | None:
    return None if times is None else msgspec.structs.replace(times, hdr_v2=None, intervals_95={})
