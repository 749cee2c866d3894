"""Every back end gives what the dense matrices give, whatever the sizes and the number of workers."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from dynid.data_reduction import Information, reduce_samples
from dynid.data_reduction import chunks as chunking
from dynid.data_reduction.triangular import append_many_rows, triangle_of
from dynid.errors import ArgumentError, DataError
from dynid.robot import zoo
from dynid.terms.friction import Coulomb, Viscous
from dynid.terms.motors import Offset

from .problems import ROBOTS, Log, identical, independent_columns, random_log

BACKENDS = ("numpy", "llvm")


@pytest.mark.parametrize("count", [0, 1, 5, 12, 30, 700])
def test_triangle_of_any_number_of_rows(count: int) -> None:
    rows = np.random.default_rng(count).normal(size=(count, 12))
    R = triangle_of(rows)
    np.testing.assert_allclose(R.T @ R, rows.T @ rows, rtol=1e-12, atol=1e-12)
    assert np.all(np.diagonal(R) >= 0.0)
    assert not np.tril(R, -1).any()
    assert not R[count:].any()
    np.testing.assert_allclose(R, append_many_rows(np.zeros((12, 12)), rows), rtol=0.0, atol=1e-12)


def assert_same_grams(information: Information, log: Log, joint_rows: np.ndarray | None = None) -> None:
    """The factors' products are the dense matrices' products."""
    dense = log.dense(information.columns)
    for joint, support in enumerate(information.supports):
        W = dense[:, joint][:, [*support, -1]]
        W = W if joint_rows is None else W[joint_rows[:, joint]]
        R = information.factor(joint)
        length = np.linalg.norm(W, axis=0)
        length = np.maximum(length, 1e-3 * length.max())  # some columns are nothing but rounding noise
        assert np.all(np.abs(R.T @ R - W.T @ W) <= 1e-11 * np.outer(length, length))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ROBOTS)
def test_reductions_agree_with_dense_matrices(name: str, backend: str) -> None:
    log = random_log(ROBOTS[name], 1003)
    information = reduce_samples(log.robot, *log.arrays, backend=backend)
    assert information.columns == tuple(range(log.robot.parameter_vector.size))
    assert np.array_equal(information.samples, np.full((1, log.robot.dof), 1003))
    assert_same_grams(information, log)
    dense = log.dense()
    for joint, support in enumerate(information.supports):  # what is left out is really zero
        assert not np.delete(dense[:, joint, :-1], support, axis=1).any()


def test_no_samples() -> None:
    robot = ROBOTS["serial"]
    nothing = np.zeros((0, robot.dof))
    information = reduce_samples(robot, nothing, nothing, nothing, nothing)
    assert information.segments == ()
    assert information.weight().samples == 0
    assert information.weight().flags


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_solution_is_that_of_lstsq(backend: str) -> None:
    log = random_log(ROBOTS["tree"], 2500)
    columns = independent_columns(log.robot)
    factor = reduce_samples(log.robot, *log.arrays, columns=columns, backend=backend).weight()
    W = log.dense(columns).reshape(-1, len(columns) + 1)
    expected, residual, *_ = np.linalg.lstsq(W[:, :-1], W[:, -1], rcond=None)
    np.testing.assert_allclose(factor.solve(), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert factor.residual == pytest.approx(residual[0], rel=1e-9)
    assert factor.samples == len(W)
    assert not factor.flags


# --- the same to the last bit ------------------------------------------------------------------------------------


@pytest.fixture
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunking, "CHUNK", 480)


@pytest.mark.usefixtures("_small_chunks")
def test_segments_keep_their_numbers_and_samples() -> None:
    log = random_log(ROBOTS["serial"], 4001)
    segments = np.repeat([4, 1, 7], [1777, 3, 2221])
    whole = reduce_samples(log.robot, *log.arrays, segments=segments)
    assert whole.segments == (1, 4, 7)
    assert np.array_equal(whole.samples[:, 0], [3, 1777, 2221])


@pytest.mark.usefixtures("_small_chunks")
def test_merging_in_any_order_makes_no_difference() -> None:
    log = random_log(ROBOTS["serial"], 6 * 480)
    segments = np.repeat(np.arange(6), 480)
    parts = [
        reduce_samples(
            log.robot,
            *(array[480 * k : 480 * k + 480] for array in log.arrays),
            segments=segments[480 * k : 480 * k + 480],
        )
        for k in range(6)
    ]
    whole = functools.reduce(Information.merge, parts)
    for a, b, c, d, e, f in itertools.islice(itertools.permutations(parts), 0, 720, 97):
        assert identical(a.merge(b).merge(c).merge(d).merge(e).merge(f), whole)
        assert identical(a.merge(b.merge(c)).merge(d.merge(e.merge(f))), whole)


# --- masks, strange numbers, wrong shapes ------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
def test_masked_equations_do_not_count(backend: str) -> None:
    log = random_log(ROBOTS["coupled wrist"], 1501)
    valid = np.random.default_rng(4).random(log.q.shape) < 0.8
    valid[100:140] = False
    dirty = Log(log.robot, *(array.copy() for array in log.arrays))
    dirty.tau[~valid] = np.nan
    for array in dirty.arrays[:3]:
        array[100:140] = np.inf  # nobody looks at a sample that counts for no joint
    information = reduce_samples(log.robot, *dirty.arrays, valid=valid, backend=backend)
    assert np.array_equal(information.samples[0], valid.sum(axis=0))
    assert_same_grams(information, log, valid)
    columns_first = (np.asfortranarray(array) for array in (*dirty.arrays, valid))  # as some filters leave them
    *channels, mask = columns_first
    assert_same_grams(reduce_samples(log.robot, *channels, valid=mask, backend=backend), log, valid)
    by_row = reduce_samples(log.robot, *log.arrays, valid=valid.any(axis=1), backend=backend)
    assert set(by_row.samples[0]) == {1501 - 40}


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("channel", ["q", "dq", "ddq", "tau"])
def test_strange_numbers_are_named(channel: str) -> None:
    log = random_log(ROBOTS["serial"], 1100)
    for value, word in [(np.nan, "NaN"), (-np.inf, "infinite")]:
        arrays = {name: array.copy() for name, array in zip(("q", "dq", "ddq", "tau"), log.arrays, strict=True)}
        arrays[channel][1042, 2] = value
        with pytest.raises(DataError, match=rf"^{channel} of joint 3 is {word} at sample 1042\b"):
            reduce_samples(log.robot, *arrays.values())


def test_wrong_arguments_are_refused() -> None:
    log = random_log(ROBOTS["serial"], 30)
    with pytest.raises(DataError, match="dq has shape"):
        reduce_samples(log.robot, log.q, log.dq[:-1], log.ddq, log.tau)
    with pytest.raises(DataError, match="valid has shape"):
        reduce_samples(log.robot, *log.arrays, valid=np.ones((30, 1 + log.robot.dof)))
    with pytest.raises(DataError, match="segments have shape"):
        reduce_samples(log.robot, *log.arrays, segments=np.zeros(29))
    with pytest.raises(ArgumentError, match="chosen twice"):
        reduce_samples(log.robot, *log.arrays, columns=(0, 0))


# --- accuracy ----------------------------------------------------------------------------------------------------


def badly_conditioned(condition: float) -> tuple[Log, tuple[int, ...]]:
    """A log of such small motions about one posture that the scaled condition number is about the given one."""
    robot = zoo.puma560().with_terms(Viscous(), Coulomb(), Offset())
    columns = independent_columns(robot)
    rng = np.random.default_rng(2)
    posture, waves = rng.normal(size=6), rng.normal(size=(3, 6000, 6))
    low, high = 1e-6, 1.0
    for _ in range(30):
        size = np.sqrt(low * high)
        q, dq, ddq = posture + size * waves[0], waves[1], waves[2]
        W = Log(robot, q, dq, ddq, np.zeros_like(q)).dense(columns)[:, :, :-1].reshape(-1, len(columns))
        found = np.linalg.cond(W / np.linalg.norm(W, axis=0))
        low, high = (low, size) if found < condition else (size, high)
        if 0.5 < found / condition < 2.0:
            break
    tau = (W @ robot.parameter_vector[list(columns)]).reshape(q.shape) + 0.1 * rng.normal(size=q.shape)
    return Log(robot, q, dq, ddq, tau), columns


def reflected(log: Log, columns: tuple[int, ...]) -> np.ndarray:
    """The solution by Householder reflections of all equations at once."""
    W = log.dense(columns).reshape(-1, len(columns) + 1)
    R = np.linalg.qr(W / np.linalg.norm(W, axis=0), mode="r")
    return np.linalg.solve(R[:-1, :-1], R[:-1, -1]) * np.linalg.norm(W[:, -1]) / np.linalg.norm(W[:, :-1], axis=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_preconditioned_is_as_good_as_householder(backend: str) -> None:
    log, columns = badly_conditioned(1e6)
    factor = reduce_samples(log.robot, *log.arrays, columns=columns, backend=backend).weight()
    assert 3e5 < factor.condition < 3e6
    assert not factor.flags
    expected = reflected(log, columns)
    assert np.linalg.norm(factor.solve() - expected) < 1e-9 * np.linalg.norm(expected)


@pytest.mark.usefixtures("_small_chunks")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_log_that_begins_at_rest(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first chunks say nothing about the rest, so that the preconditioner made from all does not fit them."""
    monkeypatch.setattr(chunking, "CHUNK", 2880)
    log = random_log(ROBOTS["serial"], 3 * 2880)
    log.q[:2880], log.dq[:2880], log.ddq[:2880] = log.q[0], 0.0, 0.0
    log.q[2880:5760] = log.q[0] + 1e-4 * log.q[2880:5760]
    columns = independent_columns(log.robot)
    found = reduce_samples(log.robot, *log.arrays, columns=columns, backend=backend).weight().solve()
    expected = reflected(log, columns)
    assert np.linalg.norm(found - expected) < 1e-10 * np.linalg.norm(expected)
