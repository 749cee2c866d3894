"""How far the simulated motion follows the parameters, and what that does to instrumental variables.

The joint models' columns of Y are those of the simulated motion, so that ``Y beta`` changes with the parameters through
that motion, too. In a stiff loop this is little. In a compliant one it is not: simulation and solution then come
together slowly, and the equations' slope is ``Z' W (Y + D)`` with

    D = dtau/dq dq/dbeta + dtau/ddq ddq/dbeta + dtau/dddq dddq/dbeta

of the joint models' torques, the derivatives of the motion being those of the simulation's own steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.closed_loop.sensitivity import differentiate_loop
from dynid.data.differentiation import two_differences
from dynid.errors import EstimationError
from dynid.estimation.instrument_noise import ACCURACY, links_only, torque_slopes
from dynid.estimation.loop_blocks import Block
from dynid.estimation.loop_runs import LoopRun, LoopRuns

__all__ = ["FOLLOWED", "UNCOUNTED", "followed", "motion_slope"]

Floats = NDArray[np.float64]
FOLLOWED = 0.3
"""Part of a change of the parameters that the solution repeats, from which on the motion's derivatives count."""
BOUNDLESS = 1e12
"""Derivatives [N m or N per unit of a parameter] from which on the simulated loop is not stable."""
LARGEST = 2**30
"""Bytes of the derivatives of a run's motion that are made at most."""
UNCOUNTED = (
    "the simulated motion follows the parameters, which is not counted here: intervals are too narrow (shorter logs in "
    "memory, or CLIE(), help)"
)
"""What to say where `motion_slope` would count but cannot be found."""


def followed(change: Floats, repeated: Floats, slope: Floats) -> float:
    """Part of a change (b,) of the simulated robot's parameters by which their solution changes (b,) with it."""
    metric = np.abs(np.diagonal(slope))
    return float(np.sqrt((repeated**2 @ metric) / max(float(change**2 @ metric), 1e-300)))


def motion_slope(
    runs: LoopRuns, beta: Floats, blocks: Sequence[Block], instruments: Callable[[int], Floats], weights: Floats
) -> Floats | None:
    """(b, b) ``sum Z' W D`` at the simulated robot; None where its motion has no derivatives, or too many.

    Args:
        runs: The experiments in their loops.
        beta: (b,) of the simulated robot.
        blocks: Of the experiments.
        instruments: Gives (N, K) of a block's wide rows; see `dynid.estimation.acting`.
        weights: (n,) of the joints.
    """
    sizes = [8 * run.ticks // run.every * run.loop.dof * beta.size for run in runs.runs]
    if max(sizes) > LARGEST:
        return None
    joint_models = beta - links_only(runs.problem, beta)
    total = np.zeros((beta.size, beta.size))
    for number, run in enumerate(runs.runs):
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # derivatives of an unstable loop grow without bound
                D = _derivatives(run, beta, joint_models)
        except EstimationError:
            return None
        if not float(np.abs(D).max(initial=0.0)) < BOUNDLESS:
            return None
        for k, block in enumerate(blocks):
            if block.run == number:
                Z = run.acting.whole(instruments(k)[block.inner], weights)
                total += Z.reshape(-1, beta.size).T @ D[block.rows].reshape(-1, beta.size)
    return total


def _derivatives(run: LoopRun, beta: Floats, joint_models: Floats) -> Floats:
    """(N, n, b) of the joint models' torques with respect to the parameters, through the simulated motion."""
    along = differentiate_loop(run.simulator, beta, every=run.every, ticks=run.ticks)
    flat = along.q_slopes.reshape(len(along.q_slopes), -1)
    rates = two_differences(flat, run.loop.reference.rate_hz / run.every, ACCURACY)
    slopes = torque_slopes(run.simulator.arm, along.q, along.dq, along.ddq, joint_models)
    motions = (along.q_slopes, *(rate.reshape(along.q_slopes.shape) for rate in rates))
    return run.filtered(sum((A @ x for A, x in zip(slopes, motions, strict=True)), np.zeros(along.q_slopes.shape)))
