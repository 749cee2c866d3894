"""Measurements of dynid's kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import numpy as np

from benchmarks.speed.case import Case, Workload
from benchmarks.speed.excitation_workload import measure_excitation
from benchmarks.speed.public_functions import (
    measure_bound_forms,
    measure_fresh_processes,
    measure_public_functions,
)
from dynid.array_types import Floats
from dynid.compiled import kernel
from dynid.data_reduction import reduce_samples
from dynid.tape import Tape
from dynid.tape.adjoint import vjp
from dynid.tape.llvm.backend import STORE_BLOCK, BlockKernel

_FIRST_USE = """
import time
import numpy as np
from dynid.compiled import regressor
from dynid import robots
robot, other = robots.{robot}(), robots.gautier_khalil_3r()
one = np.ones((100, robot.dof))
regressor(other, *np.ones((3, 100, 3)))  # libraries loaded
start = time.process_time()
regressor(robot, one, one, one)
print(time.process_time() - start)
"""


class Ours:
    """dynid, compiled for this processor."""

    name = "dynid"

    def measure(self, case: Case) -> dict[Workload, float]:
        """Measure the seconds of every workload."""
        return {
            **measure_public_functions(case),
            **measure_bound_forms(case),
            **measure_fresh_processes(case),
            "excitation value and gradient": measure_excitation(case),
            **self._regressors(case),
            **self._reductions(case),
            **self._inverse_dynamics(case),
            **self._gradients(case),
            **self._first_use(case),
        }

    def _regressors(self, case: Case) -> dict[Workload, float]:
        full = kernel(case.robot, "regressor")
        samples = min(20_000, case.samples)
        states = case.states(samples)
        out = np.zeros((samples, case.robot.dof, 10 * case.robot.dof))
        return {
            "regressor streamed": _measure_streamed(case, full.tape, case.states(min(2400, samples))),
            "regressor dense": case.best(lambda: full(*states, out=out), samples),
        }

    def _reductions(self, case: Case) -> dict[Workload, float]:
        q, dq, ddq = case.states(case.samples)
        tau = np.random.default_rng(1).normal(size=q.shape)
        robot, columns = case.with_friction, case.friction_columns

        def reduce() -> None:
            reduce_samples(robot, q, dq, ddq, tau, columns=columns).weight()

        return {"logs to R": case.best(reduce, case.samples)}

    def _inverse_dynamics(self, case: Case) -> dict[Workload, float]:
        regrouped = kernel(case.regrouped, "inverse_dynamics")
        samples = min(20_000, case.samples)
        states = case.states(samples)
        out = np.empty_like(states[0])
        return {"inverse dynamics, batch": case.best(lambda: regrouped(*states, out=out), samples)}

    def _gradients(self, case: Case) -> dict[Workload, float]:
        """Measure both kernels in blocks, with results that stay in the cache."""
        tape = case.base_regressor
        samples = min(2400, case.samples)
        states = case.states(samples)
        blocks = -(-samples // STORE_BLOCK)
        cotangents = np.random.default_rng(2).normal(size=(blocks, tape.output("output").size, STORE_BLOCK))
        return {
            "base regressor": _measure_streamed(case, tape, states),
            "base regressor VJP": _measure_streamed(case, vjp(tape, "output"), [*states, cotangents], ("cotangent",)),
        }

    def _first_use(self, case: Case) -> dict[Workload, float]:
        """Measure in separate processes with their own cache: first empty, then filled."""
        script = _FIRST_USE.format(robot=case.robot.name)
        first: list[float] = []
        cached: list[float] = []
        for _ in range(min(case.repeats, 3)):
            with tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, "DYNID_CACHE_DIR": folder}
                for times in (first, cached):
                    done = subprocess.run(
                        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
                    )
                    times.append(float(done.stdout))
        return {"first use": min(first), "first use, from cache": min(cached)}


def _measure_streamed(case: Case, tape: Tape, states: list[Floats], tiled: Sequence[str] = ()) -> float:
    """Measure the seconds per sample of a kernel whose results stay in the cache."""
    blocks = BlockKernel(tape, STORE_BLOCK, tiled=tiled)
    work, block = blocks.new_work(), blocks.new_block()
    return case.best(lambda: blocks.run(states, 0, len(states[0]), work, block), len(states[0]))
