"""Estimators that simulate the control loop: simulate, solve linear equations along the simulated motion, repeat.

With the simulated robot's parameters beta the equations of a sample are

    rest = Y step,   sum_t Z' W (rest - Y step) = 0

`DIDIM` and `InstrumentalVariables` differ in Z, Y and rest only.

The covariance is ``A^-1 B A^-T`` with A the slope and B the density at zero frequency of the scores ``Z' W rest``, by
Welch's method: noise that is correlated in time, or differentiated, counts as what it adds to the sums.

`DIDIM` ([Gautier2013]) finds parameters for which the simulated loop has the torques of the real one.
Along the simulated motion the torques are linear in the parameters, ``tau_sim = Y(q_sim) beta``; the motion itself
hardly depends on them where the loop is stiff. So every round is a linear least-squares problem. Measured positions are
not differentiated, so their noise does not bias the estimate.

`InstrumentalVariables` (IDIM-IV) are unbiased where positions are noisy and the loop feeds the noise back.
Least squares on measured positions is biased because the regressor's errors go with the residual's. The regressor Z at
the *simulated* positions of the same loop has no such errors ([Janot2014]):

    sum_t Z_t' W (tau_t - Y_t beta) = 0

A low-pass and differences flatten the measured accelerations, which would bias the inertia; so the simulated positions
are filtered and differentiated alike, and the measured regressor is corrected by what the simulated one loses:
``Y = Y(F q) + Y(q_sim) - Y(F q_sim)``, whose error is the noise alone. The terms' columns (friction above all, whose
sign turns with noise) are those of the simulated motion in Y too. The instruments fade out at the ends of every
stretch, where the noise of single accelerations would count in full, and where a joint with dry friction turns round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import solve

from dynid.arrays import Floats
from dynid.checks import as_whole, check_number
from dynid.decompositions import condition_number
from dynid.errors import IdentifiabilityError
from dynid.estimation.closed_loop.law_test import check_controller
from dynid.estimation.closed_loop.loop_runs import (
    LoopRun,
    LoopRuns,
    Motions,
    SimulatedMotion,
    Start,
    dry_joints,
    score_covariance,
    solve_from_starts,
)
from dynid.estimation.equations import Factors, LoopedRuns
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.noise import check_data
from dynid.findings import Finding
from dynid.information.factor import RESOLUTION
from dynid.kernels import regressor
from dynid.processing.experiment import Experiment

RESOLVED = 1e-9
"""Smallest relative change of the torques that is not taken for rounding. Convention."""


@dataclass(frozen=True, slots=True, eq=False)
class LoopRound:
    """The equations along one simulation, and their solution."""

    beta: Floats
    """(b,) the simulated robot's parameters."""
    motions: Motions
    instruments: list[Floats]
    """(N, n, b) of each run: Z."""
    rest: list[Floats]
    """(N, n) of each run."""
    rows: list[Floats]
    """(N, n, b) of each run: Y."""
    weights: Floats
    """(n,) inverse variances of the rest."""
    slope: Floats
    """(b, b) sum of Z' W Y."""
    step: Floats
    """(b,) of the solution."""
    condition: float
    """Condition number of the square root of the slope, scaled."""
    resolution: Floats
    """(b,) changes of single parameters that change no torque noticeably."""

    @property
    def quick_stderr(self) -> Floats:
        """(b,) standard deviation as if residuals were white and instruments equal to the regressor."""
        return np.asarray(np.sqrt(np.abs(np.diagonal(np.linalg.inv(self.slope)))))

    @property
    def scores(self) -> list[Floats]:
        """(N, b) Z' W (rest - Y step) of each run."""
        both = zip(self.instruments, self.rows, self.rest, strict=True)
        return [np.einsum("tjb,j,tj->tb", Z, self.weights, rest - Y @ self.step) for Z, Y, rest in both]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopEstimator(Estimator, ABC):
    """An estimator that simulates the control loop of every experiment.

    Links and the robot's own terms are simulated, no other terms, and the simulation knows single samples only.
    """

    needs: ClassVar[tuple[type[Factors], ...]] = (LoopedRuns,)
    accepts_terms: ClassVar[bool] = False
    accepts_band: ClassVar[bool] = False
    simulates_loop: ClassVar[bool] = True
    compares_torques: ClassVar[bool]
    """Whether simulated torques are compared with measured ones. Otherwise the simulated motion only makes instruments,
    which need not follow the motion of the log."""

    iterations: int = 15
    """Most simulations after the first."""
    tolerance: float = 0.1
    """Changes smaller than this share of the standard deviation end the iteration."""

    def __post_init__(self) -> None:
        """Refuse to iterate less than once."""
        as_whole("iterations", self.iterations, least=1)
        check_number("tolerance", self.tolerance, "a number above zero")

    @abstractmethod
    def parts(self, run: LoopRun, motion: SimulatedMotion, beta: Floats) -> tuple[Floats, Floats, Floats]:
        """Z (N, n, b), Y (N, n, b) and the rest (N, n) of a run, zero where samples do not count."""

    def estimate(self, equations: LoopedRuns) -> Estimate:
        """Estimate the base parameters.

        Raises:
            ArgumentError: An experiment has no loop.
            IdentifiabilityError: The motion does not determine all parameters.
            EstimationError: No start follows the references.
        """
        check_data(equations)
        runs, end, findings, count = solve_from_starts(equations, self._iterate)
        beta = end.beta + end.step
        rate_hz = max(run.run.rate_hz for run in runs.runs)
        spread = score_covariance(end.slope, end.scores, rate_hz)
        return Estimate.of(
            equations,
            values=beta,
            covariance=spread + np.diag(end.resolution**2),
            undetermined=np.zeros(beta.size, dtype=bool),
            noise_std=1.0 / np.sqrt(end.weights),
            inflation=np.ones(equations.robot.dof),
            condition=end.condition,
            method=self.title,
            findings=(*findings, *check_controller(runs, beta, end.motions)),
            extras={"iterations": float(count), "simulations": float(count + 1)},
        )

    def _iterate(self, runs: LoopRuns, start: Start) -> tuple[LoopRuns, LoopRound, tuple[Finding, ...], int]:
        """Simulate and solve in turn; the last entry is the number of rounds."""
        here, findings = self._round(runs, start.beta, start.motions), tuple[Finding, ...]()
        count = 0
        for count in range(1, self.iterations + 1):  # noqa: B007 (the number of the last is reported)
            beta, motions = runs.advance(here.beta, here.beta + here.step, here.motions)
            change = beta - here.beta
            here = self._round(runs, beta, motions)
            small = self.tolerance * here.quick_stderr + here.resolution
            if np.all(np.abs(here.step) <= small) or np.all(np.abs(change) <= small):
                break
        else:
            message = f"the iteration has not settled after {count} simulations"
            findings = (*findings, Finding(code="not-converged", severity="warning", where="estimate", message=message))
        return runs, here, findings, count

    def _round(self, runs: LoopRuns, beta: Floats, motions: Motions) -> LoopRound:
        found = [self.parts(run, motion, beta) for run, motion in zip(runs.runs, motions, strict=True)]
        instruments, rows, rest = (list(part) for part in zip(*found, strict=True))
        squares = sum((e**2).sum(axis=0) for e in rest) / np.maximum(runs.equations.counts, 1)
        weights = 1.0 / np.maximum(squares, 1e-20 * max(float(squares.max()), 1e-280))
        slope, right, signal = np.zeros((beta.size, beta.size)), np.zeros(beta.size), 0.0
        for Z, Y, e in found:
            for joint, weight in enumerate(weights):
                slope += weight * Z[:, joint].T @ Y[:, joint]
                right += weight * e[:, joint] @ Z[:, joint]
            signal += float(weights @ ((Z @ beta) ** 2).sum(axis=0))
        step, condition = solve_scaled(slope, right)
        resolution = RESOLVED * np.sqrt(signal / np.maximum(np.abs(np.diagonal(slope)), 1e-300))
        return LoopRound(beta, motions, instruments, rest, rows, weights, slope, step, condition, resolution)


