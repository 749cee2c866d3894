"""The one test: is a suspect's amount more than chance between blocks of time, and than model error, can make?

A suspect acts in all blocks of time alike, or in one group of them: a window of a log, a run of several, an arm of a
fleet. All harmless columns are fitted together with the suspect's.

* In all blocks: the fit is made once more without each block. The scatter of these values is their standard error (a
  sandwich whose residuals may be correlated within a block, with the jackknife's correction for few blocks), and the
  block that was left out shows whether the suspect predicts it better than harmless columns alone, friction of any
  shape among them. Several amounts are judged by Hotelling's T^2, one by Student's t.
* In one group: what the suspect gains there is compared with what it gains in as long parts elsewhere, where it does
  not act and model error alone makes it gain (F test, times the number of groups; its degrees of freedom are those
  that the scatter of these gains shows).

A column that harmless ones nearly explain is not judged: there the errors of the model decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.ndimage import binary_dilation

from dynid.array_types import Bools, Floats, Ints
from dynid.decompositions import eigh, lstsq, svd
from dynid.diagnosis.evidence import FEWEST_BLOCKS, Evidence

LEVEL = 0.01
"""Probability that faultless data are accused, over all suspects (level)."""
EQUAL = 0.8
"""Share of what a suspect explains from which on another explains the data equally well (effect)."""
SHOWN = 0.02
"""Share of a suspect's column that harmless ones must leave for it to be judged (effect: columns are wrong by one
or two percent themselves)."""
RESOLUTION = 1e-7
"""Singular value of scaled columns, over the largest, below which a combination of columns is rounding noise."""


@dataclass(frozen=True, eq=False)
class Tried:
    """A suspect in the rows of the evidence."""

    columns: Floats
    """(R, d) torque per unit of each of its amounts."""
    groups: Bools | None = None
    """(G, B) blocks of time in one of which it may act; None where it acts in all blocks."""
    general: bool = False
    """Whether it explains almost anything, so that it is named only where nothing special explains as much."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the test says of one suspect."""

    value: Floats
    """(d,) amounts; zero where the data do not show them."""
    covariance: Floats
    """(d, d) of the amounts; infinite where the data do not show them."""
    p: float
    """Probability of such a value without the suspect, in any of its groups."""
    gain: float
    """By how much it lowers the squares of the residual, in units of its variance."""
    left_out: float
    """The same for data that were not fitted; negative where it predicts worse. Of a single block by Akaike's
    correction."""
    freedom: int
    """Degrees of freedom of the standard errors."""
    suspect: int = 0
    """Place among those that were tried."""
    group: int | None = None
    """Place among its groups; None where it acts in all blocks."""
    rivals: tuple[int, ...] = ()
    """Places of other suspects that explain the data equally well, the strongest first."""

    @property
    def stderr(self) -> Floats:
        """(d,) standard errors."""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @property
    def half_width(self) -> Floats:
        """(d,) half the widths of the 95 % intervals."""
        return np.asarray(stats.t.ppf(0.975, max(self.freedom, 1)) * self.stderr)


