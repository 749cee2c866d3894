"""How instrumental variables depend on the simulated motion, and how noise of torques and positions reaches them.

The terms' columns of Y are those of the simulated motion, so that ``Y beta`` changes with the parameters through
that motion, too. In a stiff loop this is little. In a compliant one it is not: simulation and solution then come
together slowly, and the equations' slope is ``Z' W (Y + D)`` with

    D = dtau/dq dq/dbeta + dtau/ddq ddq/dbeta + dtau/dddq dddq/dbeta

of the terms' torques, the derivatives of the motion being those of the simulation's own steps.

The second part of this file is about noise. With position noise v the residual is
``e = w - (A0 v + A1 dv/dt + A2 ddv/dt^2)``: torque noise w, and the inverse dynamics' derivatives A with respect to
positions, velocities and accelerations. Nearly all of e is far above the band of the instruments Z, so its spectrum
says little about ``sum Z' W e``. Summed by parts, the derivatives act on the instruments, which are smooth:

    sum_t Z' W e = sum_t Z' W w - (A0' W Z - d/dt (A1' W Z) + d^2/dt^2 (A2' W Z))' v

and what is left of noise, w and v, is measured minus simulated torques and positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.errors import EstimationError
from dynid.estimation.closed_loop.loop_runs import LoopRun, LoopRuns, Motions, SimulatedMotion
from dynid.estimation.equations import Factors
from dynid.estimation.scores import Block, Kept, solve_scaled
from dynid.findings import Finding
from dynid.kernels import kernel
from dynid.loop.arm import Arm
from dynid.loop.loop import COARSE_FRICTION_SPEED
from dynid.loop.sensitivity import differentiate_loop, inverse_dynamics_slopes
from dynid.processing.differentiation import CentralDifferences, two_differences
from dynid.processing.experiment import Experiment

REPEATED_SHARE = 0.3
"""Share of a change of the parameters that the solution repeats, above which the motion's derivatives count.
Convention."""
BOUNDLESS = 1e12
"""Derivatives [N m or N per unit of a parameter] above which the simulated loop is not stable. Convention."""
LARGEST = 2**30
"""Most bytes for the derivatives of a run's motion. Convention."""
MOTION_NOT_COUNTED = Finding(
    code="motion-not-counted",
    severity="warning",
    where="covariance",
    message="the simulated motion depends on the parameters, which is not counted here, so intervals are too narrow",
    remedy="Use shorter logs.",
)
"""The finding where `motion_slope` is not negligible but cannot be computed."""


def repeated_share(change: Floats, repeated: Floats, slope: Floats) -> float:
    """Size of the change that a change of the simulated robot's parameters causes in the estimate, relative to it.

    Args:
        change: (b,) change of the simulated robot's parameters.
        repeated: (b,) change of the estimate that it causes.
        slope: (b, b) slope of the equations, whose diagonal weights the parameters.
    """
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
        instruments: Gives (N, K) of a block's wide rows; see `dynid.estimation.closed_loop.acting`.
        weights: (n,) of the joints.
    """
    sizes = [8 * run.ticks // run.every * run.loop.dof * beta.size for run in runs.runs]
    if max(sizes) > LARGEST:
        return None
    of_terms = beta - drop_terms(runs.equations, beta)
    total = np.zeros((beta.size, beta.size))
    for number, run in enumerate(runs.runs):
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # derivatives of an unstable loop grow without bound
                D = _derivatives(run, beta, of_terms)
        except EstimationError:
            return None
        if not float(np.abs(D).max(initial=0.0)) < BOUNDLESS:
            return None
        for k, block in enumerate(blocks):
            if block.run == number:
                Z = run.acting.whole(instruments(k)[block.inner], weights)
                total += Z.reshape(-1, beta.size).T @ D[block.rows].reshape(-1, beta.size)
    return total


def _derivatives(run: LoopRun, beta: Floats, of_terms: Floats) -> Floats:
    """(N, n, b) of the terms' torques with respect to the parameters, through the simulated motion."""
    along = differentiate_loop(run.simulator, beta, every=run.every, ticks=run.ticks)
    flat = along.q_slopes.reshape(len(along.q_slopes), -1)
    rates = two_differences(flat, run.loop.reference.rate_hz / run.every, ACCURACY)
    slopes = torque_slopes(run.simulator.arm, along.q, along.dq, along.ddq, of_terms)
    motions = (along.q_slopes, *(rate.reshape(along.q_slopes.shape) for rate in rates))
    return run.low_pass(sum((A @ x for A, x in zip(slopes, motions, strict=True)), np.zeros(along.q_slopes.shape)))


