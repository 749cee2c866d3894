"""One solver for the equations of loads: weighted least squares on blocks of time, with the sandwich over these blocks.

    covariance = C (sum_b s_b s_b^T) C        C = (W^T W)^-1,  s_b = (1 - H_b)^-1/2 W_b^T e_b  in coordinates with C = 1

H_b is the share of block b in the information; the factor restores what the fit took out of the block's residuals. Few
blocks leave few degrees of freedom, each parameter its own (Bell and McCaffrey 2002), hence Student's t. A block is a
stretch of time longer than the noise remembers, or one pose at rest.

Every moment of inertia is judged by itself. Where the data leave some of them open, all six get a weak prior: zero,
give or take the whole mass on a plausible radius. A moment that still is hardly more certain than that counts as open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Bools, Floats, Ints
from dynid.decompositions import eigh, standard_deviations, svd
from dynid.errors import IdentifiabilityError
from dynid.estimators.score_sums import student_factor
from dynid.lazy import cached_property
from dynid.payload.load import MUCH, Load, remark
from dynid.spatial import EXACT, SAME, TINY

ROUNDS = 4
"""Rounds of weighting by the residuals of the round before; convention: the weights change little after two."""
PLAUSIBLE_RADIUS = 0.15
"""Radius [m]: moments of inertia that are less certain than those of the whole mass on this radius count as unknown."""
HEAVY_LOAD = 10.0
"""Mass [kg] by which moments of inertia are judged where the data leave the mass open; convention."""
SHARED_SAMPLES = 10.0
"""Weight [samples] of the mean variance of a kind of channels in the variance of each of them; convention."""
LEAST_LEFT = 0.05
"""Share of a direction that the other blocks must determine; less is raised to this, so that rounding is not raised."""
FEWEST_BLOCKS, MOST_BLOCKS = 8, 24
"""Number of blocks of time of a motion: fewer leave no degrees of freedom, more gain nothing."""
PERIODS = 3.0
"""Shortest block [periods of the cutoff of the noise]: low-passed noise forgets in less than one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearSolution:
    """The solution of a linear least-squares problem with k unknowns."""

    values: Floats
    """(k,) of the smallest norm where the data leave directions open"""
    covariance: Floats
    """(k, k) within what the data determine; 1.96 standard deviations hold 95 % for few blocks and for many"""
    undetermined: Bools
    """(k,) whether the data leave the unknown open"""
    noise_std: Floats
    """(c,) standard deviation of the residual of each channel"""
    white: Floats
    """(k, k) covariance if residuals were independent of one another"""

    @property
    def stderr(self) -> Floats:
        """(k,) standard deviations; infinite where the data leave the unknown open."""
        return standard_deviations(self.covariance, self.undetermined)

    @property
    def determined(self) -> Floats:
        """(k,) the values; zero where the data leave the unknown open."""
        return np.where(self.undetermined, 0.0, self.values)

    def load(self, frame: str, method: str, remedy: str, **facts: Any) -> Load:
        """The load that the first ten unknowns hold.

        Args:
            frame: Link in whose frame the load is described.
            method: How it was identified, in words.
            remedy: What shows those of the ten parameters that the data leave open.
            **facts: Further fields of `Load`.
        """
        found = Load(frame=frame, vector=self.determined[:10], covariance=self.covariance[:10, :10], method=method,
                     undetermined=self.undetermined[:10], residual_std=self.noise_std, **facts)  # fmt: skip
        if found.undetermined.any():
            found = found.with_findings(
                remark("load-uncertain", f"the motion does not reveal {found.open_words}", remedy)
            )
        return found


