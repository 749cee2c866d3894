"""Processor time by stage of a command: start, read, process, gate, select, estimate, validate, report.

Stages may contain others; every second belongs to the innermost one. Nothing is measured unless someone asks for it.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, ParamSpec, TypeVar

StageName = Literal["start", "read", "process", "gate", "select", "estimate", "validate", "report"]
STAGES: tuple[StageName, ...] = ("start", "read", "process", "gate", "select", "estimate", "validate", "report")
"""The stages in the order in which a command goes through them."""

Given = ParamSpec("Given")
Result = TypeVar("Result")


class StageTimes:
    """Seconds of processor time of this process in each stage."""

    def __init__(self) -> None:
        """Count from the start of the process: what came before belongs to the first stage."""
        self.seconds: dict[StageName, float] = dict.fromkeys(STAGES, 0.0)
        self._open: list[StageName] = ["start"]
        self._since = 0.0

    def enter(self, name: StageName) -> None:
        """Begin a stage."""
        self._account()
        self._open.append(name)

    def leave(self) -> None:
        """Go back to the stage before."""
        self._account()
        self._open.pop()

    def _account(self) -> None:
        now = time.process_time()
        self.seconds[self._open[-1]] += now - self._since
        self._since = now

    def __str__(self) -> str:
        """One line with all stages and their sum."""
        self._account()
        parts = [f"{name} {seconds:.2f}" for name, seconds in self.seconds.items()]
        return f"processor time [s]: {', '.join(parts)}; together {sum(self.seconds.values()):.2f}"


_measured: StageTimes | None = None
"""Where stages are counted, if anywhere."""


def measure_stages() -> StageTimes:
    """Count the stages of this process from now on, and all that came before as its start."""
    global _measured
    _measured = StageTimes()
    return _measured


@contextmanager
def stage(name: StageName) -> Iterator[None]:
    """Count what happens inside as a stage; other threads than the main one are part of whatever goes on there."""
    times = _measured
    if times is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    times.enter(name)
    try:
        yield
    finally:
        times.leave()


def in_stage(name: StageName) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Let every call of a function be a stage."""

    def wrap(function: Callable[Given, Result]) -> Callable[Given, Result]:
        @functools.wraps(function)
        def counted(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            with stage(name):
                return function(*args, **kwargs)

        return counted

    return wrap
