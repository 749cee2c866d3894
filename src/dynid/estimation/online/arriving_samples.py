"""Samples as they arrive: checked before anything changes, so that a refused sample leaves no trace."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Bools, Floats
from dynid.checks import as_row
from dynid.errors import ArgumentError, DataError
from dynid.robot.model import Robot

LARGEST = 1e30
"""Largest number that is accepted (derivation: equations multiply up to five; the square of that is still finite)."""


class ArrivingSamples(NamedTuple):
    """One sample or several, all finite."""

    motion: Floats
    """(channels, m, n) positions [rad or m], velocities, and accelerations where they are needed."""
    tau: Floats
    """(m, n) torques [N m or N]; zero where they do not count."""
    valid: Bools
    """(m, n) whether the torque counts."""


def check_samples(
    robot: Robot, first: int, motion: dict[str, ArrayLike], tau: ArrayLike, valid: ArrayLike | None
) -> ArrivingSamples:
    """Check one sample, arrays (n,), or several, arrays (m, n).

    Args:
        robot: Its joints.
        first: Number of the first of these samples, from zero, for messages.
        motion: Channel -> values.
        tau: Torques.
        valid: Whether the joint's torque counts; all by default.

    Raises:
        ArgumentError: Shapes do not fit.
        DataError: A number that counts is not finite, or absurdly large; names sample and joint.
    """
    names, given = (*motion, "tau"), (*motion.values(), tau)
    try:
        found = np.array(given, dtype=float)
    except ValueError:  # of different shapes
        found = np.zeros(0)
    found = found[:, None] if found.ndim == 2 else found
    if found.shape[2:] != (robot.dof,):
        shapes = {name: np.shape(values) for name, values in zip(names, given, strict=True)}
        raise ArgumentError(
            f"the arrays have shapes {shapes}", remedy=f"Give {robot.dof} numbers per channel, one per joint, or rows."
        )
    counts = np.ones(found.shape[1:], dtype=bool) if valid is None else np.atleast_2d(np.asarray(valid))
    if counts.shape != found.shape[1:] or counts.dtype != bool:
        raise ArgumentError(
            f"valid has shape {counts.shape} and type {counts.dtype}", remedy="Give truth values, one per torque."
        )
    if valid is not None:
        found[-1] = np.where(counts, found[-1], 0.0)
    if found.size and not np.abs(found).max() <= LARGEST:  # NaN is never smaller
        channel, sample, joint = np.argwhere(~(np.abs(found) <= LARGEST))[0]
        other = ", or mark this torque with valid=False" if names[channel] == "tau" else ""
        raise DataError(
            f"{names[channel]} is {found[channel, sample, joint]}",
            place=f"sample {first + sample}, joint {robot.joint_names[joint]}",
            remedy=f"Leave the sample out{other}.",
        )
    return ArrivingSamples(found[:-1], found[-1], counts)


class StatedNoise:
    """Draws of the stated noise of a measured motion: they show how much of the equations is noise.

    The difference between the equations of a sample and those of the sample with another draw of its noise has the size
    of the equations' own errors.
    """

    __slots__ = ("_draws", "_std")

    def __init__(self, robot: Robot, motion_std: tuple[ArrayLike, ...], channels: tuple[str, ...]) -> None:
        """Check the standard deviations: for each channel one number or (n,).

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

    def add(self, motion: Floats) -> list[Floats]:
        """The motion (channels, m, n) with another draw of its noise."""
        return [x + std * self._draws.normal(size=x.shape) for x, std in zip(motion, self._std, strict=True)]
