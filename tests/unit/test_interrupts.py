"""What an interrupt does while something goes on that must not be left half done."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from wsgiload.interrupts import HELD_BACK, instead_of_interrupts, uninterrupted


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in HELD_BACK}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_each_interrupt_acts_and_raises_nothing() -> None:
    acted: list[int] = []
    with instead_of_interrupts(lambda: acted.append(1)):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
    assert len(acted) == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_is_not_interrupted_comes_to_its_end_first() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        done.append("whole")
    assert done == ["whole"]


def test_a_signal_that_is_ignored_stays_so() -> None:
    """A shell starts its jobs in the background like that, so that the terminal's interrupt passes
    them by."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
