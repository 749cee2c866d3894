"""A serial robot in the modified DH frames of the closed forms, and which robots have such a form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.chain import Chain, place_chain
from dynid.errors import ArgumentError
from dynid.parameters.inertia_maps import transport
from dynid.robot.model import Robot
from dynid.spatial import inverse_transform
from dynid.terms.base import Dependence

__all__ = ["chain_in_dh_frames", "has_closed_form"]

Floats = NDArray[np.float64]


def has_closed_form(robot: Robot) -> bool:
    """Whether the closed forms describe this robot: a chain with rotors, friction and offsets, but no couplings."""
    return _obstacle(robot) is None


def _obstacle(robot: Robot) -> str | None:
    if not robot.bodies or any(body.parent != j - 1 for j, body in enumerate(robot.bodies)):
        return f"needs a serial robot, '{robot.name}' is none"
    unknown = [p.term for p in robot.terms if len(p.joints) > 1 or p.term.dependence is Dependence.OTHER]
    return f"does not know the term {type(unknown[0]).__name__}" if unknown else None


def chain_in_dh_frames(robot: Robot, method: str) -> tuple[Chain, Floats | None, float]:
    """The chain of a serial robot in modified DH frames: the robot's own frames where they are modified DH frames.

    Args:
        robot: The robot.
        method: Name of the method that asks, for the error message.

    Returns:
        The chain; the map (p, p) from the robot's parameters to those in the DH frames (None where they are the robot's
        own frames); the largest distance of the DH frames from the robot's axes [1 or m].

    Raises:
        ArgumentError: The robot branches, or has couplings or terms of other kinds.
    """
    obstacle = _obstacle(robot)
    if obstacle:
        raise ArgumentError(
            f"the {method} method {obstacle}",
            remedy="Use method='numeric', or 'structural' if it knows the terms.",
        )
    chain, poses, deviation = place_chain(robot)
    if poses is None:
        return chain, None, deviation
    to_dh = np.eye(robot.parameter_vector.size)
    for j, T_body_mdh in enumerate(poses):
        T_mdh_body = inverse_transform(T_body_mdh)
        block = slice(10 * j, 10 * j + 10)
        to_dh[block, block] = transport(T_mdh_body[:3, :3], T_mdh_body[:3, 3])
    return chain, to_dh, deviation
