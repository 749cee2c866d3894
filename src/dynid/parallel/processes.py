"""`Processes`: the engine that runs tasks in a pool of processes on this machine.

When a worker process dies (killed because it took too much memory, say), Python's pool breaks as a whole and does not
say which task it ran. So every task that was running counts one *loss* and runs again in a new pool. A task with
`MOST_LOSSES` is a suspect: it then runs alone, and it fails only if its worker dies even so.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.synchronize import Event

from dynid.errors import DynidError, EngineError
from dynid.parallel.base import GUARD, Engine, Outcome, Result, Task, refuse_bare_script, run_task

MOST_LOSSES = 3
"""Number of broken pools that a task may have run in before it runs alone (convention)."""


class Processes(Engine):
    """Run tasks in a pool of processes; a lost process is replaced and its task runs again."""

    def __init__(self, workers: int | None = None) -> None:
        """Prepare a pool; processes start with the first task.

        Args:
            workers: Number of processes; as many as there are processors if None.
        """
        self._workers = workers or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None
        self._context = get_context("spawn")  # forking a process that has threads is unsafe
        self._any_started = self._context.Event()  # set by the first process that is ready for tasks

    @property
    def workers(self) -> int:
        """Number of processes."""
        return self._workers

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Outcome[Result]]:
        """See `Engine.run`."""
        waiting = list(range(len(tasks)))[::-1]  # the next task stands last
        losses = Counter[int]()  # number of a task -> broken pools in which it ran
        running: dict[Future[Result], int] = {}  # future -> number of its task
        while waiting or running:
            room = self._workers - len(running)
            for _ in range(min(room, len(waiting))):
                if losses[waiting[-1]] >= MOST_LOSSES and running:
                    break  # a suspect waits until it can run alone
                number = waiting.pop()
                running[self._submit(function, tasks[number])] = number
                if losses[number] >= MOST_LOSSES:
                    break  # a suspect gets no company
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            lost = [running.pop(future) for future in done if isinstance(future.exception(), BrokenProcessPool)]
            for future in done:
                if future in running:  # not lost
                    yield self._outcome(running.pop(future), future)
            if lost:  # the whole pool is broken, so what still runs in it is lost as well
                lost += running.values()
                running.clear()
                self._refuse_unstarted()
                self.close()
            # a suspect that ran alone fails; the others wait again, the lowest number first
            for number in sorted(lost, reverse=True):
                losses[number] += 1
                if losses[number] > MOST_LOSSES and len(lost) == 1:
                    yield Outcome(number, error=_lost_error())
                else:
                    waiting.append(number)

    def _submit(self, function: Callable[[Task], Result], task: Task) -> Future[Result]:
        """Submit one task to the pool."""
        try:
            return self._started_pool().submit(run_task, function, task)
        except BrokenProcessPool:  # a worker was lost while nothing ran
            self.close()
            return self._started_pool().submit(run_task, function, task)
        except OSError as error:
            raise EngineError(f"processes cannot be started: {error}", remedy="Use fewer workers.") from error

    def _started_pool(self) -> ProcessPoolExecutor:
        """Return the pool; start a new one if there is none, as after a loss."""
        if self._pool is None:
            refuse_bare_script()
            self._pool = ProcessPoolExecutor(
                self._workers, self._context, initializer=_begin_work, initargs=(self._any_started,)
            )
        return self._pool

    def _refuse_unstarted(self) -> None:
        """Give up if no process ever became ready for tasks: another attempt would end the same way."""
        if not self._any_started.is_set():
            self.close()
            raise EngineError("no process could be started; its error stands above", remedy=GUARD)

    @staticmethod
    def _outcome(number: int, future: Future[Result]) -> Outcome[Result]:
        """Read the outcome of a task from its finished future; raise errors that are not dynid's."""
        error = future.exception()
        if error is None:
            return Outcome(number, value=future.result())
        if isinstance(error, DynidError):
            return Outcome(number, error=error)
        raise error

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _begin_work(started: Event) -> None:
    """Prepare a worker process: report that it started, leave Ctrl-C to its parent, and end when the parent ends."""
    started.set()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process when its parent is gone: a parent that was killed cannot end its workers itself."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)  # as the pool's terminate() would have done


def _lost_error() -> EngineError:
    """Make the error of a task that lost its worker even when it ran alone."""
    return EngineError(
        "its worker was killed every time",
        remedy="The task may need more memory than the machine has: use fewer workers, or smaller logs.",
    )
