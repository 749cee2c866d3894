"""Rows that a log has lost although its clock does not show it, because the stamps were written anew.

Between two rows the joints then move by a multiple of what their speed says, all by the same multiple. Positions are
compared with measured velocities, or with the steps before and after where there are none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.findings import Finding
from dynid.gate.signal_checks import FEWEST_ROWS, quantisation_step
from dynid.logs.recording import Recording
from dynid.processing.outliers import unwrap_angles

__all__ = ["check_lost_rows"]

Floats = NDArray[np.float64]
LEAST = 0.8
"""Excess of a step, in usual steps, from which on it is a lost row (convention: one row, less what noise may take)."""
GAIN = 60.0
"""Gain of the chi-squared from which on it is no noise (convention, far above the largest of 1e5 normal errors;
tests/campaigns/lost_rows.py accuses no real log with an even clock)."""
EXPLAINED = 0.8
"""Share of a row's misfit that one multiple for all joints must explain, unlike a spike of one encoder (convention)."""
DEFICIT = -0.4
"""Excess of the steps beside it below which positions were held and caught up, which loses no row (convention)."""
STEADY = 0.2
"""Share of a period by which the clock may deviate at a row that is judged (convention)."""
UNEVEN = 0.005
"""Share of rows with another period above which the stamps were not written anew (convention; panda_gaz, whose stamps
are those of the receiver, has 14 %: there rows arrive late and together, which looks the same)."""
MAD = 1.4826
"""Standard deviation over median magnitude of normally distributed noise."""


def check_lost_rows(recording: Recording) -> Iterator[Finding]:
    """Report steps of the positions that are multiples of what the speeds allow, at a clock that shows no gap."""
    if recording.isolated or recording.time.size < FEWEST_ROWS:
        return
    time, q = recording.time, unwrap_angles(recording.q)[0]
    if not (np.isfinite(time).all() and np.isfinite(q).all()):
        return  # other findings name this, and the rows beside it cannot be judged
    period = np.diff(time)
    usual = float(np.median(period))
    if not usual > 0.0:
        return
    uneven = np.abs(period / usual - 1.0) > STEADY
    if uneven.mean() > UNEVEN:
        return
    lost = _excess(q, recording.dq, period)
    lost[uneven] = 0.0
    at = np.flatnonzero(lost >= LEAST)
    if at.size:
        yield Finding(
            code="missing",
            severity="warning",
            where="time",
            message="the joints move by several steps between two rows, although the clock shows one: rows were lost "
            "and the stamps written anew",
            evidence={
                "places": int(at.size),
                "rows lost": float(np.round(lost[at]).sum()),
                "first at [s]": float(time[at[0]]),
            },
            remedy="Record again with the stamps of the robot's controller, or leave these stretches out (--time).",
        )


def _excess(q: Floats, dq: Floats | None, period: Floats) -> Floats:
    """(N - 1,) by how many usual steps each step is too long; zero where that cannot be told from noise."""
    step = np.diff(q, axis=0)
    has_speed = dq is not None and np.isfinite(dq).all()
    if dq is not None and has_speed:
        expected = 0.5 * (dq[1:] + dq[:-1]) * period[:, None]
    else:  # cubic through the two steps before and the two after
        expected = np.zeros_like(step)
        expected[2:-2] = (4.0 * (step[1:-3] + step[3:-1]) - step[:-4] - step[4:]) / 6.0
    misfit = step - expected
    noise = np.array([max(MAD * float(np.median(np.abs(column - np.median(column)))), quantisation_step(y), 1e-12)
                      for column, y in zip(misfit.T, q.T, strict=True)])  # fmt: skip
    step, misfit, expected = step / noise, misfit / noise, expected / noise
    size = np.maximum((expected**2).sum(axis=1), 1e-300)
    excess = (misfit * expected).sum(axis=1) / size
    explained = excess**2 * size
    is_lost = (explained > GAIN) & (explained > EXPLAINED * (misfit**2).sum(axis=1))
    for shift in (-1, 1):  # by how much the steps beside it are too long
        beside = np.roll(misfit, shift, axis=0) if has_speed else np.roll(step, shift, axis=0) - expected
        is_lost &= (beside * expected).sum(axis=1) / size > DEFICIT
    for shift in (-2, -1, 1, 2):  # a long step spoils what is expected beside it
        is_lost &= (misfit**2).sum(axis=1) >= np.roll((misfit**2).sum(axis=1), shift)
    is_lost[:2] = is_lost[-2:] = False
    return np.where(is_lost, excess, 0.0)
