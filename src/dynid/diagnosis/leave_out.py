"""The one test: is a suspect's amount more than chance between blocks of time, and than model error, can make?

All harmless columns are fitted together with the suspect's, and once more without each block of time: the scatter of
these values is their standard error (the jackknife, a sandwich whose residuals may be correlated within a block), and a
block that was left out shows whether the suspect predicts it better than the harmless columns alone. Several amounts
are judged by Hotelling's T^2, one by Student's t. A column that harmless ones nearly explain is not judged: there the
errors of the model decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import stats

from dynid.arrays import Bools, Floats
from dynid.decompositions import eigh, svd
from dynid.diagnosis.evidence import Evidence

RESOLUTION = 1e-7
"""Singular value of scaled columns, over the largest, below which a combination of columns is rounding noise."""
SHOWN = 0.03
"""Share of a suspect's column that harmless ones must leave for it to be judged (effect: columns are wrong by a few
percent themselves)."""


@dataclass(frozen=True, eq=False)
class Fit:
    """The harmless fit of evidence, and the same without each block of time."""

    evidence: Evidence
    weights: Floats
    """(n,) one over the standard deviation of each joint's residual; zero for joints without torques."""
    basis: Floats
    """(R, r) orthonormal columns that span the weighted harmless ones."""
    values: Floats
    """(h,) values of the harmless columns."""
    residual: Floats
    """(R,) weighted."""

    @classmethod
    def of(cls, evidence: Evidence) -> Fit:
        """Fit the harmless columns, each joint weighted by its residual."""
        count = len(evidence.counts)
        samples = np.maximum(evidence.counts, 1)
        size = np.sqrt(np.bincount(evidence.joint, evidence.torque**2, count) / samples)
        spread = size
        for _ in range(3):
            weights = np.divide(1.0, spread, out=np.zeros(count), where=spread > 0.0)
            scale = weights[evidence.joint]
            X, y = evidence.columns[:, : evidence.harmless] * scale[:, None], evidence.torque * scale
            length = np.linalg.norm(X, axis=0)
            length = np.where(length > 0.0, length, 1.0)
            Q, R = np.linalg.qr(X / length)
            U, s, Vt = svd(R, full_matrices=False)
            there = s > RESOLUTION * s[0]
            basis = Q @ U[:, there]
            along = basis.T @ y
            residual = y - basis @ along
            left = np.bincount(evidence.joint, residual**2, count) / samples
            spread = np.maximum(np.sqrt(left) * np.where(weights > 0.0, spread, 0.0), RESOLUTION * size)
        return cls(evidence, weights, basis, Vt[there].T @ (along / s[there]) / length, residual)

    @property
    def left(self) -> Floats:
        """(n,) rms of each joint's residual over that of its torque."""
        count, joint = len(self.evidence.counts), self.evidence.joint
        total = np.bincount(joint, (self.evidence.torque * self.weights[joint]) ** 2, count)
        return np.sqrt(np.bincount(joint, self.residual**2, count) / np.maximum(total, 1e-300))

    def left_out(self) -> Floats:
        """(n, B) squares that the fit of the other blocks leaves in a block, over all of the torque; NaN if empty."""
        evidence, count = self.evidence, len(self.evidence.counts)
        total = np.bincount(evidence.joint, (evidence.torque * self.weights[evidence.joint]) ** 2, count)
        found = np.full((count, len(evidence.runs)), np.nan)
        for b in range(len(evidence.runs)):
            rows = np.flatnonzero(evidence.block == b)
            missed = _Block.of(self.basis[rows], np.zeros((len(rows), 0)), self.residual[rows]).missed
            joints = evidence.joint[rows]
            here = np.bincount(joints, minlength=count) > 0
            found[here, b] = np.bincount(joints, missed**2, count)[here] / np.maximum(total[here], 1e-300)
        return found

    def with_harmless(self, column: Floats) -> Fit:
        """The fit with further harmless columns (R, d)."""
        more, _ = np.linalg.qr(_beyond(self.basis, column * self.weights[self.evidence.joint][:, None])[0])
        residual = self.residual - more @ (more.T @ self.residual)
        return replace(self, basis=np.hstack([self.basis, more]), residual=residual)


