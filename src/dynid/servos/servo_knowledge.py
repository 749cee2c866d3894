"""How well motions determine the parameters of servos: standard deviations, and which parameters stay open.

J is the derivative of the simulated positions with respect to the P entries of the model. Four questions are asked of
the normal equations ``A = J' J`` and scores ``g = J' residuals`` of blocks of time:

1. Which changes of the parameters leave the simulated motions as they are? Directions in which A is singular
   (`hidden_directions`): parameters of which only a combination is known, or nothing.
2. How far would the values move with other data? Errors of a simulated motion come mostly from effects that the model
   lacks: they are correlated over seconds and differ from motion to motion. So one linear step gives the values
   without each block of time, and without each motion: ``-(A - A_b)^-1 g_b`` (jackknife of clusters; MacKinnon, Nielsen
   and Webb 2023 advise it for few clusters of unequal weight). Variances are the largest of these and of independent
   errors (`Blocks.covariance`).
3. Does a bound bind? A linear step without the bounds shows where the values want to go; where that is further than
   their standard deviations allow for, the entries that move along are biased, and their intervals reach to where they
   would move (`judge_knowledge`).
4. Does a limit of the drive act at all? A limit near the largest torque of a motion changes a few samples by less than
   their noise, yet the curvature there is that of a well known parameter. So the sum of squares is compared with that
   without the limit, after one linear step of the other entries (`judge_limits`).
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
"""Blocks of time of all motions together. Experiment: with 12, 24 and 48 blocks equal simulated legs are called shared
as often; 48 distinguish most."""
FEWEST_GROUPS = 3
"""Number of groups of blocks from which on each is left out in turn. Convention: two moves show no reliable spread."""
LEAST_EIGENVALUE = 1e-12
"""Smallest eigenvalue per entry of the equations, with columns of unit length, that does not count as zero: derivatives
are exact to about 1e-9 of their size, and eigenvalues are squares. Experiment: tests/servos/test_servo_knowledge.py."""
LEAST_EFFECT_SHARE = 1e-4
"""Smallest share of a parameter in a hidden direction, relative to the largest one, with which it is named. Convention:
the errors of the derivatives have smaller shares."""
LEAST_CORRELATION = 0.7
"""Absolute correlation from which on two vague parameters are named together. Convention: each then explains half of
the other's variance."""
SIGNED_KINDS = ("zero", "offset", *LINKS)
"""Kinds whose value may be negative."""
LIMIT_KINDS = ("effort_limit", "stall_torque", "no_load_speed", "current_limit")
"""Kinds of limits: above some value they have no effect on a motion."""
LIMIT_SIGNIFICANCE = 1e-3
"""Significance level at which a limit counts as reached. Experiment: with 0.05, 3 of 40 motions without one had one."""
LARGEST_EXCESS = 1e6
"""Excess that stands for that of a motion that runs away (convention: a number beyond all significance levels)."""
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
        """Make the direction of entries known together only, or with the note ``alone`` that of a single entry."""
        return cls(tuple(names), alone if len(names) == 1 else TOGETHER_NOTE)

    def __str__(self) -> str:
        return f"{self.note}: {' + '.join(self.names)}"


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """How well the motions of a fit determine its P entries."""

    std: Floats
    """(P,) standard deviations: infinite where open, NaN at a bound."""
    open_directions: tuple[OpenDirection, ...]
    """Changes of the entries that the motions do not determine."""
    at_bound: Bools
    """(P,) whether an entry is at a bound."""
    binds: Bools
    """(P,) whether it is at a bound and the data want it beyond: significantly, at 5 %."""
    biased: Bools
    """(P,) whether it is between its bounds and would move significantly, at 5 %, if there were no bounds."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The equations of the motions, linearised at an estimate, for each of B blocks of time."""

    A: Floats
    """(B, P, P) ``J' J``."""
    g: Floats
    """(B, P) ``J' residuals``."""
    motion: Ints
    """(B,) index of the motion that each block is cut from."""
    variance: float
    """Variance of a residual under the assumption that residuals are independent."""

    @classmethod
    def of(cls, equations: ServoEquations, values: Floats) -> Blocks:
        """Cut the motions of a fit into blocks at its solution (P,)."""
        lengths = [len(motion.time) for motion in equations.motions]
        counts = [min(length, max(1, round(BLOCK_COUNT * length / sum(lengths)))) for length in lengths]
        parts = [equations.linearise(values, *one) for one in zip(equations.motions, counts, strict=True)]
        squares, A, g = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        freedom = sum(int(motion.counts.sum()) for motion in equations.motions) - len(values)
        motion = np.repeat(np.arange(len(lengths)), counts)
        return cls(A, g, motion, float(squares.sum()) / max(1, freedom))

    def covariance(self) -> tuple[Floats, float]:
        """Compute the covariance (P, P) of the entries, and the median ratio of their variances to independent errors'.

        Variances are the largest of three: of independent residuals, without each block, without each motion.
        Correlations are those of independent residuals.
        """
        found = self.variance * pseudo_inverse(self.A.sum(axis=0))
        independent = np.diagonal(found)
        largest = independent
        is_known = independent > 0.0
        # every block is a group, then every motion
        for group in (np.arange(len(self.A)), self.motion):
            parts = [group == b for b in np.unique(group)]
            if len(parts) >= FEWEST_GROUPS:
                blocks = [self.A[part].sum(axis=0) for part in parts]
                scores = [self.g[part].sum(axis=0) for part in parts]
                largest = np.maximum(largest, left_out_variances(self.A.sum(axis=0), blocks, scores))
        largest = np.minimum(largest, independent / LEAST_EIGENVALUE)  # without effect, both are rounding errors
        factor = np.sqrt(np.divide(largest, independent, where=is_known, out=np.ones(len(independent))))
        ratio = float(np.median(factor[is_known] ** 2)) if is_known.any() else 1.0
        return found * np.outer(factor, factor), ratio


