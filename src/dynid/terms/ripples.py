"""Ripple: a torque that repeats many times a turn, as teeth of gears and poles of motors make it.

A fit without it leaves it in the residuals. There it raises the intervals of friction beyond need: over a whole motion
a torque of the position alone does no work and hardly moves friction, while the slow waves from which intervals are
read (`dynid.estimation.intervals.waves`) see it come and go. How often it repeats, the residuals tell.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Floats

ORDERS = 256
"""Most periods of a ripple per turn (convention: at a speed of 1 rad/s, 256 are 41 Hz, beyond what filters pass)."""
BINS = 4 * ORDERS
"""Parts of a turn in which residuals are added (derivation: four a period leave 90 % of the highest order)."""
PERIODS = 5.5
"""Periods in the travel of a joint from which on a torque is a ripple (convention); less is a spring, a weight or
friction of the angle. With 3, the held-out error of kuka_kr300 was 9.5 in place of 8.9 %."""
SHARE = 0.02
"""Smallest share of a joint's squared residuals that a ripple explains (derivation: a term must lower the error by 1 %
to be kept, see `dynid.estimation.selection.ForwardSelection`, and squares by twice that)."""
BLOCKS = 16
"""Blocks of time that two halves of the data share in turn (convention: both then cover the same angles)."""


def ripple_order(angle: Floats, residual: Floats) -> int | None:
    """Periods per turn of a ripple that all parts of the data show as the strongest; None where there is none.

    The parts are two halves of the time, and the ways forth and back: a torque of the position alone is the same on
    both, while errors of friction, of a delay or of a repeated motion are not.

    Args:
        angle: (N,) angles of a joint in the order of time [rad].
        residual: (N,) torque that a fit leaves unexplained [N m].
    """
    if angle.size < 2 * BLOCKS or not np.any(residual):
        return None
    travel = float(np.ptp(angle))
    first = int(np.ceil(PERIODS * 2.0 * np.pi / max(travel, 1e-300)))
    if first > ORDERS:
        return None
    half = np.arange(angle.size) * BLOCKS // angle.size % 2 == 0
    forth = np.gradient(angle) > 0.0
    found = [_strongest(angle[part], residual[part], first) for part in (half, ~half, forth, ~forth)]
    apart = np.pi / travel  # half a period at the end of the travel
    if not max(found) < np.inf or np.ptp(found) > apart:
        return None
    explained = _explained(angle, residual)[first:]
    best = int(np.argmax(explained))
    return first + best if explained[best] >= SHARE * float(np.sum((residual - residual.mean()) ** 2)) else None


def _strongest(angle: Floats, residual: Floats, first: int) -> float:
    """Order from the first one on that explains most of the residuals (N,); not finite without any."""
    return first + float(np.argmax(_explained(angle, residual)[first:])) if angle.size else np.inf


def _explained(angle: Floats, residual: Floats) -> Floats:
    """(ORDERS + 1,) squares of the residuals that cosine and sine of each order explain, beside a constant."""
    place = np.floor(angle * (BINS / (2.0 * np.pi))).astype(np.int64) % BINS
    count = np.fft.rfft(np.bincount(place, minlength=BINS))
    torque = np.fft.rfft(np.bincount(place, weights=residual - residual.mean(), minlength=BINS))[: ORDERS + 1]
    # sums of squares and products of cosine c and sine s, from those of twice the order, less their means
    once, twice, size = count[: ORDERS + 1], count[: 2 * ORDERS + 1 : 2], float(angle.size)
    cc = 0.5 * (size + twice.real) - once.real**2 / size
    ss = 0.5 * (size - twice.real) - once.imag**2 / size
    cs = -0.5 * twice.imag + once.real * once.imag / size
    c, s = torque.real, -torque.imag
    determinant = cc * ss - cs**2
    above = ss * c**2 - 2.0 * cs * c * s + cc * s**2
    clear = determinant > 1e-6 * size**2  # else the travel is too short to tell cosine, sine and a constant apart
    return np.divide(above, determinant, out=np.zeros(ORDERS + 1), where=clear)
