"""Truncated singular value decomposition, and the three groups of parameters that it shows."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import ArgumentError, IdentifiabilityError
from dynid.estimation.linear.least_squares import OLS, WLS
from dynid.estimation.linear.truncated_svd import TruncatedSVD, singular_groups

from .planted import arm, atkeson_equations, coverage, equations_of, silent, truth


def test_the_truth_without_noise() -> None:
    equations = atkeson_equations()
    estimate = TruncatedSVD().solve(equations)
    assert estimate.values == pytest.approx(truth(equations), abs=1e-9)
    assert estimate.extras["rank"] == 15


def test_parameters_have_the_smallest_norm() -> None:
    equations = atkeson_equations()
    psi, grouping = TruncatedSVD().parameters(equations), equations.base.grouping
    assert grouping @ psi == pytest.approx(truth(equations), abs=1e-9)
    assert psi == pytest.approx(np.linalg.pinv(grouping) @ truth(equations), abs=1e-8)


def test_the_papers_three_groups() -> None:
    groups = singular_groups(atkeson_equations())
    assert [len(names) for names in groups.values()] == [9, 10, 11]
    assert set(groups["fully"]) == {"MX2", "XY2", "XZ2", "MX3", "MY3", "XY3", "XZ3", "YZ3", "ZZ3"}


def test_same_as_least_squares_with_noise() -> None:
    equations = equations_of(arm(), noise=(1.0, 0.5, 0.1))
    for weighted, plain in ((False, OLS()), (True, WLS())):
        estimate, reference = TruncatedSVD(weighted=weighted).solve(equations), plain.solve(equations)
        assert estimate.values == pytest.approx(reference.values, abs=1e-9)
        assert estimate.stderr == pytest.approx(reference.stderr, rel=1e-6)
    assert coverage(equations, estimate) > 0.8


def test_what_is_cut_is_reported_as_open() -> None:
    equations = equations_of(arm(), noise=0.5)
    estimate = TruncatedSVD(cut=0.02).solve(equations)
    assert estimate.extras["rank"] < len(equations.names)
    assert estimate.undetermined.any()
    assert np.all(np.isinf(estimate.stderr[estimate.undetermined]))
    known = ~estimate.undetermined
    assert np.all(np.abs(estimate.values - truth(equations))[known] < 5 * estimate.stderr[known])


def test_unsupported_data() -> None:
    with pytest.raises(IdentifiabilityError, match="all torques are zero"):
        TruncatedSVD().solve(silent(arm()))
    with pytest.raises(ArgumentError):
        TruncatedSVD(cut=1.0)
