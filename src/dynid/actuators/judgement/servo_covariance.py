"""Covariance of the parameters of servos from the scores of blocks of time, direction by direction.

The residuals of a simulated motion are mostly what the model misses: correlated over seconds, and larger where the
motion asks for what the model lacks. Both raise the covariance in the directions where they act; see
`dynid.estimation.intervals.score_sums`, which this file feeds with blocks of simulated motions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_identifiability import see_directions
from dynid.arrays import Floats
from dynid.estimation.intervals.score_sums import ScoreSums
from dynid.estimation.intervals.waves import student_factor

BLOCKS = 64
"""Blocks of time of all motions together. Convention: eight for each wave of the covariance, so that their edges do not
matter."""

SERVO_WAVES, SINGLE_WAVES = 4, 2
"""Numbers of waves over the blocks of several motions, and of a single one. Fewer than for torques: the errors of a
simulated motion are what the model misses, and stay alike for much of a log. Two, four and eight were compared on parts
of the go2 and xl330 logs before they were chosen (`python tests/campaigns/actuators_real.py halves`)."""
LAGS = (1, 2, 4, 8, 16, 32, 64)
"""Distances in samples at which residuals are compared with each other. Convention: from one sample to a tenth of a
second and more."""
FALSE_ALARMS = 0.025
"""Probability with which each of two tests takes independent residuals for dependent ones. Convention."""
PARTS = 2
"""Parts of a single motion, which count as two runs: what differs between them is added to the covariance. One, two and
four were compared as the waves were."""
LARGEST_RAISE = 1e12
"""Largest factor of a variance by motions that are left out: far beyond what leaves an entry open. Convention."""
FEW_MOTIONS = 3
"""Motions from which on each is left out in turn. Convention: two moves have no spread to speak of."""


@dataclass(frozen=True, slots=True, eq=False)
class TimeBlocks:
    """What the motions say, block by block of time."""

    information: Floats
    """(P, P) ``J' J`` of all blocks, with priors."""
    prior: Floats
    """(P,) what priors add to its diagonal, times the variance of a residual."""
    breads: Floats
    """(S, n, P, P) ``J' J`` of each block and joint."""
    scores: Floats
    """(S, P) ``J' e`` of each block."""
    counts: Floats
    """(S,) residuals of each block."""
    runs: NDArray[np.int64]
    """(S,) number of each block's motion; the halves of a single motion count as two."""
    single: bool
    """Whether there is one motion only."""
    variances: Floats
    """(n,) variance of the residuals of each joint."""
    repeated: tuple[float, int]
    """Squared correlations of residuals with later ones, in units of their variance if residuals are independent: their
    sum and number."""


