"""Lin's set S, symbol by symbol, against Pinocchio's regressor, and converted to the other sets."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.export.c.c_package import generate_c
from dynid.identifiability import conversion_matrix
from dynid.identifiability.base import base_parameters
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset, RotorInertia
from support.pinocchio_oracle import pinocchio_model

from .random_robots import random_serial

# The program's own lists, checked by eye against theorem 2 with the corrected eqs. (10), (12), (14): they only hold the
# output still. The independent evidence is `test_members_by_the_recursion_of_composite_bodies` and the null space of
# Pinocchio's regressor. Stanford arm: r = 1, s = 2, joint 3 slides along -y2
# (z3 = -y2, y3 = z2), no lengths but R2.
ALL = "(M2 + M3 + M4 + M5 + M6)"
STANFORD = f"""
U33_1 = ZZ1 + YY2 + ZZ3 + ZZ4 + YY5 + ZZ6 + 2*R2*(MZ2 + MY3) + R2^2*{ALL}
U11-U22_2 = XX2 - YY2 + XX3 - ZZ3 + YY4 - ZZ4 - YY5 + ZZ5 + YY6 - ZZ6
U33_2 = ZZ2 + YY3 + YY4 + ZZ5 + YY6
U12_2 = XY2 - XZ3
U13_2 = XZ2 + XY3
U23_2 = YZ2 - YZ3
KX2 = MX2 + MX3
KY2 = MY2 - MZ3 - MZ4
MC3 = M3 + M4 + M5 + M6
KX3 = MX3
KY3 = MY3
KZ3 = MZ3 + MZ4
U11-U22_4 = XX4 - YY4 + YY5 - ZZ5 - YY6 + ZZ6
U33_4 = ZZ4 + YY5 + ZZ6
U12_4 = XY4
U13_4 = XZ4
U23_4 = YZ4
KX4 = MX4
KY4 = MY4 + MZ5
U11-U22_5 = XX5 - YY5 + YY6 - ZZ6
U33_5 = ZZ5 + YY6
U12_5 = XY5
U13_5 = XZ5
U23_5 = YZ5
KX5 = MX5
KY5 = MY5 - MZ6
U11-U22_6 = XX6 - YY6
U33_6 = ZZ6
U12_6 = XY6
U13_6 = XZ6
U23_6 = YZ6
KX6 = MX6
KY6 = MY6
"""
TAIL = "(M4 + M5 + M6)"
LONG_TAIL = "(M3 + M4 + M5 + M6)"
PUMA560 = f"""
U33_1 = ZZ1 + YY2 + YY3 + ZZ4 + YY5 + ZZ6 + 2*R3*MZ3 + (D3^2 + R3^2)*M3 + (D3^2 + D4^2 + R3^2)*{TAIL}
U11-U22_2 = XX2 - YY2 - D3^2*{LONG_TAIL}
U33_2 = ZZ2 + ZZ3 + YY4 + ZZ5 + YY6 + D3^2*M3 + 2*R4*MZ4 + (D3^2 + D4^2 + R4^2)*{TAIL}
U12_2 = XY2
U13_2 = XZ2 - D3*MZ3 - D3*R3*{LONG_TAIL}
U23_2 = YZ2
KX2 = MX2 + D3*{LONG_TAIL}
KY2 = MY2
U11-U22_3 = XX3 - YY3 + YY4 - ZZ4 - YY5 + ZZ5 + YY6 - ZZ6 + 2*R4*MZ4 + (R4^2 - D4^2)*{TAIL}
U33_3 = ZZ3 + YY4 + ZZ5 + YY6 + 2*R4*MZ4 + (D4^2 + R4^2)*{TAIL}
U12_3 = XY3 - D4*MZ4 - D4*R4*{TAIL}
U13_3 = XZ3
U23_3 = YZ3
KX3 = MX3 + D4*{TAIL}
KY3 = MY3 + MZ4 + R4*{TAIL}
U11-U22_4 = XX4 - YY4 + YY5 - ZZ5 - YY6 + ZZ6
U33_4 = ZZ4 + YY5 + ZZ6
U12_4 = XY4
U13_4 = XZ4
U23_4 = YZ4
KX4 = MX4
KY4 = MY4 - MZ5
U11-U22_5 = XX5 - YY5 + YY6 - ZZ6
U33_5 = ZZ5 + YY6
U12_5 = XY5
U13_5 = XZ5
U23_5 = YZ5
KX5 = MX5
KY5 = MY5 + MZ6
U11-U22_6 = XX6 - YY6
U33_6 = ZZ6
U12_6 = XY6
U13_6 = XZ6
U23_6 = YZ6
KX6 = MX6
KY6 = MY6
"""
PAPER = {
    "stanford": (zoo.stanford, STANFORD, 33),
    "puma560": (zoo.puma560, PUMA560, 36),
}
PINOCCHIO_ORDER = ("M", "MX", "MY", "MZ", "XX", "XY", "YY", "XZ", "YZ", "ZZ")


@pytest.mark.parametrize("name", PAPER)
def test_the_set_symbol_by_symbol(name):
    build, expected, count = PAPER[name]
    base = base_parameters(build().with_terms(), "minimal-combinations")
    assert list(base.expressions) == expected.strip().splitlines()
    assert base.rank == count
    assert base.references == ("Lin1995",)


def rows_of(text: str, names: list[str], geometry: dict[str, float]) -> np.ndarray:
    """The printed expressions as numbers: one row per line, by Python's own arithmetic on unit vectors."""
    units = dict(zip(names, np.eye(len(names)), strict=True)) | geometry
    sides = [line.split(" = ")[1].replace("^", "**") for line in text.strip().splitlines()]
    return np.array([eval(side, {"__builtins__": {}}, dict(units)) for side in sides])  # the text stands above


