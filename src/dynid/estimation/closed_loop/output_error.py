"""DIDIM ([Gautier2013]): parameters for which the simulated loop has the torques of the real one.

Along the simulated motion the torques are linear in the parameters, ``tau_sim = Y(q_sim) beta``; the motion itself
hardly depends on them where the loop is stiff. So every round is a linear least-squares problem, without derivatives.
Measured positions are not differentiated, so their noise does not bias the estimate.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dynid.arrays import Floats
from dynid.checks import as_whole, check_number
from dynid.errors import EstimationError
from dynid.estimation.closed_loop.didim_stream import solve_streamed_didim
from dynid.estimation.closed_loop.instrument_noise import REPEATED_SHARE, repeated_share
from dynid.estimation.closed_loop.law_test import check_controller, controller_mismatch, controller_summary
from dynid.estimation.closed_loop.loop_runs import LoopRuns, Motions, Start, joint_weights
from dynid.estimation.closed_loop.loop_search import LoopEstimator, unsettled_finding
from dynid.estimation.closed_loop.loop_start import FreeStart
from dynid.estimation.equations import LoopedRuns, StreamedLogs
from dynid.estimation.estimate import Estimate
from dynid.estimation.noise import check_data
from dynid.estimation.physical.nearest import add_standard, make_possible
from dynid.estimation.scores import (
    extrapolate_step,
    scaled_condition,
    smallest_changes,
    solution_covariance,
    solve_scaled,
    times,
)
from dynid.findings import Finding
from dynid.loop.sensitivity import differentiate_loop

COUNTS = ("iterations", "simulations")
"""Counts of an iteration that the estimate reports."""
LARGEST = 1e9
"""Derivatives [rad or N m per unit of a parameter] beyond which a simulation is not stable. Convention."""
BARE = Finding(
    code="no-noise",
    severity="note",
    where="covariance",
    message="no noise is left over: the standard deviations are those of the iteration, which ends before they are "
    "smaller",
)
"""The finding where the simulation fits to its own accuracy."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """Parameters, and what the simulation with them leaves over."""

    beta: Floats
    motions: Motions
    slopes: list[Floats]
    """(N, n, b) of each run: derivatives of the outputs"""
    residuals: list[Floats]
    """(N, n) of each run: measured minus simulated output"""
    weights: Floats
    """(n,)"""

    normal: Floats
    """(b, b) sum of J' W J"""

    @classmethod
    def of(cls, runs: LoopRuns, beta: Floats, motions: Motions, slopes: list[Floats], residuals: list[Floats]) -> _Fit:
        """Weigh the joints by the inverse variance of their residuals."""
        weights = joint_weights(residuals, runs.equations.counts)
        b = beta.size
        normal = np.zeros((b, b))
        for J in slopes:
            rows = (J * np.sqrt(weights)[None, :, None]).reshape(-1, b)
            normal += rows.T @ rows
        return cls(beta, motions, slopes, residuals, weights, normal)

    @property
    def step(self) -> Floats:
        """(b,) to the minimum of the squares, if the slopes stay."""
        b = self.beta.size
        pairs = zip(self.slopes, self.residuals, strict=True)
        right = np.sum([(rest * self.weights).reshape(-1) @ J.reshape(-1, b) for J, rest in pairs], axis=0)
        return solve_scaled(self.normal, right)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _LoopFit(LoopEstimator):
    """What the three have in common; needs experiments with a `dynid.loop.Loop`."""

    iterations: int = 15
    """Most rounds."""
    tolerance: float = 0.1
    """Changes smaller than this share of the standard deviation end the iteration."""
    consistent: bool = False
    """Whether the result must be a physically possible robot, the nearest one in the sense of the data."""

    def __post_init__(self) -> None:
        """Refuse to iterate less than once."""
        as_whole("iterations", self.iterations, least=1)
        check_number("tolerance", self.tolerance, "a number above zero")

    @abstractmethod
    def fit(self, runs: LoopRuns, start: Start) -> tuple[_Fit, tuple[Finding, ...], dict[str, float]]:
        """Iterate; findings and counts come with the result."""

    def values(self, fit: _Fit) -> Floats:
        """(b,) base parameters that an iteration came to."""
        return fit.beta

    def slope(self, runs: LoopRuns, fit: _Fit, counts: dict[str, float]) -> Floats:
        """(b, b) derivative of the estimating equations: how noise in them moves the solution."""
        return fit.normal

    def estimate(self, equations: Any) -> Estimate:
        """Estimate the base parameters.

        Raises:
            ArgumentError: An experiment has no loop.
            IdentifiabilityError: The motion does not determine all parameters.
            EstimationError: No start follows the references.
        """
        check_data(equations)
        runs = LoopRuns.of(equations)
        fit, remarks, counts = runs.solve_from_starts(self.fit)
        normal = fit.normal
        rows = [J * fit.weights[None, :, None] for J in fit.slopes]
        covariance = solution_covariance(self.slope(runs, fit, counts), rows, fit.residuals, runs.rate_hz)
        resolution = _resolution(fit) ** 2  # what is left of the iteration's error; no noise tells of it
        remarks = (*remarks, *([BARE] if np.median(resolution / np.diagonal(covariance)) > 1.0 else []))
        findings = check_controller(runs, fit.beta, fit.motions)
        torque_rest = [run.torque_residual(motion) for run, motion in zip(runs.runs, fit.motions, strict=True)]
        estimate = Estimate(
            names=equations.names,
            units=equations.units,
            values=self.values(fit),
            covariance=covariance + np.diag(resolution),
            undetermined=np.zeros(fit.beta.size, dtype=bool),
            noise_std=1.0 / np.sqrt(joint_weights(torque_rest, equations.counts)),
            inflation=np.ones(equations.robot.dof),
            samples=equations.counts,
            condition=scaled_condition(normal),
            method=self.title,
            findings=(*remarks, *controller_summary(findings)),
            extras={name: counts[name] for name in COUNTS if name in counts}
            | {"controller_mismatch": controller_mismatch(findings)},
        )
        finish = make_possible if self.consistent else add_standard
        return finish(equations, estimate, normal)


