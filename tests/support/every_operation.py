"""Formulas that hold every operation of a tape."""

from __future__ import annotations

from typing import Any

import numpy as np


def every_operation(x: Any) -> dict[str, Any]:
    """Two outputs of three numbers; one element is an input, others are constants."""
    a, b, c = x
    return {
        "one": np.array([np.sign(a) + abs(b), np.exp(-c) / np.tanh(b), np.sqrt(a * a) - 1e-7, b, -3.0, 1e6 * c]),
        "two": np.array([[np.sin(a), np.cos(a - b)], [np.sin(c), 0.0]]),
    }
