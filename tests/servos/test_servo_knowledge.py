"""What motions cannot tell is named: planted combinations, before the fit and in the result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.report.sections.servo_sections import servo_table
from dynid.servos import CommandedMotion, MotorLaw, PositionLaw, ServoModel, ServoParameter
from dynid.servos.servo_equations import ServoEquations
from dynid.servos.servo_knowledge import OpenDirection, hidden_directions, left_out_variances
from support.planted_servos import chirp, planted
from support.servo_logs import double_pendulum, pendulum

POSITION = PositionLaw(kp=6.0, kd=0.3)
GRAVITY = ("armature", "viscous", "coulomb")


def open_before(model: ServoModel, motion: CommandedMotion) -> list[OpenDirection]:
    """What a motion cannot tell by the derivatives at the first guess."""
    return hidden_directions(model.entries, ServoEquations(model, (motion,)).normal(model.start).information)


CASES = [
    (pendulum(mass=0.0), POSITION, (*GRAVITY, "gain_scale"), [{"armature", "viscous", "coulomb", "gain_scale"}]),
    (pendulum(), POSITION, (*GRAVITY, "gain_scale"), []),
    (pendulum(), POSITION, (*GRAVITY, ServoParameter("effort_limit", start=90.0)), [{"effort_limit"}]),
    (double_pendulum().with_gravity((0.0, 0.0, 0.0)), POSITION, (*GRAVITY, "zero"), [{"zero first"}]),
    (pendulum(), POSITION, (*GRAVITY, "kp_scale", "kd_scale"), [{"viscous", "kd_scale"}]),
    (
        pendulum(),
        MotorLaw(kp=2.0, voltage=7.4),
        (*GRAVITY, "kt", ServoParameter("resistance", start=2.0), "gain_scale"),
        [{"kt", "resistance", "gain_scale", "viscous"}] * 2,
    ),
]


@pytest.mark.parametrize(("robot", "law", "parameters", "expected"), CASES)
def test_planted_combinations_are_named(
    robot: dynid.Robot, law: PositionLaw, parameters: tuple[str, ...], expected: list[set[str]]
) -> None:
    model = ServoModel(robot, law, parameters)
    motion = chirp(robot, amplitude=0.25)
    before = open_before(model, motion)
    assert len(before) == len(expected)
    for direction, kinds in zip(before, expected, strict=True):
        assert {_plain(name, kinds) for name in direction.names} <= kinds, str(direction)
    found = dynid.identify_actuators(robot, [planted(model, model.start, motion, 1e-4, seed=1)], law=law,
                                     parameters=parameters)  # fmt: skip
    named = {name for direction in found.open_directions for name in direction.names}
    for direction in before:
        assert set(direction.names) <= named
    for name, std in zip(found.names, found.std, strict=True):
        assert (name in named) == np.isinf(std)


def _plain(name: str, kinds: set[str]) -> str:
    """The name as it is expected: with its joint, or its kind alone."""
    return name if name in kinds else name.split()[0]


def test_torque_off_tells_friction_from_back_emf() -> None:
    """With the drive off for a while, viscous friction acts alone."""
    law = MotorLaw(kp=2.0, voltage=7.4)
    parameters = (*GRAVITY, "kt", ServoParameter("resistance", start=2.0))
    motion = chirp(pendulum(), amplitude=1.2)
    on = np.ones_like(motion.command, dtype=bool)
    on[-200:] = False
    model = ServoModel(pendulum(), law, parameters)
    assert open_before(model, replace(motion, enabled=on)) == []


TIED = [
    # a body's inertia about the axis of the joint, and the armature
    (POSITION, (*GRAVITY, "delay", "link_yy"), [0.012, 0.08, 0.1, 0.007, 0.0]),
    # damping, whose first guess is far too small
    (PositionLaw(kp=60.0, kd=3.0), ("armature", ServoParameter("viscous", start=1e-3), "kd_scale"), [0.01, 1.2, 1.0]),
]


@pytest.mark.parametrize(("law", "parameters", "truth"), TIED)
def test_no_partner_of_an_open_combination_has_an_interval(
    law: PositionLaw, parameters: tuple[str | ServoParameter, ...], truth: list[float]
) -> None:
    """However small a partner is beside the others: a value elsewhere simulates the same motion."""
    model = ServoModel(pendulum(), law, parameters)
    log = planted(model, truth, chirp(pendulum(), amplitude=0.8), 2e-4, seed=0)
    found = dynid.identify_actuators(pendulum(), [log], law=law, parameters=parameters)
    before = {name for direction in open_before(model, log) for name in direction.names}
    assert before == {name for name, std in zip(found.names, found.std, strict=True) if np.isinf(std)}
    known = np.isfinite(found.std)
    assert len(before) >= 2
    assert (np.abs(found.values - truth)[known] <= 4.0 * found.std[known]).all()


@pytest.mark.parametrize("stated", [1.3, 1.5])
def test_a_gain_stated_too_high_widens_what_it_biases(stated: float) -> None:
    """Viscous friction would have to be negative: armature, dry friction and delay give way, and say so."""
    truth = {"armature": 0.03, "viscous": 0.2, "coulomb": 0.15, "delay": 0.02}
    law = PositionLaw(kp=20.0, kd=1.0)
    model = ServoModel(pendulum(), law, tuple(ServoParameter(kind, start=value) for kind, value in truth.items()))
    log = planted(model, model.start, chirp(pendulum()), 2e-4, seed=0)
    found = dynid.identify_actuators(pendulum(), [log], law=replace(law, kd=stated), parameters=tuple(truth))
    assert found.binding == ("viscous servo",)
    assert set(found.biased) == {"armature servo", "coulomb servo", "delay servo"}
    (bound,) = (finding for finding in found.findings if finding.code == "at-bound")
    assert "armature servo, coulomb servo, delay servo" in bound.message
    assert "kd_scale under free" in bound.remedy
    moved = np.abs(found.values - model.start)[[0, 2, 3]]
    assert (moved <= 2.0 * found.std[[0, 2, 3]]).all()


def test_a_value_at_a_bound_does_not_make_its_partner_known() -> None:
    """The zero is planted beyond its bound; the constant torque, which looks alike, must not be known wrongly."""
    parameters = ("viscous", "coulomb", ServoParameter("zero", lower=-0.1, upper=0.1), "offset")
    wide = ServoModel(pendulum(), POSITION, ("viscous", "coulomb", "zero", "offset"))
    truth = [0.08, 0.1, 0.15, 0.0]
    log = planted(wide, truth, chirp(pendulum(), amplitude=0.3), 2e-4, seed=0)
    found = dynid.identify_actuators(pendulum(), [log], law=POSITION, parameters=parameters)
    assert found.at_bound == ("zero servo",)
    inside = np.delete(np.arange(4), 2)
    assert (np.abs(found.values - truth)[inside] <= 2.0 * found.std[inside]).all()


LENGTHS = (40, 60, 200, 30, 90, 50)
"""Equations of six motions of unequal weight."""


def _linear_motions(seed: int, spread: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Six linear models whose three values differ from 1 by some spread each, with unit noise."""
    rng = np.random.default_rng(seed)
    slopes = [rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] for n in LENGTHS]
    return slopes, [J @ (1.0 + spread * rng.normal(size=3)) + rng.normal(size=len(J)) for J in slopes]


