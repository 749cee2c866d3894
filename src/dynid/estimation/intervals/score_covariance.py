"""The covariance of solutions of reduced equations, from the scores of their blocks of time.

Only the factors of blocks are needed: ``W_s' e_s = R_s' (R_s [beta; -1])`` up to the sign. So it is the same for logs
in memory, streamed and merged ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import solve_upper, svd
from dynid.estimation.equations import Factors
from dynid.estimation.intervals.score_sums import ScoreSums
from dynid.estimation.intervals.waves import wave_number
from dynid.information import Factor

OPEN = 1e-6
"""Share of a parameter, columns scaled to length one, in a direction without equations that leaves it open."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockWeights:
    """How squared residuals count in the equations, and how large they are."""

    joints: Floats
    """(n,) weight w of each joint's squared residuals."""
    variances: Floats
    """(n,) variance of each joint's residuals."""
    inflation: Floats
    """(n,) autocorrelation factor of each joint's residuals: so many of them are worth one that is independent."""
    segments: Mapping[int, float] | None = None
    """Weight of some segments, as the inverse of their variance relative to that of the others."""


def solution_root(factor: Factor) -> tuple[Floats, NDArray[np.bool_]]:
    """(b, r) matrix L with ``L L' = A^-1`` for the equations ``A = R' R`` of a factor, and (b,) what is left open.

    Rows of what is left open are zero.
    """
    scale = np.where(np.isfinite(factor.scale), factor.scale, 1.0)
    if factor.rank == len(factor.columns):
        return solve_upper(factor.R, np.eye(scale.size)), np.zeros(scale.size, dtype=bool)
    _, values, Vt = svd(factor.R / scale)
    good = values > factor.resolution * max(values[0], 1e-300)
    undetermined = np.any(np.abs(Vt[~good]) > OPEN, axis=0)
    return (Vt[good] / values[good, None]).T / scale[:, None] * ~undetermined[:, None], undetermined


def score_covariance(equations: Factors, beta: Floats, root: Floats, weights: BlockWeights) -> Floats:
    """(b, b) covariance of a solution of weighted equations, each parameter by its own degrees of freedom.

    Args:
        equations: The equations.
        beta: (b,) the solution.
        root: (b, r) matrix L as of `solution_root`; columns of known directions only, where the solution is restricted.
        weights: Weights and variances of residuals.
    """
    information = equations.information
    counts = information.samples.sum(axis=1).astype(float)
    waves = wave_number(float(np.mean(equations.counts / weights.inflation)))
    run_of = {segment: run for run, blocks in enumerate(equations.blocks) for segment in blocks}
    runs = np.array([run_of.get(segment, -1) for segment in information.segments], dtype=np.int64)
    sums = ScoreSums(root, counts, runs, waves)
    vectors = [np.append(beta[list(support)], -1.0) for support in information.supports]
    rows = [root[list(support)] for support in information.supports]
    noise = weights.joints * weights.variances * weights.inflation
    by_noise = np.allclose(noise, 1.0, rtol=1e-14, atol=0.0)  # usual weights, which save a product
    for place, segment in enumerate(information.segments):
        factors = [information.rows(joint, segment) for joint in range(len(rows))]
        lengths = [len(R) for R in factors]
        w = (weights.segments or {}).get(segment, 1.0) * np.repeat(weights.joints, lengths)
        size = np.sqrt(w)[:, None]
        Z = size * np.vstack([R[:, :-1] @ mine for R, mine in zip(factors, rows, strict=True)])
        residual = size[:, 0] * np.concatenate([R @ vector for R, vector in zip(factors, vectors, strict=True)])
        bread = Z.T @ Z
        # a segment of weight w has the variance 1 / w, so that w counts once here
        noisy = Z if by_noise else np.sqrt(np.repeat(noise, lengths))[:, None] * Z
        sums.add(place, bread, bread if by_noise else noisy.T @ noisy, -(Z.T @ residual))
    return sums.covariance(unknown_kinds(equations))


def unknown_kinds(equations: Factors) -> tuple[str, ...]:
    """(b + k,) kind of each unknown: a link, or the class of its term."""
    links = 10 * equations.robot.dof
    placed: Sequence[str] = [type(own.term).__name__ for own in equations.robot.terms]
    base = ["link" if column < links else placed[column - links] for column in equations.base.columns]
    return (*base, *(type(term).__name__ for term in equations.terms))
