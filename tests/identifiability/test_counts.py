"""Operation counts of inverse dynamics in base parameters, and the torques of that program."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.identifiability.minimal_dynamics import count_inverse_dynamics
from dynid.robot import zoo
from dynid.tape import OperationCount
from papers.lin1995_dynamics import SYMMETRIC_STANFORD, count_steps, general_robot


def assert_at_most(cost: OperationCount, multiplications: int, additions: int) -> None:
    assert (cost.multiplications <= multiplications, cost.additions <= additions) == (True, True), cost


@pytest.mark.parametrize("joints", range(2, 9))
def test_general_revolute_robots(joints):
    cost = count_inverse_dynamics(general_robot(joints))
    assert_at_most(cost, 82 * joints - 100, 70 * joints - 91)


@pytest.mark.parametrize(
    ("robot", "kept", "most"),
    [
        (zoo.puma560, None, (257, 240)),
        (zoo.stanford, None, (224, 209)),
        (zoo.stanford, SYMMETRIC_STANFORD, (136, 99)),
        (zoo.puma260, None, (252, 235)),
        (zoo.gautier_khalil_3r, None, (91, 82)),
        (zoo.ddarm, None, (92, 84)),
        (zoo.scara, None, (41, 30)),
    ],
)
def test_named_robots(robot, kept, most):
    assert_at_most(count_inverse_dynamics(robot(), kept), *most)


TABLE_3 = {  # [Lin1995] Table III, the row "present"
    "Stanford": (zoo.stanford, None, (231, 219)),
    "Stanford, symmetric links": (zoo.stanford, SYMMETRIC_STANFORD, (139, 101)),
}


@pytest.mark.parametrize("joints", range(2, 9))
def test_minimal_form_is_at_or_below_table_3(joints):
    cost = count_inverse_dynamics(general_robot(joints), form="minimal")
    assert_at_most(cost, 89 * joints - 82, 77 * joints - 71)
    for build, kept, printed in TABLE_3.values():
        assert_at_most(count_inverse_dynamics(build(), kept, form="minimal"), *printed)


@pytest.mark.parametrize("build", [zoo.puma560, zoo.stanford, zoo.scara, zoo.cylindrical, zoo.panda])
def test_steps_add_up_to_the_whole(build):
    costs = count_steps(build())
    cost = count_inverse_dynamics(build(), form="minimal")
    assert np.sum(list(costs.values()), axis=0).tolist() == [cost.multiplications, cost.additions]


def test_a_revolute_joint_costs_what_table_2_says_where_we_do_the_same():
    """[Lin1995] Table II, rotational joints i >= s: all rows but (62) and (65), where ours needs less."""
    costs = count_steps(general_robot(6))
    printed = {57: (8, 5), 58: (10, 7), 59: (6, 9), 60: (0, 3), 64: (6, 3), 66: (8, 7), 67: (12, 11), 68: (0, 0)}
    assert {equation: costs[3, equation] for equation in printed} == printed
    for equation, theirs in {62: (17, 13), 65: (22, 19)}.items():
        assert all(ours <= one for ours, one in zip(costs[3, equation], theirs, strict=True))
