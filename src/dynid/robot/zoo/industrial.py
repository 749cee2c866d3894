"""Today's arms, from published geometry, limits and mass properties."""

from __future__ import annotations

from dynid.robot.dh import DH, from_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.robot.zoo.tables import body, joint_limits, shift

__all__ = ["panda"]


def panda() -> Robot:
    """Franka Emika Panda, seven revolute joints, with a massless link ``flange``.

    Geometry and limits: the manufacturer's (modified DH). Mass properties: identified by Gaz et al. 2019 (Dynamic
    identification of the Franka Emika Panda robot with retrieval of feasible parameters, table of link inertias).
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
    ranges: list[float | tuple[float, float]] = [
        2.8973,
        1.7628,
        2.8973,
        (-3.0718, -0.0698),
        2.8973,
        (-0.0175, 3.7525),
        2.8973,
    ]
    robot = from_dh(
        rows,
        degrees=True,
        name="panda",
        inertias=[body(*values) for values in bodies],
        limits=joint_limits(ranges, [2.175] * 4 + [2.61] * 3, [87.0] * 4 + [12.0] * 3),
    )
    return robot.with_body("flange", parent="link7", inertia=Inertia.zero(), T_parent_body=shift(0, 0, 0.107))
