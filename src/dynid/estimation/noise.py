"""Noise of the torques: variance and autocorrelation factor of each joint, and the check that data suffice for them.

Both come from the factors of joints and blocks of time, so that no second pass over the data is needed, and filters,
terms and masks are accounted for by construction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.errors import IdentifiabilityError
from dynid.estimation.equations import Factors
from dynid.information.factor import RESOLUTION

RESOLVED = 1e-10
"""Eigenvalues of a joint's scaled equations below this share of the largest one are left out (convention)."""
QUIETEST = 1e-20
"""Smallest variance of a joint relative to the largest (convention: ten digits of torque)."""


def check_data(equations: Factors, *, spare: int = 0) -> None:
    """Check that there are enough equations, and torques other than zero.

    Args:
        equations: The equations.
        spare: Number of equations beyond the number of unknowns that are needed, for example to judge the noise.

    Raises:
        IdentifiabilityError: There are too few equations, or all torques are zero.
    """
    information = equations.information
    count, unknowns = int(information.samples.sum()), len(information.columns)
    if count < unknowns + spare:
        why = f"cannot determine {unknowns} parameters" if count < unknowns else "leave nothing to judge the noise by"
        raise IdentifiabilityError(f"{count} equations {why}", remedy="Record for longer, or mask less.")
    if not any(np.any(information.factor(joint)[:, -1]) for joint in range(information.dof)):
        raise IdentifiabilityError(
            "all torques are zero", remedy="Check the channel map: which column is the torque, and was the drive on?"
        )


def joint_variances(equations: Factors, beta: Floats) -> Floats:
    """(n,) variance of each joint's residual torque, corrected for the parameters that were fitted.

    Args:
        equations: The equations.
        beta: (b + k,) parameters.
    """
    information, counts = equations.information, equations.counts
    vectors = [np.append(beta[list(support)], -1.0) for support in information.supports]
    squares = np.array([np.sum((information.factor(joint) @ vector) ** 2) for joint, vector in enumerate(vectors)])
    share = 1.0 - beta.size / max(int(counts.sum()), beta.size + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = np.where(counts > 0, squares / np.maximum(counts * share, 1.0), 0.0)
    # a joint without residuals, or with rounding as residuals, must not get an infinite or a huge weight
    floor = QUIETEST * max(float(variances.max(initial=0.0)), 1e-280)
    torque = np.array([np.sum(information.factor(j)[:, -1] ** 2) for j in range(information.dof)])
    return np.maximum(variances, np.maximum(floor, RESOLUTION**2 * torque / np.maximum(counts, 1)))


def correlation_inflation(equations: Factors, beta: Floats) -> Floats:
    """(n,) autocorrelation factor of each joint's residuals, at least 1: it multiplies the variance of the estimates.

    In a block of time s the equations W_s and residuals e_s give the score ``g_s = W_s^T e_s``. Independent residuals
    of variance v would make its covariance ``v W_s^T W_s``; the factor is the ratio of ``g_s^T (W^T W)^-1 g_s`` to
    its expected value, over all blocks and all directions that the joint's equations resolve (the block version of a
    sandwich estimator).
    """
    information, variances = equations.information, joint_variances(equations, beta)
    parts = []
    for joint, support in enumerate(information.supports):
        factors = [information.rows(joint, segment) for segment in information.segments]
        vector = np.append(beta[list(support)], -1.0)
        parts.append(whitened_scores([R[:, :-1] for R in factors], [-(R @ vector) for R in factors]))
    directions = sum(rank for _, rank, _ in parts)
    share = min(1.0, beta.size / max(directions, 1))  # share of a joint's directions that the fit has adapted to
    found = np.ones(len(parts))
    for joint, (scores, rank, overlap) in enumerate(parts):
        expected = variances[joint] * (rank - share * overlap)
        if expected > 0.0 and rank > overlap * share:
            found[joint] = max(1.0, scores / expected)
    return found


def whitened_scores(rows: Sequence[Floats], residuals: Sequence[Floats]) -> tuple[float, int, float]:
    """Of blocks of time: sum of whitened squared scores, number of resolved directions, their concentration in blocks.

    Args:
        rows: For each block the equations W_s (m, k).
        residuals: For each block the residuals e_s (m,).
    """
    products = np.array([W.T @ W for W in rows])
    all_scores = np.array([W.T @ e for W, e in zip(rows, residuals, strict=True)])
    total = products.sum(axis=0)
    scale = np.sqrt(np.diagonal(total))
    seen = scale > RESOLUTION * scale.max(initial=0.0)  # a column of rounding must not become a direction of its own
    inverse = np.where(seen, 1.0 / np.where(seen, scale, 1.0), 0.0)
    values, vectors = eigh(total * np.outer(inverse, inverse))
    good = values > RESOLVED * max(float(values[-1]) if values.size else 0.0, 1e-300)
    whiten = inverse[:, None] * vectors[:, good] / np.sqrt(values[good])
    scores = float(np.sum((all_scores @ whiten) ** 2))
    overlap = float(np.sum((whiten.T @ products @ whiten) ** 2))
    return scores, int(np.count_nonzero(good)), overlap
