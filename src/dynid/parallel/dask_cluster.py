"""The engine of a Dask cluster: one that runs already, or one that is started on this machine.

Dask itself runs lost tasks again, moves data and restarts workers. `DaskCluster` adds a bound on the number of tasks
that are submitted at a time, so that a hundred thousand logs do not become a hundred thousand pending results. A
*future* is Dask's handle of a submitted task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dynid.checks import require_library
from dynid.errors import DynidError, EngineError
from dynid.parallel.base import Engine, Outcome, Result, Task, refuse_bare_script, run_task

TASKS_PER_WORKER = 3
"""Submitted tasks per worker (convention): one runs, the others wait at the worker, so that none idles."""
ALLOWED_LOSSES = 20
"""How often the worker of one task may be lost before the task fails (convention: machines that are lent for a while
are taken away often; Dask's default of 3 would give up)."""
CONNECT_S = 10.0
"""Time within which a scheduler must answer [s] (convention)."""


class DaskCluster(Engine):
    """Run tasks on a Dask cluster."""

    def __init__(self, *, workers: int | None = None, scheduler: str | None = None) -> None:
        """Connect to a cluster, or start one on this machine.

        Args:
            workers: Number of processes of a cluster on this machine; as many as there are processors by default.
            scheduler: Address of a running cluster; None starts one on this machine.

        Raises:
            ArgumentError: Dask is not installed.
            EngineError: The scheduler cannot be reached.
        """
        dask, library = (require_library(name, "dynid[cluster]") for name in ("dask", "distributed"))
        self._cluster: Any = None
        if scheduler is None:
            refuse_bare_script()
            with dask.config.set({"distributed.scheduler.allowed-failures": ALLOWED_LOSSES}):
                self._cluster = library.LocalCluster(
                    n_workers=workers or os.cpu_count() or 1, threads_per_worker=1, host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",  # any free port: another cluster may have the usual one
                    silence_logs="ERROR",
                )  # fmt: skip
        # made in two steps, so that there is an object to close if connecting fails
        self._client: Any = library.Client.__new__(library.Client)
        try:
            self._client.__init__(self._cluster or scheduler, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError, TimeoutError, MemoryError) as error:
            # MemoryError: the bytes of another kind of server were read as the length of a message
            self._client.close()
            raise EngineError(
                f"no Dask scheduler answers at {scheduler}",
                remedy="Start one with `dask scheduler`, or omit the scheduler to start a cluster on this machine.",
            ) from error

    @property
    def workers(self) -> int:
        """Number of threads of all workers that are connected now; at least one."""
        return max(1, int(sum(self._client.nthreads().values())))

    @property
    def client(self) -> Any:
        """The ``distributed.Client``, for its dashboard, adaptive workers and logs."""
        return self._client

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Outcome[Result]]:
        """See `Engine.run`."""
        library = require_library("distributed", "dynid[cluster]")
        waiting = iter(range(len(tasks)))  # numbers of the tasks that are not submitted yet
        numbers: dict[str, int] = {}  # key of a pending future -> number of its task
        futures = library.as_completed(loop=self._client.loop)
        self._submit(function, tasks, waiting, numbers, futures, TASKS_PER_WORKER * self.workers)
        for future in futures:  # ends when all futures that were added, here or below, are done
            outcome = self._outcome(numbers.pop(future.key), future)
            future.release()
            self._submit(function, tasks, waiting, numbers, futures, 1)
            yield outcome

    def _submit(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], waiting: Iterator[int],
        numbers: dict[str, int], futures: Any, most: int,
    ) -> None:  # fmt: skip
        """Submit up to ``most`` of the waiting tasks.

        Each task's number is taken from ``waiting`` and stored in ``numbers``; its future is added to ``futures``.
        """
        for _, number in zip(range(most), waiting, strict=False):
            future = self._client.submit(run_task, function, tasks[number], pure=False)  # pure: equal tasks share a key
            numbers[future.key] = number
            futures.add(future)

    @staticmethod
    def _outcome(number: int, future: Any) -> Outcome[Any]:
        """Read the outcome of a task from its finished future; raise errors that are not dynid's."""
        from distributed import KilledWorker

        error = future.exception() if future.status == "error" else None
        if future.status == "cancelled":
            raise EngineError("the cluster cancelled a task", remedy="Start again: finished logs are kept.")
        if error is None:
            return Outcome(number, value=future.result())
        if isinstance(error, DynidError):
            return Outcome(number, error=error)
        if isinstance(error, KilledWorker):
            lost = EngineError(
                f"its worker was lost {ALLOWED_LOSSES} times",
                remedy="The task may need more memory than a worker has: give workers more, or use smaller logs.",
            )
            return Outcome(number, error=lost)
        raise error

    def close(self) -> None:
        """Disconnect, and end the cluster if it was started here."""
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