@dataclass(frozen=True, eq=False)
class Fit:
    """The harmless fit of evidence."""

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
        weights = joint_weights(evidence)
        scale = weights[evidence.joint]
        X, y = evidence.columns[:, : evidence.harmless] * scale[:, None], evidence.torque * scale
        length = np.linalg.norm(X, axis=0)
        length = np.where(length > 0.0, length, 1.0)
        Q, R = np.linalg.qr(X / length)
        U, s, Vt = svd(R, full_matrices=False)
        there = s > RESOLUTION * s.max(initial=0.0)
        basis = Q @ U[:, there]
        along = basis.T @ y
        return cls(evidence, weights, basis, Vt[there].T @ (along / s[there]) / length, y - basis @ along)

    def with_harmless(self, columns: Floats) -> Fit:
        """The fit with further harmless columns (R, d)."""
        Z, shown, _ = self.beyond(columns)
        U, s, _ = svd(Z[:, shown], full_matrices=False)
        more = U[:, s > RESOLUTION * s.max(initial=0.0)]
        residual = self.residual - more @ (more.T @ self.residual)
        return replace(self, basis=np.hstack([self.basis, more]), residual=residual)

    def left_out(self) -> Floats:
        """(n, B) squares that the fit of the other blocks leaves in a block, over all of the torque; NaN if empty."""
        evidence, count = self.evidence, len(self.evidence.counts)
        total = np.bincount(evidence.joint, (evidence.torque * self.weights[evidence.joint]) ** 2, count)
        found = np.full((count, len(evidence.runs)), np.nan)
        for b, (rows, _, missed) in enumerate(self.without_each(np.zeros((len(self.residual), 0)))):
            joints = evidence.joint[rows]
            here = np.bincount(joints, minlength=count) > 0
            found[here, b] = np.bincount(joints, missed**2, count)[here] / np.maximum(total[here], 1e-300)
        return found

    def beyond(self, columns: Floats) -> tuple[Floats, Bools, Floats]:
        """Weighted columns without what the basis explains, of length one; which are shown; their lengths before."""
        weighted = columns * self.weights[self.evidence.joint][:, None]
        rest = weighted - self.basis @ (self.basis.T @ weighted)
        rest -= self.basis @ (self.basis.T @ rest)
        length, before = np.linalg.norm(rest, axis=0), np.linalg.norm(weighted, axis=0)
        shown = (length > SHOWN * before) & (length > 0.0)
        return rest / np.where(shown, length, np.inf), shown, length

    def without_each(self, Z: Floats) -> Iterator[tuple[Ints, Floats, Floats]]:
        """For each block its rows, columns (R, m) there less what harmless ones explain elsewhere, and the residual."""
        for b in range(len(self.evidence.runs)):
            rows = np.flatnonzero(self.evidence.block == b)
            Q = self.basis[rows]
            others = np.linalg.inv((1.0 + RESOLUTION) * np.eye(Q.shape[1]) - Q.T @ Q)
            rest = np.column_stack([Z[rows], self.residual[rows]])
            rest += Q @ (others @ (Q.T @ rest))
            yield rows, rest[:, :-1], rest[:, -1]


def joint_weights(evidence: Evidence) -> Floats:
    """(n,) one over the standard deviation of each joint's residual of the harmless columns; zero without torques."""
    count, width = len(evidence.counts), evidence.harmless
    table = np.column_stack([evidence.columns[:, :width], evidence.torque])
    small = [np.linalg.qr(table[evidence.joint == j], mode="r") for j in range(count)]  # each joint has one weight
    joint = np.repeat(np.arange(count), [len(rows) for rows in small])
    rows = np.concatenate(small)
    samples = np.maximum(evidence.counts, 1)
    size = spread = np.sqrt(np.bincount(joint, rows[:, -1] ** 2, count) / samples)
    for _ in range(3):
        weights = np.divide(1.0, spread, out=np.zeros(count), where=spread > 0.0)
        weighted = rows * weights[joint][:, None]
        length = np.linalg.norm(weighted[:, :-1], axis=0)
        values = lstsq(weighted[:, :-1] / np.where(length > 0.0, length, 1.0), weighted[:, -1], rcond=RESOLUTION)
        left = weighted[:, -1] - (weighted[:, :-1] / np.where(length > 0.0, length, 1.0)) @ values
        spread = np.maximum(np.sqrt(np.bincount(joint, left**2, count) / samples) * spread, RESOLUTION * size)
    return np.divide(1.0, spread, out=np.zeros(count), where=spread > 0.0)


