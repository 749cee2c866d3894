"""check_robot: every kind of mistake is found, named and given a remedy; a sound robot passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dynid.robot.check import check_robot, impossible_inertias
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.inertia import Inertia, inertia_about_com
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, JointLimits, Link
from dynid.spatial import rotation_from_rpy, transform
from dynid.terms.base import StateTerm
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

SOUND = JointLimits(lower=-2, upper=2, velocity=3, effort=50)


def body(
    mass: float = 2.0, com: Sequence[float] = (0.01, 0, 0.15), tensor: Sequence[float] = (0.03, 0.03, 0.01)
) -> Inertia:
    return inertia_about_com(mass, com, np.diag(tensor))


def arm(
    inertia: Inertia,
    *,
    limits: JointLimits = SOUND,
    terms: tuple[StateTerm, ...] = (),
    roll: float = 0.0,
    gravity: tuple[float, float, float] = (0, 0, -9.81),
) -> Robot:
    """Three links; the middle one has the inertia and its joint the limits and models under test."""
    others = [body(5.0), inertia, body(1.0, tensor=(0.01, 0.011, 0.005))]
    links = (Link(name="base"), *(Link(name=f"link{k + 1}", inertia=other) for k, other in enumerate(others)))
    T = transform(rotation_from_rpy([roll, 0, 0]), np.array([0, 0, 0.3]))
    joints = [
        Joint(name=f"joint{k}", kind="revolute", parent=links[k - 1].name, child=links[k].name, limits=SOUND,
              T_parent_joint=T) for k in (1, 3)
    ]  # fmt: skip
    middle = Joint(
        name="joint2", kind="revolute", parent="link1", child="link2", limits=limits, terms=terms, T_parent_joint=T
    )
    return Robot(name="arm", links=links, joints=(joints[0], middle, joints[1]), gravity=np.array(gravity))


def test_a_sound_robot_has_nothing_to_report() -> None:
    check = check_robot(arm(body(), terms=(Viscous(0.1), Coulomb(0.2), Offset(-1.0))))
    assert check.ok
    assert check.findings == ()
    assert str(check) == "arm: no objections"


MASSLESS = replace(arm(body()), links=(*arm(body()).links[:3], Link(name="link3")))
FAR = from_dh([DH(d=60, sigma=1)], limits=[JointLimits(lower=-30, upper=40)])
MISTAKES = """
arm(body(mass=-1.0)) | impossible-inertia | error | link 'link2' | negative
arm(Inertia(mass=0.0, first_moment=np.zeros(3), about_origin=np.eye(3))) | unusual-inertia | warning | link2 | no mass
arm(body(mass=4000.0, tensor=(60, 60, 20))) | unusual-inertia | warning | link2 | 4000 kg
arm(body(tensor=(0, 0, 0))) | unusual-inertia | warning | link2 | zero inertia tensor
arm(body(tensor=(0.01, 0.01, 0.05))) | impossible-inertia | error | link2 | triangle
arm(body(tensor=(-0.01, 0.03, 0.03))) | impossible-inertia | error | link2 | negative
arm(body(com=(10.0, 0, 150.0))) | unusual-inertia | warning | link2 | centre of mass
arm(body(tensor=(30.0, 30.0, 10.0))) | unusual-inertia | warning | link2 | radius of gyration is
arm(body(tensor=(3e-7, 3e-7, 1e-7))) | unusual-inertia | warning | link2 | radius of gyration is
arm(body(), limits=JointLimits()) | joint-limits | warning | joint 'joint2' | no position limits
arm(body(), limits=JointLimits(lower=-1, upper=1)) | joint-limits | warning | joint2 | no velocity limit
arm(body(), limits=JointLimits(velocity=0)) | joint-limits | warning | joint2 | velocity limit is zero
arm(body(), limits=JointLimits(effort=0)) | joint-limits | warning | joint2 | effort limit is zero
arm(body(), limits=JointLimits(velocity=1)) | joint-limits | note | joint2 | no effort limit
arm(body(), limits=JointLimits(lower=1, upper=1)) | joint-limits | warning | joint2 | no motion
arm(body(), terms=(Viscous(-0.1),)) | negative-friction | error | joint 'joint2' | negative
arm(body(), gravity=(0, 0, 0)) | unusual-geometry | note | robot | gravity
FAR | unusual-geometry | warning | robot | 130 m
MASSLESS | unusual-inertia | warning | joint 'joint3' | without mass
"""
"""Robot | code, severity, place and words of its finding."""


@pytest.mark.parametrize("case", MISTAKES.strip().splitlines())
def test_mistakes_are_found(case: str) -> None:
    robot, code, severity, where, message = case.split(" | ")
    check = check_robot(eval(robot))
    found = [f for f in check.about(code) if f.severity == severity and where in f.where and message in f.message]
    assert len(found) == 1
    assert all(finding.remedy for finding in check.findings)
    assert check.ok == (severity != "error")
    text = str(check)
    assert found[0].remedy in text


def test_a_link_that_no_torque_depends_on_may_be_impossible() -> None:
    bad = body(mass=0.5, com=(0, 0, 0.15), tensor=(1e-4, 1e-4, 5e-4))
    robot = arm(body()).with_body("foot", parent="base", inertia=bad).with_body("camera", parent="link3", inertia=bad)
    robot = robot.with_body("plate", parent="base", inertia=body(mass=-1.0))
    needed, harmless = impossible_inertias(robot)
    assert not needed
    assert {finding.where for finding in harmless} == {"link 'foot'", "link 'camera'", "link 'plate'"}
    for wrong in (
        arm(body(tensor=(0.001, 0.001, 0.05))),
        arm(body()).with_body("tool", parent="link3", inertia=body(mass=-0.5)),
    ):
        needed, harmless = impossible_inertias(wrong)
        assert (len(needed), harmless) == (1, [])
