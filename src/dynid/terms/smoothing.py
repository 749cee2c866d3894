"""The sign of a velocity without its jump.

`polynomial_sign` is for integrators. ``sign(v)`` jumps, and no explicit integrator passes a jump without chatter.
Within a small speed v0 of rest the sign is replaced by the odd polynomial that leaves it twice continuously
differentiable,

    sign(v) -> s (15 - 10 s^2 + 3 s^4) / 8,    s = v / v0 held within -1 and 1,

and it is *exactly* the sign beyond, so that samples faster than v0 obey the unchanged model. A joint that sticks
creeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEEPEST = 15.0 / 8.0
"""Slope of `polynomial_sign` at rest, per unit of s (derivation: the polynomial's first coefficient)."""


def polynomial_sign(v: Any, speed: float) -> Any:
    """The polynomial above; arrays or recorded scalars alike.

    Args:
        v: Velocity [rad/s or m/s].
        speed: v0, beyond which the sign is exact [rad/s or m/s].
    """
    s = hold_within(v * (1.0 / speed), 1.0)
    square = s * s
    return s * (square * (square * 0.375 - 1.25) + 1.875)


def hold_within(x: Any, limit: float) -> Any:
    """X held within -limit and limit; arrays or recorded scalars alike."""
    return x if limit == np.inf else (np.abs(x + limit) - np.abs(x - limit)) * 0.5