def left_out_variances(A: Floats, blocks: Sequence[Floats], scores: Sequence[Floats]) -> Floats:
    """Compute jackknife variances (P,): the values move as blocks are left out; few blocks count by Student's t.

    Args:
        A: (P, P) sum of the equations of all blocks.
        blocks: The equations (P, P) of each block.
        scores: The score ``J' residuals`` (P,) of each block at the solution.
    """
    B = len(blocks)
    moves = np.array([-pseudo_inverse(A - block) @ score for block, score in zip(blocks, scores, strict=True)])
    spread = (B - 1.0) / B * np.sum((moves - moves.mean(axis=0)) ** 2, axis=0)
    return np.asarray(spread * student_factor(B - 1.0) ** 2)


def pseudo_inverse(A: Floats) -> Floats:
    """Invert equations (P, P) within the directions that they determine; other directions get zero."""
    inverse, _ = _split_directions(A)
    return inverse


def _split_directions(A: Floats) -> tuple[Floats, Floats]:
    """Split equations A (P, P) into what they determine and what they do not.

    Every column of J is taken at unit length, so that neither units nor the values that a search happened to find
    decide which parameters belong together.

    Returns:
        The pseudo-inverse (P, P) of A; a basis (k, P) of its null space, for columns of unit length, in echelon form:
        each row has an entry that no other row has.
    """
    length = np.sqrt(np.maximum(np.diagonal(A), 0.0))
    unit = np.where(length > 0.0, length, 1.0)
    eigenvalues, vectors = eigh(A / np.outer(unit, unit))
    is_determined = eigenvalues > LEAST_EIGENVALUE * len(A)
    root = vectors[:, is_determined] / np.sqrt(eigenvalues[is_determined]) / unit[:, None]
    basis = vectors[:, ~is_determined].T
    if len(basis):  # elimination gives rows with many zeros, which name few parameters each
        _, R, order = qr(basis, mode="economic", pivoting=True)
        basis = np.empty_like(R)
        basis[:, order] = np.linalg.solve(R[:, : len(R)], R)
    return root @ root.T, basis


