"""The statistical test of suspects: is an estimated amount larger than chance and errors of the model can make it?

A suspect is a possible fault of a log or a model. It adds columns Z to the equations ``torque = X x + Z a + noise``,
where a (d,) are its amounts and X holds the harmless columns, which a robot without faults has as well. The rows of
these equations (`dynid.diagnosis.evidence.Evidence`) belong to blocks, consecutive stretches of time. Amounts a and x
are fitted together, by least squares with one weight per joint.

A suspect acts in all blocks alike, or in one group of them: a window of a log, one run of several, one arm of a fleet.

* In all blocks, the test is the delete-one-block jackknife: the scatter of fits without each block gives the covariance
  of the amounts, although residuals are correlated within a block. The p-value is that of Hotelling's T^2, for one
  amount Student's t. A suspect must also predict the left-out blocks better than the harmless columns alone.
* In one group, the decrease of the squared residual there (its gain) is compared with the gain of the same columns in
  other parts of the log, where only errors of the model make it gain (F test). Where the group has several blocks, a
  second test compares the errors of left-out blocks with and without the suspect (`compare`, a t test over blocks).
  The smaller p-value counts, with Bonferroni factors for two tests and all groups.

A column that harmless ones explain almost entirely is not judged, since errors of the model decide its amount.

`judge_suspects` names suspects one after the other. It is called by `dynid.diagnosis.naming` (suspects of a log),
`diagnosis.runs` (differences between runs), `dynid.fleet` (between arms) and `dynid.payload` (wrist sensors).

Letters of shapes: R rows, n joints, B blocks, G groups, d amounts of a suspect, h harmless columns.
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
"""Probability that any suspect is named although the data have no fault (level)."""
EQUAL = 0.8
"""Ratio of the gains of two suspects from which on they explain the data equally well (effect)."""
SHOWN = 0.02
"""A suspect is judged if the part of its column orthogonal to the harmless ones is longer than this share of it
(effect: columns are wrong by one or two percent themselves)."""
RESOLUTION = 1e-7
"""Singular value of scaled columns, over the largest, below which a combination of columns is rounding noise."""


@dataclass(frozen=True, eq=False)
class Tried:
    """A suspect to be tested, given by its columns."""

    columns: Floats
    """(R, d) torque per unit of each of its amounts."""
    groups: Bools | None = None
    """(G, B) the blocks of each group; the suspect acts in at most one group. None where it acts in all blocks."""
    general: bool = False
    """Whether it can explain almost anything, as a free torque can. It is named only if no other explains as much."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """Result of the test of one suspect."""

    columns: Floats
    """(R, d) its columns, zero outside its group."""
    value: Floats
    """(d,) estimated amounts; zero where the data do not show them."""
    covariance: Floats
    """(d, d) of the amounts; infinite where the data do not show them."""
    p: float
    """p-value: probability of such amounts in data without the suspect, in any of its groups."""
    gain: float
    """Decrease of the weighted sum of squared residuals by the suspect."""
    left_out: float
    """The same decrease in blocks that were not fitted; negative where the suspect predicts worse. For a group of one
    block, which cannot be left out, the gain with Akaike's correction."""
    freedom: int
    """Degrees of freedom of the standard errors."""
    suspect: int = 0
    """Index among the suspects that were tried."""
    group: int | None = None
    """Index among its groups; None where it acts in all blocks."""
    rivals: tuple[int, ...] = ()
    """Indices of other suspects that explain the data equally well, the strongest first."""

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
    """The least squares fit of the harmless columns alone; suspects are tested on what it leaves.

    A weighted row is a row of the evidence times the weight of its joint.
    """

    evidence: Evidence
    weights: Floats
    """(n,) one over the standard deviation of each joint's residual; zero for joints without torques."""
    basis: Floats
    """(R, r) orthonormal columns that span the weighted harmless columns, of rank r."""
    values: Floats
    """(h,) fitted unknowns of the harmless columns."""
    residual: Floats
    """(R,) weighted torques minus the fitted ones."""

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
        determined = s > RESOLUTION * s.max(initial=0.0)
        basis = Q @ U[:, determined]
        along = basis.T @ y
        values = Vt[determined].T @ (along / s[determined]) / length
        return cls(evidence, weights, basis, values, y - basis @ along)

    def with_harmless(self, columns: Floats) -> Fit:
        """Add harmless columns (R, d); `values` keep those of the old ones."""
        Z, shown, _ = self.beyond(columns)
        U, s, _ = svd(Z[:, shown], full_matrices=False)
        more = U[:, s > RESOLUTION * s.max(initial=0.0)]
        residual = self.residual - more @ (more.T @ self.residual)
        return replace(self, basis=np.hstack([self.basis, more]), residual=residual)

    def left_out(self) -> Floats:
        """Cross-validate the harmless columns: (n, B) squared error of predicting a block by the fit of all others.

        It is relative to the squared torque of the joint in all blocks; NaN where a block holds no sample of the joint.
        """
        evidence, count = self.evidence, len(self.evidence.counts)
        total = np.bincount(evidence.joint, (evidence.torque * self.weights[evidence.joint]) ** 2, count)
        found = np.full((count, len(evidence.runs)), np.nan)
        # no suspect's columns: their number is zero
        for b, (rows, _, missed) in enumerate(self.without_each(np.zeros((len(self.residual), 0)))):
            joints = evidence.joint[rows]
            here = np.bincount(joints, minlength=count) > 0
            found[here, b] = np.bincount(joints, missed**2, count)[here] / np.maximum(total[here], 1e-300)
        return found

    def beyond(self, columns: Floats) -> tuple[Floats, Bools, Floats]:
        """Project columns (R, m) orthogonally to the harmless ones.

        Returns:
            (R, m) the weighted projections, scaled to length one, zero where not shown; (m,) which are shown, being
            longer than `SHOWN` times the weighted column; (m,) the lengths of the projections before scaling.
        """
        weighted = columns * self.weights[self.evidence.joint][:, None]
        rest = weighted
        for _ in range(2):  # the second time against rounding
            rest = rest - self.basis @ (self.basis.T @ rest)
        length, before = np.linalg.norm(rest, axis=0), np.linalg.norm(weighted, axis=0)
        shown = (length > SHOWN * before) & (length > 0.0)
        return rest / np.where(shown, length, np.inf), shown, length

    def is_shown(self, columns: Floats) -> Bools:
        """(m,) which columns (R, m) the harmless ones do not explain almost entirely; see `beyond`."""
        return self.beyond(columns)[1]

    def without_each(self, Z: Floats) -> Iterator[tuple[Ints, Floats, Floats]]:
        """Predict each block by harmless columns that were fitted to all other blocks.

        With the rows Q of an orthonormal basis in a block and the residuals e of the fit of all blocks, the errors of
        this prediction are (I - Q Q')^-1 e = e + Q (I - Q' Q)^-1 Q' e, by the Woodbury identity.

        Yields:
            The block's m_b rows; the errors (m_b, m) of columns Z (R, m) orthogonal to the basis; and those (m_b,) of
            the torque.
        """
        for b in range(len(self.evidence.runs)):
            rows = np.flatnonzero(self.evidence.block == b)
            Q = self.basis[rows]
            others = np.linalg.inv((1.0 + RESOLUTION) * np.eye(Q.shape[1]) - Q.T @ Q)  # held off singularity
            error = np.column_stack([Z[rows], self.residual[rows]])
            error += Q @ (others @ (Q.T @ error))
            yield rows, error[:, :-1], error[:, -1]


