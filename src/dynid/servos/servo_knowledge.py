"""How well motions tell the parameters of servos: standard deviations, and what stays open.

Four questions are asked of the equations ``A = J' J`` and scores ``g = J' residuals`` of blocks of time:

1. Which changes of the parameters leave the simulated motions as they are? Directions in which A is singular
   (`hidden_directions`): parameters that are known together only, or not at all.
2. How far would the values move with other data? Errors of a simulated motion are mostly what the model misses, alike
   for seconds and different from motion to motion. So one linear step gives the values without each block of time, and
   without each motion: ``-(A - A_b)^-1 g_b`` (jackknife of clusters; MacKinnon, Nielsen and Webb 2023 advise it for few
   clusters of unequal weight). Variances are the largest of these and of independent errors (`Blocks.covariance`).
3. Does a bound bind? A linear step without the bounds shows where the values want to go; where that is further than the
   standard deviation allows for, what moves along is biased, and its interval reaches as far (`judge_knowledge`).
4. Does a limit of the drive act at all? Just above what a motion asks for it moves a few samples by less than their
   noise, and its curvature there looks like knowledge. So the sum of squares is compared with that without the limit,
   the others free to follow by one step (`judge_limits`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from scipy.optimize import brentq
from scipy.stats import chi2, norm

from dynid.arrays import Bools, Floats, Ints
from dynid.decompositions import eigh
from dynid.errors import EstimationError
from dynid.estimators.score_sums import student_factor
from dynid.servos.kinds import LINKS
from dynid.servos.servo_equations import ServoEquations
from dynid.servos.servo_model import Entry

BLOCKS = 48
"""Blocks of time of all motions together. Experiment: with 12, 24 and 48 blocks equal simulated legs are called shared
as often; 48 tell most."""
FEWEST_MOTIONS = 3
"""Motions from which on each is left out in turn. Convention: two moves have no spread to speak of."""
NO_SIGNAL = 1e-12
"""Eigenvalue of the equations, every column of unit length, that counts as zero: derivatives are exact to about 1e-9 of
their size, and eigenvalues are squares. Experiment: tests/servos/test_servo_knowledge.py."""
NO_SHARE = 1e-4
"""Effect of a parameter in a direction that shows nothing, as a share of the largest one, that counts as none. The
derivatives' errors come to less."""
TIED = 0.7
"""Correlation from which on two unknown parameters are named together. Convention: each then explains half of the
other's variance."""
SIGNED = ("zero", "offset", *LINKS)
"""Kinds that may be negative by nature."""
LIMITS = ("effort_limit", "stall_torque", "no_load_speed", "current_limit")
"""Kinds that have no effect from some value on."""
LEVEL = 1e-3
"""Probability of taking a motion without a limit for one with a limit. Experiment: with 0.05, 3 of 40 were."""
FAR = 1e6
"""Cost, in variances of a residual, that stands for a motion that runs away (any number beyond all levels)."""
VAGUE = "hardly shown by these motions (a standard deviation above any likely value)"
HIDDEN = "without an effect on these motions that stands above their noise"
TOGETHER = "only known together"