def pinocchio_null_space(robot: Robot, states: int = 200) -> np.ndarray:
    """Directions of the standard parameters (dynid's order) that change no torque, by Pinocchio's regressor."""
    pin = pytest.importorskip("pinocchio", reason="Pinocchio is the oracle here")
    model = pinocchio_model(robot)
    data = model.createData()
    q, dq, ddq = np.random.default_rng(5).normal(size=(3, states, robot.dof))
    Y = np.vstack([pin.computeJointTorqueRegressor(model, data, *state) for state in zip(q, dq, ddq, strict=True)])
    order = [PINOCCHIO_ORDER.index(s) for s in ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M")]
    Y = Y[:, [10 * j + k for j in range(robot.dof) for k in order]]
    _, values, Vt = np.linalg.svd(Y / max(1.0, float(np.abs(Y).max())))
    return Vt[int(np.count_nonzero(values > 1e-10 * values[0])) :].T


@pytest.mark.parametrize("name", PAPER)
def test_the_set_is_the_complement_of_pinocchios_null_space(name):
    """Independent of our recursion: the printed rows feel no silent direction, and no other direction is silent."""
    build, expected, count = PAPER[name]
    robot = build().with_terms()
    base = base_parameters(robot, "minimal-combinations")
    rows = rows_of(expected, list(base.layout.names), dict(base.symbols))
    np.testing.assert_allclose(rows, base.grouping, atol=1e-14)
    null = pinocchio_null_space(robot)
    assert null.shape[1] == 60 - count
    assert np.abs(rows @ null).max() < 1e-11
    assert np.linalg.matrix_rank(rows) == count


ROBOTS = int(os.environ.get("DYNID_TEST_ROBOTS", "20"))
METHODS = ("closed-form", "minimal-combinations", "structural", "numeric")
MODELS = {"links": (), "all": (RotorInertia(), Viscous(), Coulomb(), Offset())}


@settings(max_examples=ROBOTS, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), joints=st.integers(1, 7), models=st.sampled_from(sorted(MODELS)))
def test_sets_convert_into_one_another_exactly(seed, joints, models):
    robot = random_serial(seed, joints, MODELS[models])
    theta = np.random.default_rng(seed).normal(size=robot.parameter_vector.size)
    sets = {method: base_parameters(robot, method) for method in METHODS}
    for a, b in itertools.permutations(sets.values(), 2):
        there, back = conversion_matrix(a, b), conversion_matrix(b, a)
        tolerance = 1e-12 if "numeric" not in (a.method, b.method) else 1e-8
        size = max(1.0, float(np.abs(b.project(theta)).max()))
        np.testing.assert_allclose(there @ a.project(theta), b.project(theta), atol=tolerance * size)
        np.testing.assert_allclose(there @ back, np.eye(a.rank), atol=1e3 * tolerance)


def test_sets_of_other_motions_are_not_converted():
    robot = zoo.puma560().with_terms()
    free, held = base_parameters(robot, "minimal-combinations"), base_parameters(robot, static=True)
    with pytest.raises(ArgumentError, match="do not determine one another"):
        conversion_matrix(free, held)
    with pytest.raises(ArgumentError, match="different standard parameters"):
        conversion_matrix(free, base_parameters(zoo.stanford()))


def test_units_and_json_name_the_members():
    base = base_parameters(zoo.stanford(), "minimal-combinations")
    assert dict(zip(base.names, base.units, strict=True))["MC3"] == "kg"
    assert dict(zip(base.names, base.units, strict=True))["KZ3"] == "kg m"
    assert '"name": "KY2"' in base.to_json()


def test_equations_and_code_ask_for_columns_of_the_regressor():
    robot = zoo.stanford()
    base = base_parameters(robot, "minimal-combinations")
    motion = sum_of_sines(6, period_s=4.0, amplitude=0.5, seed=0)
    run = process(simulate_experiment(robot, motion, duration_s=8.0, rate_hz=100.0), cutoff_hz=10.0)
    for use in (
        lambda: build_equations(robot, run, base=base),
        lambda: generate_c(robot, base=base, load="struct"),
    ):
        with pytest.raises(ArgumentError, match="not columns of the regressor"):
            use()
