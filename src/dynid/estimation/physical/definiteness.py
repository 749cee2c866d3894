"""Whether an identified robot is possible: inertia matrix, on the data and at poses far from them, friction and rotors.

Possible bodies and possible rotors make it so. Estimates that know neither need not: then simulations run away, and
controllers that invert the model push the wrong way, however well the torques fit. Friction brakes and rotors have
inertia in possible robots; the estimator `feasible` makes them so, others need not.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigvalsh
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import TWO_SIDED_95, Estimate
from dynid.estimation.physical.passivity import all_terms
from dynid.findings import Finding
from dynid.kernels import kernel
from dynid.spatial import EXACT
from dynid.terms.base import RecordableTerm

POSES = 1000
"""Random poses, and most poses of the data, at which the matrix is looked at (convention)."""
UNLIMITED = np.pi
"""Largest position of a joint without limits at random poses [rad or m] (convention: one turn)."""


def check_inertia(equations: Factors, theta: Floats, values: Floats) -> tuple[Finding, ...]:
    """A finding where the inertia matrix is not positive definite.

    Args:
        equations: The equations, whose motion gives the poses of the data.
        theta: (p,) standard parameters.
        values: (k,) parameters of the terms besides the robot's own.
    """
    poses, names = _checked_poses(equations), equations.robot.joint_names
    M: Floats = np.array(kernel(equations.robot, "inertia_matrix", symbolic_parameters=True)(poses, theta))
    for term, value in zip(equations.terms, values, strict=True):
        if isinstance(term, RecordableTerm):
            for (j, k), entry in term.inertia(term.acts_on(names)).items():
                M[:, j, k] += value * entry
    scale = np.sqrt(np.maximum(np.diagonal(M, axis1=1, axis2=2), 1e-300))
    smallest = eigvalsh(M / (scale[:, :, None] * scale[:, None, :]))[:, 0]
    wrong = (smallest <= EXACT) | (np.diagonal(M, axis1=1, axis2=2) <= 0.0).any(axis=1)
    if not wrong.any():
        return ()
    return (
        Finding(
            code="impossible-estimate",
            severity="warning",
            where="inertia matrix",
            message=f"the inertia matrix is not positive definite at {int(wrong.sum())} of {len(poses)} poses",
            remedy="Do not simulate or invert this model; identify with the estimator feasible, or with more motion.",
            evidence={"poses": float(wrong.sum()), "smallest eigenvalue [kg m^2]": float(eigvalsh(M)[:, 0].min())},
        ),
    )


def _checked_poses(equations: Factors) -> Floats:
    """(K, n) up to 1000 poses of the data, then 1000 random ones within limits, the same every time [rad or m]."""
    robot = equations.robot
    data = [run.q[np.linspace(0, run.samples - 1, POSES).astype(int)] for run in equations.excerpts if run.samples]
    measured = np.concatenate([np.zeros((0, robot.dof)), *data])
    limits = np.array([[joint.limits.lower, joint.limits.upper] for joint in robot.moving_joints]).reshape(-1, 2)
    low, high = np.where(np.isfinite(limits), limits, [-UNLIMITED, UNLIMITED]).T
    anywhere = np.random.default_rng(0).uniform(low, np.maximum(low, high), size=(POSES, robot.dof))
    return np.concatenate([measured[:: max(1, len(measured) // POSES)], anywhere])


def check_friction(equations: Factors, estimate: Estimate) -> tuple[Finding, ...]:
    """A finding where friction or a rotor inertia that must not be negative is so beyond its 95 % interval.

    Args:
        equations: The equations.
        estimate: The estimate.
    """
    base, first, size = equations.base, 10 * equations.robot.dof, len(equations.base.layout)
    row_of = base.rows_alone | {size + k: base.rank + k for k in range(len(equations.terms))}
    wrong = []
    for place, term in enumerate(all_terms(equations), start=first):
        row = row_of.get(place)
        if term.is_non_negative and row is not None and np.isfinite(estimate.stderr[row]):
            high = estimate.values[row] + TWO_SIDED_95 * estimate.stderr[row]
            wrong += [f"{estimate.names[row]} {estimate.values[row]:.3g} {estimate.units[row]}"] if high < 0.0 else []
    if not wrong:
        return ()
    return (
        Finding(
            code="negative-friction",
            severity="warning",
            where="friction",
            message=f"friction or rotor inertia is surely negative: {', '.join(wrong)}",
            remedy="Do not simulate this model. Identify with the estimator feasible, which lets friction only brake.",
        ),
    )