@dataclass(frozen=True, slots=True)
class OpenDirection:
    """A change of parameters that the motions do not show, or show less than noise would."""

    names: tuple[str, ...]
    """The parameters that change, largest effect first."""
    note: str
    """What is known of them."""
    at_least: float | None = None
    """Least value of a limit that the motions do not reach, in its unit."""

    @classmethod
    def of(cls, names: Sequence[str], alone: str) -> OpenDirection:
        """Entries that are known together, or what is said of one alone."""
        return cls(tuple(names), alone if len(names) == 1 else TOGETHER)

    def __str__(self) -> str:
        return f"{self.note}: {' + '.join(self.names)}"


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """What the motions of a fit tell of its P entries."""

    std: Floats
    """(P,) standard deviations: infinite where open, NaN at a bound."""
    open_directions: tuple[OpenDirection, ...]
    at_bound: Bools
    """(P,) which entries stand at a bound."""
    binds: Bools
    """(P,) which of these the data want beyond it."""
    biased: Bools
    """(P,) which others would move, without the bounds, by more than chance does."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The equations of the motions, linear at an estimate, block by block of time."""

    A: Floats
    """(B, P, P) ``J' J``."""
    g: Floats
    """(B, P) ``J' residuals``."""
    motion: Ints
    """(B,) number of the motion of each block."""
    variance: float
    """Variance of a residual, if they are independent."""

    @classmethod
    def of(cls, equations: ServoEquations, values: Floats) -> Blocks:
        """Cut the motions of a fit into blocks at its solution (P,)."""
        lengths = [len(motion.time) for motion in equations.motions]
        counts = [min(length, max(1, round(BLOCKS * length / sum(lengths)))) for length in lengths]
        parts = [equations.linearise(values, *one) for one in zip(equations.motions, counts, strict=True)]
        squares, A, g = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        freedom = sum(int(motion.counts.sum()) for motion in equations.motions) - len(values)
        motion = np.repeat(np.arange(len(lengths)), counts)
        return cls(A, g, motion, float(squares.sum()) / max(1, freedom))

    def covariance(self) -> tuple[Floats, float]:
        """(P, P) covariance of the entries, and how much larger variances usually are than of independent errors."""
        found = self.variance * told_inverse(self.A.sum(axis=0))
        own = np.diagonal(found)
        most, some = own, own > 0.0
        for group in (np.arange(len(self.A)), self.motion):
            parts = [group == b for b in np.unique(group)]
            if len(parts) >= FEWEST_MOTIONS:
                sums = ([x[part].sum(axis=0) for part in parts] for x in (self.A, self.g))
                most = np.maximum(most, left_out_variances(self.A.sum(axis=0), *sums))
        most = np.minimum(most, own / NO_SIGNAL)  # of what has no effect both are rounding errors
        factor = np.sqrt(np.divide(most, own, where=some, out=np.ones(len(own))))
        return found * np.outer(factor, factor), float(np.median(factor[some] ** 2)) if some.any() else 1.0


def left_out_variances(A: Floats, blocks: Sequence[Floats], scores: Sequence[Floats]) -> Floats:
    """(P,) variances by leaving out blocks, with the factor of Student's t.

    Args:
        A: (P, P) the equations of all blocks.
        blocks: (P, P) those of each.
        scores: (P,) ``J' residuals`` of each at the solution.
    """
    B = len(blocks)
    moves = np.array([-told_inverse(A - block) @ score for block, score in zip(blocks, scores, strict=True)])
    spread = (B - 1.0) / B * np.sum((moves - moves.mean(axis=0)) ** 2, axis=0)
    return np.asarray(spread * student_factor(B - 1.0) ** 2)


def told_inverse(A: Floats) -> Floats:
    """(P, P) inverse of equations within the directions that they tell."""
    return _split_directions(A)[0]


def _split_directions(A: Floats) -> tuple[Floats, Floats]:
    """The inverse (P, P) of equations, and what they hide (k, P): one pivot each, in units of the entries' effects.

    Every column is taken at unit length, so that neither units nor the values that a search happened to find decide
    which parameters are partners.
    """
    length = np.sqrt(np.maximum(np.diagonal(A), 0.0))
    unit = np.where(length > 0.0, length, 1.0)
    eigenvalues, vectors = eigh(A / np.outer(unit, unit))
    told = eigenvalues > NO_SIGNAL * len(A)
    root = vectors[:, told] / np.sqrt(eigenvalues[told]) / unit[:, None]
    basis = vectors[:, ~told].T
    if len(basis):  # as many zeros as elimination gives
        _, R, order = qr(basis, mode="economic", pivoting=True)
        basis = np.empty_like(R)
        basis[:, order] = np.linalg.solve(R[:, : len(R)], R)
    return root @ root.T, basis


def hidden_directions(entries: Sequence[Entry], A: Floats) -> list[OpenDirection]:
    """Changes of the entries of which equations (P, P) say nothing."""
    found = []
    for row in _split_directions(A)[1]:
        share = np.abs(row) / np.abs(row).max()
        order = np.argsort(-np.round(share, 2), kind="stable")
        found.append(OpenDirection.of([entries[k].name for k in order if share[k] >= NO_SHARE], HIDDEN))
    return found


