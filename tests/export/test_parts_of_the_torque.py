"""Generated gravity, velocity torques, inertia, energy and friction, each by itself, against Pinocchio and by hand.

Their sum says little: on a joint that slides along gravity, rotor inertia, mass and offset can be exchanged for one
another without changing it.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynid.export.c_check import build_driver, run_driver
from dynid.export.c_package import generate_c
from dynid.export.c_reference import reference
from dynid.parameters.base import base_parameters
from dynid.robot import zoo
from dynid.robot.joint_models import Coulomb, Offset, RotorInertia, Viscous
from support.pinocchio_oracle import pinocchio_model, relative_error, symmetric
from support.random_robots import random_robot

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle here")
PARTS = ["inverse_dynamics", "inertia_matrix", "gravity", "velocity_torque", "friction", "energy", "forward_dynamics"]
MODELS = (RotorInertia(0.7), Viscous(0.4), Coulomb(0.9), Offset(0.3))
ROBOTS = {
    "scara": zoo.scara().with_joint_models(*MODELS),
    "a sliding joint on the base": random_robot(0, tree=True, joint_models=True),  # the third of seven
    "a tree": random_robot(9, joints=3, tree=True, joint_models=True),
}
OPTIONS = [{}, {"load": "struct"}, {"parameters": "struct"}, {"precision": "float"}]


def answers_of_the_code(package, folder, samples=20):
    """What the code answers for the parameter values and no load it was generated with."""
    text = package.text
    drawn = reference(text.model, tuple(text.tapes), samples)
    values = np.tile(text.model.runtime_values, (samples, 1))
    inputs = {**drawn.inputs, "values": values, "loaded": values, "load": np.zeros((samples, 10))}
    program = build_driver(text, package.files, str(folder))
    return inputs, run_driver(text, program, dataclasses.replace(drawn, inputs=inputs))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_part_agrees(name, options, tmp_path):
    robot = ROBOTS[name]
    package = generate_c(robot, PARTS, name="arm", two_rate=False, **options)
    package.check(100)
    inputs, found = answers_of_the_code(package, tmp_path)
    model = pinocchio_model(robot)
    data = model.createData()
    states = list(zip(inputs["q"], inputs["dq"], strict=True))
    rest = np.zeros(robot.dof)
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
        "energy": potential - pin.computePotentialEnergy(model, data, rest),
    }
    found["energy"] = found["energy"][:, 1] - robot_at_rest(robot)
    for part, values in expected.items():
        error = relative_error(found[part], values)
        assert error <= (1e-11 if package.text.precision == "double" else 1e-3), (part, error)


def robot_at_rest(robot):
    """Potential energy where all joints are at zero: what the code's is counted from, too."""
    model = pinocchio_model(robot)
    return pin.computePotentialEnergy(model, model.createData(), np.zeros(robot.dof))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("options", [{}, {"load": "struct"}, {"parameters": "struct", "load": "struct"}], ids=str)
def test_base_parameters_of_a_lift(options):
    """Base parameters put the rotor of a lift into mass and offset; only as a struct does the code follow them."""
    robot = ROBOTS["scara"]
    package = generate_c(robot, PARTS, base=base_parameters(robot), **options)
    assert max(package.check(100).values()) <= package.tolerance
