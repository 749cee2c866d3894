"""Is the control law that was simulated the one that moved the robot?

With the right law and parameters, measured and simulated motion differ by noise alone. A wrong gain shows in two ways,
of which an estimator can hide one at most: the measured positions lag by a share of the simulated tracking error (or
of its rate), or the measured torques by a share of the simulated ones. Both shares are estimated, with a standard
deviation that accounts for residuals correlated in time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.data.findings import Finding
from dynid.estimation.loop_runs import LoopRun, LoopRuns, Motions, SimulatedMotion
from dynid.estimation.problem import Problem
from dynid.estimation.scores import solution_covariance

__all__ = ["check_controller", "controller_mismatch"]

Floats = NDArray[np.float64]
SIGMAS = 5.0
"""Shares smaller than so many standard deviations are noise."""
SHARE = 0.03
"""Smaller shares do not matter: other approximations of the model are as large."""


def check_controller(problem: Problem | LoopRuns, beta: Floats, motions: Motions | None = None) -> tuple[Finding, ...]:
    """What speaks against the law of the experiments' loops; nothing where all is well.

    Args:
        problem: With experiments that have a loop.
        beta: (b,) base parameters, estimated.
        motions: Simulated with these parameters, where that was done before.
    """
    runs = problem if isinstance(problem, LoopRuns) else LoopRuns.of(problem)
    motions = runs.simulate(np.asarray(beta, dtype=float)) if motions is None else motions
    findings = []
    for joint, name in enumerate(runs.problem.robot.joint_names):
        for what, share, spread in _shares(runs, motions, joint):
            if abs(share) > SHARE and abs(share) > SIGMAS * spread:
                findings.append(
                    Finding(
                        code="controller",
                        severity="error",
                        channel="effort" if what == "torque" else "q",
                        joint=name,
                        message=f"the simulated control law does not explain the measured {what}",
                        remedy="Check its gains, its reference and its rate, or use weighted least squares instead.",
                        evidence={"share": share, "standard deviation": spread},
                    )
                )
    return tuple(findings)


def controller_mismatch(findings: tuple[Finding, ...]) -> float:
    """Largest share among the findings about the control law; zero without any."""
    return max((abs(f.evidence["share"]) for f in findings if f.code == "controller"), default=0.0)


def _shares(runs: LoopRuns, motions: tuple[SimulatedMotion, ...], joint: int) -> list[tuple[str, float, float]]:
    """Share and standard deviation of each way in which measurement may differ from simulation."""
    pairs = list(zip(runs.runs, motions, strict=True))
    tracking = [_tracking(run, motion, joint) for run, motion in pairs]
    shift = [(run.run.q - run.positions(motion))[:, joint] for run, motion in pairs]
    position = _regressed(tracking, shift, runs.rate_hz)
    torque = [(run.torques(motion) * run.run.valid)[:, [joint]] for run, motion in pairs]
    effort = _regressed(torque, [run.torque_residual(motion)[:, joint] for run, motion in pairs], runs.rate_hz)
    names = ("tracking error", "rate of the tracking error")
    found = [(name, *pair) for name, pair in zip(names, position, strict=False)]
    return [*found, ("torque", *effort[0])]


def _tracking(run: LoopRun, motion: SimulatedMotion, joint: int) -> Floats:
    """(N, 3) simulated tracking error, its rate over the loop's own, and one for a constant offset."""
    ticks = run.rows * run.every
    reference = run.loop.reference
    error = reference.q[ticks, joint] - motion.q[:, joint]
    rate = reference.dq[ticks, joint] - motion.dq[:, joint]
    size = float(np.sqrt(np.mean(rate**2)))
    level = float(np.sqrt(np.mean((error - error.mean()) ** 2)))
    return np.column_stack([error, rate * (level / size if size > 0.0 else 0.0), np.full(len(error), level)])


def _regressed(columns: list[Floats], targets: list[Floats], rate_hz: float) -> list[tuple[float, float]]:
    """Coefficients of a least-squares fit with their standard deviations; zeros where the columns say nothing."""
    slope = sum((X.T @ X for X in columns), np.zeros((columns[0].shape[1],) * 2))
    if not np.isfinite(np.linalg.cond(slope)) or np.linalg.cond(slope) > 1e12:
        return [(0.0, 0.0)] * len(slope)
    right = sum((X.T @ y for X, y in zip(columns, targets, strict=True)), np.zeros(len(slope)))
    values = np.linalg.solve(slope, right)
    if np.abs(values).max() <= SHARE:  # too small to matter: no need to know how certain they are
        return [(value, 0.0) for value in values.tolist()]
    rest = [y - X @ values for X, y in zip(columns, targets, strict=True)]
    rows = [X[:, None, :] for X in columns]
    covariance = solution_covariance(slope, rows, [r[:, None] for r in rest], rate_hz)
    return list(zip(values.tolist(), np.sqrt(np.maximum(np.diagonal(covariance), 0.0)).tolist(), strict=True))
