"""The command that repeats a run of an experiment file, with the changed options. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wsgiload.documents.summary import ExperimentFacts
from wsgiload.units import NS_PER_S, parse_duration_ns, parse_rates

FULL, QUICK = "full", "quick"
_SCALE = "scale quick: "


def command_of(facts: ExperimentFacts, table: Mapping[str, Any]) -> str:
    """``wsgiload reproduce NAME``, at its scale; ``table`` is the content of the experiment
    file."""
    is_quick = any(note.startswith(_SCALE) for note in facts.notes)
    planned = {**table, **table["scale"][QUICK]} if is_quick else table
    words = ["wsgiload reproduce", str(facts.name), *([] if is_quick else ["--scale", FULL])]
    for key, (read, measured_value) in _options(facts).items():
        if key in planned and read(planned[key]) != read(measured_value):
            words += [f"--{key}", _shown(measured_value)]
    measured = [name for name in planned["servers"] if _is_measured(name, facts.servers)]
    if len(measured) < len(planned["servers"]):
        words += ["--servers", ",".join(measured)]
    return " ".join(words)


def _is_measured(name: str, servers: Sequence[str]) -> bool:
    """Whether a run contains a server of the file, which may have an alias. The names in the run
    include the settings of the grid."""
    base = name.partition("=")[0]
    return any(one == base or one.startswith(f"{base}-") for one in servers)


_Reader = Callable[[Any], object]


def _options(facts: ExperimentFacts) -> Mapping[str, tuple[_Reader, object]]:
    """The options that are usually changed on the command line: a function that reads a value for
    comparison, and the value of the run."""
    return {
        "duration": (_seconds, _duration(facts.duration_s)),
        "warmup": (_seconds, _duration(facts.warmup_s)),
        "timeout": (_seconds, _duration(facts.timeout_s or 0.0)),
        "runs": (int, facts.runs),
        "rates": (_levels, list(facts.rates or ())),
        "connections": (_levels, _listed(facts.connections or ())),
    }


def _seconds(value: Any) -> float:
    return parse_duration_ns(str(value)) / NS_PER_S


def _duration(seconds: float) -> str:
    return f"{seconds:g}s"


def _levels(value: Any) -> tuple[float, ...]:
    """As in ``[100, "200:400:100"]``."""
    listed = _listed(value)
    return parse_rates(",".join(map(str, listed))) if listed else ()


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(f"{one:g}" for one in value)
    return str(value)
