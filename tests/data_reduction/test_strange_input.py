"""Numbers and columns that cannot be used are refused by name, before they reach a factor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynid.data_reduction import chunks as chunking
from dynid.data_reduction import reduce_samples
from dynid.errors import ArgumentError, DataError

from .problems import ROBOTS, random_log

LOG = random_log(ROBOTS["coupled wrist"], 300)
COUNT = LOG.robot.parameter_vector.size


@pytest.mark.parametrize(("channel", "value"), [(1, 1e80), (1, 1e200), (2, -1e170), (3, 1e200)])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_finite_numbers_that_overflow_are_named(backend: str, channel: int, value: float) -> None:
    arrays = [array.copy() for array in LOG.arrays]
    arrays[channel][101, 1] = value
    with pytest.raises(DataError, match=f"{chunking.CHANNELS[channel]} of joint 2 .* at sample 101"):
        reduce_samples(LOG.robot, *arrays, backend=backend)
    valid = np.arange(300) != 101
    found = reduce_samples(LOG.robot, *arrays, backend=backend, valid=valid)
    assert all(np.isfinite(matrix).all() for part in found.parts for matrix in part.matrices)


@pytest.mark.parametrize(
    "columns",
    [[1.7, 2.2], ["1", "2"], "12", [-1], [COUNT], [[1, 2]], [True, False], 5, [None], np.ma.array([1], mask=[1])],
)
def test_columns_that_are_no_columns(columns: Any) -> None:
    for refused in (
        lambda: reduce_samples(LOG.robot, *LOG.arrays, columns=columns),
        lambda: reduce_samples(LOG.robot, *LOG.arrays).select(columns),
    ):
        with pytest.raises(ArgumentError, match="column"):
            refused()


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


def test_a_backend_that_there_is_not() -> None:
    with pytest.raises(ArgumentError):
        reduce_samples(LOG.robot, *LOG.arrays, backend="foo")  # type: ignore[arg-type]