@dataclass(frozen=True, eq=False)
class Amount:
    """What the test says of one suspect."""

    value: Floats
    """(d,) amounts; zero where the log does not show them."""
    covariance: Floats
    """(d, d) of the amounts; infinite where the log does not show them."""
    p: float
    """Probability of such a value without the suspect."""
    gain: float
    """By how much it lowers the squares of the residual, in units of its variance."""
    left_out: float
    """By how much it lowers the squares of blocks that were left out; negative where it predicts worse."""
    freedom: int
    """Degrees of freedom of the standard errors."""

    @property
    def stderr(self) -> Floats:
        """(d,) standard errors."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def half_width(self) -> Floats:
        """(d,) half the widths of the 95 % intervals."""
        return np.asarray(stats.t.ppf(0.975, max(self.freedom, 1)) * self.stderr)


def test_columns(fit: Fit, columns: Sequence[Floats]) -> list[Amount]:
    """Judge suspects, each by itself beside the harmless columns.

    Args:
        fit: The harmless fit.
        columns: For each suspect its columns (R, d), torque per unit in the rows of the evidence.
    """
    if not columns:
        return []
    block, weights = fit.evidence.block, fit.weights[fit.evidence.joint]
    every = np.concatenate(columns, axis=1) * weights[:, None]
    Z, shown, length = _beyond(fit.basis, every)
    places = [np.flatnonzero(block == b) for b in range(len(fit.evidence.runs))]
    parts = [_Block.of(fit.basis[rows], Z[rows], fit.residual[rows]) for rows in places]
    found, start = [], 0
    for width in (column.shape[1] for column in columns):
        own = slice(start, start + width)
        found.append(_judge(parts, own) if shown[own].all() else _untold(width))
        scale = np.where(shown[own], length[own], 1.0)
        last = found[-1]
        found[-1] = replace(last, value=last.value / scale, covariance=last.covariance / np.outer(scale, scale))
        start += width
    return found


def _beyond(basis: Floats, columns: Floats) -> tuple[Floats, Bools, Floats]:
    """Columns without what the basis explains, scaled to length one; which are shown; and their lengths before."""
    rest = columns - basis @ (basis.T @ columns)
    rest -= basis @ (basis.T @ rest)
    length = np.linalg.norm(rest, axis=0)
    shown = length > SHOWN * np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    return rest / np.where(shown, length, np.inf), shown, length


@dataclass(frozen=True, eq=False)
class _Block:
    """A block of time, and the fit of all others."""

    score: Floats
    """(m,) products of the suspects' columns with the residual."""
    size: Floats
    """(m, m) products of the columns with one another."""
    moved: Floats
    """(m, m) what the basis, fitted to the others, takes of these."""
    pulled: Floats
    """(m,) the same of the scores."""
    ahead: Floats
    """(N, m) the columns without what the basis explains in the other blocks."""
    missed: Floats
    """(N,) what the fit of the others leaves here."""

    @classmethod
    def of(cls, Q: Floats, Z: Floats, residual: Floats) -> _Block:
        others = np.linalg.inv((1.0 + RESOLUTION) * np.eye(Q.shape[1]) - Q.T @ Q)
        C, c = Q.T @ Z, Q.T @ residual
        return cls(
            Z.T @ residual,
            Z.T @ Z,
            C.T @ others @ C,
            C.T @ (others @ c),
            Z + Q @ (others @ C),
            residual + Q @ (others @ c),
        )


