"""The robots of the papers dynid builds on, with the papers' own numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ArgumentError
from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits
from dynid.robot.zoo.dh_tables import body, joint_limits, shift
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia

__all__ = ["ddarm", "gautier_khalil_3r", "puma260", "puma560"]


def puma560() -> Robot:
    """Unimation PUMA 560, six revolute joints.

    Geometry: modified DH of Gautier and Khalil 1990, Table I; ``D3 = 0.4318, R3 = 0.1501, D4 = 0.0203, R4 = 0.4331`` m.
    Masses, centres of mass and inertias: Armstrong, Khatib and Burdick 1986, whose frames 3 to 6 are turned here by 180
    degrees about their z axes (so joint 3 is zero half a turn away from theirs) and whose frame 2 lies 0.2435 m further
    out. Tables in circulation give 0.066 or 0.086 for ZZ of link 3 about its centre of mass; no body can have the
    second with the other moments, so the first is taken. They report ZZ of link 1 only; its other parameters do not
    affect the motion and are placeholders that make it a possible body. Torque limits: Armstrong et al.; ranges and
    speeds: as quoted for Unimation's arm. Rotors and friction are left out; add terms for them.
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


def gautier_khalil_3r() -> Robot:
    """Three-revolute robot of Gautier and Khalil 1992, much like the PUMA 560's first three joints.

    Geometry: Table 1. Parameters: column X of Table 6, the base parameters; each stands for itself and the parameters
    it absorbs are zero. No rigid links have these values (link 3 violates the triangle inequality).
    """
    nothing = dict.fromkeys(("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M"), 0.0)
    links = [
        {"ZZ": 5.0186},
        {"XX": -2.05, "XY": 0.7, "XZ": -1.07, "YZ": 0.65, "ZZ": 6.55, "MX": 4.3, "MY": 0.6},
        {"XX": 0.7634, "XY": 0.6872, "XZ": 0.55, "YZ": -0.6, "ZZ": 0.9646, "MX": 0.528, "MY": 1.14},
    ]
    return from_dh(
        [DH(), DH(alpha=-90), DH(d=0.5, r=0.2)],
        degrees=True,
        name="gautier_khalil_3r",
        inertias=[Inertia.from_vector(list((nothing | link).values())) for link in links],
    )


def puma260() -> Robot:
    """Unimation PUMA 260, six revolute joints, with rotors, viscous and dry friction.

    Geometry: standard DH of Izaguirre et al. 1992, Appendix A; base frame on the shoulder. Parameters: Table 2, the 23
    significant ones; the other parameters are zero, so the links are not possible bodies. Link parameters are given in
    the standard frames ``link1`` to ``link6``; rotors (``ia``), dry (``fs``) and viscous friction (``ds``) are the
    joints'.
    """
    a2, d3, d4 = 0.2032, 0.12624, 0.2032
    rows = [
        StandardDH(alpha=90),
        StandardDH(a=a2),
        StandardDH(alpha=-90, d=d3),
        StandardDH(alpha=90, d=d4),
        StandardDH(alpha=-90),
        StandardDH(),
    ]
    inertias = [Inertia.zero() for _ in rows]
    inertias[3] = Inertia(mass=0.0, first_moment=_vector(y=-0.38219), about_origin=np.diag([0.079781, 0, 0.077761]))
    inertias[5] = Inertia(mass=2.768114, first_moment=_vector(z=0.014041), about_origin=np.zeros((3, 3)))
    rotors = (0.091631, 0.136312, 0.030843, 0.001781, 0.006759, 0.001262)
    dry = (0.787033, 1.389280, 0.650706, 0.256854, 0.036607, 0.106594)
    viscous = (0.575662, 0.944670, 0.417502, 0.066791, 0.101721, 0.030363)
    return from_dh(
        rows,
        degrees=True,
        name="puma260",
        inertias=inertias,
        terms=[[RotorInertia(ia), Viscous(ds), Coulomb(fs)] for ia, fs, ds in zip(rotors, dry, viscous, strict=True)],
    )


def ddarm(
    *,
    parameters: Literal["cad", "estimated"] = "cad",
    frames: Literal["paper", "modified-dh"] = "paper",
) -> Robot:
    """MIT serial link direct drive arm, three revolute joints.

    Geometry, parameters and torque limits: Atkeson, An and Hollerbach 1986 (l2 = 0.45 m). In the paper's frames O3 lies
    l2 along z2 from O2, so that frame 2 is no modified DH frame; in modified DH frames O2 is where axes 2 and 3 meet.

    Args:
        parameters: ``cad`` for Table 3 (whose link 1, but for Izz, has no effect and is no possible body),
            ``estimated`` for Table 4 (what is not identifiable is zero, so these are no possible bodies).
        frames: Frames in which the links are described.
    """
    if parameters not in _DDARM:
        raise ArgumentError(f"parameters {parameters!r} are not known", remedy="Use 'cad' or 'estimated'.")
    if frames not in ("paper", "modified-dh"):
        raise ArgumentError(f"frames {frames!r} are not known", remedy="Use 'paper' or 'modified-dh'.")
    l2 = 0.45
    inertias = [_atkeson(column) for column in zip(*_DDARM[parameters], strict=True)]
    if frames == "modified-dh":
        inertias[1] = inertias[1].in_frame(shift(0, 0, -l2))
    robot = from_dh(
        [DH(), DH(alpha=90, r=l2), DH(alpha=90)],
        degrees=True,
        name="ddarm",
        inertias=inertias,
        limits=[JointLimits(effort=660.0), JointLimits(effort=230.0), JointLimits(effort=230.0)],
    )
    return robot if frames == "modified-dh" else _with_frame_2_at_axis_1(robot, l2)


def _with_frame_2_at_axis_1(robot: Robot, l2: float) -> Robot:
    first, second, third = robot.joints
    return replace(
        robot,
        joints=(
            first,
            replace(second, T_parent_joint=second.T_parent_joint @ shift(0, 0, -l2)),
            replace(third, T_parent_joint=shift(0, 0, l2) @ third.T_parent_joint),
        ),
    )


# rows m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz (about the frame's origin); columns links 1 to 3
_DDARM = {
    "cad": (
        (67.13, 53.01, 19.67),
        (0.0, 0.0, 0.3108),
        (2.432, 3.4081, 0.0),
        (35.8257, 16.6505, 0.3268),
        (23.1568, 7.9088, 0.1825),
        (0.0, 0.0, 0.0),
        (-0.3145, 0.0, -0.0166),
        (20.4472, 7.6766, 0.4560),
        (-1.2948, -1.5036, 0.0),
        (0.7418, 0.6807, 0.3900),
    ),
    "estimated": (
        (0.0, 0.0, 1.8920),
        (0.0, -0.1591, 0.4676),
        (0.0, 0.6776, 0.0315),
        (0.0, 0.0, -1.0087),
        (0.0, 4.1562, 1.5276),
        (0.0, 0.3894, -0.0256),
        (0.0, 0.0118, 0.0143),
        (0.0, 5.2129, 1.8967),
        (0.0, -0.6050, -0.0160),
        (9.33598, -0.8194, 0.3568),
    ),
}
"""Parameters of the direct-drive arm from its drawings ([Atkeson1986] Table 3), and estimated (Table 4)."""


def _atkeson(column: tuple[float, ...]) -> Inertia:
    """Inertia from Atkeson's order of the ten parameters."""
    mass, *rest = column
    return Inertia.from_vector([*rest[3:], *rest[:3], mass])


def _vector(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> NDArray[np.float64]:
    return np.array([x, y, z])
