"""How noise of torques and positions reaches the instrumental-variable estimate.

With position noise v the residual is ``e = w - (A0 v + A1 dv/dt + A2 ddv/dt^2)``: torque noise w, and the inverse
dynamics' derivatives A with respect to positions, velocities and accelerations. Nearly all of e is far above the band
of the instruments Z, so that its own spectrum says little about ``sum Z' W e``. Summed by parts the derivatives act on
the instruments, which are smooth:

    sum_t Z' W e = sum_t Z' W w - (A0' W Z - d/dt (A1' W Z) + d^2/dt^2 (A2' W Z))' v

and what is left of noise, w and v, is measured minus simulated torques and positions.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.closed_loop.sensitivity import bias_slopes
from dynid.data.differentiation import CentralDifferences, two_differences
from dynid.data.recording import Experiment
from dynid.estimation.loop_runs import LoopRun, LoopRuns, Motions, SimulatedMotion
from dynid.estimation.scores import scaled_solution
from dynid.kernels import kernel

__all__ = ["faded", "noise_rows"]

Floats = NDArray[np.float64]
ACCURACY = CentralDifferences().accuracy
"""Of the differences that measured positions go through by default."""
REACH = 2 * CentralDifferences().margin()
"""Samples that a stretch needs for them."""
RISE_S = 0.5
"""Time within which instruments fade in and out [s], at most a tenth of the stretch."""


def faded(run: Experiment) -> Floats:
    """(N,) window that rises and falls smoothly at the ends of every gap-free stretch."""
    window = np.ones(run.samples)
    edges: list[int] = [0, *(np.flatnonzero(np.diff(run.segment)) + 1).tolist(), run.samples]
    for start, stop in pairwise(edges):
        rise = int(min(RISE_S * run.rate_hz, 0.1 * (stop - start)))
        ramp = 0.5 - 0.5 * np.cos(np.pi * (np.arange(rise) + 0.5) / max(rise, 1))
        window[start : start + rise] = ramp
        window[stop - rise : stop] = ramp[::-1]
    return window


def noise_rows(
    runs: LoopRuns, motions: Motions, beta: Floats, instruments: list[Floats], weights: Floats
) -> tuple[list[Floats], list[Floats]]:
    """(N, 2 n, b) what noise of torques and positions adds to the estimating equations, and (N, 2 n) that noise.

    Args:
        runs: The experiments in their loops.
        motions: Simulated with the estimate.
        beta: (b,) the estimate.
        instruments: (N, n, b) of each run.
        weights: (n,) of the joints.
    """
    rows, noise = [], []
    rests = _unexplained(runs, motions, instruments, weights)
    for run, motion, Z, w in zip(runs.runs, motions, instruments, rests, strict=True):
        C = Z * weights[None, :, None]
        v = run.run.q - run.positions(motion)
        G = _carried(run, motion, _links_only(runs, beta), C)
        rows.append(np.concatenate([C, -G], axis=1))
        noise.append(np.concatenate([w, v], axis=1))
    return rows, noise


def _unexplained(runs: LoopRuns, motions: Motions, instruments: list[Floats], weights: Floats) -> list[Floats]:
    """(N, n) torque residual of every run without what other parameters would explain: the estimate's own error."""
    rests = [run.torque_residual(motion) for run, motion in zip(runs.runs, motions, strict=True)]
    b = instruments[0].shape[2]
    normal, right = np.zeros((b, b)), np.zeros(b)
    for Z, rest in zip(instruments, rests, strict=True):
        rows = (Z * np.sqrt(weights)[None, :, None]).reshape(-1, b)
        normal += rows.T @ rows
        right += (rest * weights).reshape(-1) @ Z.reshape(-1, b)
    error, _ = scaled_solution(normal, right)
    return [rest - Z @ error for Z, rest in zip(instruments, rests, strict=True)]


def _links_only(runs: LoopRuns, beta: Floats) -> Floats:
    """The base parameters without the joint models', whose columns carry no measured motion."""
    inertial = np.array(runs.problem.base.columns) < 10 * runs.problem.robot.dof
    return np.where(inertial, beta, 0.0)


def _carried(run: LoopRun, motion: SimulatedMotion, beta: Floats, C: Floats) -> Floats:
    """(N, n, b) what one unit of position noise adds to the (negative) score."""
    q, dq, ddq = (np.ascontiguousarray(x) for x in (motion.q, motion.dq, motion.ddq))
    stiffness, damping = bias_slopes(run.simulator.arm, q, dq, ddq, beta)
    theta = np.zeros(run.simulator.arm.robot.parameter_vector.size)
    theta[list(run.simulator.arm.columns)] = beta
    inertia = kernel(run.simulator.arm.robot, "inertia_matrix", symbolic_parameters=True)(q, theta)
    G = np.swapaxes(stiffness, 1, 2) @ C
    edges: list[int] = [0, *(np.flatnonzero(np.diff(run.run.segment)) + 1).tolist(), run.run.samples]
    for start, stop in pairwise(edges):
        if stop - start > REACH:
            part, rate = slice(start, stop), run.run.rate_hz
            G[part] -= _derived(np.swapaxes(damping[part], 1, 2) @ C[part], rate)[0]
            G[part] += _derived(np.swapaxes(inertia[part], 1, 2) @ C[part], rate)[1]
    return np.asarray(G)


def _derived(x: Floats, rate_hz: float) -> tuple[Floats, Floats]:
    """First and second derivative of rows (N, ...) by the differences that positions go through: transposed, the same.

    Where the measured motion was differentiated in another way, they stand for it: instruments are smooth.
    """
    first, second = two_differences(x.reshape(len(x), -1), rate_hz, ACCURACY)
    return first.reshape(x.shape), second.reshape(x.shape)
