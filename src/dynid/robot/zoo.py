"""Built-in robots from published data, to try methods on: the robots of the papers, and current industrial arms.

Their numbers are in the folder ``arms``, as tables of DH rows that `dynid.robot.read_robot` reads. The functions here
read them, and document where the numbers come from.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.robot.formats.dh_table import read_dh
from dynid.robot.inertia import Inertia
from dynid.robot.model import Robot
from dynid.spatial import transform
from dynid.terms.coupling import Coupling

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
    return tuple(sorted(set(__all__) - {"get", "names"}))


def get(name: str) -> Robot:
    """Build the robot of that name, with the default arguments of its function.

    Raises:
        ArgumentError: There is no such robot; the error lists the known ones.
    """
    if name not in names():
        raise ArgumentError(f"there is no built-in robot '{name}'", remedy=f"There are: {', '.join(names())}.")
    robot: Robot = globals()[name]()
    return robot


def __getattr__(name: str) -> object:
    """Raise an error that lists the robots, for an unknown name in this module."""
    raise AttributeError(f"dynid.robots has no '{name}'; the robots are {', '.join(names())}")


# --- robots of the papers ---------------------------------------------------------------------------------------------


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
    return _read("puma560")


def gautier_khalil_3r() -> Robot:
    """Three-revolute robot of Gautier and Khalil 1992, much like the PUMA 560's first three joints.

    Geometry: Table 1. Parameters: column X of Table 6, the base parameters; each stands for itself and the parameters
    it absorbs are zero. No rigid links have these values (link 3 violates the triangle inequality).
    """
    return _read("gautier_khalil_3r")


def puma260() -> Robot:
    """Unimation PUMA 260, six revolute joints, with rotors, viscous and dry friction.

    Geometry: standard DH of Izaguirre et al. 1992, Appendix A; base frame on the shoulder. Parameters: Table 2, the 23
    significant ones; the other parameters are zero, so the links are not possible bodies. Link parameters are given in
    the standard frames ``link1`` to ``link6``; rotors (``ia``), dry (``fs``) and viscous friction (``ds``) are the
    joints'.
    """
    return _read("puma260")


def ddarm(*, parameters: Literal["cad", "estimated"] = "cad") -> Robot:
    """MIT serial link direct drive arm, three revolute joints.

    Geometry, parameters and torque limits: Atkeson, An and Hollerbach 1986 (l2 = 0.45 m), in the paper's frames: O3
    lies l2 along z2 from O2, so that frame 2 is no modified DH frame.

    Args:
        parameters: ``cad`` for Table 3 (whose link 1, but for Izz, has no effect and is no possible body),
            ``estimated`` for Table 4 (what is not identifiable is zero, so these are no possible bodies).
    """
    robot = _variant("ddarm", parameters, "cad", "estimated")
    first, second, third = robot.joints
    second = replace(second, T_parent_joint=second.T_parent_joint @ _shift(-0.45))
    third = replace(third, T_parent_joint=_shift(0.45) @ third.T_parent_joint)
    return replace(robot, joints=(first, second, third))


# --- textbook structures ----------------------------------------------------------------------------------------------


def stanford() -> Robot:
    """Stanford arm: two revolute joints, one prismatic, a spherical wrist.

    Geometry: standard DH of Paul 1981 with ``d1 = 0.412, d2 = 0.154`` m; the hand's offset is left out. Mass
    properties: the table that goes back to Bejczy 1974 and Paul 1981, in the standard frames, with the tensors read as
    taken about the frames' origins and y and z of link 5's centre of mass exchanged: only so are these possible bodies
    of that length. Limits are left open.
    """
    return _read("stanford")


def scara(*, joints: Literal["RRRP", "RRPR"] = "RRPR") -> Robot:
    """A SCARA robot with arms of 0.325 m and 0.275 m and four parallel axes.

    Geometry: that of the Adept Cobra 600. Mass properties and limits are illustrative.

    Args:
        joints: Whether the tool turns before (RRRP) or after (RRPR) it slides.
    """
    return _variant("scara", joints, "RRRP", "RRPR")


def cartesian() -> Robot:
    """A gantry: three prismatic joints along y, x and, upwards, z of the base. All numbers are illustrative."""
    return _read("cartesian")


def cylindrical() -> Robot:
    """A column that turns, a lift along it and an arm that reaches out: R P P. All numbers are illustrative."""
    return _read("cylindrical")


# --- today's arms, from published geometry, limits and mass properties ------------------------------------------------


def panda() -> Robot:
    """Franka Emika Panda, seven revolute joints, with a massless link ``flange``.

    Geometry and limits: the manufacturer's (modified DH). Mass properties: identified by Gaz et al. 2019 (Dynamic
    identification of the Franka Emika Panda robot with retrieval of feasible parameters), as used in the
    manufacturer's model files.
    """
    return _read("panda").with_body("flange", parent="link7", inertia=Inertia.zero(), T_parent_body=_shift(0.107))


def ur10() -> Robot:
    """Universal Robots UR10, six revolute joints.

    Geometry, masses, centres of mass, inertias and limits: the manufacturer's, in standard DH frames; ``link6`` is the
    tool flange. The elbow is limited to half a turn, as in the manufacturer's model files.
    """
    return _read("ur10")


def ur10e() -> Robot:
    """Universal Robots UR10e, six revolute joints; sources as for `ur10`."""
    return _read("ur10e")


def iiwa14() -> Robot:
    """KUKA LBR iiwa 14 R820, seven revolute joints, with a massless link ``flange``.

    Geometry and limits: the manufacturer's. Mass properties: those of the open models in common use (Drake, MuJoCo
    Menagerie), turned into modified DH frames; rounded, and not the manufacturer's.
    """
    return _read("iiwa14").with_body("flange", parent="link7", inertia=Inertia.zero(), T_parent_body=_shift(0.126))


def tx40() -> Robot:
    """Staubli TX40, six revolute joints, with rotors, friction, offsets and the coupling of joints 5 and 6.

    Geometry, limits and mass properties: the modified DH model file that circulates with the identification data of
    this arm (its link 6 is a point mass). Terms: reference values that circulate with the same data.
    """
    wrist = Coupling({"joint5": 1.0, "joint6": 1.0}, rotor_inertia=0.00964, viscous=0.616, coulomb=1.95)
    return _read("tx40").with_couplings(wrist)


def _read(name: str) -> Robot:
    """Read a table of the folder ``arms``."""
    return read_dh(Path(__file__).parent / "arms" / f"{name}.toml")


def _variant(name: str, chosen: str, *known: str) -> Robot:
    """Read a variant of a robot; a variant that is not among the known ones is an ArgumentError."""
    if chosen not in known:
        raise ArgumentError(f"{name} has no variant {chosen!r}", remedy=f"Use {' or '.join(map(repr, known))}.")
    return _read(f"{name}_{chosen.lower()}")


def _shift(z: float) -> Floats:
    """Pose (4, 4) of a parallel frame that is shifted along z [m]."""
    return transform(np.eye(3), np.array([0.0, 0.0, z]))
