"""Weights, columns, segments: chosen after the reduction, equal to what the dense matrices give."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.data_reduction import Information, reduce_samples
from dynid.errors import ArgumentError, IdentifiabilityError

from .problems import ROBOTS, Log, independent_columns, random_log

SEGMENTS = np.repeat([2, 5, 9], [400, 333, 500])


@pytest.fixture(scope="module")
def log() -> Log:
    return random_log(ROBOTS["serial"], len(SEGMENTS))


@pytest.fixture(scope="module")
def information(log: Log) -> Information:
    return reduce_samples(log.robot, *log.arrays, segments=SEGMENTS)


def solution(log: Log, columns: tuple[int, ...], weights: np.ndarray) -> np.ndarray:
    """Weighted least squares of the dense matrices; weights (N, n)."""
    W = np.sqrt(weights).reshape(-1, 1) * log.dense(columns).reshape(-1, len(columns) + 1)
    return np.linalg.lstsq(W[:, :-1], W[:, -1], rcond=None)[0]


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.linalg.norm(found - expected) < 1e-9 * np.linalg.norm(expected)


def test_weights(log: Log, information: Information) -> None:
    columns = independent_columns(log.robot)
    joints = np.array([0.1, 2.0, 30.0, 1.0])[: log.robot.dof]
    base = information.select(columns)
    assert_close(base.weight(joints).solve(), solution(log, columns, np.tile(joints, (len(SEGMENTS), 1))))
    assert base.weight(np.arange(log.robot.dof)).samples == len(SEGMENTS) * (log.robot.dof - 1)


def test_rows_of_few_equations_say_what_their_triangle_says() -> None:
    """A joint that stands has columns of zeros, so that the rows that count are not the first ones."""
    log = random_log(ROBOTS["serial"], 48)
    q, dq, ddq, tau = (array.copy() for array in log.arrays)
    dq[:, 0] = ddq[:, 0] = 0.0
    segments = np.repeat(np.arange(12), 4)
    information = reduce_samples(log.robot, q, dq, ddq, tau, segments=segments)
    for joint in range(log.robot.dof):
        for segment in information.segments:
            rows, triangle = information.rows(joint, segment), information.factor(joint, segment)
            size = np.linalg.norm(triangle, axis=0)
            np.testing.assert_allclose(
                rows.T @ rows, triangle.T @ triangle, rtol=0.0, atol=1e-14 * np.outer(size, size).max(initial=1e-300)
            )
            assert len(rows) < len(triangle)
        total = sum(information.rows(joint, s).T @ information.rows(joint, s) for s in information.segments)
        whole = information.factor(joint)
        np.testing.assert_allclose(whole.T @ whole, total, rtol=1e-9, atol=1e-12 * np.abs(total).max())


def test_select_reorders_and_drops(log: Log, information: Information) -> None:
    columns = independent_columns(log.robot)
    base = information.select(columns)
    turned = information.select(columns[::-1])
    assert turned.columns == columns[::-1]
    assert_close(turned.weight().solve()[::-1], base.weight().solve())
    direct = reduce_samples(log.robot, *log.arrays, columns=columns, segments=SEGMENTS)
    assert base.supports == direct.supports
    for joint in range(log.robot.dof):
        found, expected = base.factor(joint, 5), direct.factor(joint, 5)
        np.testing.assert_allclose(found.T @ found, expected.T @ expected, rtol=1e-9, atol=1e-8)
    with pytest.raises(ArgumentError, match="no column 999"):
        information.select((999,))
    with pytest.raises(ArgumentError, match="selected twice"):
        information.select((3, 3))


def test_some_segments(log: Log, information: Information) -> None:
    columns = independent_columns(log.robot)
    base = information.select(columns)
    rest = base.only(9, 2)
    assert rest.segments == (2, 9)
    assert_close(rest.weight().solve(), solution(log, columns, np.outer(SEGMENTS != 5, np.ones(log.robot.dof))))
    assert base.only().weight().samples == 0
    with pytest.raises(ArgumentError, match="no segment 4"):
        base.only(4)


def test_torques_of_known_parameters_move_to_the_other_side(log: Log, information: Information) -> None:
    columns = independent_columns(log.robot)
    known = np.random.default_rng(2).normal(size=len(columns))
    gains = np.array([2.0, 0.5, 4.0])
    W = log.dense(columns)
    W[..., -1] = W[..., -1] / gains - W[..., :-1] @ known
    expected = np.linalg.lstsq(W[..., :-1].reshape(-1, len(columns)), W[..., -1].ravel(), rcond=None)[0]
    moved = information.select(columns).with_moved_torques(known, gains)
    assert_close(moved.weight().solve(), expected)


def test_residuals_of_any_parameters(log: Log, information: Information) -> None:
    beta = log.robot.parameter_vector + 0.01 * np.random.default_rng(3).normal(size=log.robot.parameter_vector.size)
    errors = log.dense() @ np.append(beta, -1.0)
    expected = np.array([(errors[segment == SEGMENTS] ** 2).sum(axis=0) for segment in (2, 5, 9)])
    np.testing.assert_allclose(information.per_joint_residual(beta), expected, rtol=1e-6)
    factor = information.weight()
    total = np.sum((factor.R @ beta - factor.z) ** 2) + factor.residual
    assert total == pytest.approx(expected.sum(), rel=1e-6)
    with pytest.raises(ArgumentError, match="parameters"):
        information.per_joint_residual(beta[:-1])


def test_renumbered_logs_merge(log: Log, information: Information) -> None:
    with pytest.raises(ArgumentError, match="counted twice"):
        information.merge(information)
    both = information.merge(information.renumber(10))
    assert both.segments == (2, 5, 9, 10, 11, 12)
    assert np.array_equal(both.samples.sum(axis=0), 2 * information.samples.sum(axis=0))
    columns = independent_columns(log.robot)
    assert_close(both.select(columns).weight().solve(), information.select(columns).weight().solve())
    turned = reduce_samples(log.robot.with_gravity((0, 9.81, 0)), *log.arrays)
    with pytest.raises(ArgumentError, match="different fingerprint"):
        information.merge(turned)


def test_dependent_columns_are_flagged(log: Log, information: Information) -> None:
    columns = independent_columns(log.robot)
    factor = information.weight()
    assert factor.rank == len(columns)
    assert set(factor.dependent) == set(range(log.robot.parameter_vector.size)).difference(columns)
    assert "rank" in factor.flags[0]
    with pytest.raises(IdentifiabilityError, match="rank"):
        factor.solve()
    beta = factor.solve(minimum_norm=True)
    best = information.select(columns).weight()
    assert np.sum((factor.R @ beta - factor.z) ** 2) + factor.residual == pytest.approx(best.residual, rel=1e-6)


def test_too_few_samples_are_flagged(log: Log) -> None:
    few = reduce_samples(log.robot, *(array[:3] for array in log.arrays), columns=independent_columns(log.robot))
    assert any("equations for" in flag for flag in few.weight().flags)


def test_wrong_weights_are_refused(information: Information) -> None:
    for joints in ([1.0], np.full(information.dof, np.nan), -np.ones(information.dof)):
        with pytest.raises(ArgumentError, match="weights of joints"):
            information.weight(joints)
