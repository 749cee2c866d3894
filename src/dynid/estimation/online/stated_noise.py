"""Stated noise of a measured motion, drawn anew: it shows how much of the equations is noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_row
from dynid.errors import ArgumentError
from dynid.robot.model import Robot


class StatedNoise:
    """Draws of the noise of some channels of the motion.

    The difference between the equations of a sample and those of the sample with another draw of its noise has the size
    of the equations' own errors.
    """

    __slots__ = ("_draws", "_std")

    def __init__(self, robot: Robot, motion_std: tuple[ArrayLike, ...], channels: tuple[str, ...]) -> None:
        """Check the standard deviations.

        Args:
            robot: Its joints.
            motion_std: For each channel one number or (n,).
            channels: Names of the channels.

        Raises:
            ArgumentError: There are too few or too many, or one is negative or not finite.
        """
        if len(motion_std) != len(channels):
            raise ArgumentError(
                f"motion_std has {len(motion_std)} entries",
                remedy=f"Give {len(channels)} of them: of {', '.join(channels)}.",
            )
        self._std = [as_row("motion_std", std, robot.dof, same=True, least=0.0) for std in motion_std]
        self._draws = np.random.default_rng(0)

    def add(self, motion: tuple[Floats, ...]) -> list[Floats]:
        """The motion (m, n) each with another draw of its noise."""
        return [x + std * self._draws.normal(size=x.shape) for x, std in zip(motion, self._std, strict=True)]