def solve_scaled(matrix: Floats, right: Floats) -> tuple[Floats, float]:
    """The solution of square equations whose unknowns differ much in size, and the condition of their square root.

    Raises:
        IdentifiabilityError: The equations do not determine all unknowns.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diagonal(matrix)), 1e-300))
    scaled = matrix * np.outer(scale, scale)
    condition = float(condition_number(scaled)) if np.isfinite(scaled).all() else np.inf
    if not condition * RESOLUTION < 1.0:
        raise IdentifiabilityError(
            "the simulated motion does not determine all base parameters",
            remedy="Move every joint, check that the control law moves the simulated robot too, or identify a reduced "
            "set first (dynid.estimation.ReducedSet).",
        )
    return scale * solve(scaled, scale * right), float(np.sqrt(condition))


@dataclass(frozen=True, slots=True, kw_only=True)
class DIDIM(LoopEstimator):
    """Direct and inverse dynamic identification: minimises measured minus simulated torques ([Gautier2013]).

    The regressor of the simulated motion stands for the exact derivatives. Use it where the control law is known.
    """

    name: ClassVar[str] = "didim"
    title: ClassVar[str] = "DIDIM"
    use: ClassVar[str] = "only torques shall be compared, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Gautier2013",)
    compares_torques: ClassVar[bool] = True

    def parts(self, run: LoopRun, motion: SimulatedMotion, beta: Floats) -> tuple[Floats, Floats, Floats]:
        columns = run.columns(motion) * run.run.valid[:, :, None]
        return columns, columns, run.torque_residual(motion)


RISE_S = 0.5
"""Time within which instruments fade in and out [s], at most a tenth of the stretch. Convention."""
REVERSAL_SPEED = 0.1
"""Simulated speed below which a joint with dry friction counts as turning round [rad/s]. Convention."""
SLIDE_SHARE = 0.03
"""The same of a slide, as a share of its largest commanded speed: many never reach 0.1 m/s. Chosen with EMPS in view:
0.001 to 0.03 agree there, 0.1 moves dry friction by four standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentalVariables(LoopEstimator):
    """Weighted instrumental variables from the simulated loop; needs experiments with a `dynid.control_loop.Loop`."""

    name: ClassVar[str] = "iv"
    title: ClassVar[str] = "instrumental variables"
    use: ClassVar[str] = "noise in the motion would bias least squares, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Janot2014",)
    compares_torques: ClassVar[bool] = False

    def parts(self, run: LoopRun, motion: SimulatedMotion, beta: Floats) -> tuple[Floats, Floats, Floats]:
        arm, log = run.simulator.arm, run.run
        links = np.array(arm.columns) < 10 * arm.robot.dof
        exact, derived = run.columns(motion), run.derived(motion)

        def of_links(q: Floats, dq: Floats, ddq: Floats) -> Floats:
            return regressor(arm.robot, q, dq, ddq, columns=arm.columns) * links

        flattened = of_links(*derived) if derived is not None else exact * links
        Y = (of_links(log.q, log.dq, log.ddq) + exact - flattened) * log.valid[:, :, None]
        window = log.valid * end_window(log)[:, None] * _reversal_window(run, motion)
        rest = np.where(log.valid, np.nan_to_num(log.effort), 0.0) - Y @ beta
        return exact * window[:, :, None], Y, rest


