"""Pruned models: the torque error stays within the bound that their header states."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError
from dynid.excitation.trajectories.quintic import minimum_jerk
from dynid.export.c.c_package import generate_c
from dynid.export.c.c_pruning import prune
from dynid.kernels import inertia_matrix, inverse_dynamics
from dynid.robot import zoo


def moves(robot, seed=0):
    rng = np.random.default_rng(seed)
    ends = rng.uniform(-1.5, 1.5, (4, 2, robot.dof))
    return [minimum_jerk(a, b, duration_s=1.0).evaluate(np.linspace(0, 1, 200)) for a, b in ends]


def test_torque_error_stays_within_the_bound():
    robot = zoo.puma560()
    trajectories = moves(robot)
    pruned = prune(robot, trajectories)
    assert 5 < len(pruned.kept) < 36
    for q, dq, ddq in trajectories:
        error = np.abs(inverse_dynamics(robot, q, dq, ddq) - inverse_dynamics(pruned.robot, q, dq, ddq))
        assert (error <= pruned.error_bound * (1 + 1e-9) + 1e-12).all()
    package = generate_c(pruned, ["inverse_dynamics"])
    assert (
        package.counts["inverse_dynamics"].flops
        < generate_c(robot, ["inverse_dynamics"]).counts["inverse_dynamics"].flops
    )
    header = package.files["puma560.h"]
    for j, bound in enumerate(pruned.error_bound):
        assert f"joint {j + 1}: {bound:.6e}" in header
    assert "Bound of the error" in str(pruned)


@pytest.mark.usefixtures("compiler")
def test_pruned_code_agrees_with_the_pruned_model():
    assert max(generate_c(prune(zoo.puma560(), moves(zoo.puma560())), ["inverse_dynamics"]).check(100).values()) < 1e-12


def test_nothing_is_dropped_at_threshold_zero():
    robot = zoo.puma560()
    pruned = prune(robot, moves(robot), threshold=0.0)
    q, dq, ddq = moves(robot, 1)[0]
    np.testing.assert_allclose(
        inverse_dynamics(pruned.robot, q, dq, ddq), inverse_dynamics(robot, q, dq, ddq), atol=1e-11
    )
    with pytest.raises(ArgumentError):
        prune(robot, moves(robot), threshold=1.5)


def test_the_header_says_what_the_bound_is_of():
    header = generate_c(prune(zoo.puma560(), moves(zoo.puma560())), ["gravity"], two_rate=False).files["puma560.h"]
    assert "torques of inverse dynamics" in header
    assert "by themselves" in header


def test_forward_dynamics_of_an_indefinite_inertia_matrix_is_refused():
    robot = zoo.stanford()
    states = tuple(np.random.default_rng(0).normal(size=(3, 300, 6)))
    pruned = prune(robot, [states], threshold=0.05)
    smallest = np.linalg.eigvalsh(inertia_matrix(pruned.robot, states[0])).min(axis=1)
    assert pruned.indefinite == (smallest <= 0.0).sum() > 0
    with pytest.raises(ArgumentError, match="positive definite"):
        generate_c(pruned, ["forward_dynamics"])
    assert prune(robot, [states], threshold=0.0).indefinite == 0


def test_an_indefinite_inertia_matrix_is_a_warning_and_leaves_the_two_rates_out():
    states = tuple(np.random.default_rng(0).normal(size=(3, 300, 6)))
    pruned = prune(zoo.stanford(), [states], threshold=0.05)
    code = generate_c(pruned, ["inverse_dynamics"])
    said = f"WARNING: the pruned inertia matrix is not positive definite on {pruned.indefinite} of 300 samples."
    assert code.warnings[0] == said
    assert said in code.files["stanford.h"]
    assert code.summary().splitlines()[-len(code.warnings) :] == list(code.warnings)
    assert not [name for name in code.files if "two_rate" in name]
    wanted = generate_c(pruned, ["inverse_dynamics"], two_rate=True)
    assert "stanford_two_rate.c" in wanted.files
    assert wanted.warnings[0] == said
    whole = generate_c(prune(zoo.stanford(), [states], threshold=0.0), ["inverse_dynamics"])
    assert not whole.warnings
    assert "stanford_two_rate.c" in whole.files


@pytest.mark.parametrize(
    "motions",
    [
        [],
        [(np.zeros((3, 5)),) * 3],
        [(np.full((3, 6), np.nan),) * 3],
        [(np.zeros((3, 6)), np.zeros((2, 6)), np.zeros((3, 6)))],
        [(np.zeros((3, 6)), np.zeros((3, 6)))],
        ["abc"],
    ],
)
def test_motions_that_are_none_are_refused(motions):
    with pytest.raises(ArgumentError, match="trajectories") as refused:
        prune(zoo.puma560(), motions)
    assert refused.value.remedy
