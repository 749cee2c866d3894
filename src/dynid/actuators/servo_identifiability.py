"""What a set of motions can tell about the parameters of servos, and which of them it tells only together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from dynid.actuators.kinds import LINKS
from dynid.actuators.motion import CommandedMotion, stretches_of
from dynid.actuators.servo_equations import ServoEquations
from dynid.actuators.servo_model import Entry, ServoModel
from dynid.arrays import Floats
from dynid.decompositions import eigh

NO_SIGNAL = 1e-12
"""Eigenvalue of the equations, every column of unit length, that counts as zero: derivatives are exact to about 1e-9 of
their size, and eigenvalues are squares. Experiment: tests/actuators/test_servo_identifiability.py."""
NO_SHARE = 1e-4
"""Effect of a parameter in a direction that shows nothing, as a share of the largest one, that counts as none. The
derivatives' errors come to less; and where others go astray by ten thousand of the standard deviations that they would
have alone, such a parameter goes astray by one."""
WIDEST_PRIOR = 1e-9
"""Weight of a prior, relative to the largest in its direction, that counts as none. Convention."""
TIED = 0.7
"""Correlation, if residuals were independent, from which on two unknown parameters are named together. Convention: each
then explains half of the other's variance."""
SIGNED = ("zero", "offset", *LINKS)
"""Kinds that may be negative by nature."""


@dataclass(frozen=True, slots=True)
class OpenDirection:
    """A change of parameters that the motions do not show, or show less than noise would."""

    names: tuple[str, ...]
    """The parameters that change, largest effect first."""
    changes: tuple[float, ...]
    """Their changes, each in units of its own size."""
    note: str = ""
    """What is known of them, where it is neither "nothing" nor "only together"."""
    at_least: float | None = None
    """Least value of a limit that the motions do not reach, in its unit."""

    def __str__(self) -> str:
        if len(self.names) == 1:
            why = f"is {self.note}" if self.note else "has no effect on these motions that stands above their noise"
            return f"{self.names[0]} {why}"
        shown = ", ".join(self.names[:-1]) + f" and {self.names[-1]}"
        return f"{shown} are {self.note or 'only known together'}"


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The directions in which motions tell something, and those in which they tell nothing."""

    root: Floats
    """(P, r) matrix L with ``L' A L = 1`` for the equations A: zero rows for what has no effect."""
    assumed: Floats
    """(P, q) the same for directions of which priors alone tell something; ``A^-1 = L L'`` with both together."""
    hidden: Floats
    """(k, P) changes of the entries that have no effect together, one pivot each, in units of their effects."""

    @property
    def inverse(self) -> Floats:
        """(P, P) inverse of the equations, as far as there is one."""
        return np.asarray(self.root @ self.root.T + self.assumed @ self.assumed.T)

    @property
    def correlation(self) -> Floats:
        """(P, P) correlation of the entries in what is told, if residuals were independent."""
        inverse = self.inverse
        std = np.sqrt(np.diagonal(inverse))
        std[std == 0.0] = 1.0
        return np.asarray(inverse / np.outer(std, std))

    @property
    def is_hidden(self) -> NDArray[np.bool_]:
        """(P,) which entries such a change moves: nothing is known of their own values."""
        if not len(self.hidden):
            return np.zeros(self.hidden.shape[1], dtype=bool)
        share = np.abs(self.hidden) / np.abs(self.hidden).max(axis=1, keepdims=True)
        return np.asarray((share >= NO_SHARE).any(axis=0))


def entry_sizes(entries: Sequence[Entry], values: Floats) -> Floats:
    """(P,) the size of every entry: its value, or the unit of its kind where that is larger."""
    return np.asarray(np.maximum(np.abs(values), np.array([entry.scale for entry in entries])))


def plausible_sizes(entries: Sequence[Entry], values: Floats) -> Floats:
    """(P,) standard deviations above which nothing is known of an entry.

    It is the entry's size, for kinds that may be negative the unit of the kind: their values say nothing of what is
    plausible. It is no more than the standard deviation of values spread evenly between the bounds. With a prior it is
    infinite: something is always known then.
    """
    width = np.array([entry.upper - entry.lower for entry in entries]) / np.sqrt(12.0)
    unit = np.array([entry.scale for entry in entries])
    signed = np.array([entry.kind in SIGNED for entry in entries])
    size = np.minimum(np.where(signed, unit, entry_sizes(entries, values)), width)
    return np.where([entry.prior is not None for entry in entries], np.inf, size)


