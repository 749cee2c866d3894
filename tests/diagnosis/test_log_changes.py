"""Changes of a log undo the fault that they name, and the fast fit that compares them is least squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.array_types import Floats
from dynid.diagnosis.evidence import Excerpt
from dynid.diagnosis.log_changes import (
    TORQUE_UNITS,
    Change,
    _list_changes,
    _Trial,
    check_scales,
    find_change,
)
from dynid.diagnosis.suspects import FittedRobot
from dynid.processing.simulation import sum_of_sines
from support.exact_runs import exact_run

ROBOT = dynid.robots.get("stanford")
TIME = np.arange(1200) / 100.0
FAR = np.array([3.0, 0.5, 0.3, 0.6, 3.0, 0.6])
"""Size of the sines of each joint: two turn more than half a turn, the third one slides."""


def model_of(robot: dynid.Robot, factors: Floats) -> FittedRobot:
    """Torques of the model with friction, those of each joint multiplied by a factor."""
    motion = sum_of_sines(robot.dof, period_s=6.0, harmonics=3, amplitude=FAR[: robot.dof], seed=2)(TIME)
    torque = dynid.inverse_dynamics(robot.with_terms(), *motion) * factors
    rubbing = 0.1 * np.abs(torque).max(axis=0) * np.sign(motion[1])
    return FittedRobot.of(robot, [exact_run(TIME, motion, effort=torque + rubbing)])


MODEL = model_of(ROBOT, np.ones(6))
(EXCERPT,) = MODEL.excerpts
TRIAL = _Trial.of(MODEL)
CHANGES = list(_list_changes(MODEL.robot, MODEL.excerpts))


def fault_of(told: Change) -> tuple[Excerpt, Excerpt]:
    """The log with the fault that a change tells of, and without it; torques count where both joints have them."""
    one = np.arange(6) == told.joint if told.joint is not None else ~np.array([b.is_prismatic for b in ROBOT.bodies])
    order, factor, shift = np.arange(6), 1.0, 0.0
    if told.code == "flipped":
        factor = -1.0
    elif told.code == "unit" and told.where == "effort":
        (factor,) = (size for size, name in TORQUE_UNITS.items() if told.says.endswith(f"is in {name}"))
    elif told.code == "unit":
        factor = {"degrees": 180.0, "turns": 0.5, "radians": np.pi**2 / 180.0}[told.says.split(" in ")[1].split(",")[0]]
        factor /= np.pi
    elif told.code == "geometry":
        shift = -np.deg2rad(float(told.says.split()[-3]))
    elif told.code == "swapped":
        other = [name in told.says for name in ROBOT.joint_names].index(True)
        order[[told.joint, other]] = other, told.joint
    factors, run, harmless = np.where(one, factor, 1.0), EXCERPT.run, EXCERPT.harmless
    right = replace(EXCERPT, run=replace(run, valid=run.valid & run.valid[:, order]))
    if told.where == "q":
        moved = {name: (getattr(run, name) * factors)[:, order] for name in ("q", "dq", "ddq")}
        run = replace(run, **moved | {"q": moved["q"] + shift * one})
        harmless = tuple((shape * np.sign(factors))[:, order] for shape in harmless)
    if told.where == "effort" or told.code == "swapped":
        run = replace(run, effort=(run.effort * factors)[:, order], valid=run.valid[:, order])
    return replace(EXCERPT, run=run, harmless=harmless), right


@pytest.mark.parametrize("told", CHANGES, ids=lambda told: f"{told.says} {told.joint}")
def test_a_change_undoes_the_fault_that_it_names(told: Change) -> None:
    robot = MODEL.robot if told.gravity is None else MODEL.robot.with_gravity(told.gravity)
    wrong, right = ((excerpt,) for excerpt in fault_of(told))
    found = _Trial.of(replace(MODEL, excerpts=wrong)).products(told)
    wanted = _Trial.of(replace(MODEL, robot=robot, excerpts=right)).products(Change())
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_the_changes_that_a_log_suggests_are_tried() -> None:
    """For six joints, of which one slides: units of torque, signs, zeros, pairs; units of angles by their range."""
    assert [sum((one.code, one.where) == kind for one in CHANGES) for kind in (
        ("unit", "effort"), ("flipped", "effort"), ("flipped", "q"), ("geometry", "q"), ("swapped", "effort"),
        ("swapped", "q"), ("gravity", "model"), ("gravity", "effort"),
    )] == [6 * len(TORQUE_UNITS), 6, 6, 15, 15, 15, 5, 1]  # fmt: skip
    units = [f"{one.says.split(' in ')[1]} {one.joint}" for one in CHANGES if (one.code, one.where) == ("unit", "q")]
    assert units == [f"{name} {j}" for name, joints in (
        ("degrees", (None, 0, 4)), ("turns", (None, 1)), ("radians, not degrees", (None, 1)),
    ) for j in joints]  # fmt: skip


def test_the_fast_fit_is_least_squares_with_links_in_common_and_friction_of_each_joint() -> None:
    rng = np.random.default_rng(1)
    shared, own = 60, 4
    rows = rng.normal(size=(6, 90, shared + own + 1)) * np.arange(1.0, 7.0)[:, None, None]
    values, left = TRIAL.fit(np.einsum("jrp,jrq->jpq", rows, rows)[None])
    design = np.zeros((6, 90, shared + 6 * own))
    for j in range(6):
        design[j][:, :shared] = rows[j][:, :shared]
        design[j][:, shared + own * j : shared + own * (j + 1)] = rows[j][:, shared:-1]
    torque, share = rows[:, :, -1], np.ones(6)
    for _ in range(3):
        weight = 1.0 / np.sqrt((torque**2).sum(axis=1) * share)[:, None]
        x = np.linalg.lstsq((design * weight[:, :, None]).reshape(540, -1), (torque * weight).ravel(), rcond=None)[0]
        share = ((torque - design @ x) ** 2).sum(axis=1) / (torque**2).sum(axis=1)
    np.testing.assert_allclose(left, share, rtol=1e-4)
    for j in range(6):
        one = np.concatenate([x[:shared], x[shared + own * j : shared + own * (j + 1)], [-1.0]])
        np.testing.assert_allclose(values[j], one, atol=1e-4)


SCALES = """
stanford 1 1 1 1 1 1 ->
stanford 4.8 4.8 4.8 4.8 4.8 4.8 ->
stanford 5.2 5.2 5.2 5.2 5.2 5.2 -> unit None
stanford 0.21 0.21 0.21 0.21 0.21 0.21 ->
stanford -0.19 -0.19 -0.19 -0.19 -0.19 -0.19 -> unit None, untestable None
stanford -0.21 -0.21 -0.21 -0.21 -0.21 -0.21 -> flipped None, untestable None
stanford 1 0.21 1 1 24 1 ->
stanford 1 0.19 1 1 26 1 -> unit joint2, unit joint5
stanford 1 0 1 1 1 1 -> untestable None
scara 1 1 0.24 1 -> untestable None
scara 1 1 0.16 1 -> gravity joint3, untestable None
scara 1 1 -0.16 1 -> gravity joint3, untestable None
scara 1 1 -0.24 1 -> flipped joint3, untestable None
"""
"""Robot, and factor of the torques of each joint -> code and joint of the findings."""


@pytest.mark.parametrize("case", SCALES.strip().splitlines())
def test_torques_are_compared_with_those_of_the_masses(case: str) -> None:
    given, _, wanted = case.partition(" ->")
    name, *factors = given.split()
    model = model_of(dynid.robots.get(name), np.array(factors, dtype=float))
    evidence = model.evidence()
    found = [one for part in check_scales(model, evidence) for one in part]
    assert ", ".join(f"{one.code} {one.joint}" for one in found) == wanted.strip()
    for one in found:
        if one.joint is None and one.code != "untestable":
            assert one.evidence["torque over the model's"] == pytest.approx(float(factors[0]), rel=0.02)


def test_a_change_is_told_with_what_it_leaves() -> None:
    found, hidden = find_change(model_of(ROBOT, np.where(np.arange(6) == 1, -1.0, 1.0)), 0.01, 0.5)
    assert found is not None
    assert (found.code, found.joint, hidden) == ("flipped", "joint2", ())
    left = found.evidence["left"]
    assert 0.0 < left < 0.2
    assert f"this leaves {100.0 * left:.2g} %" in found.message
    assert found.strength == pytest.approx(1.0 / left)
    assert find_change(MODEL, 0.01, 0.5)[0] is None


def test_a_joint_without_torques_is_no_evidence() -> None:
    """A clean log of small motion was accused: exchanged with such a joint, nothing is left to explain."""
    run = replace(EXCERPT.run, valid=EXCERPT.run.valid & (np.arange(6) != 1))
    left = _Trial.of(replace(MODEL, excerpts=(replace(EXCERPT, run=run),))).left_out(Change())
    assert np.isnan(left).all(axis=0).tolist() == [False, True] + 4 * [False]
