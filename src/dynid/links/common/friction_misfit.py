"""Friction that the fit has wrong away from reversals, counted in the errors of the estimate.

Under feedback a joint sticks at a reversal while its controller raises the torque, and low-passed positions do not show
it. No friction of the present speed holds that, so that the fit bends dry and viscous friction to it, at every reversal
alike: no scatter over blocks of time shows it. It shows in the residuals away from reversals, as a line over the speed:

    residual = a sign(dq) + b dq + constant,

where a and b are what dry and viscous friction lack. Where they are surely not zero, they count as errors of the
estimate: with the rows A that give dry and viscous friction at constant speed, the covariance S grows by v v' with
``v = S A' (A S A')^-1 (a, b)``, so that the variances of both grow by a^2 and b^2. S in v is that of the joint's own
friction: what one joint lacks says nothing about others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Bools, Floats
from dynid.decompositions import lstsq, pinv
from dynid.estimation.equations import Factors, Samples
from dynid.estimation.estimate import Estimate
from dynid.estimation.physical.passivity import all_terms
from dynid.findings import Finding
from dynid.processing.experiment import Experiment
from dynid.robot.model import Robot
from dynid.terms.base import SteadyMotion

FEWEST_STROKES = 5
"""Smallest number of strokes, each from one reversal to the next, whose scatter tells the error of a line (convention:
three numbers are fitted)."""
CHANCE = 0.01
"""Chance of a line that is not there (convention)."""
FAST = np.linspace(0.3, 1.0, 8)
"""Speeds, over the largest one, at which dry and viscous friction are told apart (convention, as in the tables of
friction)."""
MATTERS = 1.2
"""Ratio of a standard deviation to the former one from which on a note says so (convention)."""


def count_friction_misfit(equations: Factors, estimate: Estimate, torque: Callable[[Experiment], Floats]) -> Estimate:
    """Count in an estimate's covariance what its friction lacks away from reversals; a note names the joints.

    Args:
        equations: The equations; only those of whole experiments show it.
        estimate: Their estimate.
        torque: Gives the torques (N, n) of an experiment by the estimate [N m or N].
    """
    if not isinstance(equations, Samples):
        return estimate
    finite = np.where(np.isfinite(estimate.covariance), estimate.covariance, 0.0)
    covariance, told = estimate.covariance.copy(), []
    runs = [(run, run.effort - torque(run), run.valid & ~near_reversals(run)) for run in equations.experiments]
    for joint, rows in _friction_rows(equations, estimate):
        lack = _lacking(joint, runs)
        before = rows @ finite @ rows.T
        if lack is None or not lack.any() or not np.diagonal(before).all():
            continue
        own = np.where(np.outer(rows.any(axis=0), rows.any(axis=0)), finite, 0.0)
        v = own @ rows.T @ pinv(before) @ lack
        covariance += np.outer(v, v)  # infinite where it was
        if np.any(np.diagonal(before) + lack**2 > MATTERS**2 * np.diagonal(before)):
            told.append((joint, lack))
    findings = (*estimate.findings, *([_note(equations.robot, told)] if told else []))
    return replace(estimate, covariance=covariance, findings=findings)


def _friction_rows(equations: Factors, estimate: Estimate) -> Iterator[tuple[int, Floats]]:
    """Joints with friction of their own, and the combinations (2, b) of the estimate's values: dry and viscous."""
    base, names = equations.base, equations.robot.joint_names
    size = len(base.layout)
    alone = {base.layout.index(name) for name in base.identifiable}
    row_of = {column: row for row, column in enumerate(base.columns) if column in alone}
    fastest = [max((float(np.abs(run.dq[:, j]).max(initial=0.0)) for run in equations.excerpts), default=0.0)
               for j in range(equations.robot.dof)]  # fmt: skip
    rows = np.zeros((len(names), 2, len(estimate.names)))
    for place, term in enumerate(all_terms(equations), 10 * equations.robot.dof):
        surface, row = term.surface(names), row_of.get(place) if place < size else base.rank + place - size
        if surface is None or len(surface) != 1 or row is None or estimate.undetermined[row]:
            continue
        joint = surface[0][0]
        speeds = FAST * fastest[joint]
        if not speeds.any():
            continue
        both = np.concatenate([-speeds, speeds])
        steady = term.steady_torque(SteadyMotion(q=np.zeros(both.size), speed=both, load=np.zeros(both.size)))
        odd = 0.5 * (steady[speeds.size :] - steady[: speeds.size])
        rows[joint, :, row] = pinv(np.column_stack([np.ones(speeds.size), speeds])) @ odd
    yield from ((joint, found) for joint, found in enumerate(rows) if found.any(axis=1).all())


