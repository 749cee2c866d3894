"""One small interface for all engines: a function and its arguments go in, outcomes come out as they are ready.

The function must be pure and importable by name, its arguments and results must pickle: it may run on another machine,
and again where a worker was lost. An engine keeps no order; whoever merges outcomes sorts them by number, so that the
result does not depend on the engine or on the number of workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, TypeVar

from dynid.errors import DynidError

__all__ = ["Engine", "Local", "Outcome"]

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
                outcome = Outcome(number, value=function(task))
            except DynidError as error:
                outcome = Outcome(number, error=error)
            yield outcome

    def close(self) -> None:
        """Nothing is to be ended."""
