"""Workloads, robots and time measurement of the benchmark."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from dynid import Coulomb, Offset, Robot, Viscous, base_parameters
from dynid.array_types import Floats
from dynid.compiled import kernel
from dynid.lazy import cached_property
from dynid.tape import Tape

Workload = str
"""What is measured: ``FUNCTION, one state``, ``FUNCTION, N states``, ``FUNCTION, bound``, or a name of `ours`.

Seconds are per sample or call; in total for a new process and a first use; a name that ends with [MB] is memory."""

SIZES = (1, 10, 1000, 100_000)
"""Numbers of states of the public functions."""
BOUND = ("inverse_dynamics", "forward_dynamics", "inertia_matrix", "gravity_torque", "regressor")
"""Functions whose bound form is measured."""


def function_workload(function: str, size: int) -> Workload:
    """Name of a public function applied to so many states."""
    return f"{function}, {'one state' if size == 1 else f'{size} states'}"


def batch_workloads(function: str, seconds: float) -> dict[Workload, float]:
    """The same seconds per state for every batch: a library that computes one state after the other."""
    return {function_workload(function, size): seconds for size in SIZES[1:]}


class NotInstalled(Exception):  # noqa: N818 (not an error, a finding)
    """A peer cannot run here; the message names the missing package."""


def load(module: str, package: str) -> Any:
    """Import the module of a peer.

    Args:
        module: Name of the module.
        package: Name of the package that provides it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a peer uses of others is not ours to mend
            return import_module(module)
    except ImportError as error:
        raise NotInstalled(package) from error


def repeat(call: Callable[[], object], times: int) -> Callable[[], None]:
    """A function that calls another one so many times."""

    def loop() -> None:
        for _ in range(times):
            call()

    return loop


class Peer(Protocol):
    """A library that can compute workloads."""

    name: str

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds of each supported workload."""


@dataclass(frozen=True)
class Case:
    """One robot, its samples, and the number of repeats."""

    robot: Robot
    """The robot; its terms are removed, because the peers do not have them."""
    samples: int
    """Number of samples of the log that is reduced to R."""
    few: int
    """Number of samples for slow peers."""
    repeats: int
    """Repeats of each measurement; the fastest counts."""

    def __post_init__(self) -> None:
        """Remove the terms of the robot."""
        object.__setattr__(self, "robot", self.robot.with_terms())

    @cached_property
    def with_friction(self) -> Robot:
        """The robot with viscous and dry friction and an offset in each joint."""
        return self.robot.with_terms(Viscous(), Coulomb(), Offset())

    @cached_property
    def base_columns(self) -> tuple[int, ...]:
        """Columns of a base set among the inertial columns."""
        return base_parameters(self.robot).columns

    @cached_property
    def base_regressor(self) -> Tape:
        """A program for the non-zero elements of the base regressor, as a vector."""
        tape = kernel(self.robot, "regressor", columns=self.base_columns).tape
        return tape.select({"output": tape.sparsity("output")})

    @cached_property
    def regrouped(self) -> Robot:
        """The robot with its parameters regrouped to the base set, as in a controller: same torques, fewer steps."""
        base = base_parameters(self.robot)
        theta = np.zeros(len(base.layout))
        theta[list(base.columns)] = base.project(self.robot.parameter_vector)
        return self.robot.with_parameters(theta)

    @cached_property
    def friction_columns(self) -> tuple[int, ...]:
        """The base set and the columns of the terms."""
        first = 10 * self.robot.dof
        return (*self.base_columns, *range(first, first + 3 * self.robot.dof))

    def states(self, samples: int) -> list[Floats]:
        """Draw random q, dq, ddq, each (samples, n)."""
        return list(np.random.default_rng(0).normal(size=(3, samples, self.robot.dof)))

    def best(self, function: Callable[[], object], count: int = 1) -> float:
        """Measure the smallest processor time of a function in this thread, divided by ``count`` [s].

        Other processes do not disturb it.
        """
        function()
        times = []
        for _ in range(self.repeats):
            start = time.thread_time()
            function()
            times.append(time.thread_time() - start)
        return min(times) / count