def _lacking(joint: int, runs: Sequence[tuple[Experiment, Floats, NDArray[np.bool_]]]) -> Floats | None:
    """(2,) what dry and viscous friction of a joint surely lack; None where too few strokes tell.

    Args:
        joint: The joint.
        runs: Experiments, their residuals (N, n), and whether a sample counts (N, n).
    """
    parts = [(run.dq[:, joint], left[:, joint], np.flatnonzero(counts[:, joint])) for run, left, counts in runs]
    speed, left = (np.concatenate([part[k][part[2]] for part in parts]) for k in range(2))
    which = np.concatenate([np.full(len(rows), k) for k, (_, _, rows) in enumerate(parts)])
    begins = np.concatenate([np.append(True, np.diff(rows) > 1)[: len(rows)] for _, _, rows in parts])
    strokes = int(begins.sum())
    if strokes < FEWEST_STROKES:
        return None
    columns = np.column_stack([np.sign(speed), speed, (which[:, None] == np.unique(which)).astype(float)])
    line = lstsq(columns, left)
    rest = left - columns @ line
    scores = np.add.reduceat(columns * rest[:, None], np.flatnonzero(begins), axis=0) @ pinv(columns.T @ columns)
    scatter = (scores.T @ scores)[:2, :2] * strokes / (strokes - 1)
    # Hotelling's statistic of two numbers; the quantile of F with two and m degrees is (m / 2) (chance^(-2 / m) - 1)
    limit = (strokes - 1) * (CHANCE ** (-2.0 / (strokes - 2)) - 1.0)
    is_sure = float(line[:2] @ pinv(scatter) @ line[:2]) > limit
    return np.asarray(line[:2]) if is_sure else np.zeros(2)


def _note(robot: Robot, told: Sequence[tuple[int, Floats]]) -> Finding:
    """The note on joints and what their dry and viscous friction lack."""
    listed = []
    for joint, (dry, viscous) in told:
        units = ("N", "N s/m") if robot.bodies[joint].is_prismatic else ("N m", "N m s/rad")
        listed.append(f"{robot.joint_names[joint]} by {dry:+.2g} {units[0]} and {viscous:+.2g} {units[1]}")
    return Finding(
        code="friction-misfit",
        severity="note",
        where="estimate",
        message="away from reversals, dry and viscous friction differ from those of the fit, as where joints stick "
        f"while they turn round: {'; '.join(listed)}. The intervals include these differences",
        evidence={f"dry friction of {robot.joint_names[joint]} [N m or N]": float(lack[0]) for joint, lack in told},
        remedy="Compare with a fit without slow samples, such as --set dead_band=0.2 [rad/s or m/s].",
    )


def near_reversals(part: Experiment) -> Bools:
    """(N, n) whether a joint is slow or turns round about that time."""
    from scipy.ndimage import maximum_filter1d

    slow = np.abs(part.dq) < 0.2 * np.sqrt(np.mean(part.dq**2, axis=0))
    slow[1:] |= np.sign(part.dq[1:]) != np.sign(part.dq[:-1])
    return np.asarray(maximum_filter1d(slow, 41, axis=0))
