"""How well motions determine the parameters of servos: standard deviations, and which parameters stay open.

`judge_knowledge` is called after a fit, with its equations and its solution. The unknown numbers of the fit are its P
*entries*, each a parameter of one joint or of several joints that share it. J is the derivative of the simulated
positions with respect to the entries. The motions are cut into *blocks* of time, and each block b has normal equations
``A_b = J' J`` and a score ``g_b = J' residuals``; A and g are their sums. Four questions are asked of them:

1. Which changes of the entries leave the simulated motions as they are? Directions in which A is singular
   (`hidden_directions`): only a combination of these entries is known, or nothing.
2. How far would the values move with other data? Errors of a simulated motion come mostly from effects that the model
   lacks: they are correlated over seconds and differ from motion to motion. So one linear step gives the values
   without each block of time, and without each motion: ``-(A - A_b)^-1 g_b`` (jackknife of clusters; MacKinnon, Nielsen
   and Webb 2023 advise it for few clusters of unequal weight). Variances are the largest of these and of independent
   errors (`Blocks.covariance`).
3. Do the data contradict a bound? One linear step without the bounds shows where the values would go. If an entry at a
   bound would go beyond it by more than its standard deviation explains, the bound *binds*, and other entries that
   would move significantly are *biased*; all intervals reach to where the values would go (`judge_knowledge`).
4. Does a limit of the drive act at all? A limit near the largest torque of a motion changes a few samples by less than
   their noise, yet the curvature there is that of a well known parameter. So the sum of squares is compared with that
   without the limit, after one linear step of the other entries (`judge_limits`).

A direction in which the motions do not determine the entries, by question 1 or 4 or because a standard deviation is
larger than any likely value, is called *open*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from dynid.array_types import Bools, Floats, Ints
from dynid.decompositions import eigh
from dynid.errors import EstimationError
from dynid.estimators.score_sums import student_factor
from dynid.servos.kinds import LINKS
from dynid.servos.servo_equations import ServoEquations
from dynid.servos.servo_model import Entry

BLOCK_COUNT = 48
"""Number of blocks of time of all motions together. Experiment: with 12, 24 and 48 blocks equal simulated legs are
called shared as often; 48 distinguish most."""
FEWEST_GROUPS = 3
"""Number of groups of blocks from which on each is left out in turn, and of parts of a single motion, or groups of
motions, that are predicted by a fit to the others. Convention: two changes show no reliable spread."""
LEAST_EIGENVALUE = 1e-12
"""Smallest eigenvalue of A over the number of entries, for columns of J of unit length, that does not count as zero:
derivatives are exact to about 1e-9 of their size, and eigenvalues are squares. Experiment:
tests/servos/test_servo_knowledge.py."""
LEAST_EFFECT_SHARE = 1e-4
"""Smallest share of a parameter in a hidden direction, relative to the largest one, with which it is named. Convention:
the errors of the derivatives have smaller shares."""
LEAST_CORRELATION = 0.7
"""Absolute correlation from which on two vague entries, those of large standard deviation, are named together.
Convention: each then explains half of the other's variance."""
SIGNED_KINDS = ("zero", "offset", *LINKS)
"""Kinds whose value may be negative."""
LIMIT_KINDS = ("effort_limit", "stall_torque", "no_load_speed", "current_limit")
"""Kinds of limits: above some value they have no effect on a motion."""
LIMIT_SIGNIFICANCE = 1e-3
"""Significance level at which a limit counts as reached. Experiment: with 0.05, 3 of 40 motions without one had one."""
LARGEST_EXCESS = 1e6
"""Number that replaces the increase of the sum of squares if a simulated motion runs away, in variances of a residual
(convention: beyond all significance levels)."""
VAGUE_NOTE = "hardly shown by these motions (a standard deviation above any likely value)"
HIDDEN_NOTE = "without an effect on these motions that stands above their noise"
TOGETHER_NOTE = "only known together"
"""Notes of open directions, shown to the user."""


