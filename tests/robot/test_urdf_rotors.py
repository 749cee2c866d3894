"""Rotor inertias in URDF: written where ROS and Drake look for them, read back, and ignored by others without harm."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import DescriptionError
from dynid.robot import zoo
from dynid.robot.formats.urdf import urdf_text
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import RotorInertia
from support.described import parse_urdf

GEARED = """<transmission name="t"><joint name="joint2"/><actuator name="m">
<mechanicalReduction> 50 </mechanicalReduction><motorInertia>2e-4</motorInertia></actuator></transmission>"""


def rotors(robot: Robot) -> dict[str, float]:
    return {j.name: t.value for j in robot.moving_joints for t in j.terms if isinstance(t, RotorInertia)}


def test_they_come_back() -> None:
    robot = zoo.ddarm().with_terms(RotorInertia(0.37), Viscous(0.5), Coulomb(0.2))
    again = parse_urdf(urdf_text(robot))
    assert rotors(again) == dict.fromkeys(robot.joint_names, 0.37)
    np.testing.assert_allclose(again.parameter_vector, robot.parameter_vector, rtol=1e-12, atol=1e-12)
    assert urdf_text(again) == urdf_text(parse_urdf(urdf_text(again)))
    changed = parse_urdf(urdf_text(again.with_parameters(2.0 * again.parameter_vector)))
    np.testing.assert_allclose(changed.parameter_vector, 2.0 * again.parameter_vector, rtol=1e-12, atol=1e-12)
    assert urdf_text(changed).count("<motorInertia>") == robot.dof


def test_a_gear_of_the_file_counts_and_stays() -> None:
    text = urdf_text(zoo.ddarm()).replace("</robot>", f"{GEARED}</robot>")
    robot = parse_urdf(text)
    assert rotors(robot) == pytest.approx({"joint2": 0.5})
    assert urdf_text(robot) == text
    heavier = urdf_text(robot.with_terms(RotorInertia(1.0), joints="joint2"))
    assert "<mechanicalReduction> 50 </mechanicalReduction>" in heavier
    assert '<drake:rotor_inertia value="0.0004"/>' in heavier
    assert rotors(parse_urdf(heavier)) == pytest.approx({"joint2": 1.0})
    with pytest.raises(DescriptionError, match=r"motorInertia.*'heavy'"):
        parse_urdf(text.replace("2e-4", "heavy"))


def test_others_read_the_true_links(tmp_path) -> None:
    robot = zoo.panda().with_terms(RotorInertia(0.5), Viscous(0.5))
    path = tmp_path / "arm.urdf"
    path.write_text(urdf_text(robot))
    masses = sorted(body.inertia.mass for body in robot.bodies)
    pinocchio, mujoco = pytest.importorskip("pinocchio"), pytest.importorskip("mujoco")
    model = pinocchio.buildModelFromUrdf(str(path))
    np.testing.assert_allclose(sorted(inertia.mass for inertia in model.inertias)[1:], masses, rtol=1e-9)
    model = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_allclose(np.sort(model.body_mass)[-robot.dof :], masses, rtol=1e-9)