def joint_weights(evidence: Evidence) -> Floats:
    """Fit the harmless columns by iteratively reweighted least squares with one weight per joint (n,), returned.

    It is one over the standard deviation of the joint's residual; zero for joints without torques.
    """
    count, width = len(evidence.counts), evidence.harmless
    table = np.column_stack([evidence.columns[:, :width], evidence.torque])
    # all rows of a joint have one weight, so that its triangle (QR) serves as well and is smaller
    small = [np.linalg.qr(table[evidence.joint == j], mode="r") for j in range(count)]
    joint = np.repeat(np.arange(count), [len(rows) for rows in small])
    rows = np.concatenate(small)
    samples = np.maximum(evidence.counts, 1)
    size = spread = np.sqrt(np.bincount(joint, rows[:, -1] ** 2, count) / samples)
    for _ in range(3):  # from the rms torques as first standard deviations; three times suffice
        weights = np.divide(1.0, spread, out=np.zeros(count), where=spread > 0.0)
        weighted = rows * weights[joint][:, None]
        length = np.linalg.norm(weighted[:, :-1], axis=0)
        X = weighted[:, :-1] / np.where(length > 0.0, length, 1.0)
        left = weighted[:, -1] - X @ lstsq(X, weighted[:, -1], rcond=RESOLUTION)
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
    """Name the suspects that the data show, one after the other, the strongest first.

    A suspect that was named counts as harmless for the next ones.

    Blocks outside a group (a run, an arm, a window) show what errors of the model make, so every group must leave some.
    Rows may also be of other quantities, such as the channels of a wrist sensor: use `Evidence.of_rows` with the
    channel in place of the joint.

    Args:
        fit: The fit of the harmless columns, `Fit.of(evidence)`.
        suspects: The suspects to be tested.
        level: Probability that any of them is named in faultless data, over all suspects and groups.
        is_worth: Called with the index of a suspect and its verdict; whether its effect is large enough to be named.
        first: The result of `test_suspects(fit, suspects)` if the caller has it already.

    Yields:
        The verdict of each named suspect, with its index, its group and its rivals.
    """
    open_ones = list(range(len(suspects)))  # indices of suspects that are not yet named
    verdicts = first
    while open_ones:
        verdicts = verdicts or test_suspects(fit, [suspects[k] for k in open_ones])
        tested = dict(zip(open_ones, verdicts, strict=True))
        worth = {k: found for k, found in tested.items() if found.left_out > 0.0 and is_worth(k, found)}
        likely = {k: found for k, found in worth.items() if found.p * len(suspects) < level}  # Bonferroni
        if not likely:
            return
        order = sorted(likely, key=lambda k: -likely[k].left_out)
        best = order[0]
        if suspects[best].general:
            # Something is wrong there, which the general suspect has proved. A special one that explains as much is
            # named instead, even if it is not significant by itself, as long as it acts in a group of blocks as well.
            gain = likely[best].gain
            alike = [k for k in worth if (k in likely or worth[k].group is not None) and not suspects[k].general]
            special = [k for k in alike if worth[k].gain > EQUAL * gain]
            best = max(special, key=lambda k: worth[k].left_out, default=best)
        found = worth[best]
        rivals = tuple(k for k in order if k != best and likely[k].gain > EQUAL * found.gain)
        yield replace(found, suspect=best, rivals=rivals)
        fit = fit.with_harmless(found.columns)
        verdicts = None  # test again, on the new residual
        if found.group is None:  # else it may act in another group as well
            open_ones.remove(best)