def end_window(run: Experiment) -> Floats:
    """(N,) window that rises and falls smoothly at the ends of every gap-free stretch."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(run.segment)) + 1, [run.samples]])
    samples = np.arange(run.samples)
    stretch = np.searchsorted(edges, samples, side="right") - 1
    start, stop = edges[stretch], edges[stretch + 1]
    rise = np.minimum(RISE_S * run.rate_hz, 0.1 * (stop - start)).astype(np.int64)
    inside = np.minimum(samples - start, stop - 1 - samples)
    ramp = 0.5 - 0.5 * np.cos(np.pi * (inside + 0.5) / np.maximum(rise, 1))
    return np.where(inside < rise, ramp, 1.0)


def _reversal_window(run: LoopRun, motion: SimulatedMotion) -> Floats:
    """(N, n) window that fades smoothly where simulated velocities of joints with dry friction turn round.

    A reversal that is simulated a little too early or late turns the friction of whole samples round: no small error,
    and none that the noise's spectrum tells of.
    """
    robot = run.simulator.arm.robot
    slides = np.array([joint.kind == "prismatic" for joint in robot.moving_joints])
    peaks = SLIDE_SHARE * np.abs(run.loop.reference.dq).max(axis=0, initial=0.0)
    speeds = np.where(slides & (peaks > 0.0), np.minimum(peaks, REVERSAL_SPEED), REVERSAL_SPEED)
    return np.where(dry_joints(robot), 1.0 - np.exp(-((motion.dq / speeds) ** 2)), 1.0)
