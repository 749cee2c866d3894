"""Dry friction that turns at once, as a real joint's about does, and estimators that must simulate it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import ArgumentError
from dynid.loop.arm import Arm
from dynid.loop.pace import choose_friction_speed, friction_pace
from support.closed_loops import Scene, scene


@pytest.fixture(scope="module")
def sharp() -> Scene:
    here = scene("gautier_khalil_3r")
    truth = dynid.loop.simulate_loop(here.robot, replace(here.loop, friction_speed=1e-3), every=5)
    return replace(here, truth=truth, loop=replace(here.loop, friction_speed=None))


def off(here: Scene, prior: dynid.Robot, friction_speed: float | None) -> np.ndarray:
    """Dry friction by DIDIM, in standard errors from the truth."""
    log = replace(here.noisy(3), loop=replace(here.loop, friction_speed=friction_speed))
    found = dynid.estimation.DIDIM().solve(dynid.estimation.build_equations(prior, log, base=here.base))
    dry = [k for k, name in enumerate(here.base.names) if name.startswith("FC")]
    return np.abs((found.values - here.values) / found.stderr)[dry]


def test_sharp_friction_is_not_taken_for_more_of_it(sharp: Scene) -> None:
    assert off(sharp, sharp.prior, None).max() < 2.5
    assert off(sharp, sharp.prior, 0.1).max() > 4.0


def test_friction_that_the_prior_does_not_know_is_simulated_as_sharply(sharp: Scene) -> None:
    theta = sharp.prior.parameter_vector.copy()
    theta[[k for k, name in enumerate(dynid.parameter_layout(sharp.prior).names) if name.startswith("FC")]] = 0.0
    assert off(sharp, sharp.prior.with_parameters(theta), None).max() < 2.5


def test_light_joints_get_gentler_friction_than_heavy_ones() -> None:
    here = scene("tx40")
    loop = choose_friction_speed(replace(here.loop, friction_speed=None), here.robot)
    speeds = np.array(loop.friction_speed)
    assert speeds[:2].max() < speeds[3:5].min() <= speeds[-1]
    assert friction_pace(here.robot, loop, None)[0] < 3 * friction_pace(here.robot, here.loop, None)[0]


def test_every_joint_fades_at_its_own_speed() -> None:
    robot = dynid.robots.gautier_khalil_3r().with_terms(dynid.Coulomb(1.0))
    speeds = (0.1, 0.01, 0.001, 1.0)
    columns = tuple(k for k, name in enumerate(dynid.parameter_layout(robot).names) if name.startswith("FC"))
    evaluate = dynid.tape.compile_tape(Arm(robot, columns, speeds).motion_columns())
    rest = np.zeros((1, 3))
    for v in (0.0005, 0.005, 0.05, 0.5):
        table = np.asarray(evaluate(rest, np.full((1, 3), v), rest))[0]
        full = np.isclose(np.diag(table), 1.0)
        assert full.tolist() == [v >= speed for speed in speeds[:3]]


def test_speeds_of_the_wrong_number_are_refused(sharp: Scene) -> None:
    with pytest.raises(ArgumentError, match=r"friction_speed has 2 numbers\. Give one, or 4"):
        replace(sharp.loop, friction_speed=(0.1, 0.1))