@dataclass(frozen=True, slots=True, kw_only=True)
class DIDIM(_LoopFit):
    """Direct and inverse dynamic identification: minimises measured minus simulated torques ([Gautier2013]).

    The regressor of the simulated motion stands for the exact derivatives. Use it where the control law is known.
    """

    name: ClassVar[str] = "didim"
    title: ClassVar[str] = "DIDIM"
    use: ClassVar[str] = "only torques shall be compared, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Gautier2013",)
    compares: ClassVar[Literal["torques", "instruments"]] = "torques"

    def estimate(self, equations: LoopedRuns | StreamedLogs) -> Estimate:
        """Estimate the base parameters; streamed logs are gone through again for every simulation.

        Raises:
            As the other methods, and ArgumentError where a streamed log cannot be gone through again.
        """
        if isinstance(equations, LoopedRuns):
            return _LoopFit.estimate(self, equations)
        check_data(equations)
        return solve_streamed_didim(equations, self.iterations, self.tolerance, consistent=self.consistent)

    def fit(self, runs: LoopRuns, start: Start) -> tuple[_Fit, tuple[Finding, ...], dict[str, float]]:
        fit, findings = _linear_fit(runs, start.beta, start.motions), start.findings
        step, before, count = fit.step, None, 0
        while True:
            count += 1
            wanted, solution = fit.beta + extrapolate_step(step, before, fit.normal), fit.beta + step
            beta, motions = runs.advance(fit.beta, wanted, fit.motions, fit.normal)
            change, before = beta - fit.beta, step
            fit = _linear_fit(runs, beta, motions)
            step = fit.step
            if _has_settled(step, fit, self.tolerance) or _has_settled(change, fit, self.tolerance):
                break
            if count == self.iterations:
                findings = (*findings, unsettled_finding(count))
                break
        share = repeated_share(change, beta + step - solution, fit.normal)
        return fit, findings, {"iterations": float(count), "simulations": float(count + 1), "repeated": share}

    def values(self, fit: _Fit) -> Floats:
        """With the last step, where it is too small for a simulation of its own."""
        return fit.beta + fit.step if _has_settled(fit.step, fit, self.tolerance) else fit.beta

    def slope(self, runs: LoopRuns, fit: _Fit, counts: dict[str, float]) -> Floats:
        """With the exact derivatives where the simulated motion follows the parameters."""
        if counts["repeated"] <= REPEATED_SHARE:
            return fit.normal
        b, pairs = fit.beta.size, zip(fit.slopes, _exact_slopes(runs, fit.beta), strict=True)
        weighted = [((J * fit.weights[None, :, None]).reshape(-1, b), exact.reshape(-1, b)) for J, exact in pairs]
        return np.asarray(np.sum([J.T @ exact for J, exact in weighted], axis=0))


def _exact_slopes(runs: LoopRuns, beta: Floats) -> list[Floats]:
    """(N, n, b) derivatives of the torques of each run.

    Raises:
        EstimationError: They grow without bound.
    """
    found = []
    for run in runs.runs:
        along = differentiate_loop(run.simulator, beta, every=run.every, ticks=run.ticks)
        slopes = run.low_pass(along.torque_slopes) * run.run.valid[:, :, None]
        if not float(np.abs(slopes).max(initial=0.0)) < LARGEST * max(1.0, 1.0 / float(np.abs(beta).max())):
            raise EstimationError(
                "the simulated loop is not stable: its derivatives grow without bound",
                remedy="Check the control law and its rate, or give the robot better prior values.",
            )
        found.append(slopes)
    return found


def _linear_fit(runs: LoopRuns, beta: Floats, motions: Motions) -> _Fit:
    """The torques' residual, with the regressor of the simulated motion as their derivative."""
    free = FreeStart.of(runs, beta, lambda run, q, torque: run.low_pass(torque) * run.run.valid[:, :, None])
    slopes, residuals = [], []
    for run, motion in zip(runs.runs, motions, strict=True):
        valid = run.run.valid
        slopes.append(run.columns(motion) * valid[:, :, None])
        residuals.append(run.torque_residual(motion))
    return _Fit.of(runs, beta, motions, free.without(slopes), free.without(residuals))


def _has_settled(change: Floats, fit: _Fit, tolerance: float) -> bool:
    stderr = np.sqrt(np.maximum(np.diagonal(np.linalg.inv(fit.normal)), 0.0))
    return bool(np.all(np.abs(change) <= tolerance * stderr + _resolution(fit)))


def _resolution(fit: _Fit) -> Floats:
    """(b,) changes of single parameters too small to go on for, whatever the noise."""
    squares = sum((times(J, fit.beta) ** 2).sum(axis=0) for J in fit.slopes)
    return smallest_changes(fit.normal, float(fit.weights @ squares))
