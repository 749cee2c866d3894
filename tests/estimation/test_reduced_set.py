"""Least squares on a reduced set of parameters, and its agreement with ridge and singular values ([Atkeson1986])."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.linear.reduced_set import ReducedSet
from dynid.estimation.linear.ridge import Ridge
from dynid.estimation.linear.truncated_svd import TruncatedSVD
from dynid.kernels import inverse_dynamics

from .planted import arm, atkeson_equations, silent, still, truth

ATKESONS_ZEROS = ("M3", "MZ3", "XX3", "XX2")
ATKESONS_REST = {"YZ2", "YY3", "ZZ2", "ZZ1", "YY2", "MY2"}


def test_the_papers_zeros_leave_the_papers_parameters() -> None:
    equations = atkeson_equations()
    estimator = ReducedSet(zero=ATKESONS_ZEROS)
    kept = set(estimator.kept(equations))
    assert len(kept) == 15
    assert kept >= ATKESONS_REST
    assert not kept & set(ATKESONS_ZEROS)


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_ridge_singular_values_and_reduced_set_agree(noise: float) -> None:
    equations = atkeson_equations(noise)
    reduced = ReducedSet(zero=ATKESONS_ZEROS).solve(equations)
    assert reduced.values == pytest.approx(TruncatedSVD().solve(equations).values, abs=1e-9)
    ridge = Ridge(10.0).solve(equations).values
    assert np.linalg.norm(ridge - reduced.values) < 1e-3 * np.linalg.norm(reduced.values)
    if not noise:
        assert reduced.values == pytest.approx(truth(equations), abs=1e-9)


def test_all_of_them_give_the_same_torques() -> None:
    equations = atkeson_equations(2.0)
    run = equations.experiments[0]
    torques = [
        inverse_dynamics(equations.robot.with_parameters(estimator.parameters(equations)), run.q, run.dq, run.ddq)
        for estimator in (TruncatedSVD(), ReducedSet(), ReducedSet(zero=ATKESONS_ZEROS), Ridge())
    ]
    largest = np.abs(torques[0]).max()
    assert torques[1] == pytest.approx(torques[0], abs=1e-9 * largest)
    assert torques[2] == pytest.approx(torques[0], abs=1e-9 * largest)
    assert torques[3] == pytest.approx(torques[0], abs=2e-3 * largest)


def test_zeros_that_change_the_torques_are_refused() -> None:
    with pytest.raises(ArgumentError, match="14 of 15"):
        ReducedSet(zero=("MX3",)).solve(atkeson_equations())
    with pytest.raises(ArgumentError, match="no parameter"):
        ReducedSet(zero=("nonsense",)).solve(atkeson_equations())


def test_a_locked_joint_reduces_the_set_further() -> None:
    equations = still(arm(), [2])
    estimate = ReducedSet().solve(equations)
    kept = ReducedSet().kept(equations)
    assert len(kept) == equations.information.weight().rank < len(equations.names)
    assert estimate.undetermined.any()
    run = equations.experiments[0]
    assert equations.torque(estimate.values, run) == pytest.approx(run.effort, abs=1e-6)


def test_zero_torques_are_refused() -> None:
    with pytest.raises(IdentifiabilityError, match="all torques are zero"):
        ReducedSet().solve(silent(arm()))
