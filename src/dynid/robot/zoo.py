"""Robot models to try methods on: the robots of the papers and current industrial arms, from published data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.parts import JointLimits
from dynid.spatial import transform
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

__all__ = [
    "cartesian",
    "cylindrical",
    "ddarm",
    "gautier_khalil_3r",
    "get",
    "iiwa14",
    "names",
    "panda",
    "puma260",
    "puma560",
    "scara",
    "stanford",
    "tx40",
    "ur10",
    "ur10e",
]


def names() -> tuple[str, ...]:
    """Names of all built-in robots, in alphabetical order."""
    return tuple(sorted(_MAKERS))


def get(name: str) -> Robot:
    """Build the robot of that name, with the default arguments of its function.

    Raises:
        ArgumentError: There is no such robot; the error lists those there are.
    """
    if name not in _MAKERS:
        raise ArgumentError(f"there is no built-in robot '{name}'", remedy=f"There are: {', '.join(names())}.")
    return _MAKERS[name]()


def __getattr__(name: str) -> object:
    """Name the robots where a name is unknown."""
    raise AttributeError(f"dynid.robots has no '{name}'; the robots are {', '.join(names())}")


# --- robots of the papers --------------------------------------------------------------------------------------------


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
    inertias[3] = Inertia(
        mass=0.0, first_moment=np.array([0.0, -0.38219, 0.0]), about_origin=np.diag([0.079781, 0, 0.077761])
    )
    inertias[5] = Inertia(mass=2.768114, first_moment=np.array([0.0, 0.0, 0.014041]), about_origin=np.zeros((3, 3)))
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


# --- textbook structures ---------------------------------------------------------------------------------------------


def stanford() -> Robot:
    """Stanford arm: two revolute joints, one prismatic, a spherical wrist.

    Geometry: standard DH of Paul 1981 with ``d1 = 0.412, d2 = 0.154`` m; the hand's offset is left out. Mass
    properties: the table that goes back to Bejczy 1974 and Paul 1981, in the standard frames, with the tensors read as
    taken about the frames' origins and y and z of link 5's centre of mass exchanged: only so are these possible bodies
    of that length. Limits are left open.
    """
    rows = [
        StandardDH(alpha=-90, d=0.412),
        StandardDH(alpha=90, d=0.154),
        StandardDH(sigma=1),
        StandardDH(alpha=-90),
        StandardDH(alpha=90),
        StandardDH(),
    ]
    bodies = [  # mass, centre of mass, xx yy zz about the frame's origin
        (9.29, (0, 0.0175, -0.1105), (0.276, 0.255, 0.071)),
        (5.01, (0, -0.1054, 0), (0.108, 0.018, 0.100)),
        (4.25, (0, 0, -0.6447), (2.51, 2.51, 0.006)),
        (1.08, (0, 0.0092, -0.0054), (0.002, 0.001, 0.001)),
        (0.63, (0, 0.0003, 0.0566), (0.003, 0.003, 0.0004)),
        (0.51, (0, 0, 0.1554), (0.013, 0.013, 0.0003)),
    ]
    return from_dh(
        rows,
        degrees=True,
        name="stanford",
        inertias=[
            Inertia.from_vector([xx, 0, 0, yy, 0, zz, m * x, m * y, m * z, m]) for m, (x, y, z), (xx, yy, zz) in bodies
        ],
    )


def scara(*, joints: Literal["RRRP", "RRPR"] = "RRPR") -> Robot:
    """A SCARA robot with arms of 0.325 m and 0.275 m and four parallel axes.

    Geometry: that of the Adept Cobra 600. Mass properties and limits are illustrative.

    Args:
        joints: Whether the tool turns before (RRRP) or after (RRPR) it slides.
    """
    if joints not in ("RRRP", "RRPR"):
        raise ArgumentError(f"a SCARA robot with joints {joints!r} is not known", remedy="Use 'RRRP' or 'RRPR'.")
    slides = [0, 0, 0, 1] if joints == "RRRP" else [0, 0, 1, 0]
    lengths = [0.0, 0.325, 0.275, 0.0]
    quill = body(1.0, (0, 0, -0.10), (0.0045, 0.0045, 0.0006))
    hand = body(0.6, (0.01, 0, -0.20), (0.0012, 0.0012, 0.0004))
    arms = [
        body(11.0, (0.16, 0, 0.05), (0.05, 0.13, 0.13)),
        body(7.0, (0.13, 0.01, 0.08), (0.03, 0.07, 0.07)),
    ]
    return from_dh(
        [DH(d=d, r=0.387 if j == 0 else 0.0, sigma=s) for j, (d, s) in enumerate(zip(lengths, slides, strict=True))],
        name=f"scara_{joints.lower()}",
        inertias=[*arms, quill, hand],
        limits=joint_limits(
            [1.8, 2.5, *((3.1, (-0.21, 0.0)) if joints == "RRRP" else ((-0.21, 0.0), 3.1))],
            [6.7, 12.5, *((20.0, 1.1) if joints == "RRRP" else (1.1, 20.0))],
            [120.0, 60.0, *((6.0, 150.0) if joints == "RRRP" else (150.0, 6.0))],
        ),
    )


def cartesian() -> Robot:
    """A gantry: three prismatic joints along y, x and, upwards, z of the base. All numbers are illustrative."""
    return from_dh(
        [DH(alpha=-90, theta=-90, sigma=1) for _ in range(3)],
        degrees=True,
        name="cartesian",
        inertias=[
            body(60.0, (0, 0.2, 0), (4.0, 5.0, 2.0)),
            body(25.0, (0.1, 0, 0), (0.8, 0.9, 0.5)),
            body(8.0, (0, 0, 0.3), (0.4, 0.4, 0.05)),
        ],
        limits=joint_limits([1.0, 0.6, (-0.5, 0.0)], [1.5, 1.5, 1.0], [1500.0, 800.0, 400.0]),
    )


def cylindrical() -> Robot:
    """A column that turns, a lift along it and an arm that reaches out: R P P. All numbers are illustrative."""
    return from_dh(
        [DH(), DH(sigma=1), DH(alpha=-90, sigma=1)],
        degrees=True,
        name="cylindrical",
        inertias=[
            body(40.0, (0, 0, 0.5), (3.0, 3.0, 0.4)),
            body(18.0, (0.05, 0, 0.1), (0.3, 0.3, 0.2)),
            body(10.0, (0, 0.02, 0.25), (0.5, 0.5, 0.04)),
        ],
        limits=joint_limits([2.6, (0.0, 0.8), (0.0, 0.6)], [2.0, 0.8, 1.0], [200.0, 900.0, 400.0]),
    )


# --- today's arms, from published geometry, limits and mass properties ------------------------------------------------


def panda() -> Robot:
    """Franka Emika Panda, seven revolute joints, with a massless link ``flange``.

    Geometry and limits: the manufacturer's (modified DH). Mass properties: identified by Gaz et al. 2019 (Dynamic
    identification of the Franka Emika Panda robot with retrieval of feasible parameters), as used in the
    manufacturer's model files.
    """
    rows = [
        DH(r=0.333),
        DH(alpha=-90),
        DH(alpha=90, r=0.316),
        DH(alpha=90, d=0.0825),
        DH(alpha=-90, d=-0.0825, r=0.384),
        DH(alpha=90),
        DH(alpha=90, d=0.088),
    ]
    bodies = [  # mass, centre of mass, xx xy xz yy yz zz about it
        (4.970684, (0.003875, 0.002081, -0.04762), (0.70337, -0.000139, 0.006772, 0.70661, 0.019169, 0.009117)),
        (0.646926, (-0.003141, -0.02872, 0.003495), (0.007962, -0.003925, 0.010254, 0.02811, 0.000704, 0.025995)),
        (3.228604, (0.027518, 0.039252, -0.066502), (0.037242, -0.004761, -0.011396, 0.036155, -0.012805, 0.01083)),
        (3.587895, (-0.05317, 0.104419, 0.027454), (0.025853, 0.007796, -0.001332, 0.019552, 0.008641, 0.028323)),
        (1.225946, (-0.011953, 0.041065, -0.038437), (0.035549, -0.002117, -0.004037, 0.029474, 0.000229, 0.008627)),
        (1.666555, (0.060149, -0.014117, -0.010517), (0.001964, 0.000109, -0.001158, 0.004354, 0.000341, 0.005433)),
        (0.735522, (0.010517, -0.004252, 0.061597), (0.012516, -0.000428, -0.001196, 0.010027, -0.000741, 0.004815)),
    ]
    ranges: list[float | tuple[float, float]]
    ranges = [2.8973, 1.7628, 2.8973, (-3.0718, -0.0698), 2.8973, (-0.0175, 3.7525), 2.8973]
    accelerations = [15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0]
    limits = joint_limits(ranges, [2.175] * 4 + [2.61] * 3, [87.0] * 4 + [12.0] * 3)
    robot = from_dh(
        rows,
        degrees=True,
        name="panda",
        inertias=[body(*values) for values in bodies],
        limits=[replace(limit, acceleration=a) for limit, a in zip(limits, accelerations, strict=True)],
    )
    return robot.with_body("flange", parent="link7", inertia=Inertia.zero(), T_parent_body=shift(0, 0, 0.107))


def ur10() -> Robot:
    """Universal Robots UR10, six revolute joints.

    Geometry, masses, centres of mass, inertias and limits: the manufacturer's, in standard DH frames; ``link6`` is the
    tool flange. The elbow is limited to half a turn, as in the manufacturer's model files.
    """
    lengths = (0.1273, -0.612, -0.5723, 0.163941, 0.1157, 0.0922)
    return _ur("ur10", lengths, masses=(7.1, 12.7, 4.27, 2.0, 2.0, 0.365), wrist_effort=54.0)


def ur10e() -> Robot:
    """Universal Robots UR10e, six revolute joints; sources as for `ur10`."""
    lengths = (0.1807, -0.6127, -0.57155, 0.17415, 0.11985, 0.11655)
    return _ur("ur10e", lengths, masses=(7.369, 13.051, 3.989, 2.1, 1.98, 0.615), wrist_effort=56.0)


def _ur(name: str, lengths: tuple[float, ...], masses: tuple[float, ...], wrist_effort: float) -> Robot:
    """An arm of the UR10 family; the manufacturer gives both the same centres of mass and tensors."""
    d1, a2, a3, d4, d5, d6 = lengths
    rows = [
        StandardDH(alpha=90, d=d1),
        StandardDH(a=a2),
        StandardDH(a=a3),
        StandardDH(alpha=90, d=d4),
        StandardDH(alpha=-90, d=d5),
        StandardDH(d=d6),
    ]
    bodies = [  # centre of mass, xx xy xz yy yz zz about it
        ((0.021, 0, 0.027), (0.03408, 0.00002, -0.00425, 0.03529, 0.00008, 0.02156)),
        ((0.38, 0, 0.158), (0.02814, 0.00005, -0.01561, 0.77068, 0.00002, 0.76943)),
        ((0.24, 0, 0.068), (0.01014, 0.00008, 0.00916, 0.30928, 0.0, 0.30646)),
        ((0, 0.007, 0.018), (0.00296, -0.00001, 0.0, 0.00222, -0.00024, 0.00258)),
        ((0, 0.007, 0.018), (0.00296, -0.00001, 0.0, 0.00222, -0.00024, 0.00258)),
        ((0, 0, -0.026), (0.00040, 0.0, 0.0, 0.00041, 0.0, 0.00034)),
    ]
    return from_dh(
        rows,
        degrees=True,
        name=name,
        inertias=[body(m, com, moments) for m, (com, moments) in zip(masses, bodies, strict=True)],
        limits=joint_limits(
            [360, 360, 180, 360, 360, 360],
            [120, 120, 180, 180, 180, 180],
            [330.0, 330.0, 150.0, *[wrist_effort] * 3],
            degrees=True,
        ),
    )


def iiwa14() -> Robot:
    """KUKA LBR iiwa 14 R820, seven revolute joints, with a massless link ``flange``.

    Geometry and limits: the manufacturer's. Mass properties: those of the open models in common use (Drake, MuJoCo
    Menagerie), turned into modified DH frames; rounded, and not the manufacturer's.
    """
    rows = [
        DH(r=0.36),
        DH(alpha=-90),
        DH(alpha=90, r=0.42),
        DH(alpha=90),
        DH(alpha=-90, r=0.4),
        DH(alpha=-90),
        DH(alpha=90),
    ]
    bodies = [  # mass, centre of mass, principal moments about it
        (5.76, (0, -0.03, -0.0825), (0.0333, 0.033, 0.0123)),
        (6.35, (-0.0003, -0.059, 0.042), (0.0305, 0.0304, 0.011)),
        (3.5, (0, 0.03, -0.0855), (0.025, 0.0238, 0.0076)),
        (3.5, (0, 0.067, 0.034), (0.017, 0.0164, 0.006)),
        (3.5, (-0.0001, -0.021, -0.1395), (0.01, 0.0087, 0.00449)),
        (1.8, (0, -0.0006, 0.0004), (0.0049, 0.0047, 0.0036)),
        (1.2, (0, 0, 0.101), (0.001, 0.001, 0.001)),
    ]
    velocities, torques = [85, 85, 100, 75, 130, 135, 135], [320.0, 320.0, 176.0, 176.0, 110.0, 40.0, 40.0]
    robot = from_dh(
        rows,
        degrees=True,
        name="iiwa14",
        inertias=[body(*values) for values in bodies],
        limits=joint_limits([170, 120, 170, 120, 170, 120, 175], velocities, torques, degrees=True),
    )
    return robot.with_body("flange", parent="link7", inertia=Inertia.zero(), T_parent_body=shift(0, 0, 0.126))


def tx40() -> Robot:
    """Staubli TX40, six revolute joints, with rotors, friction, offsets and the coupling of joints 5 and 6.

    Geometry, limits and mass properties: the modified DH model file that circulates with the identification data of
    this arm (its link 6 is a point mass). Terms: reference values that circulate with the same data.
    """
    rows = [
        DH(r=0.32),
        DH(alpha=-90),
        DH(d=0.225, r=0.035),
        DH(alpha=90, r=0.225),
        DH(alpha=-90),
        DH(alpha=90, theta=180),
    ]
    bodies = [  # mass, centre of mass, xx xy xz yy yz zz about it
        (10.5, (0, 0.020, -0.043), (0.055, 0, 0, 0.047, 0.003, 0.035)),
        (3.6, (0.109, -0.002, 0.134), (0.038, 0, 0, 0.009, -0.002, 0.040)),
        (4.07, (0.008, 0.006, 0.041), (0.012, 0, -0.001, 0.012, -0.001, 0.004)),
        (3.62, (-0.004, 0.002, -0.107), (0.014, 0, -0.001, 0.013, 0, 0.004)),
        (1.02, (-0.004, -0.003, -0.001), (0.001, 0, 0, 0.001, 0, 0.001)),
        (0.2, (0, 0, 0.042), (0, 0, 0, 0, 0, 0)),
    ]
    joints = [  # gear ratio, rotor inertia, viscous, dry, offset
        (32, 0.362, 8.05, 7.14, 0.392),
        (32, 0.362, 5.53, 8.26, 1.37),
        (45, 0.0988, 1.97, 6.34, 0.326),
        (-48, 0.0313, 1.11, 2.48, -0.102),
        (45, 0.0468, 1.86, 3.03, -0.0288),
        (32, 0.0105, 0.65, 0.282, 0.127),
    ]
    ranges: list[float | tuple[float, float]] = [3.14, 2.18, 2.40, 4.71, (-2.09, 2.33), 4.71]
    velocities, torques = [5.009, 5.009, 7.504, 7.15, 5.585, 12.217], [131.84, 131.84, 103.49, 46.08, 43.19, 30.72]
    robot = from_dh(
        rows,
        degrees=True,
        name="tx40",
        inertias=[body(*values) for values in bodies],
        limits=joint_limits(ranges, velocities, torques),
        terms=[[RotorInertia(ia, n), Viscous(fv), Coulomb(fc), Offset(off)] for n, ia, fv, fc, off in joints],
    )
    wrist = Coupling({"joint5": 1.0, "joint6": 1.0}, rotor_inertia=0.00964, viscous=0.616, coulomb=1.95)
    return replace(robot, couplings=(wrist,))


# --- how their tables are written -------------------------------------------------------------------------------------


def body(mass: float, com: ArrayLike, moments: Sequence[float]) -> Inertia:
    """A link from its mass [kg], centre of mass (3,) [m] and inertia about that [kg m^2].

    Args:
        mass: [kg]
        com: (3,) centre of mass in the link frame [m].
        moments: xx, yy, zz or xx, xy, xz, yy, yz, zz about the centre of mass, link axes [kg m^2].
    """
    xx, xy, xz, yy, yz, zz = moments if len(moments) == 6 else (moments[0], 0, 0, moments[1], 0, moments[2])
    return Inertia.from_com(mass, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float))


def joint_limits(
    ranges: Sequence[float | tuple[float, float]],
    velocities: Sequence[float],
    efforts: Sequence[float],
    *,
    degrees: bool = False,
) -> list[JointLimits]:
    """Limits of every joint.

    Args:
        ranges: (lower, upper) [rad or m] of each joint, or one number for a symmetric range.
        velocities: [rad/s or m/s]
        efforts: [N m or N]
        degrees: Whether ranges and velocities are in degrees.
    """
    unit = np.pi / 180 if degrees else 1.0
    bounds = [r if isinstance(r, tuple) else (-r, r) for r in ranges]
    return [
        JointLimits(lower=unit * low, upper=unit * high, velocity=unit * velocity, effort=effort)
        for (low, high), velocity, effort in zip(bounds, velocities, efforts, strict=True)
    ]


def shift(x: float, y: float, z: float) -> Floats:
    """Pose (4, 4) of a parallel frame at (x, y, z) [m]."""
    return transform(np.eye(3), np.array([x, y, z], dtype=float))


_MAKERS: dict[str, Callable[[], Robot]] = {name: globals()[name] for name in __all__ if name not in ("get", "names")}
"""Name of a robot -> the function that builds it."""