def time_blocks(equations: ServoEquations, values: Floats) -> TimeBlocks:
    """The motions of a fit at its solution (P,), in blocks of time.

    Args:
        equations: Motions, model and filter.
        values: (P,) the solution.
    """
    breads, scores, counts, runs, squares, run, errors = [], [], [], [], [], 0, []
    P, total = len(values), sum(len(motion.time) for motion in equations.motions)
    for run, (error, slopes) in enumerate(equations.pieces(values)):
        counted = equations.motions[run].counted
        blocks = max(2, round(BLOCKS * len(error) / total))
        for rows in np.array_split(np.arange(len(error)), blocks):
            J = slopes[rows].transpose(1, 0, 2)  # (n, rows, P)
            breads.append(J.transpose(0, 2, 1) @ J)
            scores.append(np.einsum("kj,jkp->p", error[rows], J))
            counts.append(float(error[rows].size if counted is None else counted[rows].sum()))
            runs.append(run)
        squares.append((np.sum(error**2, axis=0), equations.motions[run].counts))
        errors.append(error)
    freedom = 1.0 - P / max(float(np.sum(counts)), P + 1.0)
    variances = sum(square for square, _ in squares) / (np.maximum(1, sum(count for _, count in squares)) * freedom)
    table = np.array(breads)
    return TimeBlocks(
        information=table.sum(axis=(0, 1)) + np.diag(equations.prior_weights),
        prior=equations.variance * equations.prior_weights,
        breads=table,
        scores=np.array(scores),
        counts=np.array(counts),
        runs=np.array(runs if run else np.arange(len(runs)) * PARTS // len(runs), dtype=np.int64),
        single=run == 0,
        variances=np.asarray(variances),
        repeated=_repeated(errors),
    )


def _repeated(errors: Sequence[Floats]) -> tuple[float, int]:
    """Squared correlations of residuals (N, n) with those some samples later (Box and Pierce 1970); sum and number."""
    scale = np.sqrt(sum(np.sum(e**2, axis=0) for e in errors) / sum(len(e) for e in errors))
    unit = [e / np.where(scale > 0.0, scale, 1.0) for e in errors]
    total, found = 0.0, 0
    for lag in LAGS:
        pairs = [(e[lag:] * e[:-lag]).ravel() for e in unit if len(e) > lag]
        count = sum(pair.size for pair in pairs)
        if count:
            total, found = total + sum(float(pair.sum()) for pair in pairs) ** 2 / count, found + 1
    return total, found


def servo_covariance(blocks: TimeBlocks, inside: Sequence[int], root: Floats, kinds: tuple[str, ...]) -> Floats:
    """(b, b) covariance of the entries that are not at a bound.

    Where neither the residuals nor slow sums of their scores show a dependence in time, residuals count as independent.
    Otherwise the model misses something, and the covariance is that of a few slow waves, with what differs from motion
    to motion (`dynid.estimation.intervals.between_runs`).

    Args:
        blocks: What the motions say.
        inside: Places of the b entries.
        root: (b, r) matrix L with ``L' A L = 1`` for their equations A, without directions that nothing shows.
        kinds: (b,) kind of each entry.
    """
    rows = np.ix_(inside, inside)
    sums = ScoreSums(root, blocks.counts, blocks.runs, SINGLE_WAVES if blocks.single else SERVO_WAVES)
    slow = ScoreSums(root, blocks.counts, np.zeros_like(blocks.runs))
    plain = np.zeros((root.shape[1],) * 2)
    for place, (bread, score) in enumerate(zip(blocks.breads, blocks.scores, strict=True)):
        filled = np.tensordot(blocks.variances, bread, axes=1)
        block = root.T @ bread.sum(axis=0)[rows] @ root, root.T @ filled[rows] @ root, root.T @ score[inside]
        sums.add(place, *block)
        slow.add(place, *block)
        plain += block[1]
    inverse = root @ root.T
    known = (inverse * blocks.prior[inside]) @ inverse  # a prior is one more measurement
    ratio, freedom = slow.excess()
    if _is_large(freedom * ratio, freedom) or _is_large(*blocks.repeated):
        found = sums.covariance(kinds)
        if not blocks.single and blocks.runs[-1] + 1 >= FEW_MOTIONS:
            found = raised(found, left_out_variances(blocks, inside))
        return np.asarray(found + known)
    return np.asarray(root @ plain @ root.T + known)


def left_out_variances(blocks: TimeBlocks, inside: Sequence[int]) -> Floats:
    """(b,) variances by leaving out one motion at a time, with the factor of Student's t.

    Without motion m the solution moves by ``-(A - A_m)^-1 g_m``, in one step; M such moves d_m have the variance ``(M -
    1) / M sum_m (d_m - mean)^2`` (jackknife of clusters; MacKinnon, Nielsen and Webb 2023 advise it for few clusters of
    unequal weight). A direction that one motion alone shows does not move.
    """
    M, rows = int(blocks.runs[-1]) + 1, np.ix_(inside, inside)
    moves = []
    for motion in range(M):
        mine = blocks.runs == motion
        rest = (blocks.information - blocks.breads[mine].sum(axis=(0, 1)))[rows]
        prior = np.zeros(len(inside))
        moves.append(-see_directions(rest, prior).inverse @ blocks.scores[mine].sum(axis=0)[list(inside)])
    spread = (M - 1) / M * np.sum((np.array(moves) - np.mean(moves, axis=0)) ** 2, axis=0)
    return np.asarray(spread * float(student_factor(M - 1.0)) ** 2)


def raised(covariance: Floats, variances: Floats) -> Floats:
    """The covariance with no smaller variances than these; correlations stay."""
    own = np.diagonal(covariance)
    most = np.minimum(variances, LARGEST_RAISE * own)  # of what has no effect both are rounding errors
    factor = np.sqrt(np.maximum(1.0, most / np.where(own > 0.0, own, 1.0)))
    return np.asarray(covariance * np.outer(factor, factor))


def _is_large(squares: float, freedom: int) -> bool:
    """Whether a sum of squares is larger than chance makes it (chi-squared distribution)."""
    return freedom > 0 and squares > 2.0 * float(gammaincinv(0.5 * freedom, 1.0 - FALSE_ALARMS))
