"""Numbers, columns and preconditioners that cannot be used are refused by name, before they reach a factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynid.errors import ArgumentError, DataError
from dynid.information import chunks as chunking
from dynid.information import precondition, reduce_samples, reduce_stream
from dynid.information.methods import METHODS, Preconditioner

from .problems import ROBOTS, random_log

LOG = random_log(ROBOTS["coupled wrist"], 300)
COUNT = LOG.robot.parameter_vector.size


@pytest.mark.parametrize(("channel", "value"), [(1, 1e80), (1, 1e200), (2, -1e170), (3, 1e200)])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("method", METHODS)
def test_finite_numbers_that_overflow_are_named(method: str, backend: str, channel: int, value: float) -> None:
    arrays = [array.copy() for array in LOG.arrays]
    arrays[channel][101, 1] = value
    with pytest.raises(DataError, match=f"{chunking.CHANNELS[channel]} of joint 2 .* at sample 101"):
        reduce_samples(LOG.robot, *arrays, method=method, backend=backend)
    valid = np.arange(300) != 101
    found = reduce_samples(LOG.robot, *arrays, method=method, backend=backend, valid=valid)
    assert all(np.isfinite(matrix).all() for part in found.parts for matrix in part.matrices)
    with pytest.raises(DataError, match="at sample 101"):
        precondition(LOG.robot, *arrays, backend=backend)


@pytest.mark.parametrize(
    "columns",
    [[1.7, 2.2], ["1", "2"], "12", [-1], [COUNT], [[1, 2]], [True, False], 5, [None], np.ma.array([1], mask=[1])],
)
def test_columns_that_are_no_columns(columns: Any) -> None:
    for refused in (
        lambda: reduce_samples(LOG.robot, *LOG.arrays, columns=columns),
        lambda: reduce_stream(LOG.robot, [LOG.arrays], columns=columns),
        lambda: precondition(LOG.robot, *LOG.arrays, columns=columns),
        lambda: reduce_samples(LOG.robot, *LOG.arrays).select(columns),
    ):
        with pytest.raises(ArgumentError, match="column"):
            refused()


def _changed(change: Callable[[np.ndarray], Any]) -> Callable[[Preconditioner], Preconditioner]:
    def make(given: Preconditioner) -> Preconditioner:
        matrices = [matrix.copy() for matrix in given.matrices]
        replaced = change(matrices[1])
        matrices[1] = matrices[1] if replaced is None else replaced
        return Preconditioner(tuple(matrices), given.fingerprint, given.columns)

    return make


@pytest.mark.parametrize(
    "spoil",
    [
        _changed(lambda m: m.__setitem__((0, 0), np.nan)),
        _changed(lambda m: m.__setitem__((1, 1), 0.0)),
        _changed(lambda m: m.__setitem__((1, 0), 1.0)),
        _changed(lambda m: m[:-1, :-1]),
        _changed(lambda m: m.tolist()),
        lambda given: Preconditioner(given.matrices[:-1], given.fingerprint, given.columns),
    ],
)
def test_spoilt_preconditioners(spoil: Callable[[Preconditioner], Preconditioner]) -> None:
    given = precondition(LOG.robot, *LOG.arrays)
    reduce_samples(LOG.robot, *LOG.arrays, preconditioner=_changed(lambda m: None)(given))
    with pytest.raises(ArgumentError, match="preconditioner"):
        reduce_samples(LOG.robot, *LOG.arrays, preconditioner=spoil(given))


def test_a_preconditioner_for_other_columns_or_another_robot() -> None:
    few = precondition(LOG.robot, *LOG.arrays, columns=[1, 2, 3])
    other = random_log(ROBOTS["no models"], 300)
    foreign = precondition(other.robot, *other.arrays)
    for wrong in (few, foreign):
        with pytest.raises(ArgumentError, match="another robot or other columns"):
            reduce_samples(LOG.robot, *LOG.arrays, preconditioner=wrong)
        with pytest.raises(ArgumentError, match="another robot or other columns"):
            reduce_stream(LOG.robot, [LOG.arrays], preconditioner=wrong)


@pytest.mark.parametrize(
    "tau",
    [
        LOG.tau + 0j,
        LOG.tau.astype(str),
        LOG.tau.astype("datetime64[s]"),
        np.ma.masked_greater(LOG.tau, 0.0),
        np.full(LOG.tau.shape, {}),
    ],
)
def test_torques_that_are_no_real_numbers(tau: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^'?tau'? "):
        reduce_samples(LOG.robot, LOG.q, LOG.dq, LOG.ddq, tau)


@pytest.mark.parametrize("options", [{"backend": "foo"}, {"threads": None}, {"threads": 1.5}, {"method": "foo"}])
def test_options_that_there_are_not(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        reduce_samples(LOG.robot, *LOG.arrays, **options)
    with pytest.raises(ArgumentError):
        reduce_stream(LOG.robot, [LOG.arrays], **options)
