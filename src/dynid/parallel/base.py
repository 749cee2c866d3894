"""One small interface for all engines: a function and its arguments go in, outcomes come out as they are ready.

The function must be pure and importable by name, its arguments and results must pickle: it may run on another machine,
and again where a worker was lost. An engine keeps no order; whoever merges outcomes sorts them by number, so that the
result does not depend on the engine or on the number of workers.
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
    """What became of one task."""

    number: int
    """Position of the task in the sequence that was given."""
    value: Result | None = None
    error: DynidError | None = None
    """Why there is no value; None where there is one."""

    def result(self) -> Result:
        """The value.

        Raises:
            DynidError: The error of the task, where it failed.
        """
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]  # a task without error has its function's result


GUARD = 'Put the work of the script under `if __name__ == "__main__":`, or use the engine local.'
"""What to do about a script that starts processes."""


def refuse_bare_script() -> None:
    """Refuse to start processes from a script without the usual guard: each of them would run the script again.

    Raises:
        EngineError: The script that runs never asks for its ``__name__``, or this is such a process already.
    """
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    started = sys.modules.get("__mp_main__", main) is not main  # this process imports the script of its parent just now
    if not started:
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
    """Runs tasks. Use it in a ``with`` statement, which ends its workers."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many tasks run at a time."""

    @abstractmethod
    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Outcome[Result]]:
        """Run a function on every task; outcomes come in the order in which they are ready.

        An error of dynid becomes the outcome of its task and the others go on; any other error ends the run.

        Args:
            function: A pure function of one argument that can be imported by name.
            tasks: Its arguments.
        """

    def map(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """The results in the order of the tasks.

        Raises:
            DynidError: The first task that failed, in this order.
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
    """Run one task as every engine does: the numbers of threads of BLAS on different machines must not matter."""
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
        """Nothing is to be ended."""