@dataclass(frozen=True, slots=True)
class OpenDirection:
    """A change of parameters that has no effect on the motions, or an effect within their noise."""

    names: tuple[str, ...]
    """The parameters that change, largest effect first."""
    note: str
    """What is known of these parameters, as a phrase."""
    at_least: float | None = None
    """Lower bound of a drive limit that the motions do not reach, in its unit; otherwise None."""

    @classmethod
    def of(cls, names: Sequence[str], alone: str) -> OpenDirection:
        """Make a direction: several entries are only known together; a single one gets the note ``alone``."""
        return cls(tuple(names), alone if len(names) == 1 else TOGETHER_NOTE)

    def __str__(self) -> str:
        return f"{self.note}: {' + '.join(self.names)}"


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """How well the motions of a fit determine its P entries."""

    std: Floats
    """(P,) standard deviations: infinite for open entries, NaN for other entries at a bound."""
    open_directions: tuple[OpenDirection, ...]
    """Changes of the entries that the motions do not determine."""
    at_bound: Bools
    """(P,) whether an entry is at a bound."""
    binds: Bools
    """(P,) whether an entry is at a bound and would go beyond it significantly, at 5 %."""
    biased: Bools
    """(P,) whether an entry is between its bounds and would move significantly, at 5 %, if there were no bounds."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The equations of the motions, linearised at an estimate, for each of B blocks of time."""

    A: Floats
    """(B, P, P) ``J' J`` of each block."""
    g: Floats
    """(B, P) ``J' residuals`` of each block."""
    motion: Ints
    """(B,) index of the motion that each block is cut from."""
    variance: float
    """Variance of a residual, under the assumption that residuals are independent [rad^2 or m^2]."""

    @classmethod
    def of(cls, equations: ServoEquations, values: Floats) -> Blocks:
        """Cut the motions of a fit into blocks and linearise them at its solution (P,)."""
        lengths = [len(motion.time) for motion in equations.motions]
        # blocks of each motion, by its length: one at least
        counts = [min(length, max(1, round(BLOCK_COUNT * length / sum(lengths)))) for length in lengths]
        # for each motion: sums of squared residuals (b,), A (b, P, P) and g (b, P) of its b blocks
        parts = [equations.linearise(values, *one) for one in zip(equations.motions, counts, strict=True)]
        squares, A, g = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        freedom = sum(int(motion.counts.sum()) for motion in equations.motions) - len(values)
        motion = np.repeat(np.arange(len(lengths)), counts)
        return cls(A, g, motion, float(squares.sum()) / max(1, freedom))

    def covariance(self) -> tuple[Floats, float]:
        """Compute the covariance of the entries.

        Variances are the largest of three: of independent residuals, of the jackknife over blocks, of that over
        motions. Correlations are those of independent residuals.

        Returns:
            The covariance (P, P); the median over the entries of their variance over that of independent residuals.
        """
        found = self.variance * pseudo_inverse(self.A.sum(axis=0))
        independent = np.diagonal(found)
        largest = independent
        is_known = independent > 0.0
        # every block is a group that is left out in turn, then every motion
        for group in (np.arange(len(self.A)), self.motion):
            members = [group == b for b in np.unique(group)]
            if len(members) >= FEWEST_GROUPS:
                blocks = [self.A[inside].sum(axis=0) for inside in members]
                scores = [self.g[inside].sum(axis=0) for inside in members]
                largest = np.maximum(largest, left_out_variances(self.A.sum(axis=0), blocks, scores))
        # for an entry without effect both variances are rounding errors: their ratio is bounded
        largest = np.minimum(largest, independent / LEAST_EIGENVALUE)
        factor = np.sqrt(np.divide(largest, independent, where=is_known, out=np.ones(len(independent))))
        ratio = float(np.median(factor[is_known] ** 2)) if is_known.any() else 1.0
        return found * np.outer(factor, factor), ratio


def left_out_variances(A: Floats, blocks: Sequence[Floats], scores: Sequence[Floats]) -> Floats:
    """Compute jackknife variances (P,) from the changes of the values as each block is left out.

    For few blocks they are enlarged so that 1.96 standard deviations are the 95 % interval of Student's t.

    Args:
        A: (P, P) sum of the equations of all blocks.
        blocks: The equations (P, P) of each block.
        scores: The score ``J' residuals`` (P,) of each block at the solution.
    """
    B = len(blocks)
    # (B, P) change of the values by one linear step without each block; the sum of all scores is zero at a solution
    moves = np.array([-pseudo_inverse(A - block) @ score for block, score in zip(blocks, scores, strict=True)])
    spread = (B - 1.0) / B * np.sum((moves - moves.mean(axis=0)) ** 2, axis=0)
    return np.asarray(spread * student_factor(B - 1.0) ** 2)


