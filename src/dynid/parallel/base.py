"""`Engine`, the interface of all places where tasks run, and `Local`, the engine that runs them in this process.

An engine calls one function for many arguments, for example the reduction of one log for every log of a fleet. A *task*
is the argument of one call; an *outcome* is what comes back: the function's result or its error. The function must be
pure and importable by name, and its argument and result must pickle, because a call may run on another machine, and
again if its worker (a process that runs tasks) was lost. Outcomes come in any order. Callers sort them by number before
they merge them, so that the result does not depend on the engine or on the number of workers.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from dynid.decompositions import one_blas_thread
from dynid.errors import DynidError, EngineError

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, eq=False)
class Outcome(Generic[Result]):
    """Value or error of one task."""

    number: int
    """Position of the task in the sequence that was given."""
    value: Result | None = None
    """What the function returned; None if the task failed."""
    error: DynidError | None = None
    """Why the task failed; None if it did not."""

    def result(self) -> Result:
        """Return the value.

        Raises:
            DynidError: The task failed with this error.
        """
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]  # a task without error has its function's result


GUARD = 'Put the work of the script under `if __name__ == "__main__":`, or use the engine local.'
"""Remedy in the error about a script that starts processes without the guard ``if __name__ == "__main__":``."""


def refuse_bare_script() -> None:
    """Refuse to start processes from a script without the usual guard ``if __name__ == "__main__":``.

    Each process imports the script, and without the guard would run it again.

    Raises:
        EngineError: The running script does not mention ``__name__``, or this process was itself started by such a
            script and is just running it again.
    """
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    # a started process imports the script of its parent under the name __mp_main__
    is_child = sys.modules.get("__mp_main__", main) is not main
    if not is_child:
        if file is None or getattr(main, "__spec__", None) is not None:  # an interactive session, or python -m
            return
        try:
            source = Path(file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            raise EngineError(
                "processes cannot be started from a script that is no file", path=file,
                remedy="Save it as a file and run that, or use the engine local.",
            ) from None  # fmt: skip
        if "__name__" in source:
            return
    raise EngineError("every process that is started would run the whole script again", path=file, remedy=GUARD)


class Engine(ABC):
    """A place where tasks run. Use it in a ``with`` statement, which ends its workers."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """Number of tasks that run at a time."""

    @abstractmethod
    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Outcome[Result]]:
        """Run a function on every task; outcomes come in the order in which they are ready.

        A `DynidError` becomes the outcome of its task, and the other tasks go on; any other error ends the run.

        Args:
            function: A pure function of one argument that can be imported by name.
            tasks: Its arguments.
        """

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """Run a function on every task; return the results in the order of the tasks.

        Raises:
            DynidError: A task failed: the error of the first of them in this order.
        """
        outcomes = sorted(self.run(function, tasks), key=lambda outcome: outcome.number)
        return [outcome.result() for outcome in outcomes]

    @abstractmethod
    def close(self) -> None:
        """End the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_task(function: Callable[[Task], Result], task: Task) -> Result:
    """Run one task with one BLAS thread, as every engine does, so that results do not depend on the machine."""
    with one_blas_thread():
        return function(task)


class Local(Engine):
    """One task after the other, in this process."""

    @property
    def workers(self) -> int:
        """One."""
        return 1

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Outcome[Result]]:
        """See `Engine.run`."""
        for number, task in enumerate(tasks):
            try:
                outcome = Outcome(number, value=run_task(function, task))
            except DynidError as error:
                outcome = Outcome(number, error=error)
            yield outcome

    def close(self) -> None:
        """Do nothing: there are no workers."""