def judge_suspects(
    fit: Fit,
    suspects: Sequence[Tried],
    *,
    level: float = LEVEL,
    is_worth: Callable[[int, Verdict], bool] = lambda suspect, verdict: True,
    first: Sequence[Verdict] | None = None,
) -> Iterator[Verdict]:
    """Say which suspects the data show, the strongest first; what was named is harmless for the next.

    How to group: the evidence is cut into blocks of time. A suspect of a log acts in all of them (no groups). For
    suspect x run, x arm or x window, give the blocks of each run, arm or window as a row of `Tried.groups`; blocks
    outside the group show what model error makes, so there must be some. Rows that are no torques of joints, such as
    the channels of a wrist sensor, are `Evidence.of_rows` with the channel in place of the joint.

    Args:
        fit: The harmless fit, `Fit.of(evidence)`.
        suspects: What is tried.
        level: Probability that faultless data are accused, over all suspects and groups.
        is_worth: Called with the place of a suspect and its verdict: whether its effect is worth telling.
        first: What `test_suspects` says of them, where that is known.
    """
    open_ones, verdicts = list(range(len(suspects))), first
    while open_ones:
        verdicts = verdicts or test_suspects(fit, [suspects[k] for k in open_ones])
        told = dict(zip(open_ones, verdicts, strict=True))
        worth = {k: found for k, found in told.items() if found.left_out > 0.0 and is_worth(k, found)}
        likely = {k: found for k, found in worth.items() if found.p * len(suspects) < level}
        if not likely:
            return
        order = sorted(likely, key=lambda k: -likely[k].left_out)
        best = order[0]
        if suspects[best].general:  # something is there, and whatever special explains as much of it is named
            gain = likely[best].gain
            alike = [k for k in worth if (k in likely or worth[k].group is not None) and not suspects[k].general]
            special = [k for k in alike if worth[k].gain > EQUAL * gain]
            best = max(special, key=lambda k: worth[k].left_out, default=best)
        found = worth[best]
        rivals = tuple(k for k in order if k != best and likely[k].gain > EQUAL * found.gain)
        yield replace(found, suspect=best, rivals=rivals)
        fit = fit.with_harmless(columns_in_group(fit.evidence, suspects[best], found))
        verdicts = None
        if found.group is None:
            open_ones.remove(best)


def compare(rival: Floats, usual: Floats, tried: int) -> tuple[float, float]:
    """Compare what two explanations leave, as squares (B, n) of joints in blocks of time; NaN if empty.

    Returns:
        The probability that chance between the blocks makes one of so many rivals as good, and the root mean square
        that the rival leaves over that of the usual one.
    """
    ratio = np.nansum(np.log(rival / usual), axis=1)
    chance = tried * float(stats.ttest_1samp(ratio, 0.0, alternative="less").pvalue)
    return chance, float(np.exp(0.5 * ratio.mean()))


def columns_in_group(evidence: Evidence, suspect: Tried, verdict: Verdict) -> Floats:
    """(R, d) the columns of a suspect, zero outside the group that a verdict names."""
    if suspect.groups is None or verdict.group is None:
        return suspect.columns
    return np.where(suspect.groups[verdict.group][evidence.block][:, None], suspect.columns, 0.0)


def effect_of(evidence: Evidence, columns: Floats, value: Floats) -> float:
    """Largest rms torque of amounts (d,) of columns (R, d) over the rms torque of a joint, where they act."""
    count, here = len(evidence.counts), columns.any(axis=1)
    made = np.bincount(evidence.joint, (columns @ value) ** 2, count)
    total = np.bincount(evidence.joint[here], evidence.torque[here] ** 2, count)
    return float(np.sqrt(np.max(np.divide(made, total, out=np.zeros(count), where=total > 0.0))))


def test_suspects(fit: Fit, suspects: Sequence[Tried]) -> list[Verdict]:
    """The verdict on each suspect by itself, significant or not."""
    whole = iter(test_columns(fit, [suspect.columns for suspect in suspects if suspect.groups is None]))
    return [
        next(whole) if suspect.groups is None else _test_groups(fit, suspect.columns, suspect.groups)
        for suspect in suspects
    ]


# --- in all blocks ----------------------------------------------------------------------------------------------------


def test_columns(fit: Fit, columns: Sequence[Floats], *, blocks: int = 0) -> list[Verdict]:  # noqa: PT028
    """The verdict on suspects (R, d) that act in so many blocks, by default all, each by itself."""
    if not columns:
        return []
    Z, shown, length = fit.beyond(np.concatenate(columns, axis=1))
    V, u = Z.T @ Z, Z.T @ fit.residual
    parts = [(Z[rows].T @ ahead, Z[rows].T @ missed, ahead.T @ ahead, ahead.T @ missed)
             for rows, ahead, missed in fit.without_each(Z)]  # fmt: skip
    found, start = [], 0
    for width in (column.shape[1] for column in columns):
        own, start = slice(start, start + width), start + width
        if not shown[own].all():
            found.append(Verdict(np.zeros(width), np.diag(np.full(width, np.inf)), 1.0, 0.0, 0.0, 1))
            continue
        block, B = (own, own), blocks or len(parts)
        value, each, left_out = _solve(V[block], u[own]), [], 0.0
        for size, score, ahead, missed in parts:
            there = _solve(V[block] - size[block], u[own] - score[own])
            left_out += float(2.0 * missed[own] @ there - there @ ahead[block] @ there)
            each.append(there)
        off = np.array(each) - value
        covariance = (B - 1) / B * off.T @ off
        squares = float(value @ _solve(covariance, value))
        freedom = B - width
        p = float(stats.f.sf(squares * freedom / (width * (B - 1)), width, freedom)) if freedom > 0 else 1.0
        gain, scale = float(u[own] @ value), length[own]
        found.append(Verdict(value / scale, covariance / np.outer(scale, scale), p, gain, left_out, B - width))
    return found