def _variances(slopes: list[np.ndarray], readings: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    J = np.vstack(slopes)
    solution = np.linalg.lstsq(J, np.concatenate(readings), rcond=None)[0]
    scores = [j.T @ (r - j @ solution) for j, r in zip(slopes, readings, strict=True)]
    return left_out_variances(J.T @ J, [j.T @ j for j in slopes], scores), solution


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_intervals_cover_values_that_differ_from_motion_to_motion(spread: float) -> None:
    """200 planted cases: 95 % or somewhat more, with and without differences between motions."""
    inside = []
    for seed in range(200):
        variances, solution = _variances(*_linear_motions(seed, spread))
        inside.append(np.abs(solution - 1.0) <= 1.96 * np.sqrt(variances))
    assert 0.93 <= np.mean(inside) <= 0.99


def _steps(seed: int, limit: float | None) -> dynid.servos.CommandedMotion:
    """Steps of a pendulum, which ask for up to 8 N m for a moment; within a limit, or without one."""
    kinds = (*GRAVITY, "delay") if limit is None else (*GRAVITY, "delay", "effort_limit")
    truth = [0.012, 0.08, 0.1, 0.007] + ([] if limit is None else [limit])
    time = np.arange(0.0, 6.0, 0.005)
    sent = np.where(time < 2.0, 0.0, np.where(time < 4.0, 1.0, -0.5)) + 0.3 * np.sin(5.0 * time)
    motion = dynid.servos.CommandedMotion(
        joint_names=("servo",), time=time, command=sent[:, None], position=sent[:, None]
    )
    return planted(ServoModel(pendulum(), POSITION, kinds), truth, motion, 2e-4, seed=seed)


@pytest.mark.parametrize(("start", "seed"), [(5.0, 0), (20.0, 1)])
def test_a_limit_that_was_not_reached_has_no_interval(start: float, seed: int) -> None:
    """From a first guess below, the search ends just above what the motion asks for, with a curvature there."""
    motion = _steps(seed, None)
    asked = float(np.abs(6.0 * (motion.command - motion.position)).max())  # less what damping takes away
    parameters = (*GRAVITY, "delay", ServoParameter("effort_limit", start=start))
    found = dynid.identify_actuators(pendulum(), [motion], law=POSITION, parameters=parameters)
    assert np.isinf(found.std[-1])
    (direction,) = found.open_directions
    assert direction.names == ("effort_limit servo",)
    assert direction.at_least == pytest.approx(asked, rel=0.1)
    assert "not reached" in str(direction)
    assert "at least" in str(direction)
    assert servo_table(found).rows[-1][-1] == f"open: at least {direction.at_least:.3g}"


def test_a_limit_that_was_reached_is_found() -> None:
    parameters = (*GRAVITY, "delay", ServoParameter("effort_limit", start=5.0))
    found = dynid.identify_actuators(pendulum(), [_steps(0, 3.0)], law=POSITION, parameters=parameters)
    assert found.open_directions == ()
    assert abs(found.values[-1] - 3.0) <= 3.0 * found.std[-1]
