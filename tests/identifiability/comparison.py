"""How tests compare sets of base parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.identifiability.base import BaseParameters
from dynid.identifiability.numeric import random_states, sample_regressor
from dynid.identifiability.row_space import RowSpace
from dynid.robot.model import Robot

Floats = NDArray[np.float64]


def distance(rows: Floats, space: RowSpace) -> float:
    """How far the rows, each scaled to length one, stick out of a space."""
    scaled = rows / space.scale
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    scaled = scaled / np.where(lengths == 0.0, 1.0, lengths)
    return float(np.abs(scaled - scaled @ space.basis.T @ space.basis).max(initial=0.0))


def torque_error(robot: Robot, base: BaseParameters, seed: int = 7) -> float:
    """Largest relative difference between torques of standard and of base parameters at random states."""
    theta = np.random.default_rng(seed).normal(size=len(base.layout))
    Y = sample_regressor(robot, random_states(robot, 5, seed=seed))
    full, reduced = Y @ theta, Y[..., list(base.columns)] @ (base.kept_grouping @ theta)
    return float(np.abs(full - reduced).max() / max(1.0, float(np.abs(full).max())))
