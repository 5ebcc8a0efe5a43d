"""The first screen of every situation of known truth: what it says is true, and nothing else."""

from __future__ import annotations

import re

import pytest

from .cases import CASES, NEVER_IN_ANY, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_first_screen_says_what_is_known_and_nothing_else(case: Case) -> None:
    screen = case.screen()
    absent = [pattern for pattern in case.must if not re.search(pattern, screen.text)]
    wrong = [one for one in (*case.never, *NEVER_IN_ANY) if re.search(one, screen.text)]
    wrong += refuted_saturation(screen.text)
    allowed = (*case.must, *case.may)
    extra = [one for one in screen.warnings if not any(re.search(ok, one) for ok in allowed)]
    assert not (absent or wrong or extra), f"{absent=}\n{wrong=}\n{extra=}\n{screen.text}"
    assert screen.command_of == case.command_of


def refuted_saturation(text: str) -> list[str]:
    """A predicted saturation at a rate that was sustained."""
    found = re.search(r"No server saturated at ([\d,]+)/s.* near ([\d,]+)/s", text)
    if found is None:
        return []
    sustained, predicted = (float(rate.replace(",", "")) for rate in found.groups())
    return [found[0]] if predicted <= sustained else []
