"""The simulator of a problem's robot in one loop: as sharp dry friction as its integrator follows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.closed_loop.arm import Arm
from dynid.closed_loop.loop import Loop
from dynid.closed_loop.pace import paced
from dynid.closed_loop.simulate import LoopSimulator
from dynid.estimation.problem import Problem
from dynid.parameters.layout import parameters
from dynid.robot.model import Robot

__all__ = ["DRY", "dry_joints", "loop_simulator"]

DRY = ("FC", "FCM")
"""Symbols of dry friction, of joints and of motors that turn with several"""


def dry_joints(robot: Robot) -> NDArray[np.bool_]:
    """(n,) joints with dry friction, that of motors which turn with several joints included."""
    names = {name for entry in parameters(robot) if entry.symbol in DRY for name in entry.owner.split("+")}
    return np.isin(robot.joint_names, list(names))


def loop_simulator(problem: Problem, loop: Loop) -> LoopSimulator:
    """The robot in a loop; its base parameters are inputs."""
    rough = _with_dry_friction(problem)
    sharp = paced(loop, rough)
    return LoopSimulator(Arm(problem.robot, problem.base.columns, sharp.smooth_below), sharp, friction_of=rough)


def _with_dry_friction(problem: Problem) -> Robot:
    """The robot; dry friction of which its own values know nothing is that of ordinary least squares."""
    theta, base = problem.robot.parameter_vector.copy(), problem.base
    unknown = [(k, c) for k, c in enumerate(base.columns) if base.layout[c].symbol in DRY and theta[c] == 0.0]
    if not unknown:
        return problem.robot
    beta = problem.information.weight(np.ones(problem.robot.dof)).solve(minimum_norm=True)
    for place, column in unknown:
        theta[column] = abs(beta[place])
    return problem.robot.with_parameters(theta)
