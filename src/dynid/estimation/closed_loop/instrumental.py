"""Instrumental variables: unbiased where positions are noisy and the loop feeds the noise back (IDIM-IV).

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

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.closed_loop.loop_estimator import LoopEstimator
from dynid.estimation.closed_loop.loop_runs import LoopRun, SimulatedMotion, dry_joints
from dynid.kernels import regressor
from dynid.processing.experiment import Experiment

RISE_S = 0.5
"""Time within which instruments fade in and out [s], at most a tenth of the stretch. Convention."""
REVERSAL_SPEED = 0.1
"""Simulated speed below which a joint with dry friction counts as turning round [rad/s]. Convention."""
SLIDE_SHARE = 0.03
"""The same of a slide, as a share of its largest commanded speed: many never reach 0.1 m/s. Chosen with EMPS in view:
0.001 to 0.03 agree there, 0.1 moves dry friction by four standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstrumentalVariables(LoopEstimator):
    """Weighted instrumental variables from the simulated loop; needs experiments with a `dynid.loop.Loop`."""

    name: ClassVar[str] = "iv"
    title: ClassVar[str] = "instrumental variables"
    use: ClassVar[str] = "noise in the motion would bias least squares, and the control law is known"
    references: ClassVar[tuple[str, ...]] = ("Janot2014",)
    compares_torques: ClassVar[bool] = False

    iterations: int = 15
    """Most simulations after the first."""
    tolerance: float = 0.1
    """Changes smaller than this share of the standard deviation end the iteration."""

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