@dataclass(frozen=True, eq=False)
class BlockEquations:
    """Equations of c channels in blocks of time, unknowns first, measurement last."""

    blocks: Sequence[Sequence[Floats]]
    """Block -> channel -> (m, k + 1) rows ``[W | y]``, or any rows with the same cross products"""
    counts: Floats
    """(c,) number of measurements of each channel"""
    kinds: Ints
    """(c,) kind of each channel: those of one kind have noise of about one size"""

    @classmethod
    def of(cls, W: Floats, y: Floats, labels: Ints) -> BlockEquations:
        """Equations W (N, c, k) of measurements y (N, c), forces before moments; labels (N,) number the blocks."""
        rows = np.concatenate([W, y[..., None]], axis=2)
        own = [rows[labels == label] for label in np.unique(labels)]
        blocks = [[_triangle(part[:, channel]) for channel in range(y.shape[1])] for part in own]
        return cls(blocks, np.full(y.shape[1], float(len(y))), np.arange(y.shape[1]) // 3)

    @cached_property
    def channels(self) -> list[Floats]:
        """For each channel the (m, k + 1) rows of all blocks."""
        return [_triangle(np.concatenate(own)) for own in zip(*self.blocks, strict=True)]


def _triangle(rows: Floats) -> Floats:
    """Rows with the same cross products, no more of them than there are columns."""
    return rows if len(rows) <= rows.shape[1] else np.asarray(np.linalg.qr(rows, mode="r"))


def solve_blocks(equations: BlockEquations, prior: Floats | None = None) -> LinearSolution:
    """Solve equations with every channel weighted by its own residual.

    Channels of one kind (forces, moments) share what few samples cannot tell apart.

    Args:
        equations: The equations.
        prior: (k,) one over the standard deviation of each unknown about zero before any data; by default no prior.

    Raises:
        IdentifiabilityError: There are as many unknowns as equations.
    """
    channels = equations.channels
    unknowns = channels[0].shape[1] - 1
    before = np.column_stack([np.diag(np.zeros(unknowns) if prior is None else prior), np.zeros(unknowns)])
    before = before[np.any(before, axis=1)]
    smallest = EXACT * max(float(np.max([np.abs(rows[:, -1]).max(initial=0.0) for rows in channels])), TINY**0.5)
    std = np.ones(len(channels))
    for _ in range(ROUNDS):  # weights from the residuals of the round before
        rows = np.concatenate([*(own / s for own, s in zip(channels, std, strict=True)), before])
        values, root, undetermined = solve_minimum_norm(rows[:, :-1], rows[:, -1])
        squares = np.array([np.sum((own @ np.append(values, -1.0)) ** 2) for own in channels])
        used = [np.sum((own[:, :-1] @ root) ** 2) / s**2 for own, s in zip(channels, std, strict=True)]
        variance = _shared_variance(squares, equations.counts - np.array(used), equations.kinds)
        std = np.maximum(np.sqrt(variance), smallest)
    weighted = [np.concatenate([rows / s for rows, s in zip(block, std, strict=True)]) for block in equations.blocks]
    covariance = block_covariance(weighted, values, root, before[:, :-1])
    return LinearSolution(
        values=values, covariance=covariance, undetermined=undetermined, noise_std=std, white=root @ root.T
    )


def solve_load_equations(equations: BlockEquations, prior: Floats | None = None) -> LinearSolution:
    """Solve equations whose first ten unknowns are a load's, and judge every moment of inertia by itself."""
    plain = solve_blocks(equations, prior)
    weak = inertia_prior(plain.values, is_mass_open=bool(plain.undetermined[9]))
    if not (plain.undetermined[:6] | (_over_prior(plain, weak) > 1.0)).any():
        return plain
    before = np.append(weak, np.zeros(len(plain.values) - 10) if prior is None else prior[10:])
    solution = solve_blocks(equations, before)
    undetermined = plain.undetermined.copy()  # the prior is for moments of inertia only
    undetermined[:6] = _over_prior(solution, weak) > MUCH**2
    return replace(solution, undetermined=undetermined)


def inertia_prior(vector: Floats, *, is_mass_open: bool = False) -> Floats:
    """(10,) one over the prior standard deviation of each parameter of a load; zero for mass and first moments.

    The moments of inertia are those of the whole mass on a plausible radius.
    """
    mass = HEAVY_LOAD if is_mass_open else max(abs(float(vector[9])), TINY)
    arm = 0.0 if is_mass_open else float(np.linalg.norm(vector[6:9])) / mass
    return np.append(np.full(6, 1.0 / (mass * np.clip(arm, PLAUSIBLE_RADIUS, 1.0) ** 2)), np.zeros(4))


def _over_prior(solution: LinearSolution, prior: Floats) -> Floats:
    """(6,) variances of the moments of inertia, over their prior ones."""
    return np.asarray(np.diag(solution.covariance)[:6] * prior[:6] ** 2)


def _shared_variance(squares: Floats, spare: Floats, kind: Ints) -> Floats:
    """Variance (c,) of each channel; those of one kind share what few samples cannot tell apart."""
    total, freedom = (np.asarray(np.bincount(kind, x)[kind], dtype=float) for x in (squares, spare))
    if freedom.min() < 0.5:
        raise IdentifiabilityError(
            "there are no more equations than unknowns, so that the noise cannot be estimated",
            remedy="Give more poses or samples.",
        )
    return np.asarray((squares + SHARED_SAMPLES * total / freedom) / (np.maximum(spare, 0.0) + SHARED_SAMPLES))


def solve_minimum_norm(W: Floats, y: Floats) -> tuple[Floats, Floats, Bools]:
    """Solution (k,) of the smallest norm, a root (k, r) of its covariance for unit noise, and what stays open (k,)."""
    length = np.linalg.norm(W, axis=0)
    seen = length > EXACT * length.max(initial=0.0)
    scale = np.where(seen, length, 1.0)
    triangle = _triangle(np.column_stack([np.where(seen, W, 0.0) / scale, y]))
    U, s, Vt = svd(triangle[:, :-1])  # all of Vt: fewer equations than unknowns leave directions open, too
    s = np.append(s, np.zeros(len(Vt) - len(s)))
    good = s > SAME * s[0]
    undetermined = np.any(np.abs(Vt[~good]) > 1e-5, axis=0)
    reached = np.any(np.abs(Vt[good]) > 1e-5, axis=0)[:, None]  # what is wholly open has no rounding noise
    root = np.where(reached, Vt[good].T, 0.0) / s[good] / scale[:, None]
    return root @ (U[:, : len(s)][:, good[: U.shape[1]]].T @ triangle[:, -1]), root, undetermined


# --- intervals ---


def block_covariance(blocks: Sequence[Floats], values: Floats, root: Floats, before: Floats) -> Floats:
    """(k, k) covariance of a solution by the sandwich over blocks, each parameter with its own Student's t.

    Scores are corrected for what the fit took out of each block (CR2), so that they are right for independent noise.

    Args:
        blocks: (m, k + 1) weighted rows of each block.
        values: (k,) the solution.
        root: (k, r) L with ``L L^T`` the covariance for unit noise.
        before: (p, k) rows of the prior.
    """
    Z = [rows[:, :-1] @ root for rows in blocks]
    share = np.array([z.T @ z for z in Z])
    left, axes = eigh(np.eye(root.shape[1]) - share)
    restore = (axes / np.sqrt(np.maximum(left, LEAST_LEFT))[:, None]) @ axes.swapaxes(1, 2)
    residuals = [rows[:, -1] - rows[:, :-1] @ values for rows in blocks]
    scores = np.array([F @ (z.T @ e) for F, z, e in zip(restore, Z, residuals, strict=True)])
    # degrees of freedom: the spread of the eigenvalues of each variance as a quadratic form of white noise
    rows = root @ restore  # (b, k, r)
    seen = rows @ share
    form = -np.einsum("bki,cki->kbc", seen, seen, optimize=True)
    own = np.arange(len(blocks))
    form[:, own, own] += np.einsum("bki,bki->kb", seen, rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.einsum("kbb->k", form) ** 2 / np.einsum("kbc,kbc->k", form, form)
    wide, given = student_factor(np.where(np.isfinite(freedom), freedom, np.inf)), root @ (before @ root).T
    return np.asarray(np.outer(wide, wide) * (root @ scores.T @ scores @ root.T) + given @ given.T)


def count_blocks(duration_s: float, cutoff_hz: float | None) -> int:
    """Number of blocks for a motion: each longer than noise that was low-passed at a cutoff [Hz] remembers."""
    most = np.inf if cutoff_hz is None else duration_s * cutoff_hz / PERIODS
    return int(np.clip(most, FEWEST_BLOCKS, MOST_BLOCKS))


def label_blocks(stretches: Sequence[Ints], blocks: int) -> Ints:
    """(N,) numbers of blocks of about equal length, none across the ends of the stretches."""
    count = sum(map(len, stretches))
    labels, following = np.zeros(count, dtype=np.int64), 0
    for rows in stretches:
        own = max(1, round(blocks * len(rows) / count))
        labels[rows] = following + np.arange(len(rows)) * own // len(rows)
        following += own
    return labels
