"""The sign of a velocity without its jump (`polynomial_sign`), and a clipped value (`hold_within`).

Both use only operations that `dynid.tape` can record as a program, so they also take its symbolic numbers, the recorded
scalars. Simulations of dry friction replace ``sign(v)`` by `polynomial_sign`: the sign jumps at rest, and an explicit
integrator chatters there. For speeds below a small v0, the smoothed sign is the odd polynomial of lowest degree that
joins sign(v) with two continuous derivatives,

    sign(v) -> s (15 - 10 s^2 + 3 s^4) / 8,    s = v / v0 clipped to -1 and 1.

Beyond v0 it is exactly the sign, so that faster motion obeys the unchanged model. The price: a joint that ought to
stick creeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEEPEST = 15.0 / 8.0
"""Slope of `polynomial_sign` at rest, per unit of s (derivation: the polynomial's first coefficient)."""


def polynomial_sign(v: Any, speed: float) -> Any:
    """The smoothed sign, on arrays or recorded scalars.

    Args:
        v: Velocity [rad/s or m/s].
        speed: v0, beyond which the sign is exact [rad/s or m/s].
    """
    s = hold_within(v * (1.0 / speed), 1.0)
    square = s * s
    return s * (square * (square * 0.375 - 1.25) + 1.875)


def hold_within(x: Any, limit: float) -> Any:
    """X clipped to -limit and limit, as ``(|x + limit| - |x - limit|) / 2``: recorded scalars cannot be compared."""
    return x if limit == np.inf else (np.abs(x + limit) - np.abs(x - limit)) * 0.5
