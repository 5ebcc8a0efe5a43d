"""``docs/studies.md`` and its charts from the stored runs. Pure, except that it reads the
template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from studies.charts import chart
from studies.claims import claims_of
from studies.originals import ORIGINALS, Original
from studies.results import FAIR, Machine, ServerVersion, StudyRun
from studies.sentences import first_paragraph, study_sentences
from wsgiload.report.words import MISSING

PAGE = Path("docs", "studies.md")
IMAGES = Path("docs", "images")
TEMPLATE = "studies.md.jinja"
# The catalogue names a server on PyPy after the interpreter; its version is that of gevent.
_PACKAGES = {"pypy": "gevent"}

Runs = Mapping[str, StudyRun]


def files(runs: Runs) -> dict[Path, str]:
    """Everything that is generated, by its path in a checkout."""
    charts = {
        IMAGES / chart_name(original): chart(
            original.heading, runs.get(original.name), runs.get(original.name + FAIR)
        )
        for original in ORIGINALS
        if _versions(runs, original)
    }
    return {PAGE: page(runs), **charts}


def chart_name(original: Original) -> str:
    return f"study-{original.name}.svg"


def page(runs: Runs) -> str:
    """``docs/studies.md``."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown
    )
    environment.filters |= {
        "cell": cell,
        "changed": changed,
    }
    text = environment.get_template(TEMPLATE).render(
        paragraph=first_paragraph(runs),
        runs=list(runs.values()),
        machines=list(dict.fromkeys(machine(run.machine) for run in runs.values())),
        studies=[_study(runs, original) for original in ORIGINALS],
        shared=shared_changes(runs),
    )
    return text.rstrip("\n") + "\n"


def _study(runs: Runs, original: Original) -> dict[str, Any]:
    versions = _versions(runs, original)
    return {
        "original": original,
        "chart": chart_name(original) if versions else None,
        "sentences": study_sentences(runs, original),
        "source": runs[original.name].source if original.name in runs else None,
        "claims": runs[original.name].claims if original.name in runs else (),
        "planned_claims": claims_of(original.name),
        "versions": versions,
        "servers": _servers(versions),
    }


def _versions(runs: Runs, original: Original) -> list[StudyRun]:
    """The runs with original and with fair settings, if they were measured."""
    return [runs[name] for name in (original.name, original.name + FAIR) if name in runs]


def _servers(versions: list[StudyRun]) -> str:
    """Every server with its version, grouped by Python version."""
    by_server = {one.server: one for run in versions for one in run.versions}
    pythons = sorted(by_server.values(), key=lambda one: one.python or "")
    return "; ".join(
        f"{', '.join(_version(one) for one in group)} ({_interpreter(python)})"
        for python, group in groupby(pythons, key=lambda one: one.python)
    )


def _version(one: ServerVersion) -> str:
    return f"{_PACKAGES.get(one.server, one.server)} {one.version or MISSING}"


def _interpreter(python: str | None) -> str:
    if python is not None and python.startswith("PyPy"):
        return python
    return f"Python {python or MISSING}"


def machine(one: Machine) -> str:
    """The machine and its software, in one sentence."""
    memory = f"{one.memory_gib:g} GiB of memory" if one.memory_gib is not None else "memory unknown"
    return (
        f"{one.cpu_model or 'CPU unknown'}, {one.cpus or MISSING} cores, {memory}, "
        f"{one.os or 'Linux'}, kernel {one.kernel or MISSING}, wsgiload {one.wsgiload or MISSING}"
    )


# --- cells of a table


def cell(text: str) -> str:
    """Text escaped for a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def shared_changes(runs: Runs) -> list[str]:
    """The options that every run changed in the same way, if there are several runs."""
    by_run = [
        [option for note in run.changes for option in _changed_options(note)]
        for run in runs.values()
    ]
    if len(by_run) < 2:
        return []
    return [option for option in by_run[0] if all(option in options for options in by_run)]


def changed(note: str, shared: Sequence[str] = ()) -> str:
    """A note on changed options, without the shared ones, and with the options as code."""
    cause = note.partition(": ")[0]
    if cause.startswith("scale "):
        return f"`--{cause}`"  # its options stand in the experiment file
    cause = cause.replace("scaled to", "machine with")
    return f"{cause}: {'; '.join(one for one in _changed_options(note) if one not in shared)}"


def _changed_options(note: str) -> list[str]:
    return [_changed_option(one) for one in note.partition(": ")[2].split("; ")]


def _changed_option(words: str) -> str:
    new, _, old = words.partition(" instead of ")
    return f"`{new}` instead of {old if old == 'the default' else f'`{old}`'}"
