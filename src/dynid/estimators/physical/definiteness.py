"""Check whether an identified robot is physically possible: positive definite inertia matrix, no negative friction.

The estimator `feasible` finds only possible robots. Other estimators may give an inertia matrix with a negative
eigenvalue, or friction that accelerates: then simulations run away, and controllers that invert the model push the
wrong way, however well the torques fit. The inertia matrix is checked at poses of the data and at random ones.

`identify` calls both checks with its equations and its estimate.
"""

from __future__ import annotations

import numpy as np

from dynid.array_types import Floats
from dynid.compiled import kernel
from dynid.decompositions import eigvalsh
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import TWO_SIDED_95, Estimate
from dynid.estimators.physical.passivity import all_terms
from dynid.findings import Finding
from dynid.spatial import EXACT
from dynid.terms.base import RecordableTerm

POSES = 1000
"""Number of random poses, and about that of poses of the data, at which the inertia matrix is checked (convention)."""
UNLIMITED = np.pi
"""Largest position of a joint without limits at random poses [rad or m] (convention: one turn)."""


def check_inertia(equations: Factors, theta: Floats, values: Floats) -> tuple[Finding, ...]:
    """Make a finding if the inertia matrix is not positive definite at some pose.

    Args:
        equations: The equations, whose motion gives the poses of the data.
        theta: (p,) standard parameters.
        values: (k,) parameters of the terms besides the robot's own.
    """
    poses = _checked_poses(equations)
    names = equations.robot.joint_names
    M: Floats = np.array(kernel(equations.robot, "inertia_matrix", symbolic_parameters=True)(poses, theta))
    for term, value in zip(equations.terms, values, strict=True):  # further terms have rotors too
        if isinstance(term, RecordableTerm):
            for (j, k), entry in term.inertia(term.acts_on(names)).items():
                M[:, j, k] += value * entry
    diagonal = np.diagonal(M, axis1=1, axis2=2)
    scale = np.sqrt(np.maximum(diagonal, 1e-300))
    smallest = eigvalsh(M / (scale[:, :, None] * scale[:, None, :]))[:, 0]
    wrong = (smallest <= EXACT) | (diagonal <= 0.0).any(axis=1)
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
    """Choose poses (K, n): up to 1000 of the data, then 1000 random ones within limits, always the same [rad or m]."""
    robot = equations.robot
    data = [run.q[np.linspace(0, run.samples - 1, POSES).astype(int)] for run in equations.excerpts if run.samples]
    measured = np.concatenate([np.zeros((0, robot.dof)), *data])
    limits = np.array([[joint.limits.lower, joint.limits.upper] for joint in robot.moving_joints]).reshape(-1, 2)
    low, high = np.where(np.isfinite(limits), limits, [-UNLIMITED, UNLIMITED]).T
    anywhere = np.random.default_rng(0).uniform(low, np.maximum(low, high), size=(POSES, robot.dof))
    return np.concatenate([measured[:: max(1, len(measured) // POSES)], anywhere])


def check_signs(equations: Factors, estimate: Estimate) -> tuple[Finding, ...]:
    """Make a finding if friction or rotor inertias are negative and their 95 % intervals too.

    Args:
        equations: The equations.
        estimate: The estimate.
    """
    base = equations.base
    first = 10 * equations.robot.dof  # place of the first term's parameter: each link has ten
    size = len(base.layout)
    # place of a parameter -> its row in the estimate; parameters that are grouped with others have none
    row_of = base.rows_alone | {size + k: base.rank + k for k in range(len(equations.terms))}
    wrong = []
    for place, term in enumerate(all_terms(equations), start=first):
        row = row_of.get(place)
        if not term.is_non_negative or row is None:
            continue
        if estimate.values[row] + TWO_SIDED_95 * estimate.stderr[row] < 0.0:  # never, if it is undetermined
            wrong.append(f"{estimate.names[row]} {estimate.values[row]:.3g} {estimate.units[row]}")
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