def compare(rival: Floats, usual: Floats, tried: int) -> tuple[float, float]:
    """Compare the squared residuals (B, n) of joints in blocks by two explanations, NaN where there are no samples.

    Returns:
        The p-value of a one-sided t test over blocks, times the number of rivals that are tried (Bonferroni); and the
        ratio of the rms residuals, rival over usual: the geometric mean over blocks, the product over joints.
    """
    ratio = np.nansum(np.log(rival / usual), axis=1)  # (B,) errors are multiplied, so their logarithms are averaged
    p = tried * float(stats.ttest_1samp(ratio, 0.0, alternative="less").pvalue)
    return p, float(np.exp(0.5 * ratio.mean()))


def test_suspects(fit: Fit, suspects: Sequence[Tried]) -> list[Verdict]:
    """Test each suspect by itself; verdicts in the order of the suspects, significant or not."""
    whole = iter(test_columns(fit, [suspect.columns for suspect in suspects if suspect.groups is None]))
    return [
        next(whole) if suspect.groups is None else _test_groups(fit, suspect.columns, suspect.groups)
        for suspect in suspects
    ]


def test_columns(fit: Fit, columns: Sequence[Floats]) -> list[Verdict]:
    """Test suspects that act in all blocks, each with columns (R, d), by the delete-one-block jackknife."""
    if not columns:
        return []
    Z, shown, length = fit.beyond(np.concatenate(columns, axis=1))
    # Normal equations V a = u of the amounts, after elimination of the harmless unknowns. For each block: its part of
    # V and u, and the products of the prediction errors that its left-out rows have (`without_each`).
    V, u = Z.T @ Z, Z.T @ fit.residual
    parts = [(Z[rows].T @ ahead, Z[rows].T @ missed, ahead.T @ ahead, ahead.T @ missed)
             for rows, ahead, missed in fit.without_each(Z)]  # fmt: skip
    found, start, B = [], 0, len(parts)
    for tried in columns:
        width = tried.shape[1]
        own, start = slice(start, start + width), start + width
        if not shown[own].all():
            found.append(Verdict(tried, np.zeros(width), np.diag(np.full(width, np.inf)), 1.0, 0.0, 0.0, 1))
            continue
        block = (own, own)
        value = lstsq(V[block], u[own], rcond=RESOLUTION)
        # (B, width) amounts without each block
        each = np.array([lstsq(V[block] - size[block], u[own] - score[own], rcond=RESOLUTION)
                         for size, score, _, _ in parts])  # fmt: skip
        # |missed|^2 - |missed - ahead amounts|^2: by how much these amounts improve the prediction of the block
        left_out = sum(float(2.0 * missed[own] @ amounts - amounts @ ahead[block] @ amounts)
                       for amounts, (_, _, ahead, missed) in zip(each, parts, strict=True))  # fmt: skip
        off = each - value
        covariance = (B - 1) / B * off.T @ off  # of the jackknife
        # Hotelling: T^2 (B - width) / (width (B - 1)) is distributed as F(width, B - width)
        squares = float(value @ lstsq(covariance, value, rcond=RESOLUTION))
        freedom = B - width
        p = float(stats.f.sf(squares * freedom / (width * (B - 1)), width, freedom)) if freedom > 0 else 1.0
        gain, scale = float(u[own] @ value), length[own]
        found.append(Verdict(tried, value / scale, covariance / np.outer(scale, scale), p, gain, left_out, freedom))
    return found


