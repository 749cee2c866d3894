"""Instrumental variables: unbiased where positions are noisy and the loop feeds the noise back (IDIM-IV).

Least squares on measured positions is biased because the regressor's errors go with the residual's. The regressor Z at
the *simulated* positions of the same loop has no such errors ([Janot2014]):

    sum_t Z_t' W (tau_t - Y_t beta) = 0

Simulation and solution take turns until they agree. A low-pass and differences flatten the measured accelerations,
which would bias the inertia; so the simulated positions are treated alike, and what their regressor loses by it is
given back to the measured one: ``Y = Y(F q) + Y(q_sim) - Y(F q_sim)``, whose error is the noise alone. The joint
models' columns (friction above all, whose sign turns with noise) are those of the simulated motion in Y too. The
instruments fade out at the ends of every stretch: where they ended abruptly, the noise of single accelerations would
count in full.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.estimation.controller_check import check_controller, controller_mismatch
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.instrument_noise import faded, noise_rows
from dynid.estimation.least_squares import refuse_unsupported
from dynid.estimation.loop_runs import LoopRun, LoopRuns, Motions, Start, joint_weights
from dynid.estimation.possible import with_standard
from dynid.estimation.problem import Problem
from dynid.estimation.scores import lengthened, resolvable, scaled_solution, solution_covariance
from dynid.kernels import regressor

__all__ = ["InstrumentalVariables"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentalVariables(Estimator):
    """Weighted instrumental variables from the simulated loop; needs experiments with a `dynid.Loop`."""

    iterations: int = 15
    """Most simulations after the first."""
    tolerance: float = 0.1
    """Changes smaller than this share of the standard deviation end the iteration."""

    def __post_init__(self) -> None:
        """Refuse to iterate less than once."""
        if self.iterations < 1 or not self.tolerance > 0.0:
            raise ArgumentError(f"one iteration or more and a positive tolerance, not {self}")

    def solve(self, problem: Problem) -> Estimate:
        """Estimate the base parameters.

        Raises:
            ArgumentError: An experiment has no loop.
            IdentifiabilityError: The motion does not determine all parameters.
            EstimationError: No start follows the references.
        """
        refuse_unsupported(problem)
        runs = LoopRuns.of(problem)
        measured = [_measured(run) for run in runs.runs]
        found, motions, notes, count = runs.from_some_start(lambda runs, start: self._iterate(runs, measured, start))
        rows, noise = noise_rows(runs, motions, found.beta, found.instruments, found.weights)
        covariance = solution_covariance(found.slope, rows, noise, runs.rate_hz, problem.robot.dof)
        findings = check_controller(runs, found.beta, motions)
        estimate = Estimate(
            names=problem.names,
            units=problem.units,
            values=found.beta,
            covariance=covariance,
            undetermined=np.zeros(found.beta.size, dtype=bool),
            noise_std=np.sqrt(found.variances),
            inflation=np.ones(problem.robot.dof),
            samples=problem.equations,
            condition=found.condition,
            method="instrumental variables",
            notes=(*notes, *(str(finding) for finding in findings)),
            extras={
                "iterations": float(count),
                "simulations": float(count + 1),
                "controller_mismatch": controller_mismatch(findings),
            },
        )
        return with_standard(problem, estimate, 0.5 * (found.slope + found.slope.T))

    def _iterate(
        self, runs: LoopRuns, measured: list[tuple[Floats, Floats]], start: Start
    ) -> tuple[_Round, Motions, tuple[str, ...], int]:
        """The last solution, the motions of its instruments, notes and the number of simulations."""
        notes, beta, motions = start.notes, start.beta, start.motions
        found = _Round.of(runs, measured, beta, motions, None)
        count, before = 0, None
        while True:
            count += 1
            step = found.beta - beta
            later, motions = runs.advance(beta, beta + lengthened(step, before, found.slope), motions, found.slope)
            change, beta, before = np.abs(later - beta), later, step
            found = _Round.of(runs, measured, beta, motions, 1.0 / found.variances)
            if np.all(change <= self.tolerance * found.quick_stderr + found.resolution):
                break
            if count == self.iterations:
                notes = (*notes, f"not settled after {count} simulations")
                break
        return found, motions, notes, count


def _measured(run: LoopRun) -> tuple[Floats, Floats]:
    """(N, n, b) regressor at the measured motion, and (N, n) torques, zero where they do not count."""
    e = run.run
    Y = regressor(run.simulator.arm.robot, e.q, e.dq, e.ddq, columns=run.simulator.arm.columns)
    return Y, np.where(e.valid, e.effort, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """The solution with the instruments of one simulation."""

    beta: Floats
    slope: Floats
    """(b, b) sum of Z' W Y"""
    instruments: list[Floats]
    """(N, n, b) of each run, zero where a sample does not count"""
    residuals: list[Floats]
    """(N, n) of each run"""
    variances: Floats
    """(n,) of the residuals"""
    weights: Floats
    """(n,) that were used"""
    condition: float

    @classmethod
    def of(
        cls,
        runs: LoopRuns,
        measured: list[tuple[Floats, Floats]],
        beta: Floats,
        motions: Motions,
        weights: Floats | None,
    ) -> _Round:
        b, n = beta.size, runs.problem.robot.dof
        joint_models = slice(sum(column < 10 * n for column in runs.problem.base.columns), b)
        cross, right = np.zeros((n, b, b)), np.zeros((n, b))
        instruments, matrices = [], []
        for run, (Y, torque), motion in zip(runs.runs, measured, motions, strict=True):
            columns = run.columns(motion)
            made = run.remade(motion)
            mixed = Y.copy() if made is None else np.add(Y, np.subtract(columns, made, out=made), out=made)
            mixed[:, :, joint_models] = columns[:, :, joint_models]
            Z = columns * (run.run.valid * faded(run.run)[:, None])[:, :, None]
            for j, support in enumerate(runs.problem.information.supports):
                acting = list(support)  # the other columns of this joint are zero
                instrument = np.ascontiguousarray(Z[:, j, acting])
                cross[j][np.ix_(acting, acting)] += instrument.T @ mixed[:, j, acting]
                right[j, acting] += instrument.T @ torque[:, j]
            instruments.append(Z)
            matrices.append(mixed)
        if weights is None:
            weights = joint_weights(_residuals(runs, measured, matrices, beta), runs.problem.equations)
        slope = np.tensordot(weights, cross, 1)
        solution, condition = scaled_solution(slope, weights @ right)
        residuals = _residuals(runs, measured, matrices, solution)
        variances = 1.0 / joint_weights(residuals, runs.problem.equations)
        return cls(solution, slope, instruments, residuals, variances, weights, float(np.sqrt(condition)))

    @property
    def resolution(self) -> Floats:
        """(b,) changes of single parameters that change no torque noticeably."""
        squares = sum(((Z @ self.beta) ** 2).sum(axis=0) for Z in self.instruments)
        return resolvable(self.slope, float(self.weights @ squares))

    @property
    def quick_stderr(self) -> Floats:
        """(b,) standard deviation as if residuals were white and instruments equal to the regressor."""
        return np.asarray(np.sqrt(np.abs(np.diagonal(np.linalg.inv(self.slope)))))


def _residuals(
    runs: LoopRuns, measured: list[tuple[Floats, Floats]], matrices: list[Floats], beta: Floats
) -> list[Floats]:
    triples = zip(runs.runs, measured, matrices, strict=True)
    return [(torque - Y @ beta) * run.run.valid for run, (_, torque), Y in triples]