def pseudo_inverse(A: Floats) -> Floats:
    """Invert A (P, P) within the directions that it determines; the inverse is zero in other directions."""
    inverse, _ = _split_directions(A)
    return inverse


def _split_directions(A: Floats) -> tuple[Floats, Floats]:
    """Split the space of the entries into directions that A = J' J (P, P) determines, and others.

    Every column of J is scaled to unit length, so that neither units nor the values that a search happened to find
    decide which entries belong together.

    Returns:
        The pseudo-inverse (P, P) of A; a basis (k, P) of its null space, for columns of unit length, in echelon form:
        each row has an entry other than zero where all other rows have zero.
    """
    length = np.sqrt(np.maximum(np.diagonal(A), 0.0))
    unit = np.where(length > 0.0, length, 1.0)
    eigenvalues, vectors = eigh(A / np.outer(unit, unit))
    is_determined = eigenvalues > LEAST_EIGENVALUE * len(A)
    # inverse = root root': V diag(1 / eigenvalues) V' with the scaling undone
    root = vectors[:, is_determined] / np.sqrt(eigenvalues[is_determined]) / unit[:, None]
    basis = vectors[:, ~is_determined].T
    if len(basis):  # elimination gives rows with many zeros, which name few parameters each
        _, R, order = qr(basis, mode="economic", pivoting=True)
        basis = np.empty_like(R)
        basis[:, order] = np.linalg.solve(R[:, : len(R)], R)
    return root @ root.T, basis


def hidden_directions(entries: Sequence[Entry], A: Floats) -> list[OpenDirection]:
    """List the directions in the space of the entries that A = J' J (P, P) does not determine."""
    found = []
    _, basis = _split_directions(A)
    for row in basis:
        # (P,) size of each entry in this direction, relative to the largest one
        share = np.abs(row) / np.abs(row).max()
        # largest first; equal shares, up to rounding, keep the order of the entries
        order = np.argsort(-np.round(share, 2), kind="stable")
        found.append(OpenDirection.of([entries[k].name for k in order if share[k] >= LEAST_EFFECT_SHARE], HIDDEN_NOTE))
    return found


def judge_knowledge(equations: ServoEquations, values: Floats) -> Knowledge:
    """Judge how well the motions determine the entries at a solution (P,).

    A value at a bound is no estimate. The other entries are judged as if it were free, and the distance by which they
    would move without the bounds is added to their uncertainty. Zero is such a bound, too, for a parameter that cannot
    be negative: the data may ask for a negative value because a stated gain is wrong.
    """
    entries = equations.model.entries
    lower, upper = equations.model.bounds
    at_bound = (values <= lower) | (values >= upper)
    blocks = Blocks.of(equations, values)
    A = blocks.A.sum(axis=0)
    covariance, excess = blocks.covariance()
    # one linear step without the bounds; the scores of entries between their bounds are zero at a solution
    move = pseudo_inverse(A) @ np.where(at_bound, blocks.g.sum(axis=0), 0.0)
    directions = hidden_directions(entries, A)
    hidden_names = {name for direction in directions for name in direction.names}
    # (P,) whether an entry is in no hidden direction; whether its move is significant, at 5 %
    shown = np.array([entry.name not in hidden_names for entry in entries])
    beyond = shown & (np.abs(move) > norm.ppf(0.975) * np.sqrt(np.diagonal(covariance)))
    covariance = covariance + np.outer(move, move)
    # vague entries: neither at a bound nor hidden, with a standard deviation above any likely value
    size = np.where(at_bound, np.inf, _plausible_sizes(entries, values))
    vague = np.flatnonzero(shown & (np.sqrt(np.diagonal(covariance)) > size)).tolist()
    directions += _vague_directions(entries, pseudo_inverse(A), vague)
    directions = judge_limits(equations, values, blocks.variance * max(1.0, excess), directions)
    opened = {name for direction in directions for name in direction.names}
    is_open = np.array([entry.name in opened for entry in entries])
    std = np.where(is_open, np.inf, np.where(at_bound, np.nan, np.sqrt(np.diagonal(covariance))))
    return Knowledge(std, tuple(directions), at_bound, at_bound & beyond, ~at_bound & beyond)


