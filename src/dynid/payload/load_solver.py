"""The solver of load equations ``W x = y``: weighted least squares, with the sandwich covariance over blocks of time.

The first ten unknowns x are the load's parameters (six moments of inertia, three first moments, mass). Further ones
are a sensor's bias or the arm's parameters. A channel is a component of the wrench or the torque of a joint.

`solve_load_equations` is the main function, `BlockEquations` its input, `LinearSolution` its result.
`dynid.payload.wrist` (force sensor), `payload` (joint torques) and `drive_gains` make the equations.

The covariance is cluster-robust (CR2 of Bell and McCaffrey 2002), with the blocks as clusters:

    covariance = C (sum_b s_b s_b^T) C        C = (W^T W)^-1,  s_b = (1 - H_b)^-1/2 W_b^T e_b  in coordinates with C = 1

with weighted columns W_b and residuals e_b of block b. ``H_b = W_b^T W_b`` is the share of the block in the
information; its factor corrects that the fit makes the block's residuals smaller. Few blocks leave few degrees of
freedom, each parameter its own, hence Student's t. A block is a stretch of time that is longer than the noise is
correlated, or one pose at rest.

Whether a moment of inertia is determined is decided for each by itself. If the data leave some of them open, all six
get a weak prior with mean zero, whose standard deviation is the moment of the whole mass on a plausible radius. A
moment whose standard deviation stays near the prior one counts as open (undetermined).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.array_types import Bools, Floats, Ints
from dynid.decompositions import eigh, standard_deviations, svd
from dynid.errors import IdentifiabilityError
from dynid.estimators.score_sums import LEAST_LEFT_SHARE, student_factor
from dynid.lazy import cached_property
from dynid.payload.load import LARGE_SHARE, Load, remark
from dynid.spatial import EXACT, SAME, TINY

ROUNDS = 4
"""Number of rounds that weight by the residuals of the round before (convention: two rounds nearly settle them)."""
PLAUSIBLE_RADIUS = 0.15
"""Radius on which the whole mass has the prior standard deviation of the moments of inertia [m] (convention)."""
HEAVY_LOAD = 10.0
"""Mass of that prior where the data leave the mass open [kg] (convention)."""
SHARED_SAMPLES = 10.0
"""The variance of a channel is drawn towards the mean of its kind as by so many further samples (convention)."""
FEWEST_BLOCKS, MOST_BLOCKS = 8, 24
"""Smallest and largest number of blocks of time of a motion (convention: fewer leave too few degrees of freedom)."""
SHORTEST_BLOCK_PERIODS = 3.0
"""Shortest block [periods of the noise's cutoff] (effect: low-passed noise is correlated for less than one)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearSolution:
    """The solution of a linear least-squares problem with k unknowns."""

    values: Floats
    """(k,) values; where the data leave directions open, those of the smallest norm."""
    covariance: Floats
    """(k, k) covariance in the directions that the data determine; it contains Student's factor, so that 1.96 standard
    deviations are half of a 95 % interval for few blocks, too."""
    undetermined: Bools
    """(k,) whether the data do not determine the unknown."""
    noise_std: Floats
    """(c,) standard deviation of the residual of each channel."""
    white: Floats
    """(k, k) covariance if residuals were independent of one another."""

    @property
    def stderr(self) -> Floats:
        """(k,) standard deviations; infinite where the data leave the unknown open."""
        return standard_deviations(self.covariance, self.undetermined)

    @property
    def determined(self) -> Floats:
        """(k,) the values; zero where the data leave the unknown open."""
        return np.where(self.undetermined, 0.0, self.values)

    def load(self, frame: str, method: str, remedy: str, **facts: Any) -> Load:
        """Make the load of the first ten unknowns.

        Args:
            frame: Link in whose frame the load is described.
            method: How it was identified, for people.
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
    """Equations ``W x = y`` of c channels in blocks of time, with k unknowns x."""

    blocks: Sequence[Sequence[Floats]]
    """Block -> channel -> (m, k + 1) rows ``[W | y]``, or any rows with the same cross products"""
    counts: Floats
    """(c,) number of measurements of each channel"""
    kinds: Ints
    """(c,) number of the kind of each channel (force, moment, joint); noise within a kind is of similar size"""

    @classmethod
    def of(cls, W: Floats, y: Floats, labels: Ints) -> BlockEquations:
        """Make the equations of wrenches.

        Args:
            W: (N, c, k) columns.
            y: (N, c) measurements, forces before moments.
            labels: (N,) number of the block of each sample.
        """
        rows = np.concatenate([W, y[..., None]], axis=2)  # (N, c, k + 1)
        parts = [rows[labels == label] for label in np.unique(labels)]
        blocks = [[_triangle(part[:, channel]) for channel in range(y.shape[1])] for part in parts]
        return cls(blocks, np.full(y.shape[1], float(len(y))), np.arange(y.shape[1]) // 3)  # 0: force, 1: moment

    @cached_property
    def channels(self) -> list[Floats]:
        """For each channel the (m, k + 1) rows of all blocks."""
        return [_triangle(np.concatenate(rows)) for rows in zip(*self.blocks, strict=True)]


def _triangle(rows: Floats) -> Floats:
    """Rows with the same cross products (the triangle of a QR factorisation), at most as many as columns."""
    return np.asarray(np.linalg.qr(rows, mode="r"))


def solve_blocks(equations: BlockEquations, prior: Floats | None = None) -> LinearSolution:
    """Solve equations with every channel weighted by its own residual.

    The variance of each channel is drawn towards the mean of its kind (forces, moments), as few samples determine it
    poorly.

    Args:
        equations: The equations.
        prior: (k,) one over the prior standard deviation of each unknown, whose prior mean is zero; by default there
            is no prior.

    Raises:
        IdentifiabilityError: There are as many unknowns as equations.
    """
    channels = equations.channels
    unknowns = channels[0].shape[1] - 1
    # the prior as further rows [W | y] of unit noise
    prior_rows = np.column_stack([np.diag(np.zeros(unknowns) if prior is None else prior), np.zeros(unknowns)])
    prior_rows = prior_rows[np.any(prior_rows, axis=1)]
    # least standard deviation, for channels without any residual
    smallest = EXACT * max(np.sqrt(TINY), *(np.abs(rows[:, -1]).max(initial=0.0) for rows in channels))
    std = np.ones(len(channels))
    for _ in range(ROUNDS):  # weights from the residuals of the round before
        rows = np.concatenate([*(own / s for own, s in zip(channels, std, strict=True)), prior_rows])
        values, root, undetermined = solve_minimum_norm(rows[:, :-1], rows[:, -1])
        squares = np.array([np.sum((own @ np.append(values, -1.0)) ** 2) for own in channels])  # of the residuals
        # trace of each channel's part of the hat matrix: how many unknowns it determines
        used = [np.sum((own[:, :-1] @ root) ** 2) / s**2 for own, s in zip(channels, std, strict=True)]
        variance = _shared_variance(squares, equations.counts - np.array(used), equations.kinds)
        std = np.maximum(np.sqrt(variance), smallest)
    weighted = [np.concatenate([rows / s for rows, s in zip(block, std, strict=True)]) for block in equations.blocks]
    covariance = block_covariance(weighted, values, root, prior_rows[:, :-1])
    return LinearSolution(
        values=values, covariance=covariance, undetermined=undetermined, noise_std=std, white=root @ root.T
    )


def solve_load_equations(equations: BlockEquations, prior: Floats | None = None) -> LinearSolution:
    """Solve equations whose first ten unknowns are a load, and decide which moments of inertia are determined.

    Args:
        equations: The equations.
        prior: (k,) as for `solve_blocks`; that of the moments of inertia is replaced where data leave some open.
    """
    plain = solve_blocks(equations, prior)
    weak = inertia_prior(plain.values, is_mass_open=bool(plain.undetermined[9]))
    if not (plain.undetermined[:6] | (_over_prior(plain, weak) > 1.0)).any():  # known better than by the prior
        return plain
    with_weak = np.append(weak, np.zeros(len(plain.values) - 10) if prior is None else prior[10:])
    solution = solve_blocks(equations, with_weak)
    undetermined = plain.undetermined.copy()  # the prior concerns moments of inertia only
    undetermined[:6] = _over_prior(solution, weak) > LARGE_SHARE**2
    return replace(solution, undetermined=undetermined)


def inertia_prior(vector: Floats, *, is_mass_open: bool = False) -> Floats:
    """(10,) one over the prior standard deviation of each parameter of a load; zero for mass and first moments.

    The prior standard deviations of the moments of inertia are those of the whole mass on a plausible radius.

    Args:
        vector: (10,) parameters of the load, for its mass and the distance of its centre of mass.
        is_mass_open: Whether the data leave the mass open.
    """
    mass = HEAVY_LOAD if is_mass_open else max(abs(float(vector[9])), TINY)
    arm = 0.0 if is_mass_open else float(np.linalg.norm(vector[6:9])) / mass
    return np.append(np.full(6, 1.0 / (mass * np.clip(arm, PLAUSIBLE_RADIUS, 1.0) ** 2)), np.zeros(4))


def _over_prior(solution: LinearSolution, prior: Floats) -> Floats:
    """(6,) variances of the moments of inertia over their prior variances."""
    return np.asarray(np.diag(solution.covariance)[:6] * prior[:6] ** 2)


def _shared_variance(squares: Floats, spare: Floats, kind: Ints) -> Floats:
    """(c,) variance of each channel, drawn towards the mean of its kind.

    Args:
        squares: (c,) sums of squares of the residuals.
        spare: (c,) number of measurements less that of the unknowns which each channel determines.
        kind: (c,) kind of each channel.
    """
    total, freedom = (np.asarray(np.bincount(kind, x)[kind], dtype=float) for x in (squares, spare))
    if freedom.min() < 0.5:
        raise IdentifiabilityError(
            "there are no more equations than unknowns, so that the noise cannot be estimated",
            remedy="Give more poses or samples.",
        )
    return np.asarray((squares + SHARED_SAMPLES * total / freedom) / (np.maximum(spare, 0.0) + SHARED_SAMPLES))


def solve_minimum_norm(W: Floats, y: Floats) -> tuple[Floats, Floats, Bools]:
    """Solve ``W x = y`` with W (m, k) and y (m,) by least squares; of several solutions, that of the smallest norm.

    Returns:
        (k,) solution; (k, r) root L of its covariance L L^T for unit noise; (k,) whether each unknown stays open.
    """
    length = np.linalg.norm(W, axis=0)
    acts = length > EXACT * length.max(initial=0.0)
    scale = np.where(acts, length, np.inf)  # other unknowns get exactly zero instead of rounding noise
    triangle = _triangle(np.column_stack([W / scale, y]))
    # columns are scaled to length one; the SVD of the triangle has the singular values and right vectors of W
    U, s, Vt = svd(triangle[:, :-1])  # all of Vt, as fewer equations than unknowns leave directions open
    s = np.append(s, np.zeros(len(Vt) - len(s)))
    is_shown = s > SAME  # directions that the equations determine
    undetermined = np.any(np.abs(Vt[~is_shown]) > 1e-5, axis=0)
    root = Vt[is_shown].T / s[is_shown] / scale[:, None]
    along = U[:, : len(s)][:, is_shown[: U.shape[1]]].T @ triangle[:, -1]  # (r,) y along the left singular vectors
    return root @ along, root, undetermined


# --- intervals ---


def block_covariance(blocks: Sequence[Floats], values: Floats, root: Floats, prior_rows: Floats) -> Floats:
    """(k, k) covariance of a solution by the sandwich over b blocks, each parameter with its own Student's t.

    The scores ``s_b`` and shares ``H_b`` are those of the module docstring, in coordinates in which the covariance for
    unit noise is the identity (columns times L).

    Args:
        blocks: (m, k + 1) weighted rows of each block.
        values: (k,) the solution.
        root: (k, r) L with ``L L^T`` the covariance for unit noise.
        prior_rows: (p, k) rows of the prior.
    """
    Z = [rows[:, :-1] @ root for rows in blocks]  # (m, r) each
    share = np.array([z.T @ z for z in Z])  # (b, r, r) H_b
    left, axes = eigh(np.eye(root.shape[1]) - share)
    # (b, r, r) (1 - H_b)^-1/2
    correction = (axes / np.sqrt(np.maximum(left, LEAST_LEFT_SHARE))[:, None]) @ axes.swapaxes(1, 2)
    residuals = [rows[:, -1] - rows[:, :-1] @ values for rows in blocks]
    scores = np.array([F @ (z.T @ e) for F, z, e in zip(correction, Z, residuals, strict=True)])
    # Degrees of freedom (Satterthwaite, Bell and McCaffrey 2002). For white noise the variance of parameter k is a
    # quadratic form of b normal numbers with the matrix form[k] (b, b); freedom = trace(form)^2 / trace(form^2).
    rows = root @ correction  # (b, k, r)
    shared = rows @ share
    form = -np.einsum("bki,cki->kbc", shared, shared, optimize=True)
    diagonal = np.arange(len(blocks))
    form[:, diagonal, diagonal] += np.einsum("bki,bki->kb", shared, rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.einsum("kbb->k", form) ** 2 / np.einsum("kbc,kbc->k", form, form)
    factor = student_factor(np.where(np.isfinite(freedom), freedom, np.inf))
    from_prior = root @ (prior_rows @ root).T
    return np.asarray(np.outer(factor, factor) * (root @ scores.T @ scores @ root.T) + from_prior @ from_prior.T)


def count_blocks(duration_s: float, cutoff_hz: float | None) -> int:
    """Number of blocks of time of a motion: the noise, low-passed at a cutoff [Hz], is correlated for less than one."""
    most = np.inf if cutoff_hz is None else duration_s * cutoff_hz / SHORTEST_BLOCK_PERIODS
    return int(np.clip(most, FEWEST_BLOCKS, MOST_BLOCKS))


def label_blocks(stretches: Sequence[Ints], blocks: int) -> Ints:
    """(N,) block number of each sample, for about so many blocks of about equal length within gap-free stretches."""
    count = sum(map(len, stretches))
    labels = np.zeros(count, dtype=np.int64)
    first = 0  # number of the stretch's first block
    for rows in stretches:
        own_blocks = max(1, round(blocks * len(rows) / count))
        labels[rows] = first + np.arange(len(rows)) * own_blocks // len(rows)
        first += own_blocks
    return labels
