"""Where a simulated loop starts is known by noisy measurement only; fits must not rely on it.

A log that begins in the middle of a motion tells its first positions with noise, velocities with more of it, and the
law's memory not at all. What the simulation owes to the start is, to first order, ``S d x0`` with the exact derivatives
S along it. Joint by joint these directions are taken out of residuals and derivatives alike: the fit is then that in
which the start is estimated with the parameters, of every joint on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import EstimationError, IdentifiabilityError
from dynid.estimation.closed_loop.loop_runs import LoopRun, LoopRuns
from dynid.loop.sensitivity import differentiate_start
from dynid.loop.simulator import LoopSimulator

__all__ = ["FreeStart", "directions", "settling_time", "taken_out"]

Floats = NDArray[np.float64]
LOOK_S = 2.0
"""How far the effect of the start is followed at first, and twice as far until it has died down [s]."""
LONGEST = 2**14
"""Control instants over which it is followed at most: every stage of every step is in memory."""
FORGOTTEN = 1e-3
"""Share of its largest value below which it has."""
SETTLED = 0.01
"""Share below which samples may count where the start is not estimated."""
LOST = 1e-5
"""Share of its squares that the start must leave of a parameter's derivatives."""
DEPENDENT = 1e-7
"""Singular values, relative to the largest, of directions that are none of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeStart:
    """Directions that outputs owe to where each run starts."""

    bases: tuple[tuple[Floats, ...] | None, ...]
    """Of each run with a free start, of each joint: (K, r) orthonormal, in its first K samples"""

    @classmethod
    def of(cls, runs: LoopRuns, beta: Floats, outputs: Callable[[LoopRun, Floats, Floats], Floats]) -> FreeStart:
        """Along simulations with base parameters (b,).

        Args:
            runs: All experiments.
            beta: Parameters.
            outputs: Of a run, from derivatives (K, n, k) of positions and torques at its records to those (N, n, k) of
                what is compared, at its samples.

        Raises:
            EstimationError: The robot runs away.
        """
        return cls(tuple(None if run.loop.start_known else _bases(run, beta, outputs) for run in runs.runs))

    def without(self, rows: list[Floats]) -> list[Floats]:
        """Rows (N, n, ...) of each run without these directions."""
        return [x if basis is None else taken_out(x, basis) for x, basis in zip(rows, self.bases, strict=True)]

    def told(self, slopes: list[Floats], names: Sequence[str]) -> list[Floats]:
        """Derivatives (N, n, b) of each run without these directions.

        Args:
            slopes: By the parameters.
            names: Of these.

        Raises:
            IdentifiabilityError: Nothing is left of some.
        """
        left = self.without(slopes)
        before, after = (np.sum([(x**2).sum(axis=(0, 1)) for x in each], axis=0) for each in (slopes, left))
        lost = [name for name, whole, part in zip(names, before, after, strict=True) if part < LOST * whole]
        if lost:
            raise IdentifiabilityError(
                f"what is compared does not tell {', '.join(lost)} from where the simulation started: its motion, and "
                "what the control law remembered",
                remedy="Check that the law moves the simulated robot as it did the real one; use instrumental "
                "variables, which may have any start, or leave these parameters out.",
            )
        return left


def taken_out(rows: Floats, bases: tuple[Floats, ...]) -> Floats:
    """Rows (N, n, ...) without the orthonormal directions (K, r) of each of the n joints."""
    if not bases:
        return rows
    left = rows.copy()
    for joint, Q in enumerate(bases):
        seen = left[: len(Q), joint].reshape(len(Q), -1)
        left[: len(Q), joint] = (seen - Q @ (Q.T @ seen)).reshape(left[: len(Q), joint].shape)
    return left


def directions(columns: Floats) -> Floats:
    """(K, r) orthonormal directions that columns (N, k) span, without the zeros behind the last of them."""
    some = np.flatnonzero(columns.any(axis=1))
    seen = columns[: some[-1] + 1 if some.size else 0]
    sizes = np.linalg.norm(seen, axis=0)
    seen = seen[:, sizes > 0.0] / sizes[sizes > 0.0]
    if not seen.size:
        return np.zeros((0, 0))
    U, s, _ = np.linalg.svd(seen, full_matrices=False)
    return np.asarray(U[:, s > DEPENDENT * s[0]])


def _bases(run: LoopRun, beta: Floats, outputs: Callable[[LoopRun, Floats, Floats], Floats]) -> tuple[Floats, ...]:
    q, torque = _followed(run.simulator, beta, run.every, run.ticks, FORGOTTEN)
    behind = ((0, -(-run.ticks // run.every) - len(q)), (0, 0), (0, 0))
    S = outputs(run, np.pad(q, behind), np.pad(torque, behind))
    return tuple(directions(S[:, joint]) for joint in range(S.shape[1]))


def _followed(simulator: LoopSimulator, beta: Floats, every: int, ticks: int, small: float) -> tuple[Floats, Floats]:
    """(K, n, k) derivatives of positions and torques by the start, until they have died down."""
    most = min(ticks, LONGEST)
    seen = min(most, int(np.ceil(LOOK_S * simulator.loop.reference.rate_hz)))
    while True:
        slopes = differentiate_start(simulator, beta, every=every, ticks=seen)
        if not all(np.isfinite(x).all() for x in slopes):
            raise EstimationError(
                "the simulated loop is not stable: it does not forget where it started",
                remedy="Check the control law and its rate, or give the robot better prior values.",
            )
        if seen == most or all(_died_down(x, small) for x in slopes):
            return slopes
        seen = min(2 * seen, most)


def _died_down(slopes: Floats, small: float) -> bool:
    peaks = np.abs(slopes).max(axis=(0, 1))
    return bool(np.all(np.abs(slopes[-(-9 * len(slopes) // 10) :]).max(axis=(0, 1), initial=0.0) <= small * peaks))


def settling_time(simulator: LoopSimulator, beta: Floats) -> float:
    """Time after which the torques of a simulation have forgotten where it started [s].

    Args:
        simulator: Of the loop.
        beta: (b,) base parameters.

    Raises:
        EstimationError: The robot runs away.
    """
    torque = _followed(simulator, beta, 1, len(simulator.loop.reference.q), SETTLED)[1]
    large = np.abs(torque) > SETTLED * np.abs(torque).max(axis=(0, 1))
    return float(np.flatnonzero(large.any(axis=(1, 2))).max(initial=-1) + 1) * simulator.loop.period_s
