"""Generated C in Lin's minimal linear combinations: same torques, and the operations of his algorithm."""

from __future__ import annotations

import pytest

from dynid.errors import ArgumentError
from dynid.export.c.c_package import generate_c
from dynid.kernels import kernel
from dynid.parameters import base_parameters
from dynid.robot import zoo
from support.random_robots import random_robot

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "regressor")


@pytest.mark.parametrize("build", [zoo.stanford, zoo.puma560, zoo.scara, zoo.panda])
def test_named_robots(build):
    robot = build()
    base = base_parameters(robot, "minimal-combinations")
    package = generate_c(robot, FUNCTIONS, base=base, two_rate=False)
    assert max(package.check(samples=50).values()) < 1e-9
    cost = kernel(robot, "minimal_inverse_dynamics").count
    assert package.counts["inverse_dynamics"].multiplications == cost.multiplications
    assert package.counts["inverse_dynamics"].additions == cost.additions


@pytest.mark.parametrize("seed", range(6))
def test_random_robots(seed):
    """Compiled by a C compiler and compared with the plain recursion; any frames, revolute and sliding joints."""
    robot = random_robot(seed, joints=2 + seed, terms=True)
    base = base_parameters(robot, "minimal-combinations")
    errors = generate_c(robot, ("inverse_dynamics", "regressor"), base=base, two_rate=False).check(samples=50)
    assert max(errors.values()) < 1e-12


def test_run_time_values_are_columns_of_the_regressor():
    robot = zoo.stanford()
    base = base_parameters(robot, "minimal-combinations")
    with pytest.raises(ArgumentError, match="not columns of the regressor"):
        generate_c(robot, base=base, parameters="struct")
