"""How far a prior moves an estimate, and what of it is an error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from campaigns.interval_conditions import make_robot, record, wrong_prior
from dynid.estimation.equations import Samples, build_equations
from dynid.estimation.estimate import convert_estimate
from dynid.estimation.linear.least_squares import WLS
from dynid.estimation.physical.feasible import FeasibleWLS
from dynid.estimation.physical.prior_bias import Evidence, guess_best, shown_root
from dynid.estimation.physical.prior_wls import PriorWLS
from dynid.parameters.base import base_parameters


@pytest.fixture(scope="module")
def equations() -> Samples:
    robot = make_robot("scara")
    return build_equations(wrong_prior(robot, 3), [record(robot, "white", 3)], base=base_parameters(robot))


def test_the_factor_of_a_prior_is_found() -> None:
    rng = np.random.default_rng(2)
    root = rng.normal(size=(400, 400)) / 20.0
    halves = [root[:, :200], root[:, 200:]]
    parts = [half @ half.T for half in halves]
    true = 50.0 * parts[0] + 8.0 * parts[1] + np.eye(400)
    distance = np.linalg.cholesky(true) @ rng.normal(size=400)
    shown = shown_root(distance, 1.0, halves)
    found = shown @ shown.T
    for part, factor in zip(parts, (50.0, 8.0), strict=True):
        share = np.sum(found * part) / np.sum((50.0 * parts[0] + 8.0 * parts[1]) * part)
        assert share == pytest.approx(1.0, abs=0.25), factor


def test_a_prior_is_never_taken_to_be_better_than_its_weight_says() -> None:
    stated = np.diag([2.0, 1.0, 0.5])
    assert np.all(np.diagonal(shown_root(np.zeros(3), 1.0, [stated])) >= np.diagonal(stated))


def test_a_prior_that_says_nothing_in_some_directions_keeps_what_it_says_in_others() -> None:
    """Its covariance would be 1e18 in some directions and 1e-2 in others: more than a number holds."""
    rng = np.random.default_rng(5)
    r = 12
    directions = np.linalg.qr(rng.normal(size=(r, r)))[0]
    stds = np.geomspace(1e9, 0.1, r)
    own, root = np.ones(r), np.linalg.qr(rng.normal(size=(r, r)))[0]
    said = Evidence(
        beta=np.zeros(r), root=root, forth=root.T, undetermined=np.zeros(r, dtype=bool), distance=np.ones(r),
        sampling=2.0 * np.eye(r), average=2.0, own=own, variances=own, stated=directions * stds,
        prior=directions * stds,
    )  # fmt: skip
    drawn, covariance, expected = guess_best(said)
    along = root @ directions
    # in each direction the best guess has the variance 1 / (1 / 2 + 1 / s^2)
    np.testing.assert_allclose(np.diagonal(along.T @ covariance @ along), 1.0 / (0.5 + stds**-2.0), rtol=1e-6)
    np.testing.assert_allclose(drawn @ directions, along * (2.0 / (2.0 + stds**2)), atol=1e-9)
    assert np.linalg.eigvalsh(covariance)[0] > 0.0
    assert np.all(expected > 0.0)


def test_where_the_data_decide_the_interval_is_theirs(equations: Samples) -> None:
    weak, plain = PriorWLS(prior_weight=1e-6).solve(equations), WLS().solve(equations)
    counted = np.array([source == "data" for source in weak.sources])
    assert counted.sum() > 15
    np.testing.assert_allclose(weak.stderr[counted], plain.stderr[counted], rtol=0.15)


def test_a_prior_that_is_far_off_is_not_believed(equations: Samples) -> None:
    """However strong its weight: the interval then holds what the data alone say."""
    robot, base = equations.robot, equations.base
    heavy = replace(equations, robot=robot.with_parameters(2.0 * robot.parameter_vector))
    plain = WLS().solve(equations)
    for weight in (1.0, 1e3):
        found = PriorWLS(prior_weight=weight).solve(heavy)
        low, high = found.interval().T
        known = plain.stderr < 0.05 * np.abs(plain.values)
        assert known.sum() > 10
        assert np.all((low <= plain.values)[known] & (plain.values <= high)[known])
    assert base.rank == len(plain.names)


def test_one_link_that_contradicts_the_prior_is_not_believed(equations: Samples) -> None:
    """The prior is right but for one link: there, intervals hold what the data say."""
    theta = make_robot("scara").parameter_vector.copy()
    theta[10:20] *= 1.3
    plain = WLS().solve(equations)
    found = PriorWLS(prior_weight=1e5).solve(replace(equations, robot=equations.robot.with_parameters(theta)))
    moved = np.abs(found.values - plain.values) > 4.0 * plain.stderr
    assert moved.any()
    low, high = found.interval().T
    assert np.all((low <= plain.values)[moved] & (plain.values <= high)[moved])


def test_bias_is_part_of_the_covariance_and_follows_conversions(equations: Samples) -> None:
    found = FeasibleWLS().solve(equations)
    assert found.bias is not None
    variance = np.diagonal(found.covariance)
    assert np.all(variance * (1.0 + 1e-9) >= found.bias**2)
    assert np.all(found.stderr <= np.sqrt(variance) * 1.001)
    moved = np.abs(found.bias) > 3.0 * np.sqrt(np.maximum(variance - found.bias**2, 0.0))
    assert np.all(1.97 * found.stderr[moved] >= np.abs(found.bias[moved]))
    other = base_parameters(equations.robot, "numeric")
    there = convert_estimate(found, equations.base, other)
    back = convert_estimate(there, other, equations.base)
    assert back.bias is not None
    np.testing.assert_allclose(back.bias, found.bias, atol=1e-9)
    np.testing.assert_allclose(back.stderr, found.stderr, rtol=1e-6)


@pytest.mark.parametrize("seconds", [1.0, 2.0])
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_no_combination_of_parameters_has_a_negative_variance(factor: float, seconds: float) -> None:
    """Where the data contradict the prior, and where it knows more than they do: variances are enlarged there."""
    robot = make_robot("scara")
    run = record(robot, "ar0.98", 3).rows(slice(0, int(seconds * 100)))
    prior = robot.with_parameters(factor * wrong_prior(robot, 3).parameter_vector)
    found = FeasibleWLS(prior_weight=10.0).solve(build_equations(prior, [run], base=base_parameters(robot)))
    assert found.bias is not None
    counted = ~found.undetermined
    scale = 1.0 / np.sqrt(np.diagonal(found.covariance)[counted])
    inner = (found.covariance - np.outer(found.bias, found.bias))[np.ix_(counted, counted)]
    assert np.linalg.eigvalsh(inner * np.outer(scale, scale))[0] > -1e-9
