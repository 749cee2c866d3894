"""Decompositions of any finite matrix, compared with reconstruction and with SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from threadpoolctl import threadpool_info, threadpool_limits

from dynid import decompositions
from dynid.decompositions import DecompositionError
from dynid.errors import DynidError


def refuse(*_: Any, **__: Any) -> Any:
    """A routine of LAPACK that does not converge."""
    raise np.linalg.LinAlgError("SVD did not converge")


def test_least_squares_of_the_smallest_norm() -> None:
    rng = np.random.default_rng(1)
    A = rng.normal(size=(20, 6))
    A[:, 5] = A[:, 0] - A[:, 1]  # one direction is open
    b = rng.normal(size=20)
    wanted = np.linalg.pinv(A, rcond=1e-12) @ b
    assert decompositions.pinv(A, rcond=1e-12) @ b == pytest.approx(wanted, rel=1e-9)
    assert decompositions.lstsq(A, b, rcond=1e-12) == pytest.approx(wanted, rel=1e-9)
    assert decompositions.matrix_rank(A) == 5


@pytest.mark.parametrize(
    "decompose",
    [
        decompositions.svd,
        decompositions.singular_values,
        decompositions.eigh,
        decompositions.eigvalsh,
        decompositions.eigenvalues,
        decompositions.condition_number,
        decompositions.matrix_rank,
        lambda A: decompositions.lstsq(A, np.zeros(3)),
    ],
)
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(decompose: Callable[[Any], Any], wrong: float) -> None:
    A = np.eye(3)
    A[1, 2] = wrong
    with pytest.raises(DecompositionError, match="1 of the 9 numbers of a 3 x 3 matrix are not finite") as caught:
        decompose(A)
    assert isinstance(caught.value, DynidError)
    assert isinstance(caught.value, np.linalg.LinAlgError)  # searches treat it as a singular matrix
    assert caught.value.remedy


def test_an_error_of_our_own_where_a_routine_does_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.linalg, "svd", refuse)
    with pytest.raises(DecompositionError, match="a finite 3 x 3 matrix cannot be decomposed"):
        decompositions.svd(np.eye(3))


def test_a_singular_matrix_has_no_finite_condition_number() -> None:
    assert decompositions.condition_number(np.diag([2.0, 0.0])) == np.inf
    assert decompositions.condition_number(np.diag([2.0, 0.5])) == pytest.approx(4.0)


ENTRIES = st.floats(-1.0, 1.0).map(lambda x: x if abs(x) > 1e-100 else 0.0)
"""Entries whose squares are numbers: from smaller ones NumPy's singular values come out as NaN."""


@given(arrays(np.float64, (5, 5), elements=ENTRIES), st.integers(0, 12), st.integers(1, 14))
def test_a_triangle_called_regular_has_no_small_singular_value(A: np.ndarray, digits: int, resolved: int) -> None:
    R = np.triu(A)
    R[4, 4] = 10.0**-digits
    resolution = 10.0**-resolved
    values = np.linalg.svd(R, compute_uv=False)
    if decompositions.is_regular_triangle(R, resolution):
        assert values[-1] > resolution * values[0]
    elif np.all(np.diagonal(R)):
        assert values[-1] < 100.0 * resolution * values[0], "it is asked for in vain"


def test_one_thread_for_every_library_and_the_former_number_afterwards() -> None:
    def numbers() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = numbers()
        with decompositions.one_blas_thread():
            assert set(numbers()) <= {1}
        assert numbers() == before
