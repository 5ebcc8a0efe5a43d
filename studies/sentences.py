"""The results of the stored runs as sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from studies.charts import load_words
from studies.originals import ORIGINALS, Original
from studies.results import FAIR, StoredClaim, StudyRun
from studies.spread import Effect, Spread, effects, spreads
from wsgiload.statistics.effect import SAME_WITHIN
from wsgiload.units import three_digits

# The first paragraph mentions fair settings only if they narrow the spread by this factor.
FAR_APART = 2.0
_FAILS = re.compile(r"(\S+) fails under high load")
Runs = Mapping[str, StudyRun]


def first_paragraph(runs: Runs) -> str:
    """Which claims of the five studies are confirmed and refuted."""
    claims = [claim for original in ORIGINALS for claim in claims_in(runs, original.name)]
    if not claims:
        return (
            "No results are stored yet: `wsgiload reproduce NAME` runs a comparison, and "
            "`python -m studies store RUN` stores its results."
        )
    confirmed, refuted = _with_status(claims, "confirmed"), _with_status(claims, "refuted")
    points = [*_judged(confirmed, refuted), *_cause(runs)]
    return "\n".join([_count(claims, confirmed, refuted), "", *(f"- {point}" for point in points)])


def claims_in(runs: Runs, name: str) -> Sequence[StoredClaim]:
    return runs[name].claims if name in runs else ()


def _count(
    claims: Sequence[StoredClaim], confirmed: Sequence[StoredClaim], refuted: Sequence[StoredClaim]
) -> str:
    undecided, gone = _with_status(claims, "undecided"), _with_status(claims, "not reproducible")
    return (
        f"Five published comparisons of WSGI servers make {len(claims)} claims. wsgiload judged "
        "all claims with one method and current server versions: "
        f"**{_are(confirmed, 'confirmed')}, {_are(refuted, 'refuted')}**, "
        f"{_are(undecided, 'undecided')} and {_are(gone, 'not reproducible')}."
    )


def _are(claims: Sequence[StoredClaim], status: str) -> str:
    return f"{len(claims)} {'is' if len(claims) == 1 else 'are'} {status}"


def _cause(runs: Runs) -> list[str]:
    """The spread of the servers with original and with fair settings, for the study with the
    largest spread with original settings."""
    widest = {
        original: max(spreads(runs[original.name]), key=lambda one: one.factor)
        for original in ORIGINALS
        if original.name in runs
        and original.name + FAIR in runs
        and spreads(runs[original.name])
        and spreads(runs[original.name + FAIR])
    }
    if not widest:
        return []
    study = max(widest, key=lambda one: widest[one].factor)
    run, fair = runs[study.name], runs[study.name + FAIR]
    before, after = widest[study], spreads(fair)
    if before.factor < FAR_APART * min(one.factor for one in after):
        return []
    fair_loads = [load_words(fair, load) for load in sorted({one.load for one in after})]
    return [
        f"Settings matter: with the original settings of {study.heading.partition(',')[0]} at "
        f"{load_words(run, before.load)}, the fastest server ({before.fastest}) has "
        f"{three_digits(before.factor)} times the throughput of the slowest ({before.slowest}). "
        f"With fair settings (equivalent for all servers) at {' and '.join(fair_loads)}, this "
        f"factor is {_between(after)}, depending on keep-alive and on whether the app sends a "
        "Content-Length."
    ]


def _between(fair_spreads: Sequence[Spread]) -> str:
    factors = sorted(one.factor for one in fair_spreads)
    low, high = three_digits(factors[0]), three_digits(factors[-1])
    return low if low == high else f"between {low} and {high}"


# --- one study


def study_sentences(runs: Runs, original: Original) -> list[str]:
    """The throughputs of one comparison, with original and with fair settings."""
    run, fair = runs.get(original.name), runs.get(original.name + FAIR)
    sentences = []
    if run is not None:
        sentences += [f"Original settings, {_spread(run, one)}" for one in spreads(run)]
    if fair is not None:
        sentences += [f"Fair settings, {_spread(fair, one)}" for one in spreads(fair)]
        sentences += [f"Fair settings, {_effect(one)}" for one in effects(fair)]
    return sentences


def _judged(confirmed: Sequence[StoredClaim], refuted: Sequence[StoredClaim]) -> list[str]:
    sentences = [f"Confirmed claims: {_listed(confirmed)}."] if confirmed else []
    return sentences + ([f"Refuted claims: {_listed(refuted)}."] if refuted else [])


def _spread(run: StudyRun, one: Spread) -> str:
    where = ", ".join(filter(None, [one.setting, load_words(run, one.load)]))
    if one.factor < 1 + SAME_WITHIN:
        return f"{where}: the throughputs of all servers differ by less than 5 %."
    return (
        f"{where}: the fastest server ({one.fastest}) has {three_digits(one.factor)} times "
        f"the throughput of the slowest ({one.slowest})."
    )


def _effect(one: Effect) -> str:
    compared = f"{one.value} instead of {one.instead_of}"
    if one.least > 1 - SAME_WITHIN and one.most < 1 + SAME_WITHIN:
        return f"{compared}: the throughput of every server changes by less than 5 %."
    least, most = three_digits(one.least), three_digits(one.most)
    if one.least_server == one.most_server:
        servers = f"{least} and {most} (both {one.most_server})"
    else:
        servers = f"{least} ({one.least_server}) and {most} ({one.most_server})"
    return f"{compared}: throughput changes by a factor between {servers}."


# --- clauses


def _with_status(claims: Sequence[StoredClaim], status: str) -> list[StoredClaim]:
    return [claim for claim in claims if claim.status == status]


def _listed(claims: Sequence[StoredClaim]) -> str:
    """The claims in one sentence; equal claims about several servers are combined."""
    clauses: list[str] = []
    failing = [match[1] for claim in claims if (match := _FAILS.fullmatch(claim.words))]
    for claim in claims:
        if not _FAILS.fullmatch(claim.words) or len(failing) == 1:
            clauses.append(claim.words)
        elif claim.words.startswith(failing[0]):
            clauses.append(f"{', '.join(failing[:-1])} and {failing[-1]} fail under high load")
    *first, last = clauses
    return f"{'; '.join(first)}; and {last}" if first else last