def hidden_directions(entries: Sequence[Entry], A: Floats) -> list[OpenDirection]:
    """List the changes of the entries that have no effect in equations A (P, P)."""
    found = []
    _, basis = _split_directions(A)
    for row in basis:
        share = np.abs(row) / np.abs(row).max()
        # largest first; equal shares, up to rounding, keep the order of the entries
        order = np.argsort(-np.round(share, 2), kind="stable")
        found.append(OpenDirection.of([entries[k].name for k in order if share[k] >= LEAST_EFFECT_SHARE], HIDDEN_NOTE))
    return found


def judge_knowledge(equations: ServoEquations, values: Floats) -> Knowledge:
    """Judge how well the motions determine the entries at a solution (P,).

    A value at a bound is no estimate. The other entries are judged as if it were free, and the distance by which its
    release would move them is added to their uncertainty. Zero is such a bound, too, for a kind that cannot be
    negative: the data may want a negative value because a stated gain is wrong.
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
    shown = np.array([entry.name not in hidden_names for entry in entries])
    beyond = shown & (np.abs(move) > norm.ppf(0.975) * np.sqrt(np.diagonal(covariance)))
    covariance = covariance + np.outer(move, move)
    size = np.where(at_bound, np.inf, _plausible_sizes(entries, values))
    vague = [
        k
        for k in np.flatnonzero(np.sqrt(np.diagonal(covariance)) > size).tolist()
        if entries[k].name not in hidden_names
    ]
    directions += _vague_directions(entries, pseudo_inverse(A), vague)
    directions = judge_limits(equations, values, blocks.variance * max(1.0, excess), directions)
    opened = {name for direction in directions for name in direction.names}
    is_open = np.array([entry.name in opened for entry in entries])
    std = np.where(is_open, np.inf, np.where(at_bound, np.nan, np.sqrt(np.diagonal(covariance))))
    return Knowledge(std, tuple(directions), at_bound, at_bound & beyond, ~at_bound & beyond)


def _plausible_sizes(entries: Sequence[Entry], values: Floats) -> Floats:
    """Compute the standard deviations (P,) above which an entry counts as open.

    That is the size of its value, or the scale of its kind where this is larger or the value may be negative; and at
    most the standard deviation of a uniform distribution between the bounds (their distance over the root of 12).
    """
    width = np.array([entry.upper - entry.lower for entry in entries]) / np.sqrt(12.0)
    unit = np.array([entry.scale for entry in entries])
    signed = np.array([entry.kind in SIGNED_KINDS for entry in entries])
    return np.asarray(np.minimum(np.where(signed, unit, np.maximum(np.abs(values), unit)), width))


def _vague_directions(entries: Sequence[Entry], inverse: Floats, left: list[int]) -> list[OpenDirection]:
    """Group vague entries, given by their indices ``left``, by correlation: linked ones are in one open direction."""
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
    """Add the limits that the motions cannot distinguish from no limit to the open directions; returns all of them.

    Args:
        equations: Motions and model.
        values: (P,) the solution.
        variance: Variance of a residual, raised because errors are correlated in time.
        directions: Open directions that the derivatives alone show.
    """
    found = list(directions)
    largest_excess = float(chi2.ppf(0.95, 1))  # of a limit that the motions do not contradict at 5 %
    for place, entry in enumerate(equations.model.entries):
        directions_of_entry = [direction for direction in found if entry.name in direction.names]
        if entry.kind not in LIMIT_KINDS or any(len(direction.names) > 1 for direction in directions_of_entry):
            continue
        excess = _excess_of_limit(equations, values, place, variance)
        least = entry.lower
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
    """Make a function: limit -> sum of squares with it less that without it, in variances of a residual.

    The other entries follow by one linear step.
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
        return here.cost - float(score @ pseudo_inverse(here.information[np.ix_(others, others)]) @ score)

    free = cost(equations.model.entries[place].upper)
    return lambda limit: min((cost(limit) - free) / max(variance, 1e-300), LARGEST_EXCESS)
