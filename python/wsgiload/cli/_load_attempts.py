"""Repeats a load while the host disturbs it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from wsgiload.cli._live import LiveView
from wsgiload.cli._output import complain
from wsgiload.doctor.settle import settle, watch_host
from wsgiload.documents.load_plan import LoadPlan
from wsgiload.errors import WsgiloadError
from wsgiload.experiment.procedure import SETTLE_BEFORE_RERUN_NS
from wsgiload.interrupts import uninterrupted
from wsgiload.report import words
from wsgiload.results.load_attempts import Attempt, max_duration_s, needs_repeat


def longest_sentence(plan: LoadPlan, reruns: int) -> str:
    """A sentence on the maximum duration of the load with its reruns."""
    whole = words.format_span(max_duration_s(plan, reruns))
    attempts = words.plural(1 + reruns, "attempt")
    return f"if the host disturbs the load: up to {attempts}, {whole} in total"


@dataclass(slots=True)
class Attempts:
    """The attempts so far. After each attempt, ``until_written`` delays interrupts, so that no
    result is lost."""

    reruns: int
    view: LiveView
    until_written: ExitStack
    made: list[Attempt] = field(default_factory=list)
    is_interrupted: bool = False

    def make(self, attempt: Callable[[int], tuple[Attempt | None, bool]]) -> None:
        """Make attempts until one is undisturbed or the maximum number is reached.

        ``attempt`` takes its number. It returns the attempt, or None if there is no report, and
        whether it was interrupted.
        """
        self._add(*attempt(1))
        while self._may_repeat():
            try:
                self._wait()
                self._add(*attempt(len(self.made) + 1))
            except KeyboardInterrupt:
                self._keep(is_interrupted=True)
            except WsgiloadError as error:
                complain(f"the load could not be repeated: {error}")
                self._keep(is_interrupted=False)
                return

    def _add(self, attempt: Attempt | None, is_interrupted: bool) -> None:
        self.made += [attempt] if attempt is not None else []
        self.is_interrupted = is_interrupted

    def _keep(self, *, is_interrupted: bool) -> None:
        self.is_interrupted = is_interrupted
        self.until_written.enter_context(uninterrupted())

    def _may_repeat(self) -> bool:
        is_left = 0 < len(self.made) <= self.reruns
        return is_left and not self.is_interrupted and needs_repeat(self.made)

    def _wait(self) -> None:
        """Wait until the host is quiet; can be interrupted."""
        self.until_written.close()
        last, number = self.made[-1], len(self.made) + 1
        why = last.disturbance or "every attempt was disturbed"
        self.view.print_line(
            f"{why}; repeating the load (attempt {number} of at most {1 + self.reruns})"
        )
        settle(SETTLE_BEFORE_RERUN_NS, lambda: watch_host(None))
