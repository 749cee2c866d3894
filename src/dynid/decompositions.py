"""NumPy's and LAPACK's matrix decompositions, with errors that say what is wrong with the matrix.

All modules of dynid call these functions instead of `numpy.linalg`: singular values, eigenvalues, least squares, rank,
condition number and pseudoinverse, and solutions with the upper triangle R of a QR decomposition. A matrix with numbers
that are not finite is refused first, because LAPACK would only report that it does not converge.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from dynid.array_types import Floats
from dynid.errors import DynidError


class DecompositionError(DynidError, np.linalg.LinAlgError):
    """A matrix cannot be decomposed; searches that try many matrices catch it as NumPy's own error."""


def svd(matrix: ArrayLike, *, full_matrices: bool = True) -> tuple[Floats, Floats, Floats]:
    """Singular value decomposition ``U, s, Vt`` of a matrix (m, n).

    Args:
        matrix: The matrix.
        full_matrices: Whether U is (m, m) and Vt (n, n); otherwise, with k = min(m, n), U is (m, k) and Vt (k, n).

    Raises:
        DecompositionError: The matrix is not finite, or the routine does not converge.
    """
    U, s, Vt = _decompose(lambda A: np.linalg.svd(A, full_matrices=full_matrices), matrix)
    return U, s, Vt


def singular_values(matrix: ArrayLike) -> Floats:
    """Compute the singular values (k,) of a matrix, descending; raises as `svd`."""
    return np.asarray(_decompose(lambda A: np.linalg.svd(A, compute_uv=False), matrix))


def eigh(matrix: ArrayLike) -> tuple[Floats, Any]:
    """Compute eigenvalues, ascending, and eigenvectors of a symmetric matrix (n, n), or of each in a stack (..., n, n).

    A complex matrix is taken to be Hermitian; its eigenvectors are complex.

    Raises:
        DecompositionError: The matrix is not finite, or the routine does not converge.
    """
    values, vectors = _decompose(np.linalg.eigh, matrix)
    return values, vectors


def eigvalsh(matrix: ArrayLike) -> Floats:
    """Compute the eigenvalues of a symmetric matrix or of a stack, ascending; raises as `eigh`."""
    return np.asarray(_decompose(np.linalg.eigvalsh, matrix))


def eigenvalues(matrix: ArrayLike) -> NDArray[np.complex128]:
    """Compute the eigenvalues of a square matrix (n, n), or of each in a stack; raises as `svd`."""
    return np.asarray(_decompose(np.linalg.eigvals, matrix), dtype=np.complex128)


def lstsq(matrix: ArrayLike, side: ArrayLike, rcond: float | None = None) -> Floats:
    """Solve ``matrix @ x = side`` by least squares; of several solutions, take that of the smallest norm.

    Args:
        matrix: (m, n)
        side: (m,) or (m, k)
        rcond: Singular values below ``rcond`` times the largest count as zero; None for machine precision times the
            larger dimension.

    Returns:
        x (n,) or (n, k).

    Raises:
        DecompositionError: A number is not finite, or the routine does not converge.
    """
    return np.asarray(_decompose(lambda A: np.linalg.lstsq(A, _finite(side), rcond=rcond)[0], matrix))


def solve_upper(R: Floats, right: Floats) -> Floats:
    """Solve ``R @ x = right`` for an upper triangular R (n, n) with no zero on its diagonal; x has the shape of right.

    Args:
        R: (n, n)
        right: (n,) or (n, k)
    """
    # R.T is stored by columns, as LAPACK wants it, so that nothing is copied
    return np.asarray(lapack().dtrtrs(R.T, right, lower=1, trans=1)[0])


def is_regular_triangle(R: Floats, resolution: float) -> bool:
    """Whether an upper triangular R (n, n) certainly has no singular value below ``resolution`` times its largest one.

    A quick test: the inverse of a triangle takes a fraction of the time of its singular values. In Frobenius norms the
    largest singular value is at most ``|R|``, and the smallest at least ``1 / |inv(R)|``, so that the condition number
    is at most ``|R| |inv(R)|``. False leaves the question open.
    """
    if not R.size or not np.all(np.isfinite(R)) or not np.all(np.diagonal(R)):
        return False
    inverse, failure = lapack().dtrtri(R.T, lower=1)
    with np.errstate(over="ignore", invalid="ignore"):  # a ratio that overflows is infinite or NaN, and fails the test
        ratio = float(np.linalg.norm(R)) * float(np.linalg.norm(np.tril(inverse)))
    return failure == 0 and resolution * ratio < 1.0


def lapack() -> Any:
    """Return SciPy's wrappers of LAPACK; it is a function typed Any, because SciPy has no types for them."""
    return linalg.lapack


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS and LAPACK use one thread inside a ``with`` block.

    The last bits of some of their results depend on the number of threads, and matrices as small as ours take longer
    with several.
    """
    with _blas_libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _blas_libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def matrix_rank(matrix: ArrayLike, tol: float | None = None) -> int:
    """Count the singular values above a tolerance; None for that of `lstsq`. Raises as `svd`."""
    sizes = singular_values(matrix)
    smallest = sizes.max(initial=0.0) * max(np.shape(matrix)) * np.finfo(float).eps if tol is None else tol
    return int(np.count_nonzero(sizes > smallest))


def condition_number(matrix: ArrayLike) -> float:
    """Divide the largest by the smallest singular value; infinite for a singular matrix. Raises as `svd`."""
    sizes = singular_values(matrix)
    return float(sizes[0] / sizes[-1]) if sizes.size and sizes[-1] > 0.0 else float("inf")


def pinv(matrix: ArrayLike, rcond: float = 1e-15) -> Floats:
    """Compute the pseudoinverse (n, m) of a matrix (m, n); raises as `svd`.

    Args:
        matrix: The matrix.
        rcond: Singular values below ``rcond`` times the largest count as zero.
    """
    U, s, Vt = svd(matrix, full_matrices=False)
    kept = s > rcond * s.max(initial=0.0)
    return np.asarray((Vt[kept].T / s[kept]) @ U[:, kept].T)


def standard_deviations(covariance: Floats, is_open: NDArray[np.bool_]) -> Floats:
    """Take standard deviations (k,) from the diagonal of a covariance (k, k).

    Args:
        covariance: (k, k)
        is_open: (k,) whether the data leave the unknown undetermined; its standard deviation is infinite.
    """
    return np.where(is_open, np.inf, np.sqrt(np.maximum(np.diagonal(covariance), 0.0)))


def _finite(matrix: ArrayLike) -> Any:
    """Convert a matrix to double precision, real or complex; refuse one with numbers that are not finite."""
    given = np.asarray(matrix)
    A = given.astype(np.complex128 if np.iscomplexobj(given) else np.float64, copy=False)
    if not np.isfinite(A).all():
        wrong = int(np.count_nonzero(~np.isfinite(A)))
        raise DecompositionError(
            f"{wrong} of the {A.size} numbers of a {_shape(A)} matrix are not finite",
            remedy="Look for samples or parameters that are infinite or not a number: dynid check.",
        )
    return A


def _decompose(routine: Callable[[Any], Any], matrix: ArrayLike) -> Any:
    """Check that a matrix is finite, and apply a routine of `numpy.linalg` to it; its errors become our own."""
    A = _finite(matrix)
    try:
        return routine(A)
    except np.linalg.LinAlgError as error:
        raise DecompositionError(
            f"a finite {_shape(A)} matrix cannot be decomposed: {error}",
            remedy="Scale the signals to usual units, or use other samples.",
        ) from error


def _shape(A: Any) -> str:
    return " x ".join(str(length) for length in A.shape)
