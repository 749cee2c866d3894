"""Base parameters of another robot, of other terms or of another motion are refused by all that takes a set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.estimators.equations import build_equations
from dynid.estimators.online.online_energy import OnlineEnergy
from dynid.estimators.online.online_least_squares import OnlineLeastSquares
from dynid.estimators.online.online_links import OnlineLinkByLink
from dynid.export.c.c_package import generate_c
from dynid.identifiability.base import base_parameters
from dynid.identification.identify import identify
from dynid.identification.recipe import Recipe
from dynid.processing.process import process
from dynid.processing.simulation import simulate_experiment, sum_of_sines
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous


def test_base_parameters_of_another_robot_are_refused_everywhere():
    robot = zoo.gautier_khalil_3r()
    longer = replace(robot, joints=tuple(replace(j, T_parent_joint=moved(j.T_parent_joint)) for j in robot.joints))
    motion = sum_of_sines(3, period_s=4.0, amplitude=0.5, seed=0)
    run = process(simulate_experiment(robot, motion, duration_s=4.0, rate_hz=100.0), cutoff_hz=10.0)
    for base in (
        base_parameters(zoo.ddarm()),
        base_parameters(longer),
        base_parameters(longer, "minimal-combinations"),
    ):
        for use in (
            lambda base=base: OnlineLinkByLink(robot, base),
            lambda base=base: OnlineEnergy(robot, rate_hz=100.0, base=base),
            lambda base=base: OnlineLeastSquares(robot, base),
            lambda base=base: build_equations(robot, run, base=base),
            lambda base=base: identify(robot, run, Recipe.bare(), base=base),
            lambda base=base: generate_c(robot, ["regressor"], base=base),
        ):
            with pytest.raises(ArgumentError, match="belong to another robot"):
                use()


def moved(T):
    """The joint five centimetres further out, along all axes."""
    return T + np.pad(np.full((3, 1), 0.05), ((0, 1), (3, 0)))


def test_base_parameters_without_the_robots_terms_are_refused():
    robot = zoo.gautier_khalil_3r()
    with pytest.raises(ArgumentError, match="or to other terms"):
        OnlineLinkByLink(robot.with_terms(Viscous(0.1)), base_parameters(robot))


def test_terms_that_differ_in_a_constant_keep_the_set():
    slow, fast = (zoo.gautier_khalil_3r().with_terms(Coulomb(1.0, step_width=v)) for v in (0.1, 0.2))
    assert slow.fingerprint != fast.fingerprint
    assert OnlineLinkByLink(slow, base_parameters(fast)).base.rank == base_parameters(slow).rank


@pytest.mark.parametrize("motion", [{"static": True}, {"unmoved": ["joint2"]}], ids=str)
def test_sets_of_another_motion_are_refused_on_line(motion):
    robot = zoo.scara()
    base = base_parameters(robot, **motion)
    for use in (lambda: OnlineLinkByLink(robot, base), lambda: OnlineEnergy(robot, rate_hz=100.0, base=base)):
        with pytest.raises(ArgumentError, match=rf"another motion .*: {base.rank} of 8\."):
            use()
    with pytest.raises(ArgumentError, match="another motion"):
        generate_c(robot, ["gravity"], base=base, parameters="struct")
