"""Everything that summary.json says of several cells together, computed from its cells alone.

Pure, so that a report made of an old run directory holds the figures that were printed when it was
run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wsgiload.analysis.aggregate import aggregate_cells, is_discarded, server_of
from wsgiload.analysis.comparison import compare_servers
from wsgiload.analysis.objective import Objective, parse_objective
from wsgiload.analysis.overload import overload_points
from wsgiload.analysis.power import power_points
from wsgiload.analysis.recommend import recommend
from wsgiload.analysis.recommendations import recommendations
from wsgiload.experiment.procedure import Method
from wsgiload.statistics.effect import FEWEST_RUNS

Json = Mapping[str, Any]

# Of all trials; beyond it the conditions were not those that the experiment was planned for.
MOST_DISCARDED_SHARE = 0.2


def analyse(summary: Json, method: Method | None = None, slo: Sequence[str] = ()) -> dict[str, Any]:
    """The summary with ``aggregates``, ``comparisons``, ``overload``, ``power``,
    ``recommendations`` and ``session`` anew; by ``method`` and ``slo``, or else as the experiment
    has them."""
    experiment = summary["experiment"]
    cells = _by_plan(summary["cells"], experiment.get("servers") or ())
    chosen = method or experiment.get("aggregate") or "interval"
    is_compared = (experiment.get("runs") or 1) >= FEWEST_RUNS
    texts = slo or experiment.get("slo") or ()
    objective = parse_objective(texts) if texts else None
    of_sessions = bool(experiment.get("sessions"))
    return {
        **summary,
        "experiment": {
            **experiment,
            "aggregate": chosen,
            "slo": objective.texts if objective is not None else None,
        },
        "aggregates": aggregate_cells(cells, chosen),
        "comparisons": compare_servers(cells, of_sessions=of_sessions) if is_compared else [],
        "overload": [] if of_sessions else overload_points(cells),
        "efficiency": power_points(cells),
        "recommendations": _recommendations(cells, objective),
        "session": judge_session(cells),
    }


def _recommendations(cells: Sequence[Json], objective: Objective | None) -> list[dict[str, Any]]:
    """Which setting to run, for each app; none where no objective was named."""
    if objective is None:
        return []
    return recommendations(
        [dict(cell) for cell in cells], lambda own: recommend(own, objective), objective.texts
    )


def _by_plan(cells: Sequence[Json], servers: Sequence[str]) -> list[Json]:
    """The cells in the order in which they were asked for, which the order of the runs must not
    change."""
    places = {server: place for place, server in enumerate(servers)}

    def key(cell: Json) -> tuple[float, float, int]:
        load = cell["rate"] if cell["rate"] is not None else cell["connections"] or 0
        return places.get(server_of(cell), len(places)), load, cell["run"]

    return sorted(cells, key=key)


def judge_session(cells: Sequence[Json]) -> dict[str, Any]:
    """Every trial that was not counted, with its reason; more than a fifth of them and nothing
    stands.

    Never by outcome: only a trial that the generator, the host or the plan spoiled is discarded.
    """
    discarded = [cell for cell in cells if is_discarded(cell)]
    is_invalid = len(discarded) > MOST_DISCARDED_SHARE * len(cells)
    return {
        "status": "invalid" if is_invalid else "valid",
        "trials": len(cells),
        "discarded": [{"id": cell["id"], "reason": _reason(cell)} for cell in discarded],
    }


def _reason(cell: Json) -> str:
    verdict = cell["verdict"]
    if verdict is None:
        return "not measured"
    checks = sorted(
        {str(reason["check"]) for reason in verdict["reasons"] if reason["level"] == "invalid"}
    )
    return f"invalid: {verdict['blame']}" + (f" ({', '.join(checks)})" if checks else "")


def last_attempts(cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the trials that were measured again: of one place in the plan the last attempt,
    however it ended."""
    last: dict[str, int] = {}
    for cell in cells:
        last[place_of(cell)] = max(_attempt(cell), last.get(place_of(cell), 1))
    return [cell for cell in cells if _attempt(cell) == last[place_of(cell)]]


def place_of(cell: Json) -> str:
    """The place in the plan: the identifier without the number of the attempt."""
    identifier = str(cell["id"])
    return identifier if _attempt(cell) == 1 else identifier.removesuffix(f".{_attempt(cell)}")


def _attempt(cell: Json) -> int:
    return int(cell.get("attempt") or 1)
