"""What the stored runs say of the published comparisons, in sentences. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from studies.charts import load_words
from studies.found import Effect, Spread, effects, spreads
from studies.originals import ORIGINALS, Original
from studies.results import FAIR, StoredClaim, StudyRun
from wsgiload.report.words import join_words, three_digits
from wsgiload.statistics.effect import SAME_WITHIN

# The first paragraph mentions fair settings only if they narrow the spread by this factor.
FAR_APART = 2.0
_FAILS = re.compile(r"(\S+) fails under high load")
Runs = Mapping[str, StudyRun]


def first_paragraph(runs: Runs) -> str:
    """What the five studies together got right and wrong."""
    claims = [claim for original in ORIGINALS for claim in claims_in(runs, original.name)]
    if not claims:
        return (
            "No results are stored yet: `wsgiload reproduce NAME` runs a comparison, and "
            "`python -m studies store RUN` stores what it found."
        )
    right, wrong = _with_status(claims, "confirmed"), _with_status(claims, "refuted")
    sentences = [_count(claims, right, wrong)]
    sentences += _judged(right, wrong)
    return " ".join([*sentences, *_rest(claims), *_cause(runs)])


def claims_in(runs: Runs, name: str) -> Sequence[StoredClaim]:
    return runs[name].claims if name in runs else ()


def _count(
    claims: Sequence[StoredClaim], right: Sequence[StoredClaim], wrong: Sequence[StoredClaim]
) -> str:
    return (
        f"Of the {len(claims)} claims of these five comparisons, **{len(right)} "
        f"{'is' if len(right) == 1 else 'are'} confirmed and {len(wrong)} "
        f"{'is' if len(wrong) == 1 else 'are'} refuted** by measurements with today's versions of "
        "the servers and the same method for all."
    )


def _rest(claims: Sequence[StoredClaim]) -> list[str]:
    """How many are open, which are listed below."""
    parts = []
    open_ones, gone = _with_status(claims, "undecided"), _with_status(claims, "not reproducible")
    if open_ones:
        parts.append(f"{len(open_ones)} {'is' if len(open_ones) == 1 else 'are'} undecided")
    if gone:
        parts.append(f"{len(gone)} cannot be reproduced")
    return [f"{_sentence(' and '.join(parts))}."] if parts else []


def _cause(runs: Runs) -> list[str]:
    """How far apart the servers are in the settings of an original and in fair ones, of the study
    in which the former are the furthest apart."""
    found = {
        original: max(spreads(runs[original.name]), key=lambda one: one.factor)
        for original in ORIGINALS
        if original.name in runs
        and original.name + FAIR in runs
        and spreads(runs[original.name])
        and spreads(runs[original.name + FAIR])
    }
    if not found:
        return []
    study = max(found, key=lambda one: found[one].factor)
    before, after = found[study], spreads(runs[study.name + FAIR])
    if before.factor < FAR_APART * min(one.factor for one in after):
        return []
    return [
        "The settings matter as much as the server: with the settings of "
        f"{study.heading.partition(',')[0]}, {before.fastest} has {three_digits(before.factor)} "
        f"times the throughput of {before.slowest}; with equivalent settings, the fastest server "
        f"has {_between(after)} times the throughput of the slowest, depending on keep-alive and "
        "framing."
    ]


def _between(found: Sequence[Spread]) -> str:
    factors = sorted(one.factor for one in found)
    low, high = three_digits(factors[0]), three_digits(factors[-1])
    return low if low == high else f"{low} to {high}"


# --- one study


def study_sentences(runs: Runs, original: Original) -> list[str]:
    """What we found of one comparison, and in its fair version."""
    run, fair = runs.get(original.name), runs.get(original.name + FAIR)
    sentences = []
    if run is not None:
        sentences += _of_claims(run)
        sentences += [_sentence(_spread(run, one)) for one in spreads(run)]
    if fair is not None:
        sentences += [f"In the fair version, {_spread(fair, one)}" for one in spreads(fair)]
        sentences += [f"In the fair version, {_effect(one)}" for one in effects(fair)]
    return sentences


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _of_claims(run: StudyRun) -> list[str]:
    return _judged(_with_status(run.claims, "confirmed"), _with_status(run.claims, "refuted"))


def _judged(right: Sequence[StoredClaim], wrong: Sequence[StoredClaim]) -> list[str]:
    sentences = [f"Confirmed: {_listed(right)}."] if right else []
    return sentences + ([f"Refuted: {_listed(wrong)}."] if wrong else [])


def _spread(run: StudyRun, one: Spread) -> str:
    where = join_words([*filter(None, one.setting.split(", ")), load_words(run, one.load)])
    if one.factor < 1 + SAME_WITHIN:
        return f"with {where}, the throughput of all servers is the same within 5 %."
    return (
        f"with {where}, the fastest server ({one.fastest}) has {three_digits(one.factor)} times "
        f"the throughput of the slowest ({one.slowest})."
    )


def _effect(one: Effect) -> str:
    if one.least > 1 - SAME_WITHIN and one.most < 1 + SAME_WITHIN:
        return (
            f"each server has the same throughput with {one.value} and with {one.instead_of}, "
            "within 5 %."
        )
    return (
        f"throughput with {one.value} is {three_digits(one.least)} ({one.least_server}) to "
        f"{three_digits(one.most)} ({one.most_server}) times the throughput with {one.instead_of}."
    )


# --- clauses


def _with_status(claims: Sequence[StoredClaim], status: str) -> list[StoredClaim]:
    return [claim for claim in claims if claim.status == status]


def _listed(claims: Sequence[StoredClaim]) -> str:
    """Their clauses; those that say the same of several servers are one."""
    clauses: list[str] = []
    failing = [found[1] for claim in claims if (found := _FAILS.fullmatch(claim.words))]
    for claim in claims:
        if not _FAILS.fullmatch(claim.words) or len(failing) == 1:
            clauses.append(claim.words)
        elif claim.words.startswith(failing[0]):
            clauses.append(f"{', '.join(failing[:-1])} and {failing[-1]} fail under high load")
    *first, last = clauses
    return f"{'; '.join(first)}; and {last}" if first else last
