"""Random serial robots with revolute and prismatic joints, to test claims about every robot."""

from __future__ import annotations

import numpy as np

from dynid import DH, Robot, from_dh

_QUARTERS = (0.0, 0.5 * np.pi, -0.5 * np.pi, np.pi)


def random_robot(rng: np.random.Generator, joints: int, *, oblique: bool, upright: bool) -> Robot:
    """Draw a robot; many of its lengths are zero and many angles are right, as in real robots.

    Args:
        rng: Generator of all random numbers.
        joints: Number of joints.
        oblique: Whether twists may be any angle.
        upright: Whether gravity is parallel to the base's z axis; otherwise it has a random direction.
    """
    rows = []
    for _ in range(joints):
        twist = float(rng.choice(_QUARTERS)) if not oblique or rng.random() < 0.4 else float(rng.uniform(-3, 3))
        d, r = (0.0 if rng.random() < 0.35 else float(rng.uniform(-0.6, 0.6)) for _ in range(2))
        rows.append(DH(alpha=twist, d=d, theta=float(rng.uniform(-3, 3)), r=r, sigma=int(rng.random() < 0.35)))
    gravity = np.array([0.0, 0.0, -9.81]) if upright else rng.normal(size=3) * 5.0
    return from_dh(rows, gravity=gravity, name="random")