def see_directions(information: Floats, prior: Floats) -> Seen:
    """What equations tell.

    Every column is taken at unit length, so that neither units nor the values that a search happened to find decide
    which parameters are partners. Priors count however wide they are: they are split off before anything is compared
    with rounding errors.

    Args:
        information: (P, P) ``J' J``, with priors.
        prior: (P,) what priors add to its diagonal.
    """
    P = len(information)
    length = np.sqrt(np.diagonal(information))
    acts = length > 0.0
    unit = np.where(acts, length, 1.0)
    weight = prior / unit**2
    data = information / np.outer(unit, unit) - np.diag(weight)
    eigenvalues, vectors = eigh(data)
    told = eigenvalues > NO_SIGNAL * P
    T, N = vectors[:, told], vectors[:, ~told]
    inner, turn = eigh((N.T * weight) @ N) if N.shape[1] else (np.zeros(0), np.zeros((0, 0)))
    stated = inner > WIDEST_PRIOR * inner.max(initial=0.0)
    assumed = N @ turn[:, stated] / np.sqrt(inner[stated])
    T = T - assumed @ (assumed.T * weight) @ T  # now L' A L has no cross terms
    rest, basis = eigh(T.T @ (data + np.diag(weight)) @ T)
    root = T @ basis / np.sqrt(rest)
    return Seen(root / unit[:, None], assumed / unit[:, None], _sparse_rows((N @ turn[:, ~stated]).T))


def find_open_directions(
    entries: Sequence[Entry], values: Floats, information: Floats, known: tuple[Floats, Floats] | None = None
) -> tuple[OpenDirection, ...]:
    """Changes of the parameters about which the equations say nothing.

    Args:
        entries: The entries of the model.
        values: (P,) their values.
        information: (P, P) ``J' J``, with priors.
        known: After a fit, (P,) what priors add to the diagonal of the information, and the (P, P) covariance of what
            the equations tell; an entry whose standard deviation is larger than its plausible size is then open too.
    """
    if not len(entries):
        return ()
    prior, covariance = (np.zeros(len(entries)), None) if known is None else known
    seen = see_directions(information, prior)
    length, sizes = np.sqrt(np.diagonal(information)), entry_sizes(entries, values)
    per_size = 1.0 / (np.where(length > 0.0, length, 1.0) * sizes)
    found = [_named(entries, row, per_size) for row in seen.hidden]
    if covariance is not None:
        std = np.sqrt(np.diagonal(covariance))
        vague = ~seen.is_hidden & (std > plausible_sizes(entries, values))
        scaled = covariance / np.outer(sizes, sizes)
        found += _vague_groups(entries, np.flatnonzero(vague), scaled, seen.correlation)
    return tuple(found)


def _sparse_rows(basis: Floats) -> Floats:
    """The same space by rows with as many zeros as elimination gives: one pivot each, zero in all other rows."""
    if not len(basis):
        return basis
    _, R, order = qr(basis, mode="economic", pivoting=True)
    k = len(basis)
    reduced = np.linalg.solve(R[:, :k], R)
    rows = np.empty_like(reduced)
    rows[:, order] = reduced
    return rows


def _named(entries: Sequence[Entry], row: Floats, per_size: Floats) -> OpenDirection:
    """Every entry with an effect in a direction."""
    share = np.abs(row) / np.abs(row).max()
    chosen = [int(k) for k in np.argsort(-np.round(share, 2), kind="stable") if share[k] >= NO_SHARE]
    return OpenDirection(tuple(entries[k].name for k in chosen), tuple(float(row[k] * per_size[k]) for k in chosen))


def _vague_groups(
    entries: Sequence[Entry], places: NDArray[np.int64], scaled: Floats, correlation: Floats
) -> list[OpenDirection]:
    """Entries of which the noise leaves too little, those together that vary together; `scaled` is their covariance."""
    left, groups = [int(k) for k in places], []
    while left:
        group, waiting = [], [left.pop(0)]
        while waiting:
            k = waiting.pop()
            group.append(k)
            tied = [j for j in left if abs(correlation[k, j]) >= TIED]
            left = [j for j in left if j not in tied]
            waiting += tied
        _, vectors = eigh(scaled[np.ix_(group, group)])
        order = np.argsort(-np.abs(vectors[:, -1]), kind="stable")
        note = "" if len(group) > 1 else "hardly shown by these motions (a standard deviation above any likely value)"
        names = tuple(entries[group[k]].name for k in order)
        groups.append(OpenDirection(names, tuple(float(vectors[k, -1]) for k in order), note))
    return groups


def judge_servo_motions(model: ServoModel, motions: Sequence[CommandedMotion]) -> tuple[OpenDirection, ...]:
    """What these motions cannot tell, before any fit: from the derivatives at the model's first guess.

    Args:
        model: The robot and its servos.
        motions: The motions; of their readings only the first are used.

    Example:
        >>> dynid.actuators.judge_servo_motions(servo, [sensed])
        ()
    """
    equations = ServoEquations(model, stretches_of(motions))
    return find_open_directions(model.entries, model.start, equations.normal(model.start).information)
