"""What motions tell about the parameters of servos: their covariance, and what is open.

The errors of a simulated motion are mostly what the model misses: alike for seconds, and different from motion to
motion. So the estimate is made again, in one linear step, without each block of time in turn, and without each motion:
``-(A - A_b)^-1 g_b`` with the equations A and the scores g of a block (jackknife of clusters; MacKinnon, Nielsen and
Webb 2023 advise it for few clusters of unequal weight). Variances are the largest of these and of independent errors.

A limit of a drive just above what a motion asks for moves a few samples by less than their noise, and its curvature
there looks like knowledge. So every limit is compared with no limit at all: the sum of squares without it, the other
entries free to follow by one step. Where that is no larger than noise makes it, only a least value is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr
from scipy.optimize import brentq
from scipy.stats import chi2, norm, t

from dynid.actuators.kinds import LINKS
from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_model import Entry
from dynid.arrays import Bools, Floats, Ints
from dynid.decompositions import eigh
from dynid.errors import EstimationError

BLOCKS = 48
"""Blocks of time of all motions together. Experiment: with 12, 24 and 48 blocks equal simulated legs are called shared
as often; 48 tell most."""
FEWEST_MOTIONS = 3
"""Motions from which on each is left out in turn. Convention: two moves have no spread to speak of."""
NO_SIGNAL = 1e-12
"""Eigenvalue of the equations, every column of unit length, that counts as zero: derivatives are exact to about 1e-9 of
their size, and eigenvalues are squares. Experiment: tests/actuators/test_servo_knowledge.py."""
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


@dataclass(frozen=True, slots=True)
class OpenDirection:
    """A change of parameters that the motions do not show, or show less than noise would."""

    names: tuple[str, ...]
    """The parameters that change, largest effect first."""
    note: str = ""
    """What is known of them, where it is neither "nothing" nor "only together"."""
    at_least: float | None = None
    """Least value of a limit that the motions do not reach, in its unit."""
    is_vague: bool = False
    """Whether the motions tell something of it, but less than what is plausible anyway."""

    def __str__(self) -> str:
        if len(self.names) == 1:
            why = f"is {self.note}" if self.note else "has no effect on these motions that stands above their noise"
            return f"{self.names[0]} {why}"
        return f"{', '.join(self.names[:-1])} and {self.names[-1]} are {self.note or 'only known together'}"


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

    @property
    def whole(self) -> Floats:
        """(P, P) the equations of all blocks."""
        return np.asarray(self.A.sum(axis=0))

    def covariance(self, kept: Sequence[int]) -> Floats:
        """(k, k) covariance of some entries, the others held."""
        rows = np.ix_(kept, kept)
        A = self.whole[rows]
        found = self.variance * told_inverse(A)
        own = np.diagonal(found)
        groups = [np.arange(len(self.A)), self.motion if self.motion[-1] + 1 >= FEWEST_MOTIONS else None]
        most = np.array(own)
        for group in groups:
            if group is not None:
                blocks = [self.A[group == b].sum(axis=0)[rows] for b in np.unique(group)]
                scores = [self.g[group == b].sum(axis=0)[list(kept)] for b in np.unique(group)]
                most = np.maximum(most, left_out_variances(A, blocks, scores))
        most = np.minimum(most, own / NO_SIGNAL)  # of what has no effect both are rounding errors
        factor = np.sqrt(most / np.where(own > 0.0, own, np.inf), where=own > 0.0, out=np.ones(len(own)))
        return np.asarray(found * np.outer(factor, factor))


def left_out_variances(A: Floats, blocks: Sequence[Floats], scores: Sequence[Floats]) -> Floats:
    """(P,) variances by leaving out blocks, with the factor of Student's t.

    Args:
        A: (P, P) the equations of all blocks.
        blocks: (P, P) those of each.
        scores: (P,) ``J' residuals`` of each at the solution.
    """
    B = len(blocks)
    if B < FEWEST_MOTIONS:
        return np.zeros(len(A))
    moves = np.array([-told_inverse(A - block) @ score for block, score in zip(blocks, scores, strict=True)])
    spread = (B - 1.0) / B * np.sum((moves - moves.mean(axis=0)) ** 2, axis=0)
    return np.asarray(spread * (t.ppf(0.975, B - 1) / norm.ppf(0.975)) ** 2)


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


def judge_knowledge(
    blocks: Blocks, entries: Sequence[Entry], values: Floats, at_bound: Bools
) -> tuple[Floats, tuple[OpenDirection, ...]]:
    """Covariance (P, P) of the entries, zero for those at a bound, and what is open.

    A value at a bound is no estimate: it counts as free where the others are judged, and the distance by which its
    release would move them is added. Zero, for what cannot be negative, is no bound of the search but knowledge.

    Args:
        blocks: What the motions say.
        entries: The entries of the model.
        values: (P,) their values.
        at_bound: (P,) which of them stand at a bound.
    """
    pairs = zip(entries, values, strict=True)
    physical = np.array([entry.lower == 0.0 >= value and entry.kind not in SIGNED for entry, value in pairs])
    kept = np.flatnonzero(~(at_bound & physical)).tolist()
    covariance, rows = np.zeros_like(blocks.whole), np.ix_(kept, kept)
    shift = told_inverse(blocks.whole[rows]) @ np.where(at_bound, blocks.g.sum(axis=0), 0.0)[kept]
    covariance[rows] = blocks.covariance(kept) + np.outer(shift, shift)
    return covariance, find_open_directions(entries, values, blocks.whole, np.where(at_bound, 0.0, covariance))


def entry_sizes(entries: Sequence[Entry], values: Floats) -> Floats:
    """(P,) the size of every entry: its value, or the unit of its kind where that is larger."""
    return np.asarray(np.maximum(np.abs(values), np.array([entry.scale for entry in entries])))


def _plausible_sizes(entries: Sequence[Entry], values: Floats) -> Floats:
    """(P,) standard deviations above which nothing is known of an entry.

    It is the entry's size, for kinds that may be negative the unit of the kind: their values say nothing of what is
    plausible. It is no more than the standard deviation of values spread evenly between the bounds.
    """
    width = np.array([entry.upper - entry.lower for entry in entries]) / np.sqrt(12.0)
    unit = np.array([entry.scale for entry in entries])
    signed = np.array([entry.kind in SIGNED for entry in entries])
    return np.asarray(np.minimum(np.where(signed, unit, entry_sizes(entries, values)), width))


def find_open_directions(
    entries: Sequence[Entry], values: Floats, information: Floats, covariance: Floats | None = None
) -> tuple[OpenDirection, ...]:
    """Changes of the parameters about which the equations say nothing.

    Args:
        entries: The entries of the model.
        values: (P,) their values.
        information: (P, P) ``J' J``.
        covariance: After a fit the (P, P) covariance: an entry whose standard deviation is larger than its plausible
            size is then open too.
    """
    if not len(entries):
        return ()
    inverse, hidden = _split_directions(information)
    found, named = [], set[int]()
    for row in hidden:
        share = np.abs(row) / np.abs(row).max()
        chosen = [int(k) for k in np.argsort(-np.round(share, 2), kind="stable") if share[k] >= NO_SHARE]
        named.update(chosen)
        found.append(OpenDirection(tuple(entries[k].name for k in chosen)))
    if covariance is None:
        return tuple(found)
    std = np.sqrt(np.diagonal(inverse))
    correlation = inverse / np.outer(*2 * [np.where(std > 0.0, std, 1.0)])
    vague = np.sqrt(np.diagonal(covariance)) > _plausible_sizes(entries, values)
    left = [int(k) for k in np.flatnonzero(vague) if k not in named]
    while left:  # those together that vary together
        group = [left.pop(0)]
        for k in group:
            tied = [j for j in left if abs(correlation[k, j]) >= TIED]
            left = [j for j in left if j not in tied]
            group += tied
        lone = len(group) == 1
        found.append(OpenDirection(tuple(entries[k].name for k in group), VAGUE if lone else "", is_vague=lone))
    return tuple(found)


def judge_limits(
    equations: ServoEquations, values: Floats, variance: float, directions: tuple[OpenDirection, ...]
) -> tuple[OpenDirection, ...]:
    """What is open, with the limits that the motions do not tell from no limit at all.

    Args:
        equations: Motions, model and filter.
        values: (P,) the solution.
        variance: Variance of a residual, raised for what lasts in time.
        directions: What is open by derivatives alone.
    """
    together = {name for direction in directions if len(direction.names) > 1 for name in direction.names}
    alone = {direction.names[0] for direction in directions if len(direction.names) == 1}
    found = {}
    for place, entry in enumerate(equations.model.entries):
        if entry.kind not in LIMITS or entry.name in together:
            continue
        excess = _excess_of_limit(equations, values, place, variance)
        if entry.name in alone or excess(float(values[place])) > -chi2.ppf(1.0 - LEVEL, 1):
            least = _least_limit(excess, entry.lower, entry.upper)
            note = "not reached by these motions, as far as their noise tells"
            note += f": it is at least {least:.3g} {entry.unit}" if least > entry.lower else ""
            found[entry.name] = OpenDirection((entry.name,), note, at_least=least)
    kept = [direction for direction in directions if len(direction.names) > 1 or direction.names[0] not in found]
    return (*kept, *found.values())


def _least_limit(excess: Callable[[float], float], lower: float, upper: float) -> float:
    """The smallest limit that the motions do not contradict at a level of 95 %."""
    level = float(chi2.ppf(0.95, 1))
    if excess(lower) <= level:
        return lower
    return float(np.exp(brentq(lambda x: excess(np.exp(x)) - level, *np.log([lower, upper]), rtol=1e-4)))


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
