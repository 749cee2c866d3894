"""Functions of a robot, or a fit, and experiments match the joints by name, whatever order the experiment has."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.estimators.linear.least_squares import WLS
from dynid.payload import wrench_equations
from dynid.processing.experiment import Experiment
from dynid.report import series
from dynid.robot import zoo
from dynid.robot.model import Robot
from dynid.terms.friction import Coulomb, Viscous
from estimators.planted import planted_run

ORDER = [4, 0, 5, 2, 1, 3]


@cache
def robot() -> Robot:
    return zoo.puma560().with_terms(Viscous(0.5), Coulomb(0.4))


@cache
def heavy() -> Robot:
    load = dynid.Inertia.from_com(2.0, [0.02, -0.03, 0.12], np.diag([0.004, 0.005, 0.003]))
    return robot().with_body("box", parent=robot().bodies[-1].joint.child, inertia=load)


def named(run: Experiment) -> Experiment:
    return replace(run, joint_names=robot().joint_names, wrench=np.random.default_rng(0).normal(size=(run.samples, 6)))


@cache
def run() -> Experiment:
    return named(planted_run(robot(), noise=0.05))


@cache
def loaded() -> Experiment:
    return named(planted_run(heavy(), noise=0.05))


@cache
def fit() -> Any:
    return dynid.identify(robot(), run(), dynid.Recipe.bare(), estimator=WLS())


def shuffled(run: Experiment) -> Experiment:
    parts = {name: getattr(run, name)[:, ORDER] for name in ("q", "dq", "ddq", "effort", "valid")}
    return replace(run, **parts, joint_names=tuple(run.joint_names[j] for j in ORDER))


def last() -> str:
    return robot().bodies[-1].joint.child


DOORS = """
dynid.identify_payload(robot(), loaded=a, unloaded=b).vector
wrench_data(robot(), a, last(), dynid.payload.Sensing()).matrix
dynid.payload.identify_drive_gains(robot(), loaded=a, unloaded=b, mass_kg=2.0).gain
WLS().solve(dynid.estimators.build_equations(robot(), b)).values
[joint.residual for joint in joint_torques(fit(), a)]
[friction.speed for friction in dynid.identification.joint_friction(fit(), [a])]
dynid.validate(fit(), a).per_joint
[column.to_numpy() for _, column in dynid.export.prediction_table(fit(), a).items()]
"""
"""What two experiments, with and without a load, are handed to."""


@pytest.mark.parametrize("door", DOORS.strip().splitlines())
def test_joints_are_matched_by_name(door: str) -> None:
    enter = eval(f"lambda a, b: {door}", vars(wrench_equations) | vars(series) | globals())
    wanted, found = enter(loaded(), run()), enter(shuffled(loaded()), shuffled(run()))
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9, atol=1e-12)


def test_torques_come_in_the_order_of_the_experiments_columns() -> None:
    np.testing.assert_allclose(fit().torque(shuffled(loaded())), fit().torque(loaded())[:, ORDER])
    beta, equations = fit().estimate.values, fit().equations
    residual = equations.residual(beta, loaded())
    np.testing.assert_allclose(equations.residual(beta, shuffled(loaded())), residual[:, ORDER])
