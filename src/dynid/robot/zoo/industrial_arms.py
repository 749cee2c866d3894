"""Today's arms, from published geometry, limits and mass properties."""

from __future__ import annotations

from dataclasses import replace

from dynid.robot.formats.dh import DH, StandardDH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.zoo.dh_tables import body, joint_limits, shift
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia

__all__ = ["iiwa14", "panda", "tx40", "ur10", "ur10e"]


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