def _plausible_sizes(entries: Sequence[Entry], values: Floats) -> Floats:
    """Compute the standard deviations (P,) above which an entry counts as open.

    That is the size of its value, or the usual scale of its kind of parameter if this is larger or the value may be
    negative; and at most the standard deviation of a uniform distribution between the bounds (their distance over the
    root of 12).
    """
    width = np.array([entry.upper - entry.lower for entry in entries]) / np.sqrt(12.0)
    unit = np.array([entry.scale for entry in entries])
    signed = np.array([entry.kind in SIGNED_KINDS for entry in entries])
    return np.asarray(np.minimum(np.where(signed, unit, np.maximum(np.abs(values), unit)), width))


def _vague_directions(entries: Sequence[Entry], inverse: Floats, left: list[int]) -> list[OpenDirection]:
    """Group vague entries by correlation: those linked by large ones are in one open direction.

    Args:
        entries: All P entries.
        inverse: (P, P) covariance of the entries, up to a factor.
        left: Indices of the vague entries, in ascending order.
    """
    std = np.sqrt(np.diagonal(inverse))
    divisor = np.where(std > 0.0, std, 1.0)
    correlation = inverse / np.outer(divisor, divisor)
    found = []
    while left:
        group = [left.pop(0)]
        for k in group:  # the group grows during the loop
            group += [j for j in left if abs(correlation[k, j]) >= LEAST_CORRELATION]
            left = [j for j in left if j not in group]
        found.append(OpenDirection.of([entries[k].name for k in group], VAGUE_NOTE))
    return found


def judge_limits(
    equations: ServoEquations, values: Floats, variance: float, directions: Sequence[OpenDirection]
) -> list[OpenDirection]:
    """Add the limits of drives that the motions cannot distinguish from no limit to the open directions.

    The *excess* of a limit is the sum of squares with it less that without it, in variances of a residual: a statistic
    with the chi-squared distribution of one degree of freedom if there is no limit.

    Args:
        equations: Motions and model.
        values: (P,) the solution.
        variance: Variance of a residual, raised because errors are correlated in time [rad^2 or m^2].
        directions: Open directions that the derivatives alone show.

    Returns:
        All open directions. For a limit among them the lower bound is the smallest value that the motions do not
        contradict at 5 %, by the profile of the sum of squares.
    """
    found = list(directions)
    largest_excess = float(chi2.ppf(0.95, 1))  # of a limit that the motions do not contradict at 5 %
    for place, entry in enumerate(equations.model.entries):
        directions_of_entry = [direction for direction in found if entry.name in direction.names]
        # a limit in an open direction together with other entries stays there
        if entry.kind not in LIMIT_KINDS or any(len(direction.names) > 1 for direction in directions_of_entry):
            continue
        excess = _excess_of_limit(equations, values, place, variance)
        least = entry.lower
        # the limit that was found lowers the sum of squares less than chance may do
        if directions_of_entry or excess(float(values[place])) > -chi2.ppf(1.0 - LIMIT_SIGNIFICANCE, 1):
            note = "not reached by these motions, as far as their noise tells"
            if excess(least) > largest_excess:  # limits cover decades: the root is searched in their logarithm
                ends = np.log([entry.lower, entry.upper])
                root = brentq(lambda x: excess(np.exp(x)) - largest_excess, *ends, rtol=1e-4)  # noqa: B023
                least = float(np.exp(root))
                note += f", at least {least:.3g} {entry.unit}"
            found = [d for d in found if d not in directions_of_entry] + [
                OpenDirection((entry.name,), note, at_least=least)
            ]
    return found


def _excess_of_limit(
    equations: ServoEquations, values: Floats, place: int, variance: float
) -> Callable[[float], float]:
    """Make the function: value of a limit -> its excess, see `judge_limits`.

    The other entries are moved by one linear step to the smallest sum of squares for this value.

    Args:
        equations: Motions and model.
        values: (P,) the solution.
        place: Index of the limit among the entries.
        variance: Variance of a residual [rad^2 or m^2].
    """
    others = np.delete(np.arange(len(values)), place)

    def cost(limit: float) -> float:
        tried = values.copy()
        tried[place] = limit
        try:
            here = equations.normal(tried)
        except EstimationError:
            return float("inf")
        score = here.score[others]
        # the quadratic model's minimum over the other entries: cost - g' A^-1 g
        return here.cost - float(score @ pseudo_inverse(here.information[np.ix_(others, others)]) @ score)

    free = cost(equations.model.entries[place].upper)  # without the limit: its upper bound is far above any torque
    return lambda limit: min((cost(limit) - free) / max(variance, 1e-300), LARGEST_EXCESS)