def _solve(products: Floats, right: Floats) -> Floats:
    """Values of few columns of length one; combinations that are not there get nothing."""
    values, vectors = eigh(products)
    there = values > RESOLUTION * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, there] @ ((vectors[:, there].T @ right) / values[there]))


# --- in one group of blocks -------------------------------------------------------------------------------------------


def _test_groups(fit: Fit, columns: Floats, groups: Bools) -> Verdict:
    """The group of blocks in which a suspect gains most, judged by what it gains elsewhere."""
    d = columns.shape[1]
    gains, values, inverses = _group_gains(fit, columns, groups)
    best = int(np.argmax(gains))
    inside = groups[best]
    edge = binary_dilation(inside) & ~inside  # it may begin and end within blocks
    block = fit.evidence.block
    beside = fit.with_harmless(np.hstack([columns * part[block][:, None] for part in (inside, edge)]))
    outside = np.flatnonzero(~inside & ~edge)
    # errors of the model last longer than a block, so parts elsewhere are as long, as far as there are several
    length = max(1, min(int(inside.sum()), -(-outside.size // FEWEST_BLOCKS)))
    starts = range(0, outside.size - length + 1, length)
    parts = np.zeros((len(starts), len(inside)), dtype=bool)
    for part, start in zip(parts, starts, strict=True):
        part[outside[start : start + length]] = True
    usual, _, _ = _group_gains(beside, columns, parts)
    mean, spread = (float(np.mean(usual)), float(np.var(usual))) if len(parts) else (np.inf, 0.0)
    scale = max(mean / d, 1.0)  # no residual is less than independent
    # gains that differ more between blocks than those of d normal amounts are those of fewer, larger ones
    few = min(float(d), 2.0 * mean**2 / spread) if spread > 0.0 else float(d)
    freedom, gain = few * max(len(parts), 1), float(gains[best])
    p = min(1.0, len(groups) * float(stats.f.sf(gain / d / scale, few, freedom)))
    left_out = gain - 2.0 * d * scale
    if inside.sum() > 1 and p < 1.0:
        own = columns * inside[block][:, None]
        (within,) = test_columns(fit, [own[:, fit.beyond(own)[1]]], blocks=int(inside.sum()))
        left_out, p = within.left_out, min(1.0, 2.0 * min(p, len(groups) * within.p))
    return Verdict(values[best], scale * inverses[best], p, gain, left_out, int(freedom), group=best)


def _group_gains(fit: Fit, columns: Floats, groups: Bools) -> tuple[Floats, Floats, Floats]:
    """For each group of blocks a suspect's gain (G,), its values (G, d), and the inverse products (G, d, d)."""
    block = fit.evidence.block
    scaled = columns * fit.weights[fit.evidence.joint][:, None]
    length = np.linalg.norm(scaled, axis=0)
    length = np.where(length > 0.0, length, 1.0)
    L = scaled / length
    parts = [np.flatnonzero(block == b) for b in range(groups.shape[1])]
    sizes = np.array([L[rows].T @ L[rows] for rows in parts])
    along = np.array([fit.basis[rows].T @ L[rows] for rows in parts])
    scores = np.array([L[rows].T @ fit.residual[rows] for rows in parts])
    gains, values, inverses = [], [], []
    for group in groups:
        size, taken, score = (part[group].sum(axis=0) for part in (sizes, along, scores))
        lambdas, vectors = eigh(size - taken.T @ taken)
        there = (lambdas > SHOWN**2 * np.trace(size)) & (lambdas > 0.0)
        inverse = (vectors[:, there] / lambdas[there]) @ vectors[:, there].T
        values.append(inverse @ score / length)
        gains.append(float(score @ inverse @ score))
        inverses.append(inverse / np.outer(length, length))
    return np.array(gains), np.array(values), np.array(inverses)
