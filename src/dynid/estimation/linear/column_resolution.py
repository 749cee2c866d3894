"""Which directions of a set of equations are more than rounding, and more than the noise of the motion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import svd

ROUNDING = 1e-12
"""Length of a column over the longest one of all joints below which it is rounding (convention: four digits beyond the
precision of numbers)."""
DETERMINED = 1e-10
"""Share of a column's square outside the resolved directions up to which it counts as determined (convention)."""
MARGIN = 5.0
"""How many times a direction of the equations must be longer than its errors by the noise of the motion (derivation:
least squares shrinks it by the inverse square, here 4 %)."""
NOISY_SHARE = 0.04
"""Share of a column's square in directions that are noise, from which on it counts as not determined (convention: that
of `MARGIN`; such directions are known only as well as the noise, so that none is free of every column)."""


def resolve_columns(
    A: Floats, resolution: float, longest: float, errors: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_], float]:
    """Of a matrix the pseudo-inverse, which of its columns are determined, and its condition number.

    Args:
        A: (m, k) equations; columns are scaled to length one before anything is judged.
        resolution: Singular values below this part of the largest are rounding.
        longest: Length of the longest column of all equations of the robot, to which rounding is relative.
        errors: (m, k) errors of A by the noise of the motion; columns and directions that do not stand out of them do
            not count.
    """
    length = np.linalg.norm(A, axis=0)
    empty = length <= ROUNDING * max(longest, 1e-300)
    if errors is not None:
        empty |= length <= MARGIN * np.linalg.norm(errors, axis=0)
    scale = np.where(empty, 1.0, length)
    U, s, Vt = svd(np.where(empty, 0.0, A / scale), full_matrices=False)
    good = s > resolution * max(float(s.max(initial=0.0)), 1e-300)
    basis, coordinates, hidden = Vt[good].T / s[good], U[:, good].T, Vt[~good].T
    clear = ~empty & (_shares(hidden) < DETERMINED)
    if errors is not None and good.any():
        _, t, Zt = svd(np.where(empty, 0.0, errors / scale) @ basis)  # errors over what A shows, by direction
        loud = np.append(t, np.zeros(len(Zt) - t.size)) > 1.0 / MARGIN
        hidden = np.column_stack([hidden, basis @ Zt[loud].T])
        basis, coordinates = basis @ Zt[~loud].T, Zt[~loud] @ coordinates
        clear &= _shares(hidden) < NOISY_SHARE
    condition = 1.0 if not s.size else float("inf") if hidden.size else float(s[0] / s[-1])
    return basis @ coordinates / scale[:, None], clear, condition


def _shares(directions: Floats) -> Floats:
    """(k,) share of each column's square that lies in the span of directions (k, h)."""
    return np.asarray((np.linalg.qr(directions)[0] ** 2).sum(axis=1))
