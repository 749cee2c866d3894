"""[GautierKhalil1990] appendix: lambda, f and beta as printed against the energy regressor; the bound (18)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.dynamics.inertia_maps import transport
from dynid.robot.formats.dh import DH, from_dh
from dynid.robot.model import Robot
from papers.gautier1990 import count_bound
from support.random_robots import random_inertia


def random_table(seed: int) -> tuple[Robot, list[DH]]:
    rng = np.random.default_rng(seed)
    table = rng.uniform(-1.5, 1.5, (int(rng.integers(1, 8)), 4))
    rows = [DH(alpha=a, d=d, theta=t, r=r, sigma=int(rng.integers(2))) for a, d, t, r in table]
    inertias = [random_inertia(rng) for _ in rows]
    return from_dh(rows, name="chain", inertias=inertias, gravity=rng.normal(size=3) * 9.81), rows


@pytest.mark.parametrize("seed", range(12))
def test_the_recursion_gives_the_columns_of_the_energy_regressor(seed: int) -> None:
    """DE_j = lambda_j DE_(j-1) + dq_j f_j and DU_j = beta_j DU_(j-1), with lambda's last row as the paper prints it."""
    robot, rows = random_table(seed)
    q, dq = np.random.default_rng(seed).normal(size=(2, robot.dof))
    w, v, kinetic = np.zeros(3), np.zeros(3), np.zeros(10)  # eq. (A10)
    potential = np.concatenate([np.zeros(6), -robot.gravity, [0.0]])  # eq. (A12)
    found = []
    for row, position, rate in zip(rows, q, dq, strict=True):
        moved = replace(row, **({"r": row.r + position} if row.sigma else {"theta": row.theta + position}))
        T, d, r, along = moved.T_previous_joint, row.d, moved.r, np.array([0.0, 0.0, rate])
        w, v = T[:3, :3].T @ w, T[:3, :3].T @ (v + np.cross(w, T[:3, 3]))
        w, v = (w, v + along) if row.sigma else (w + along, v)
        f = [0, 0, w[0], 0, w[1], w[2] - 0.5 * rate, v[1], -v[0], 0, 0]  # eq. (A8)
        f = [0, 0, 0, 0, 0, 0, -w[1], w[0], 0, v[2] - 0.5 * rate] if row.sigma else f  # eq. (A9)
        moving = transport(T[:3, :3], T[:3, 3]).T
        ca, sa = np.cos(row.alpha), np.sin(row.alpha)
        tensor = [r * r, d * r * sa, -d * r * ca, d * d + (r * ca) ** 2, r * r * ca * sa, d * d + (r * sa) ** 2]
        np.testing.assert_allclose(moving[9], [*tensor, d, -r * sa, r * ca, 1.0], atol=1e-12)  # eqs. (A5), (A6)
        kinetic = moving @ kinetic + rate * np.array(f)  # eq. (A1)
        potential = np.concatenate([np.zeros(6), moving[6:, 6:] @ potential[6:]])  # eq. (A11)
        found.append(kinetic + potential)
    columns = dynid.energy_regressor(robot, q, dq)
    np.testing.assert_allclose(np.ravel(found), columns, atol=1e-10 * np.abs(columns).max())


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
    robot, _ = random_table(seed)
    assert dynid.base_parameters(robot, "numeric").rank <= count_bound(robot)
