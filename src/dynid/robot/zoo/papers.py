"""The robots of the papers dynid builds on, with the papers' own numbers."""

from __future__ import annotations

from dynid.robot.dh import DH, from_dh
from dynid.robot.model import Robot
from dynid.robot.zoo.tables import body, joint_limits

__all__ = ["puma560"]


def puma560() -> Robot:
    """Unimation PUMA 560, six revolute joints.

    Geometry: modified DH of Gautier and Khalil 1990, Table I; ``D3 = 0.4318, R3 = 0.1501, D4 = 0.0203, R4 = 0.4331`` m.
    Masses, centres of mass and inertias: Armstrong, Khatib and Burdick 1986, whose frames 3 to 6 are turned here by 180
    degrees about their z axes (so joint 3 is zero half a turn away from theirs) and whose frame 2 lies 0.2435 m further
    out. Tables in circulation give 0.066 or 0.086 for ZZ of link 3 about its centre of mass; no body can have the
    second with the other moments, so the first is taken. They report ZZ of link 1 only; its other parameters do not affect
    the motion and are placeholders that make it a possible body. Torque limits: Armstrong et al.; ranges and speeds:
    Unimation's. Rotors and friction are left out; add joint models for them.
    """
    rows = [
        DH(),
        DH(alpha=-90),
        DH(d=0.4318, r=0.1501),
        DH(alpha=-90, d=0.0203, r=0.4331),
        DH(alpha=90),
        DH(alpha=-90),
    ]
    bodies = [  # mass, centre of mass, principal moments about it
        (10.0, (0, 0, 0), (0.35, 0.35, 0.35)),
        (17.4, (0.068, 0.006, 0.2435 - 0.016), (0.13, 0.524, 0.539)),
        (4.8, (0, 0.070, 0.014), (0.066, 0.0125, 0.066)),
        (0.82, (0, 0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3)),
        (0.34, (0, 0, 0), (0.3e-3, 0.3e-3, 0.4e-3)),
        (0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
    ]
    ranges = [(-160, 160), (-225, 45), (-225, 45), (-110, 170), (-100, 100), (-266, 266)]
    velocities = [82, 54, 122, 228, 241, 228]
    torques = [97.6, 186.4, 89.4, 24.2, 20.1, 21.3]
    return from_dh(
        rows,
        degrees=True,
        name="puma560",
        inertias=[body(*values) for values in bodies],
        limits=joint_limits(ranges, velocities, torques, degrees=True),
    )
