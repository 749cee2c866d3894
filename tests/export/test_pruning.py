"""Pruned models: the torque error stays within the bound that their header states."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.compiled import inertia_matrix, inverse_dynamics, regressor
from dynid.errors import ArgumentError
from dynid.excitation.trajectories.quintic import minimum_jerk
from dynid.export.c.c_package import generate_c
from dynid.export.c.c_pruning import prune
from dynid.identifiability.base import base_parameters
from dynid.robot import zoo


def moves(robot, seed=0):
    rng = np.random.default_rng(seed)
    ends = rng.uniform(-1.5, 1.5, (4, 2, robot.dof))
    return [minimum_jerk(a, b, duration_s=1.0).evaluate(np.linspace(0, 1, 200)) for a, b in ends]


@pytest.mark.usefixtures("compiler")
def test_torque_error_stays_within_the_bound_that_the_header_states():
    robot = zoo.puma560()
    trajectories = moves(robot)
    pruned = prune(robot, trajectories)
    assert 5 < len(pruned.kept) < 36
    for q, dq, ddq in trajectories:
        error = np.abs(inverse_dynamics(robot, q, dq, ddq) - inverse_dynamics(pruned.robot, q, dq, ddq))
        assert (error <= pruned.error_bound * (1 + 1e-9) + 1e-12).all()
    base, states = base_parameters(robot), [np.concatenate(part) for part in zip(*trajectories, strict=True)]
    parts = np.abs(regressor(robot, *states)[:, :, base.columns] * base.project(robot.parameter_vector))
    largest = np.abs(inverse_dynamics(robot, *states)).max(axis=0)[:, None]
    reaches = np.any(parts.max(axis=0) >= 0.01 * largest, axis=0)
    assert set(pruned.kept) == {name for name, kept in zip(base.names, reaches, strict=True) if kept}
    np.testing.assert_allclose(pruned.error_bound, parts[:, :, ~reaches].sum(axis=2).max(axis=0))
    package = generate_c(pruned, ["inverse_dynamics"])
    whole = generate_c(robot, ["inverse_dynamics"], two_rate=False)
    assert package.counts["inverse_dynamics"].flops < whole.counts["inverse_dynamics"].flops
    assert package.check(100)["inverse_dynamics"] < 1e-12
    for j, bound in enumerate(pruned.error_bound, start=1):
        assert f"joint {j}: {bound:.6e}" in package.files["puma560.h"]
    assert "by themselves" in package.files["puma560.h"]


def test_nothing_is_dropped_at_threshold_zero():
    robot = zoo.puma560()
    pruned = prune(robot, moves(robot), threshold=0.0)
    q, dq, ddq = moves(robot, 1)[0]
    wanted = inverse_dynamics(robot, q, dq, ddq)
    np.testing.assert_allclose(inverse_dynamics(pruned.robot, q, dq, ddq), wanted, atol=1e-11)
    with pytest.raises(ArgumentError):
        prune(robot, moves(robot), threshold=1.5)


def test_an_indefinite_inertia_matrix_is_a_warning_and_leaves_the_two_rates_out():
    robot, states = zoo.stanford(), tuple(np.random.default_rng(0).normal(size=(3, 300, 6)))
    pruned = prune(robot, [states], threshold=0.05)
    smallest = np.linalg.eigvalsh(inertia_matrix(pruned.robot, states[0])).min(axis=1)
    assert pruned.indefinite == (smallest <= 0.0).sum() > 0
    with pytest.raises(ArgumentError, match="positive definite"):
        generate_c(pruned, ["forward_dynamics"])
    code = generate_c(pruned, ["inverse_dynamics"])
    said = f"WARNING: the pruned inertia matrix is not positive definite on {pruned.indefinite} of 300 samples."
    assert code.warnings[0] == said
    assert said in code.files["stanford.h"]
    assert code.summary().splitlines()[-len(code.warnings) :] == list(code.warnings)
    assert "stanford_two_rate.c" not in code.files
    assert "stanford_two_rate.c" in generate_c(pruned, ["inverse_dynamics"], two_rate=True).files
    whole = generate_c(prune(robot, [states], threshold=0.0), ["inverse_dynamics"])
    assert not whole.warnings
    assert "stanford_two_rate.c" in whole.files


@pytest.mark.parametrize(
    "motions",
    [
        [],
        [(np.full((3, 6), np.nan),) * 3],
        [(np.zeros((3, 6)), np.zeros((2, 6)), np.zeros((3, 6)))],
    ],
)
def test_motions_that_are_none_are_refused(motions):
    with pytest.raises(ArgumentError, match="trajectories") as refused:
        prune(zoo.puma560(), motions)
    assert refused.value.remedy
