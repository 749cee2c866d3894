"""Robots and limits that the tests of excitation share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynid.excitation.hulls import skeleton_hulls
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia


def link(rng: np.random.Generator, mass: float) -> Inertia:
    """A brick of random size somewhere near its frame."""
    a, b, c = rng.uniform(0.05, 0.3, 3) ** 2
    return Inertia.from_com(mass, rng.uniform(-0.15, 0.15, 3), mass / 12 * np.diag([b + c, a + c, a + b]))


def arm(seed: int = 0, joints: int = 4) -> Robot:
    """A random serial robot of revolute joints (and a prismatic one now and then), with friction and limits."""
    rng = np.random.default_rng(seed)
    rows, limits, inertias = [], [], []
    for j in range(joints):
        prismatic = j > 0 and rng.uniform() < 0.15
        rows.append(
            DH(
                alpha=float(rng.choice([0, 90, -90])) if j else 0.0,
                d=float(rng.uniform(0, 0.4)) if j else 0.0,
                r=float(rng.uniform(-0.2, 0.4)),
                sigma=int(prismatic),
            )
        )
        half = rng.uniform(0.1, 0.4) if prismatic else rng.uniform(0.8, 3.0)
        middle = rng.uniform(-0.5, 0.5)
        limits.append(
            JointLimits(
                lower=middle - half,
                upper=middle + half,
                velocity=rng.uniform(0.5, 3.0),
                acceleration=rng.uniform(2, 15),
                effort=rng.uniform(100, 300),
            )
        )
        inertias.append(link(rng, rng.uniform(1, 8) / (j + 1)))
    robot = from_dh(rows, degrees=True, name=f"arm{seed}", inertias=inertias, limits=limits)
    return robot.with_terms(RotorInertia(0.1), Viscous(1.0), Coulomb(2.0))


def slope(value: Callable[[np.ndarray], Any], x: np.ndarray, direction: np.ndarray, h: float = 1e-6) -> Any:
    """Rate of a value along a direction, by central differences."""
    return (value(x + h * direction) - value(x - h * direction)) / (2 * h)


def limits_of(lower: list[float], upper: list[float], velocity: list[float], acceleration: list[float]) -> MotionLimits:
    """Limits of joints `joint1` and so on, with free jerks and torques."""
    names = tuple(f"joint{k + 1}" for k in range(len(lower)))
    parts = {"lower": lower, "upper": upper, "velocity": velocity, "acceleration": acceleration}
    arrays = {name: np.array(part) for name, part in parts.items()}
    free = np.full(len(lower), np.inf)
    return MotionLimits(joint_names=names, jerk=free, torque=free, **arrays)


def all_limits(robot: Robot) -> MotionLimits:
    """Every kind of limit at once."""
    tip = robot.bodies[-1].joint.child
    ends = [-0.5, -0.4, -np.inf], [0.6, np.inf, 0.7]
    box = Workspace.box(*ends, link=tip, point=(0.05, 0.02, 0.1), speed=1.2)
    limits = MotionLimits.from_robot(robot, jerk=60.0).with_workspace(box)
    return limits.with_hulls(*skeleton_hulls(robot, 0.03), clearance=0.01)


@pytest.fixture(scope="session")
def robot() -> Robot:
    return arm()
