"""Ridge, singular values and reduced sets of all standard parameters, as in [Atkeson1986]."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dynid.compiled import regressor
from dynid.errors import ArgumentError
from dynid.estimators.linear.minimum_norm import Ridge, TruncatedSVD
from dynid.estimators.linear.reduced_set import ReducedSet

from .planted import arm, atkeson_equations, equations_of, truth

ATKESONS_ZEROS = ("M3", "MZ3", "XX3", "XX2")
ATKESONS_REST = {"YZ2", "YY3", "ZZ2", "ZZ1", "YY2", "MY2"}


def test_equation_20_on_the_regressor_itself() -> None:
    equations = atkeson_equations()
    K = np.concatenate([regressor(equations.robot, run.q, run.dq, run.ddq) for run in equations.experiments])
    K = K.reshape(-1, 30)
    tau = np.concatenate([run.effort for run in equations.experiments]).ravel()
    expected = np.linalg.solve(K.T @ K + 10.0 * np.eye(30), K.T @ tau)  # (20)
    assert Ridge(10.0).solve(equations).least_norm == pytest.approx(expected, abs=1e-8)


def test_the_papers_figures() -> None:
    equations = atkeson_equations()
    estimate = Ridge(10.0).solve(equations)
    assert estimate.extras["largest_bias_share"] == pytest.approx(10.0 / 2945, rel=0.01)
    assert re.search(r"is 0\.0034 times .* up to 0\.0034", estimate.findings[-1].message)
    assert estimate.stderr == pytest.approx(np.abs(estimate.values - truth(equations)), rel=1e-3, abs=1e-8)
    assert estimate.extras["smallest_eigenvalue"] == pytest.approx(2935, rel=0.01)  # 3395 on the measured motion
    psi, least = estimate.least_norm, TruncatedSVD().solve(equations).least_norm
    assert psi is not None
    assert least is not None
    assert np.linalg.norm(psi - least) / np.linalg.norm(least) == pytest.approx(2.6e-4, rel=0.5)
    assert estimate.values == pytest.approx(truth(equations), abs=5e-3)
    assert Ridge().solve(equations).extras["d"] == pytest.approx(10.0 * 2935 / 3395, rel=0.01)


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(ArgumentError):
        Ridge(-1.0)


def test_parameters_have_the_smallest_norm() -> None:
    equations = atkeson_equations()
    psi, grouping = TruncatedSVD().solve(equations).least_norm, equations.base.grouping
    assert grouping @ psi == pytest.approx(truth(equations), abs=1e-9)
    assert psi == pytest.approx(np.linalg.pinv(grouping) @ truth(equations), abs=1e-8)


def test_the_papers_three_groups() -> None:
    """The projection of a parameter's own direction on the identifiable ones has length one, between, or zero."""
    equations = atkeson_equations()
    V = np.linalg.svd(equations.information.weight().R @ equations.grouping, full_matrices=False)[2]
    share = (V**2).sum(axis=0)
    fully = [name for name, part in zip(equations.base.layout.names, share, strict=True) if part > 1.0 - 1e-6]
    assert (len(fully), np.sum((share > 1e-6) & (share < 1.0 - 1e-6)), np.sum(share < 1e-6)) == (9, 10, 11)
    assert set(fully) == {"MX2", "XY2", "XZ2", "MX3", "MY3", "XY3", "XZ3", "YZ3", "ZZ3"}


def test_what_is_cut_is_reported_as_open() -> None:
    equations = equations_of(arm(), noise=0.5)
    estimate = TruncatedSVD(cut=0.02).solve(equations)
    assert estimate.extras["rank"] < len(equations.names)
    assert estimate.undetermined.any()
    known = ~estimate.undetermined
    assert np.all(np.abs(estimate.values - truth(equations))[known] < 5 * estimate.stderr[known])


def test_the_papers_zeros_leave_the_papers_parameters() -> None:
    equations = atkeson_equations()
    estimate = ReducedSet(zero=ATKESONS_ZEROS).solve(equations)
    kept = set(np.array(equations.base.layout.names)[np.flatnonzero(estimate.least_norm)])
    assert len(kept) == 15
    assert kept >= ATKESONS_REST
    assert not kept & set(ATKESONS_ZEROS)


def test_zeros_that_change_the_torques_are_refused() -> None:
    with pytest.raises(ArgumentError, match="14 of 15"):
        ReducedSet(zero=("MX3",)).solve(atkeson_equations())
    with pytest.raises(ArgumentError, match="no parameter"):
        ReducedSet(zero=("nonsense",)).solve(atkeson_equations())
