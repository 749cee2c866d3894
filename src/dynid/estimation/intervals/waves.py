"""Waves over the blocks of time of runs: weights that a constant does not pass.

The sum of scores over all blocks decides the estimate, and fitting makes it zero. How large it would be is read from
other sums of the same scores, with slow cosines as weights. Errors that are correlated in time for less than the
shortest wave raise all these sums as much as the plain one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student

from dynid.arrays import Floats

FEWEST, WAVES = 3, 8
"""Smallest and largest number of waves. Fewer see longer correlations, more give narrower intervals: with eight, an
interval is 14 % wider on average than if the covariance were known (Student's t), and errors may be correlated for an
eighth of a log. Four, six and eight were compared on the halves of the real logs before eight was chosen."""


TWO_SIDED = 0.975
"""Quantile at the upper end of a 95 % interval."""


def wave_number(independent: float) -> int:
    """Number of waves for scores of some independent values: ``0.4 * independent^(2/3)``, rounded, from 3 to 8.

    So Lazarus, Lewis, Stock and Watson (2018) advise. 89 values and more have all eight waves; in a shorter log errors
    last for a larger part of it.
    """
    return int(np.clip(np.rint(0.4 * max(independent, 0.0) ** (2.0 / 3.0)), FEWEST, WAVES))


def student_factor(freedom: ArrayLike) -> Floats:
    """Width of 95 % intervals by Student's t over that by the normal distribution, for some degrees of freedom.

    Fewer than one count as one.
    """
    return np.asarray(student.ppf(TWO_SIDED, np.maximum(freedom, 1.0)) / student.ppf(TWO_SIDED, np.inf))


def has_many_runs(runs: NDArray[np.int64], waves: int = WAVES) -> bool:
    """Whether there are enough runs for the waves to go from run to run.

    Args:
        runs: (S,) number of each block's run.
        waves: Number of waves.
    """
    return np.unique(runs).size > waves


def make_waves(counts: Floats, runs: NDArray[np.int64], waves: int = WAVES) -> Floats:
    """(m, S) weights of the scores of S blocks in m sums.

    Over one run they are the slowest cosines of time. Over a few runs each has its own ones, as many together. Over
    many runs they go from run to run, so that what differs between runs counts as noise.

    Args:
        counts: (S,) number of equations of each block, in the order of time.
        runs: (S,) number of each block's run.
        waves: Number of waves m, about.
    """
    names = np.unique(runs)
    if has_many_runs(runs, waves):
        sums = np.array([counts[runs == name].sum() for name in names])
        return _cosines(sums, waves)[:, np.searchsorted(names, runs)]
    rows = []
    for name in names:
        mine = runs == name
        table = np.zeros((min(-(-waves // names.size), int(mine.sum()) - 1), runs.size))
        table[:, mine] = _cosines(counts[mine], len(table))
        rows.append(table)
    return np.vstack([np.zeros((0, runs.size)), *rows])


def _cosines(counts: Floats, most: int) -> Floats:
    """(most, S) the slowest cosines at the middles of blocks with these numbers of equations."""
    ends = np.cumsum(counts)
    middles = (ends - 0.5 * counts) / max(float(ends[-1]), 1e-300)
    return np.asarray(np.cos(np.pi * np.outer(np.arange(1, most + 1), middles)))
