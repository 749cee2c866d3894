"""[GautierKhalil1990] appendix: lambda, f and beta against rigid-body transport and Pinocchio's energies; the bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid.errors import ArgumentError
from dynid.parameters.energy_recursion import (
    count_bound,
    energy_derivatives,
    energy_increment,
    energy_transport,
    potential_transport,
)
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from support.pinocchio_oracle import pinocchio_model
from support.random_robots import random_inertia, random_robot

ANGLES = st.floats(-3.0, 3.0)
LENGTHS = st.floats(-1.0, 1.0)
ROWS = st.builds(DH, alpha=ANGLES, d=LENGTHS, theta=ANGLES, r=LENGTHS, sigma=st.sampled_from((0, 1)))


def random_chain(seed: int) -> Robot:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 8))
    rows = [
        DH(
            **dict(zip(("alpha", "d", "theta", "r"), rng.uniform(-1.5, 1.5, 4), strict=True)),
            sigma=int(rng.integers(2)),
        )
        for _ in range(count)
    ]
    inertias = [random_inertia(rng) for _ in rows]
    return from_dh(rows, name="chain", inertias=inertias, gravity=rng.normal(size=3) * 9.81)


@given(row=ROWS, q=LENGTHS)
@settings(max_examples=100, deadline=None)
def test_lambda_is_the_transport_of_a_rigid_body(row: DH, q: float) -> None:
    """Its last row as the paper prints it, and what it has in common with beta."""
    moved, d, r = energy_transport(row, q), row.d, row.r + q * row.sigma
    ca, sa = np.cos(row.alpha), np.sin(row.alpha)
    tensor = [r * r, d * r * sa, -d * r * ca, d * d + (r * ca) ** 2, r * r * ca * sa, d * d + (r * sa) ** 2]
    np.testing.assert_allclose(moved[9], [*tensor, d, -r * sa, r * ca, 1.0], atol=1e-12)  # eqs. (A5), (A6)
    np.testing.assert_allclose(potential_transport(row, q)[:, 6:], moved[:, 6:], atol=1e-12)
    assert not potential_transport(row, q)[:, :6].any()


@pytest.mark.parametrize("seed", range(12))
def test_energies_are_those_of_pinocchio(seed: int) -> None:
    pin = pytest.importorskip("pinocchio")
    robot = random_chain(seed)
    q, dq = np.random.default_rng(seed + 100).normal(size=(2, robot.dof))
    model = pinocchio_model(robot)
    data = model.createData()
    found = energy_derivatives(robot, q, dq)
    theta = robot.inertial_vector
    assert found.kinetic.ravel() @ theta == pytest.approx(pin.computeKineticEnergy(model, data, q, dq), rel=1e-10)
    potential = pin.computePotentialEnergy(model, data, q)
    assert found.potential.ravel() @ theta == pytest.approx(potential, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_recursion_gives_the_columns_of_the_energy_regressor(seed: int) -> None:
    robot = random_chain(seed)
    q, dq = np.random.default_rng(seed).normal(size=(2, robot.dof))
    found = energy_derivatives(robot, q, dq)
    columns = dynid.energy_regressor(robot, q, dq)
    np.testing.assert_allclose((found.kinetic + found.potential).ravel(), columns, atol=1e-10 * np.abs(columns).max())


@given(row=ROWS, q=LENGTHS, q2=LENGTHS, w=st.tuples(LENGTHS, LENGTHS, LENGTHS), dq=LENGTHS)
@settings(max_examples=60, deadline=None)
def test_rows_that_allow_regrouping(row: DH, q: float, q2: float, w: tuple[float, float, float], dq: float) -> None:
    """[GautierKhalil1990] section IV-B: the regrouped parameters have a constant row of lambda and no entry of f."""
    change = energy_transport(row, q) - energy_transport(row, q2)
    increment = energy_increment(row, w, w[::-1], dq)
    unit = np.eye(10)
    grouped = unit[:6] if row.sigma else np.array([unit[9], unit[8], unit[0] + unit[3]])  # tensor; M, MZ, XX + YY
    np.testing.assert_allclose(grouped @ change, 0.0, atol=1e-12)
    np.testing.assert_allclose(grouped @ increment, 0.0, atol=1e-15)


def test_other_frames_are_refused_with_the_way_out() -> None:
    robot = random_robot(3, joints=4, fixed=False)
    with pytest.raises(ArgumentError, match="modified_dh"):
        energy_derivatives(robot, np.zeros(robot.dof), np.zeros(robot.dof))
    with pytest.raises(ArgumentError, match="shape"):
        energy_derivatives(random_chain(1), np.zeros(1000), np.zeros(1000))


@pytest.mark.parametrize(
    ("name", "bound", "exact"),
    [("puma560", 38, 36), ("stanford", 35, 33), ("cylindrical", 11, 5), ("scara", 21, 8), ("cartesian", 9, 3)],
)
def test_the_bound_of_known_arms(name: str, bound: int, exact: int) -> None:
    """Counted by hand: the PUMA 560 has 7 * 6 - 3 - 1 = 38, of which gravity along axis 1 hides two."""
    robot = getattr(dynid.robots, name)()
    assert count_bound(robot) == bound
    assert dynid.base_parameters(robot, "numeric").rank == exact


@pytest.mark.parametrize("seed", range(8))
def test_no_robot_exceeds_the_bound(seed: int) -> None:
    robot = random_chain(seed)
    assert dynid.base_parameters(robot, "numeric").rank <= count_bound(robot)


def test_a_branching_robot_has_no_bound() -> None:
    tree = next(robot for robot in (random_robot(s, joints=6, tree=True) for s in range(20))
                if any(body.parent != j - 1 for j, body in enumerate(robot.bodies)))  # fmt: skip
    with pytest.raises(ArgumentError, match="serial"):
        count_bound(tree)
