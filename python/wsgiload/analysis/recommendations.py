"""The recommendations of a summary: for each app one, or why there is none, as plain data and back.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from wsgiload.analysis.recommend import Memory, Recommendation, Refusal, by_app

Json = dict[str, Any]
Judge = Callable[[Sequence[Json]], Recommendation | Refusal]


def recommendations(entries: Sequence[Json], judge: Judge, objective: Sequence[str]) -> list[Json]:
    """What ``judge`` makes of the entries of each app: cells of a summary, or entries of a capacity
    document."""
    return [
        {"app": app, "objective": list(objective), **_plain(judge(own))}
        for app, own in by_app(entries).items()
    ]


def _plain(found: Recommendation | Refusal) -> Json:
    if isinstance(found, Refusal):
        return {"recommended": None, "refused": asdict(found)}
    interval = None if found.interval is None else list(found.interval)
    return {
        "recommended": {**asdict(found), "interval": interval, "tied": list(found.tied)},
        "refused": None,
    }


def found_in(entry: Mapping[str, Any]) -> Recommendation | Refusal:
    """One entry of ``recommendations``, read back."""
    told = entry["recommended"]
    if told is None:
        return Refusal(**entry["refused"])
    interval = None if told["interval"] is None else (told["interval"][0], told["interval"][1])
    memory, tied = Memory(**told["memory"]), tuple(told["tied"])
    return Recommendation(**{**told, "interval": interval, "memory": memory, "tied": tied})
