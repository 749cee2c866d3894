"""Generated gravity, velocity torques, inertia, energy and friction, each by itself, against Pinocchio and by hand.

Their sum says little: on a joint that slides along gravity, rotor inertia, mass and offset can be exchanged for one
another without changing it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynid.errors import ExportError
from dynid.export.c.c_check import compare_results, package_driver, reference
from dynid.export.c.c_package import generate_c
from dynid.identifiability.base import base_parameters
from dynid.robot import zoo
from dynid.tape import compile_tape
from dynid.terms.coupling import Coupling
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from dynid.terms.springs import AngleHarmonic
from support.pinocchio_oracle import pinocchio_model, relative_error, symmetric
from support.random_robots import random_robot

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle here")
PARTS = ["inverse_dynamics", "inertia_matrix", "gravity", "velocity_torque", "friction", "energy", "forward_dynamics"]
MODELS = (RotorInertia(0.7), Viscous(0.4), Coulomb(0.9), Offset(0.3))
ROBOTS = {
    "scara": zoo.scara().with_terms(*MODELS),
    "a sliding joint on the base": random_robot(14, joints=4, tree=True, terms=True),  # the second of four
    "a tree": random_robot(9, joints=3, tree=True, terms=True),
}
BASE = {"parameters": "struct", "base": True}
CASES = [
    ("scara", {}),
    ("a sliding joint on the base", {"load": "struct"}),
    ("a tree", {"parameters": "struct"}),
    ("a tree", {"precision": "float"}),
    ("a sliding joint on the base", BASE),
    ("scara", {**BASE, "load": "struct"}),
]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_every_part_agrees(name, options):
    robot = ROBOTS[name]
    given = {**options, "base": base_parameters(robot)} if "base" in options else options
    package = generate_c(robot, PARTS, name="arm", two_rate=False, **given)
    drawn = reference(package.text.model, package.text.checkable, 100)
    driver = package_driver(package.text, drawn)
    with_values = driver.answer(package.files, drawn.rows)
    compare_results(package.text, with_values, drawn, package.tolerance)  # as package.check does
    values = np.tile(package.text.model.defaults, (100, 1))  # those the code was generated with, and no load
    inputs = {**drawn.inputs, "values": values, "load": np.zeros((100, 10))}
    found = drawn.split(driver.answer(package.files, dataclasses.replace(drawn, inputs=inputs).rows))
    model = pinocchio_model(robot)
    data = model.createData()
    states = list(zip(inputs["q"], inputs["dq"], strict=True))
    gravity = np.array([pin.computeGeneralizedGravity(model, data, q) for q, _ in states])
    velocity = np.array([pin.nonLinearEffects(model, data, q, dq) for q, dq in states]) - gravity
    potential = np.array([pin.computePotentialEnergy(model, data, q) for q, _ in states])
    links = np.array([symmetric(pin.crba(model, data, q)) for q, _ in states])
    rotors, viscous, coulomb, offsets = robot.parameter_vector[10 * robot.dof :].reshape(robot.dof, 4).T
    expected = {
        "gravity": gravity,
        "velocity_torque": velocity,
        "friction": viscous * inputs["dq"] + coulomb * np.sign(inputs["dq"]) + offsets,
        "inertia_matrix": (links + np.diag(rotors)).reshape(len(states), -1),
        "energy": potential - potential[0],  # the zero is the code's own
    }
    found["energy"] = found["energy"][:, 1] - found["energy"][0, 1]
    for part, values in expected.items():
        error = relative_error(found[part], values)
        assert error <= (1e-11 if package.text.precision == "double" else 1e-3), (part, error)


@pytest.mark.usefixtures("compiler")
def test_the_check_sees_a_weight_that_is_hidden_in_an_offset():
    """The mistake the check is for: values that make the right sum out of wrong parts."""
    robot = ROBOTS["scara"]
    base = base_parameters(robot)
    hidden = np.zeros(robot.parameter_vector.size)
    hidden[list(base.columns)] = base.project(robot.parameter_vector)
    package = generate_c(robot.with_parameters(hidden), PARTS, name="arm")
    text = dataclasses.replace(package.text, model=dataclasses.replace(package.text.model, robot=robot))
    mistaken = dataclasses.replace(package, text=text)
    with pytest.raises(ExportError, match="gravity"):
        mistaken.check(20)


def test_friction_holds_springs_and_couplings_but_energy_does_not():
    """As the header says of both; the torques by hand."""
    plain = zoo.scara().with_terms(Viscous(0.4))
    ratios = {plain.joint_names[0]: 2.0, plain.joint_names[1]: 3.0}
    spring = AngleHarmonic(0.5, joint=1, sine=True)
    robot = plain.with_terms(spring, Coupling(ratios, viscous=0.2), keep=True)
    q, dq = np.array([0.1, 0.7, 0.05, -0.4]), np.array([0.3, -0.8, 0.1, 0.6])
    package = generate_c(robot, ["friction", "energy"], two_rate=False)
    expected = 0.4 * dq
    expected[1] += 0.5 * np.sin(q[1])
    expected[:2] += 0.2 * 6.0 * dq[1::-1]
    np.testing.assert_allclose(compile_tape(package.text.tapes["friction"])(q, dq), expected, rtol=1e-12)
    alone = generate_c(plain, ["energy"], two_rate=False)
    energies = [compile_tape(x.text.tapes["energy"])(q, dq) for x in (package, alone)]
    np.testing.assert_allclose(*energies, rtol=1e-12)
    header = next(text for name, text in package.files.items() if name.endswith(".h"))
    assert "springs, couplings" in header
    assert "without that of springs" in header