def judge_knowledge(equations: ServoEquations, values: Floats) -> Knowledge:
    """What the motions tell of the entries at a solution (P,).

    A value at a bound is no estimate: it counts as free where the others are judged, and the distance by which its
    release would move them is added. So it is with zero, for what cannot be negative: a stated gain may be wrong.
    """
    entries, (lower, upper) = equations.model.entries, equations.model.bounds
    at_bound = (values <= lower) | (values >= upper)
    blocks = Blocks.of(equations, values)
    A, (covariance, excess) = blocks.A.sum(axis=0), blocks.covariance()
    move = told_inverse(A) @ np.where(at_bound, blocks.g.sum(axis=0), 0.0)
    directions = hidden_directions(entries, A)
    named = {name for direction in directions for name in direction.names}
    shown = np.array([entry.name not in named for entry in entries])
    beyond = shown & (np.abs(move) > norm.ppf(0.975) * np.sqrt(np.diagonal(covariance)))
    covariance = covariance + np.outer(move, move)
    size = np.where(at_bound, np.inf, _plausible_sizes(entries, values))
    vague = [
        k for k in np.flatnonzero(np.sqrt(np.diagonal(covariance)) > size).tolist() if entries[k].name not in named
    ]
    directions += _vague_directions(entries, told_inverse(A), vague)
    directions = judge_limits(equations, values, blocks.variance * max(1.0, excess), directions)
    opened = {name for direction in directions for name in direction.names}
    is_open = np.array([entry.name in opened for entry in entries])
    std = np.where(is_open, np.inf, np.where(at_bound, np.nan, np.sqrt(np.diagonal(covariance))))
    return Knowledge(std, tuple(directions), at_bound, at_bound & beyond, ~at_bound & beyond)


def _plausible_sizes(entries: Sequence[Entry], values: Floats) -> Floats:
    """(P,) standard deviations above which nothing is known of an entry.

    That is its value, or the unit of its kind where that is larger or the value may be negative; and no more than the
    standard deviation of values spread evenly between the bounds.
    """
    width = np.array([entry.upper - entry.lower for entry in entries]) / np.sqrt(12.0)
    unit = np.array([entry.scale for entry in entries])
    signed = np.array([entry.kind in SIGNED for entry in entries])
    return np.asarray(np.minimum(np.where(signed, unit, np.maximum(np.abs(values), unit)), width))


def _vague_directions(entries: Sequence[Entry], inverse: Floats, left: list[int]) -> list[OpenDirection]:
    """Entries of which less is known than is plausible anyway, those together that vary together."""
    std = np.sqrt(np.diagonal(inverse))
    correlation = inverse / np.outer(*2 * [np.where(std > 0.0, std, 1.0)])
    found = []
    while left:
        group = [left.pop(0)]
        for k in group:
            group += [j for j in left if abs(correlation[k, j]) >= TIED]
            left = [j for j in left if j not in group]
        found.append(OpenDirection.of([entries[k].name for k in group], VAGUE))
    return found


def judge_limits(
    equations: ServoEquations, values: Floats, variance: float, directions: Sequence[OpenDirection]
) -> list[OpenDirection]:
    """What is open, with the limits that the motions do not tell from no limit at all.

    Args:
        equations: Motions, model and filter.
        values: (P,) the solution.
        variance: Variance of a residual, raised for what lasts in time.
        directions: What is open by derivatives alone.
    """
    found, level = list(directions), float(chi2.ppf(0.95, 1))
    for place, entry in enumerate(equations.model.entries):
        mine = [direction for direction in found if entry.name in direction.names]
        if entry.kind not in LIMITS or any(len(direction.names) > 1 for direction in mine):
            continue
        excess, least = _excess_of_limit(equations, values, place, variance), entry.lower
        if mine or excess(float(values[place])) > -chi2.ppf(1.0 - LEVEL, 1):
            note = "not reached by these motions, as far as their noise tells"
            if excess(least) > level:  # the smallest limit that they do not contradict at a level of 95 %
                root = brentq(lambda x: excess(np.exp(x)) - level, *np.log([entry.lower, entry.upper]), rtol=1e-4)  # noqa: B023
                least = float(np.exp(root))
                note += f", at least {least:.3g} {entry.unit}"
            found = [d for d in found if d not in mine] + [OpenDirection((entry.name,), note, at_least=least)]
    return found


def _excess_of_limit(
    equations: ServoEquations, values: Floats, place: int, variance: float
) -> Callable[[float], float]:
    """Sum of squares under a limit less that without it, in variances of a residual, after the others have followed."""
    others = np.delete(np.arange(len(values)), place)

    def cost(limit: float) -> float:
        tried = values.copy()
        tried[place] = limit
        try:
            here = equations.normal(tried)
        except EstimationError:
            return float("inf")
        score = here.score[others]
        return here.cost - float(score @ told_inverse(here.information[np.ix_(others, others)]) @ score)

    free = cost(equations.model.entries[place].upper)
    return lambda limit: min((cost(limit) - free) / max(variance, 1e-300), FAR)
