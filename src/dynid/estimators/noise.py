"""Noise of the torques: variance and autocorrelation factor of each joint; and the check that there are enough data.

Both numbers come from the reduced equations: for each joint and block of time (a segment) the triangle of a QR
decomposition of ``[W, y]``, columns and torque. So no second pass over the samples is needed, and filters, terms and
invalid samples are accounted for. The least-squares estimators call these functions with a solution beta.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid.array_types import Floats
from dynid.data_reduction.factor import RESOLUTION
from dynid.decompositions import eigh
from dynid.errors import IdentifiabilityError
from dynid.estimators.equations import Factors

LEAST_EIGENVALUE = 1e-10
"""Eigenvalue of a joint's scaled cross products, over the largest one, from which on its direction counts as resolved
(convention)."""
LEAST_VARIANCE = 1e-20
"""Smallest variance of a joint, over the largest one (convention: ten digits of torque)."""


def check_data(equations: Factors, *, spare: int = 0) -> None:
    """Check that there are enough equations, and torques other than zero.

    Args:
        equations: The equations.
        spare: Number of equations that must remain beyond the number of unknowns, for example to judge the noise.

    Raises:
        IdentifiabilityError: There are too few equations, or all torques are zero.
    """
    information = equations.information
    count = int(information.samples.sum())
    unknowns = len(information.columns)
    if count < unknowns + spare:
        why = f"cannot determine {unknowns} parameters" if count < unknowns else "leave nothing to judge the noise by"
        raise IdentifiabilityError(f"{count} equations {why}", remedy="Record for longer, or mask less.")
    if not any(np.any(information.factor(joint)[:, -1]) for joint in range(information.dof)):
        raise IdentifiabilityError(
            "all torques are zero", remedy="Check the channel map: which column is the torque, and was the drive on?"
        )


def joint_variances(equations: Factors, beta: Floats) -> Floats:
    """Compute the variance (n,) of each joint's residual torque, corrected for the parameters that were fitted.

    Args:
        equations: The equations.
        beta: (b + k,) the fitted parameters: base parameters, then terms.
    """
    information = equations.information
    counts = equations.counts
    # residuals of a joint are its rows [W, y] times [beta, -1], with the columns (`support`) that act on it
    vectors = [np.append(beta[list(support)], -1.0) for support in information.supports]
    squares = np.array([np.sum((information.factor(joint) @ vector) ** 2) for joint, vector in enumerate(vectors)])
    # degrees of freedom of each joint: the fitted parameters are shared among all equations
    freedom = counts * (1.0 - beta.size / max(int(counts.sum()), beta.size + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = np.where(counts > 0, squares / np.maximum(freedom, 1.0), 0.0)
    # a joint without residuals, or with rounding as residuals, must not get an infinite or a huge weight
    floor = LEAST_VARIANCE * max(float(variances.max(initial=0.0)), 1e-280)
    torque = np.array([np.sum(information.factor(j)[:, -1] ** 2) for j in range(information.dof)])
    return np.maximum(variances, np.maximum(floor, RESOLUTION**2 * torque / np.maximum(counts, 1)))


def correlation_inflation(equations: Factors, beta: Floats) -> Floats:
    """Compute the autocorrelation factor (n,) of each joint's residuals, which multiplies variances of estimates.

    In a block of time s the equations W_s and residuals e_s give the score ``g_s = W_s^T e_s``. Independent residuals
    of variance v would make its covariance ``v W_s^T W_s``; the factor is the ratio of ``g_s^T (W^T W)^-1 g_s`` to
    its expected value, over all blocks and all directions that the joint's equations resolve (the block version of a
    sandwich estimator). It is at least 1.

    Args:
        equations: The equations.
        beta: (b + k,) the fitted parameters.
    """
    information = equations.information
    variances = joint_variances(equations, beta)
    found_scores: list[WhitenedScores] = []
    for joint, support in enumerate(information.supports):
        factors = [information.rows(joint, segment) for segment in information.segments]
        vector = np.append(beta[list(support)], -1.0)  # residuals up to their sign, which squares do not show
        found_scores.append(whitened_scores([R[:, :-1] for R in factors], [R @ vector for R in factors]))
    directions = sum(scores.rank for scores in found_scores)
    # fitting makes residuals smaller in the b + k directions of the parameters; joints share them by their directions
    fitted_share = min(1.0, beta.size / max(directions, 1))
    inflation = np.ones(len(found_scores))
    for joint, scores in enumerate(found_scores):
        freedom = scores.rank - fitted_share * scores.overlap
        expected = variances[joint] * freedom
        if expected > 0.0:
            inflation[joint] = max(1.0, scores.squares / expected)
    return inflation


class WhitenedScores(NamedTuple):
    """Scores of blocks of time, in coordinates in which ``W^T W`` of all blocks is the identity."""

    squares: float
    """Sum of the squares of all scores."""
    rank: int
    """Number of coordinates: directions that the equations resolve."""
    overlap: float
    """Sum over the blocks of the squares of ``W_s^T W_s``: the rank if one block has all the information, less if it is
    spread over many."""


def whitened_scores(rows: Sequence[Floats], residuals: Sequence[Floats]) -> WhitenedScores:
    """Compute the whitened scores of blocks of time.

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
    resolved = values > LEAST_EIGENVALUE * max(float(values[-1]) if values.size else 0.0, 1e-300)
    whiten = inverse[:, None] * vectors[:, resolved] / np.sqrt(values[resolved])
    return WhitenedScores(
        # `whiten` (k, r) maps to coordinates in which the sum of all W_s^T W_s is the identity
        squares=float(np.sum((all_scores @ whiten) ** 2)),
        rank=int(np.count_nonzero(resolved)),
        overlap=float(np.sum((whiten.T @ products @ whiten) ** 2)),
    )
