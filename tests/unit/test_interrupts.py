"""Interrupts are replaced or delayed during operations that must not stop halfway."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from wsgiload.interrupts import INTERRUPTS, replacing_interrupts, uninterrupted


@pytest.fixture(autouse=True)
def restored_handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_each_interrupt_calls_the_action_and_raises_nothing() -> None:
    calls: list[int] = []
    with replacing_interrupts(lambda: calls.append(1)):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
    assert len(calls) == 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_is_raised_after_an_uninterrupted_block() -> None:
    completed: list[str] = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
        completed.append("block")
    assert completed == ["block"]


def test_an_ignored_signal_stays_ignored() -> None:
    """A shell ignores SIGINT in background jobs, so that Ctrl-C in the terminal spares them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
