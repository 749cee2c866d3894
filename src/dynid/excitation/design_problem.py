"""The design problem as an optimiser sees it: variables, objective and constraints, all with gradients."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Floats
from dynid.excitation.base import Constraint
from dynid.excitation.criteria import Criterion
from dynid.excitation.observation import Observation
from dynid.excitation.trajectories.fourier import FourierTrajectory
from dynid.excitation.trajectories.trajectory import Motion

SINGULAR_OBJECTIVE = 50.0
"""Objective of singular information: above any logarithm of a condition number, finite for the line search. Convention.
"""


class DesignProblem:
    """Objective and constraints as functions of the coefficients of a Fourier series.

    The variables are the coefficients, each divided by the largest value that its basis function alone could have
    within position, velocity and acceleration limits.
    """

    def __init__(
        self,
        family: FourierTrajectory,
        observation: Observation,
        constraints: tuple[Constraint, ...],
        *,
        sizes: tuple[Floats, Floats, Floats],
        samples: int,
        repetitions: float = 1.0,
        prior: Floats | None = None,
    ) -> None:
        """Evaluate the basis once.

        Args:
            family: A Fourier series; its own coefficients do not matter.
            observation: What the motion is to reveal.
            constraints: The limits.
            sizes: Half-ranges of position, velocity and acceleration (n,), which scale the variables.
            samples: Number of samples over the recorded part.
            repetitions: Number of real measurements that each sample stands for.
            prior: (b, b) information of earlier experiments.
        """
        self.family = family
        self.observation = observation
        self.constraints = constraints
        self.samples = samples
        self.prior = prior
        self.repetitions = repetitions
        times, self._recorded = family.grid(samples)
        self._basis = [family.basis(times, order) for order in range(4)]
        self._seen = np.vstack([basis[self._recorded] for basis in self._basis[:3]])
        self.scale = np.min([_reach(b, size) for b, size in zip(self._basis[:3], sizes, strict=True)], axis=0)
        self._multipliers = [np.zeros_like(c.excess(self.motion(np.zeros(self.size)))) for c in self.constraints]

    @property
    def size(self) -> int:
        """Number of variables."""
        return int(self.scale.size)

    def trajectory(self, x: Floats) -> FourierTrajectory:
        """The trajectory of variables x."""
        return self.family.with_coefficients(self._coefficients(x))

    def variables(self, trajectory: FourierTrajectory) -> Floats:
        """The variables of a trajectory of the family."""
        return np.asarray((trajectory.coefficients / self.scale).ravel())

    def motion(self, x: Floats) -> Motion:
        """The motion at the samples."""
        C = self._coefficients(x)
        return Motion(*(basis @ C for basis in self._basis))

    def _coefficients(self, x: Floats) -> Floats:
        return np.asarray(x.reshape(self.scale.shape) * self.scale)

    def information(self, x: Floats) -> Floats:
        """Information (b, b) of the recorded part and of earlier experiments."""
        return self._total(self.observation.information(*self._states(x)))

    def _states(self, x: Floats) -> Floats:
        """Positions, velocities and accelerations (3, N, n) of the recorded part."""
        return (self._seen @ self._coefficients(x)).reshape(3, self.samples, -1)

    def _total(self, A: Floats) -> Floats:
        A = A * self.repetitions
        return A if self.prior is None else A + self.prior

    def objective(self, x: Floats, criterion: Criterion) -> tuple[float, Floats]:
        """Criterion (its logarithm where it is positive) and gradient."""
        states = self._states(x)
        A = self.observation.information(*states)
        try:
            value, G = criterion.of_information(self._total(A))
        except np.linalg.LinAlgError:
            return SINGULAR_OBJECTIVE, np.zeros_like(x)
        if criterion.positive:
            value, G = float(np.log(value)), G / value
        else:
            value, G = value / len(A), G / len(A)
        gradient = np.vstack(self.observation.pullback(G * self.repetitions, *states))
        return value, self._chain(self._seen, gradient)

    def _chain(self, basis: Floats, gradient: Floats) -> Floats:
        """Gradient with respect to the variables from that of ``basis @ coefficients``."""
        return np.asarray((basis.T @ gradient * self.scale).ravel())

    def lagrangian(self, x: Floats, criterion: Criterion, weight: float) -> tuple[float, Floats]:
        """Augmented Lagrangian of objective and limits (Powell, Hestenes, Rockafellar) and its gradient."""
        value, slope = self.objective(x, criterion)
        motion = self.motion(x)
        parts = [np.zeros_like(part) for part in motion]
        for constraint, multiplier in zip(self.constraints, self._multipliers, strict=True):
            force = np.maximum(multiplier + weight * constraint.excess(motion), 0.0)
            value += float(np.vdot(force, force) - np.vdot(multiplier, multiplier)) / (2.0 * weight)
            if force.any():
                for part, gradient in zip(parts, constraint.pullback(motion, force), strict=True):
                    part += gradient
        return value, slope + sum(self._chain(*pair) for pair in zip(self._basis, parts, strict=True))

    def update_multipliers(self, x: Floats, weight: float) -> float:
        """One step of the method of multipliers; returns the largest excess over a limit."""
        motion = self.motion(x)
        worst = 0.0
        for constraint, multiplier in zip(self.constraints, self._multipliers, strict=True):
            excess = constraint.excess(motion)
            worst = max(worst, float(excess.max(initial=0.0)))
            np.maximum(multiplier + weight * excess, 0.0, out=multiplier)
        return worst

    def forget_multipliers(self) -> None:
        """Set all multipliers to zero, for a start from another point."""
        for multiplier in self._multipliers:
            multiplier[:] = 0.0


def _reach(basis: Floats, size: Floats) -> Floats:
    """Largest coefficient (k, n) for which each basis function alone keeps the size (n,) of a joint."""
    peak = np.abs(basis).max(axis=0)
    return np.asarray(size / np.maximum(peak, np.finfo(float).eps)[:, None])