ACCURACY = CentralDifferences().accuracy
"""Order of accuracy of the differences that measured positions go through by default."""
REACH = 2 * CentralDifferences().margin()
"""Samples that a stretch needs for these differences."""
RISE_S = 0.5
"""Time within which instruments fade in and out [s], at most a tenth of the stretch. Convention."""


def end_window(run: Experiment) -> Floats:
    """(N,) window that rises and falls smoothly at the ends of every gap-free stretch."""
    edges = np.concatenate([[0], np.flatnonzero(np.diff(run.segment)) + 1, [run.samples]])
    return end_window_at(edges, run.rate_hz, np.arange(run.samples))


def end_window_at(edges: NDArray[np.int64], rate_hz: float, samples: NDArray[np.int64]) -> Floats:
    """(N,) the same at samples with these numbers.

    Args:
        edges: First samples of the gap-free stretches, and the number of all samples.
        rate_hz: Sampling rate [Hz].
        samples: (N,) which are asked for.
    """
    stretch = np.searchsorted(edges, samples, side="right") - 1
    start, stop = edges[stretch], edges[stretch + 1]
    rise = np.minimum(RISE_S * rate_hz, 0.1 * (stop - start)).astype(np.int64)
    inside = np.minimum(samples - start, stop - 1 - samples)
    ramp = 0.5 - 0.5 * np.cos(np.pi * (inside + 0.5) / np.maximum(rise, 1))
    return np.where(inside < rise, ramp, 1.0)


SLIDE_SHARE = 0.03
"""Share of a slide's largest commanded speed at which its reversals fade out: the speed for arms is in rad/s, and many
slides never reach as many m/s. Chosen with EMPS in view: 0.001 to 0.03 agree there, 0.1 moves dry friction by four
standard deviations."""


def reversal_speeds(run: LoopRun) -> Floats:
    """(n,) simulated speeds below which a joint with dry friction counts as turning round [rad/s or m/s]."""
    slides = np.array([joint.kind == "prismatic" for joint in run.simulator.arm.robot.moving_joints])
    peaks = np.abs(run.loop.reference.dq).max(axis=0, initial=0.0)
    speeds = np.full(peaks.size, COARSE_FRICTION_SPEED)
    return np.where(slides & (peaks > 0.0), np.minimum(SLIDE_SHARE * peaks, speeds), speeds)


def reversal_window(dry: NDArray[np.bool_], dq: Floats, speeds: Floats) -> Floats:
    """(N, n) window that fades smoothly where simulated velocities (N, n) of joints with dry friction turn round.

    A reversal that is simulated a little too early or late turns the friction of whole samples round: no small error,
    and none that the noise's spectrum tells of.

    Args:
        dry: (n,) joints with dry friction.
        dq: (N, n) simulated velocities.
        speeds: (n,) `reversal_speeds`.
    """
    return np.where(dry, 1.0 - np.exp(-((dq / speeds) ** 2)), 1.0)


def noise_rows(
    runs: LoopRuns,
    motions: Motions,
    beta: Floats,
    blocks: Sequence[Block],
    instruments: Callable[[int], Floats],
    weights: Floats,
) -> tuple[Kept[Floats], list[Floats]]:
    """(N, 2 n, b) what noise of torques and positions adds to the estimating equations, and (N, 2 n) that noise.

    Args:
        runs: The experiments in their loops.
        motions: Simulated with the estimate.
        beta: (b,) the estimate.
        blocks: Of the experiments.
        instruments: Gives (N, K) of a block's wide rows; see `dynid.estimation.closed_loop.acting`.
        weights: (n,) of the joints.

    Returns:
        Both block by block, the first made when it is asked for.
    """
    links = drop_terms(runs.equations, beta)
    torques = _unexplained_torques(runs, motions, blocks, instruments, weights)
    positions = [run.run.q - run.positions(motion) for run, motion in zip(runs.runs, motions, strict=True)]
    noise = [
        np.concatenate([w, positions[block.run][block.rows]], axis=1) for block, w in zip(blocks, torques, strict=True)
    ]

    def made(number: int) -> Floats:
        block = blocks[number]
        run = runs.runs[block.run]
        return block_noise_rows(run, motions[block.run], links, run.acting.whole(instruments(number), weights), block)

    return Kept(made, len(blocks), memory=0), noise