def _judge(parts: Sequence[_Block], own: slice) -> Amount:
    """The amounts of one suspect, whose columns are free of the basis and of length one."""
    B, d = len(parts), own.stop - own.start
    V = np.sum([part.size[own, own] for part in parts], axis=0)
    u = np.sum([part.score[own] for part in parts], axis=0)
    value = _solve(V, u)
    left_out, each = 0.0, []
    for part in parts:
        there = _solve(V - part.size[own, own] - part.moved[own, own], u - part.score[own] - part.pulled[own])
        predicted = part.ahead[:, own] @ there
        left_out += float(predicted @ (2.0 * part.missed - predicted))
        each.append(there)
    off = np.array(each) - value
    covariance = (B - 1) / B * off.T @ off
    squares = float(value @ _solve(covariance, value))
    p = float(stats.f.sf(squares * (B - d) / (d * (B - 1)), d, B - d)) if d < B else 1.0
    return Amount(value, covariance, p, float(u @ value), left_out, B - d)


@dataclass(frozen=True, eq=False)
class Local:
    """A suspect that acts in some blocks of time alone: one group of blocks of several that were tried."""

    group: int
    value: Floats
    """(d,)"""
    covariance: Floats
    """(d, d)"""
    p: float
    """Probability of such a gain in any of the groups without the suspect."""
    gain: float
    freedom: int
    """Degrees of freedom of the standard errors."""


def find_local(fit: Fit, column: Floats, groups: Bools) -> Local:
    """The group of blocks in which a suspect gains most, judged by what it gains in single blocks elsewhere.

    Args:
        fit: The harmless fit.
        column: (R, d) the suspect's columns.
        groups: (G, B) the blocks of each group.
    """
    block, d = fit.evidence.block, column.shape[1]
    gains, values, inverses = _local_gains(fit, column, groups)
    best = int(np.argmax(gains))
    inside = groups[best]
    beside = fit.with_harmless(column * inside[block][:, None])
    outside = np.flatnonzero(~inside)
    usual, _, _ = _local_gains(beside, column, np.eye(len(inside), dtype=bool)[outside])
    scale = max(float(np.mean(usual)) / d if outside.size else np.inf, 1.0)  # no residual is less than independent
    freedom = d * max(outside.size, 1)
    p = min(1.0, len(groups) * float(stats.f.sf(gains[best] / d / scale, d, freedom)))
    return Local(best, values[best], scale * inverses[best], p, float(gains[best]), freedom)


def _local_gains(fit: Fit, column: Floats, groups: Bools) -> tuple[Floats, Floats, Floats]:
    """For each group of blocks a suspect's gain (G,), its values (G, d), and the inverse products (G, d, d)."""
    block = fit.evidence.block
    scaled = column * fit.weights[fit.evidence.joint][:, None]
    length = np.linalg.norm(scaled, axis=0)
    length = np.where(length > 0.0, length, 1.0)
    L = scaled / length
    order = np.argsort(block, kind="stable")
    edges = np.searchsorted(block[order], np.arange(groups.shape[1] + 1))
    parts = [order[start:stop] for start, stop in pairwise(edges)]
    sizes = np.array([L[rows].T @ L[rows] for rows in parts])
    along = np.array([fit.basis[rows].T @ L[rows] for rows in parts])
    scores = np.array([L[rows].T @ fit.residual[rows] for rows in parts])
    gains, values, inverses = [], [], []
    for group in groups:
        taken = along[group].sum(axis=0)
        left = sizes[group].sum(axis=0) - taken.T @ taken
        lambdas, vectors = eigh(left)
        there = lambdas > SHOWN**2 * np.maximum(np.trace(sizes[group].sum(axis=0)), 1e-300)
        inverse = (vectors[:, there] / lambdas[there]) @ vectors[:, there].T
        score = scores[group].sum(axis=0)
        values.append(inverse @ score / length)
        gains.append(float(score @ inverse @ score))
        inverses.append(inverse / np.outer(length, length))
    return np.array(gains), np.array(values), np.array(inverses)


def _untold(width: int) -> Amount:
    return Amount(np.zeros(width), np.diag(np.full(width, np.inf)), 1.0, 0.0, 0.0, 1)


def _solve(products: Floats, right: Floats) -> Floats:
    """Values of few columns of length one; combinations that are not there get nothing."""
    values, vectors = eigh(products)
    there = values > RESOLUTION * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, there] @ ((vectors[:, there].T @ right) / values[there]))
