"""Our equations against Pinocchio's, on random robots and on the URDFs of example-robot-data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid import compiled
from dynid.dynamics import energy
from dynid.errors import ArgumentError, DescriptionError
from dynid.robot.formats.urdf import read_urdf
from dynid.robot.model import Robot
from support.pinocchio_oracle import pinocchio_model, relative_error, symmetric
from support.random_robots import random_robot, random_states

pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle here")
TOLERANCE = 1e-10
STATES = 100
LARGEST = 24
"""Joints of the largest robot compared; humanoids with hands take minutes to compare state by state."""
RANDOM = [(seed, bool(seed % 2)) for seed in range(60)]
"""Seed and whether the robot is a tree: sixty robots."""


def compare(robot: Robot, model: object, order: np.ndarray | None = None) -> dict[str, float]:
    """Worst relative error of each quantity over the states; ``order`` maps our joints to the model's columns."""
    data = model.createData()  # type: ignore[attr-defined]
    columns = np.arange(robot.dof) if order is None else order
    q, dq, ddq = random_states(robot, STATES)
    theirs = [np.empty_like(x) for x in (q, dq, ddq)]
    for ours, their in zip((q, dq, ddq), theirs, strict=True):
        their[:, columns] = ours
    states = list(zip(*theirs, strict=True))
    tau = np.array([pin.rnea(model, data, *state) for state in states])[:, columns]
    M = np.array([symmetric(pin.crba(model, data, s[0])) for s in states])[:, columns[:, None], columns]
    g = np.array([pin.computeGeneralizedGravity(model, data, s[0]) for s in states])[:, columns]
    kinetic = np.array([pin.computeKineticEnergy(model, data, *s[:2]) for s in states])
    potential = np.array([pin.computePotentialEnergy(model, data, s[0]) for s in states])
    ddq_back = np.array([pin.aba(model, data, *s[:2], pin.rnea(model, data, *s)) for s in states])[:, columns]
    theta = robot.inertial_vector
    total = compiled.energy_regressor(robot, q, dq) @ theta
    return {
        "torque": relative_error(compiled.inverse_dynamics(robot, q, dq, ddq), tau),
        "regressor": relative_error(compiled.regressor(robot, q, dq, ddq) @ theta, tau),
        "inertia": relative_error(compiled.inertia_matrix(robot, q), M),
        "gravity": relative_error(compiled.gravity_torque(robot, q), g) if np.abs(g).max() > 1e-6 else 0.0,
        "energy": relative_error(total, kinetic + potential),
        "kinetic": relative_error(
            np.array([energy.kinetic_energy_row(robot, *s) @ theta for s in zip(q, dq)]), kinetic
        ),
        "velocity": relative_error(compiled.velocity_torque(robot, q, dq) + g + np.einsum("kij,kj->ki", M, ddq), tau),
        "forward": forward_error(robot, q, dq, tau, ddq_back),
        "momentum": relative_error(compiled.momentum_regressor(robot, q, dq) @ theta, np.einsum("kij,kj->ki", M, dq)),
    }


def forward_error(robot: Robot, q: np.ndarray, dq: np.ndarray, tau: np.ndarray, ddq: np.ndarray) -> float:
    try:
        return relative_error(compiled.forward_dynamics(robot, q, dq, tau), ddq)
    except ArgumentError:  # singular: the caller knows whether it may be
        return np.inf


@pytest.mark.parametrize(("seed", "tree"), RANDOM)
def test_random_robots(seed: int, tree: bool) -> None:
    robot = random_robot(seed, tree=tree)
    worst = compare(robot, pinocchio_model(robot))
    assert max(worst.values()) < TOLERANCE, worst


def urdf_files() -> list[Path]:
    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    return sorted(folder.rglob("*.urdf"))


@pytest.mark.parametrize("path", urdf_files(), ids=lambda p: p.stem)
def test_robots_of_example_robot_data(path: Path) -> None:
    try:
        robot = read_urdf(path, snap=False).with_terms()  # Pinocchio has no friction
    except DescriptionError as refused:
        pytest.skip(f"refused with a remedy: {refused.reason}")
    if not 0 < robot.dof <= LARGEST:
        pytest.skip(f"{robot.dof} moving joints: nothing to compare, or too long for every run")
    model = pin.buildModelFromUrdf(str(path))
    if model.nq != model.nv:
        order, model = None, pinocchio_model(robot)  # continuous joints have two coordinates there
    else:
        order = np.array([model.joints[model.getJointId(name)].idx_q for name in robot.joint_names])
    worst = compare(robot, model, order)
    if min(np.linalg.eigvalsh(compiled.inertia_matrix(robot, np.zeros(robot.dof)))) < 1e-9:
        del worst["forward"]  # a moving link without mass: accelerations are not determined
    assert max(worst.values()) < TOLERANCE, worst
