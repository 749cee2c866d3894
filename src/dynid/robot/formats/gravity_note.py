"""Gravity beside files that have no place for it: whoever loads such a file has to set it, if it is an unusual one."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.robot.model import STANDARD_GRAVITY

USUAL = 0.02
"""Difference from the usual gravity [m/s^2] up to which programs assume it unasked (convention: some use 9.8, others
9.80665 or 9.81)."""
LOST_GRAVITY = "which the format does not hold: set it where the file is loaded"
"""What a person should know about gravity that is not in a file."""


def describe_lost_gravity(gravity: ArrayLike) -> str:
    """What to say of gravity (3,) [m/s^2] beside a file that does not hold it; nothing where it is the usual one.

    Example:
        >>> from dynid.robot.formats.gravity_note import describe_lost_gravity
        >>> describe_lost_gravity([0.0, 0.0, 9.81])
        'gravity (0, 0, 9.81) m/s^2, which the format does not hold: set it where the file is loaded'
        >>> describe_lost_gravity([0.0, 0.0, -9.80665])
        ''
    """
    vector = np.asarray(gravity, dtype=float)
    if np.abs(vector - STANDARD_GRAVITY).max() <= USUAL:
        return ""
    return f"gravity ({', '.join(f'{value:.6g}' for value in vector)}) m/s^2, {LOST_GRAVITY}"
