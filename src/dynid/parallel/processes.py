"""Tasks in a pool of processes on this machine."""

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
"""How often a task may be among those of a pool that lost a worker (convention). After that it runs alone, and if it
loses its worker even then, it fails: it may need more memory than there is."""


class Processes(Engine):
    """A pool of processes; a lost one is replaced and its task runs again."""

    def __init__(self, workers: int | None = None) -> None:
        """A pool of some processes, as many as there are processors by default; none is started yet."""
        self._workers = workers or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None
        self._context = get_context("spawn")  # forking a process that has threads is unsafe
        self._started_once = self._context.Event()

    @property
    def workers(self) -> int:
        """Number of processes."""
        return self._workers

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Outcome[Result]]:
        """See `Engine.run`."""
        waiting, losses = list(range(len(tasks)))[::-1], Counter[int]()
        running: dict[Future[Result], int] = {}
        while waiting or running:
            room = self._workers - len(running)
            for _ in range(min(room, len(waiting))):
                if losses[waiting[-1]] >= MOST_LOSSES and running:
                    break  # a suspect runs alone, so that it takes no others with it
                number = waiting.pop()
                running[self._submit(function, tasks[number])] = number
                if losses[number] >= MOST_LOSSES:
                    break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            lost = [running.pop(future) for future in done if isinstance(future.exception(), BrokenProcessPool)]
            for future in done:
                if future in running:
                    yield self._outcome(running.pop(future), future)
            if lost:
                lost += running.values()
                running.clear()
                self._refuse_unstarted()
                self.close()
            for number in sorted(lost, reverse=True):
                losses[number] += 1
                if losses[number] > MOST_LOSSES and len(lost) == 1:
                    yield Outcome(number, error=_lost_error())
                else:
                    waiting.append(number)

    def _submit(self, function: Callable[[Task], Result], task: Task) -> Future[Result]:
        try:
            return self._started().submit(run_task, function, task)
        except BrokenProcessPool:  # a worker was lost while nothing ran
            self.close()
            return self._started().submit(run_task, function, task)
        except OSError as error:
            raise EngineError(f"processes cannot be started: {error}", remedy="Use fewer workers.") from error

    def _started(self) -> ProcessPoolExecutor:
        """The pool; started afresh after a loss."""
        if self._pool is None:
            refuse_bare_script()
            self._pool = ProcessPoolExecutor(
                self._workers, self._context, initializer=_begin_work, initargs=(self._started_once,)
            )
        return self._pool

    def _refuse_unstarted(self) -> None:
        """Give up where no process ever reached its first task: another attempt would end alike."""
        if not self._started_once.is_set():
            self.close()
            raise EngineError("no process could be started; its error stands above", remedy=GUARD)

    @staticmethod
    def _outcome(number: int, future: Future[Result]) -> Outcome[Result]:
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
    """Tell the parent process that this one works, end with it, and leave interrupts (Ctrl-C) to it."""
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
    return EngineError(
        "its worker was killed every time",
        remedy="The task may need more memory than the machine has: use fewer workers, or smaller logs.",
    )