def _test_groups(fit: Fit, columns: Floats, groups: Bools) -> Verdict:
    """Test the group of blocks in which a suspect gains most, by what it gains elsewhere."""
    d = columns.shape[1]
    gains, values, inverses = _group_gains(fit, columns, groups)
    inside = groups[best := int(np.argmax(gains))]
    edge = binary_dilation(inside) & ~inside  # neighbouring blocks: it may begin and end within these
    block = fit.evidence.block
    # a fit in which the suspect is free in its group and at the edges, so that it does not disturb the comparison
    elsewhere = fit.with_harmless(np.hstack([columns * part[block][:, None] for part in (inside, edge)]))
    outside = np.flatnonzero(~inside & ~edge)
    # errors of the model last longer than a block, so parts elsewhere are as long, as far as there are several
    length = max(1, min(int(inside.sum()), outside.size // FEWEST_BLOCKS))
    parts = [outside[start : start + length] for start in range(0, outside.size - length + 1, length)]
    each = np.array([np.isin(np.arange(len(inside)), part) for part in parts]).reshape(-1, len(inside))
    usual, _, _ = _group_gains(elsewhere, columns, each)
    mean, spread = (float(np.mean(usual)), float(np.var(usual))) if len(parts) else (np.inf, 0.0)
    # Gains of white noise are chi-squared with d degrees of freedom: mean d. Correlated residuals scale them up.
    scale = max(mean / d, 1.0)
    # A scaled chi-squared of k degrees of freedom has mean^2 / variance = k / 2 (Satterthwaite): k from the scatter
    few = min(float(d), 2.0 * mean**2 / spread) if spread > 0.0 else float(d)
    freedom = few * max(len(parts), 1)
    gain = float(gains[best])
    p = min(1.0, len(groups) * float(stats.f.sf(gain / d / scale, few, freedom)))
    left_out = gain - 2.0 * d * scale  # Akaike: d fitted amounts gain 2 d more than they predict
    own = columns * inside[block][:, None]
    shown = fit.is_shown(own)
    if inside.sum() > 1 and shown.any():  # several blocks: what it predicts of left-out blocks is a test, too
        left_out = test_columns(fit, [own[:, shown]])[0].left_out
        by_blocks, _ = compare(fit.with_harmless(own).left_out().T, fit.left_out().T, len(groups))
        p = min(1.0, 2.0 * min(p, by_blocks))
    covariance = scale * inverses[best] if len(parts) else np.diag(np.full(d, np.inf))
    return Verdict(own, values[best], covariance, p, gain, left_out, int(freedom), group=best)


def _group_gains(fit: Fit, columns: Floats, groups: Bools) -> tuple[Floats, Floats, Floats]:
    """Fit a suspect (R, d) in each group of blocks (G, B) by itself, together with the harmless columns everywhere.

    Returns:
        (G,) decrease of the squared residual; (G, d) amounts; (G, d, d) inverses of their normal matrices.
    """
    block = fit.evidence.block
    scaled = columns * fit.weights[fit.evidence.joint][:, None]
    length = np.linalg.norm(scaled, axis=0)
    length = np.where(length > 0.0, length, 1.0)
    L = scaled / length
    # products of each block, which are summed over the blocks of a group
    parts = [np.flatnonzero(block == b) for b in range(groups.shape[1])]
    sizes = np.array([L[rows].T @ L[rows] for rows in parts])
    along = np.array([fit.basis[rows].T @ L[rows] for rows in parts])
    scores = np.array([L[rows].T @ fit.residual[rows] for rows in parts])
    gains, values, inverses = [], [], []
    for group in groups:
        size, taken, score = (part[group].sum(axis=0) for part in (sizes, along, scores))
        # Schur complement: what the harmless columns leave of the suspect's normal matrix
        lambdas, vectors = eigh(size - taken.T @ taken)
        large = (lambdas > SHOWN**2 * np.trace(size)) & (lambdas > 0.0)
        inverse = (vectors[:, large] / lambdas[large]) @ vectors[:, large].T
        values.append(inverse @ score / length)
        gains.append(float(score @ inverse @ score))
        inverses.append(inverse / np.outer(length, length))
    return np.array(gains), np.array(values), np.array(inverses)