def block_noise_rows(run: LoopRun, motion: SimulatedMotion, links: Floats, C: Floats, block: Block) -> Floats:
    """(N, 2 n, b) what noise of torques and positions adds to the estimating equations in a block.

    Args:
        run: The experiment in its loop.
        motion: Simulated.
        links: (b,) the estimate, terms zero; see `drop_terms`.
        C: (N, n, b) weighted instruments of the block's wide rows.
        block: Its rows.
    """
    return np.concatenate([C, -_position_noise_rows(run, motion, links, C, block.wide)], axis=1)[block.inner]


def _unexplained_torques(
    runs: LoopRuns, motions: Motions, blocks: Sequence[Block], instruments: Callable[[int], Floats], weights: Floats
) -> list[Floats]:
    """(N, n) torque residual of every block without what other parameters would explain: the estimate's own error."""
    whole = [run.torque_residual(motion) for run, motion in zip(runs.runs, motions, strict=True)]
    rests = [whole[block.run][block.rows] for block in blocks]
    n, b = runs.equations.robot.dof, len(runs.equations.base.columns)
    own, right = np.zeros((n, b, b)), np.zeros((n, b))
    for number, (block, rest) in enumerate(zip(blocks, rests, strict=True)):
        Z, pairs = instruments(number)[block.inner], runs.runs[block.run].acting
        own += pairs.products(Z, Z)
        right += pairs.sums(Z, rest)
    error, _ = solve_scaled(np.tensordot(weights, own, 1), weights @ right)
    return [
        rest - runs.runs[block.run].acting.times(instruments(number)[block.inner], error)
        for number, (block, rest) in enumerate(zip(blocks, rests, strict=True))
    ]


def drop_terms(equations: Factors, beta: Floats) -> Floats:
    """(b,) base parameters without the terms', whose columns carry no measured motion."""
    inertial = np.array(equations.base.columns) < 10 * equations.robot.dof
    return np.where(inertial, beta, 0.0)


def _position_noise_rows(run: LoopRun, motion: SimulatedMotion, beta: Floats, C: Floats, rows: slice) -> Floats:
    """(N, n, b) what one unit of position noise adds to the (negative) score."""
    states = (motion.q[rows], motion.dq[rows], motion.ddq[rows])
    stiffness, damping, inertia = torque_slopes(run.simulator.arm, *states, beta)
    G = np.swapaxes(stiffness, 1, 2) @ C
    edges: list[int] = [0, *(np.flatnonzero(np.diff(run.run.segment[rows])) + 1).tolist(), len(C)]
    for start, stop in pairwise(edges):
        if stop - start > REACH:
            part, rate = slice(start, stop), run.run.rate_hz
            G[part] -= _differentiate(np.swapaxes(damping[part], 1, 2) @ C[part], rate)[0]
            G[part] += _differentiate(np.swapaxes(inertia[part], 1, 2) @ C[part], rate)[1]
    return np.asarray(G)


def torque_slopes(arm: Arm, q: Floats, dq: Floats, ddq: Floats, beta: Floats) -> tuple[Floats, Floats, Floats]:
    """(N, n, n) derivatives of the torques by positions, velocities and accelerations (N, n), friction smoothed."""
    q, dq, ddq = (np.ascontiguousarray(x) for x in (q, dq, ddq))
    theta = np.zeros(arm.robot.parameter_vector.size)
    theta[list(arm.columns)] = beta
    inertia: Floats = kernel(arm.robot, "inertia_matrix", symbolic_parameters=True)(q, theta)
    return *inverse_dynamics_slopes(arm, q, dq, ddq, beta), inertia


def _differentiate(x: Floats, rate_hz: float) -> tuple[Floats, Floats]:
    """First and second derivative of rows (N, ...) by the differences that positions go through: transposed, the same.

    Where the measured motion was differentiated in another way, they stand for it: instruments are smooth.
    """
    first, second = two_differences(x.reshape(len(x), -1), rate_hz, ACCURACY)
    return first.reshape(x.shape), second.reshape(x.shape)
