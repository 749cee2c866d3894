"""Singular values, eigenvalues and least squares of any finite matrix, or an error that says what is wrong.

LAPACK's divide-and-conquer routines, which NumPy calls, are quick but do not converge on some finite matrices. The
older iterations (QR: gesvd, syev, gelss) then take over. A matrix with numbers that are not finite is refused before,
because LAPACK says of it, too, that it did not converge.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from os.path import dirname, isfile, join
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.arrays import Floats
from dynid.errors import NumericalError

CERTAINLY = 2.0
"""Factor that covers the rounding of a triangle's inverse (convention: rounding is far below it where it decides)."""


class DecompositionError(NumericalError, np.linalg.LinAlgError):
    """A matrix cannot be decomposed; searches that try many matrices catch it as NumPy's own error."""


def svd(matrix: ArrayLike, *, full_matrices: bool = True) -> tuple[Floats, Floats, Floats]:
    """Singular value decomposition ``U, s, Vt`` of a matrix (m, n).

    Args:
        matrix: The matrix.
        full_matrices: Whether U is (m, m) and Vt (n, n); otherwise both are as narrow as s is long.

    Raises:
        DecompositionError: The matrix is not finite, or no routine converges.
    """
    A = _finite(matrix)

    def by_qr() -> Any:
        from scipy.linalg import svd as scipy_svd

        return scipy_svd(A, full_matrices=full_matrices, lapack_driver="gesvd", check_finite=False)

    U, s, Vt = _either(A, lambda: np.linalg.svd(A, full_matrices=full_matrices), by_qr)
    return U, s, Vt


def singular_values(matrix: ArrayLike) -> Floats:
    """Singular values (k,) of a matrix, descending; raises as `svd`."""
    A = _finite(matrix)

    def by_qr() -> Any:
        from scipy.linalg import svd as scipy_svd

        return scipy_svd(A, compute_uv=False, lapack_driver="gesvd", check_finite=False)

    return np.asarray(_either(A, lambda: np.linalg.svd(A, compute_uv=False), by_qr))


def eigh(matrix: ArrayLike) -> tuple[Floats, Any]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix (n, n), or of each in a stack (..., n, n).

    A complex matrix is taken to be Hermitian; its eigenvectors are complex.

    Raises:
        DecompositionError: The matrix is not finite, or no routine converges.
    """
    A = _finite(matrix)

    def by_qr() -> Any:
        found = [_by_syev(block) for block in A.reshape(-1, *A.shape[-2:])]
        values, vectors = (np.array([pair[k] for pair in found]) for k in (0, 1))
        return values.reshape(A.shape[:-1]), vectors.reshape(A.shape)

    values, vectors = _either(A, lambda: np.linalg.eigh(A), by_qr)
    return values, vectors


def eigvalsh(matrix: ArrayLike) -> Floats:
    """Eigenvalues of a symmetric matrix or of a stack, ascending; raises as `eigh`."""
    A = _finite(matrix)

    def by_qr() -> Any:
        return np.array([_by_syev(block)[0] for block in A.reshape(-1, *A.shape[-2:])]).reshape(A.shape[:-1])

    return np.asarray(_either(A, lambda: np.linalg.eigvalsh(A), by_qr))


def eigenvalues(matrix: ArrayLike) -> NDArray[np.complex128]:
    """Eigenvalues of a square matrix (n, n), or of each in a stack; there is one routine only.

    Raises:
        DecompositionError: The matrix is not finite, or the routine does not converge.
    """
    A = _finite(matrix)
    return np.asarray(_either(A, lambda: np.linalg.eigvals(A), None), dtype=np.complex128)


def lstsq(matrix: ArrayLike, side: ArrayLike, rcond: float | None = None) -> Floats:
    """The least-squares solution of ``matrix @ x = side`` of the smallest norm.

    Args:
        matrix: (m, n)
        side: (m,) or (m, k)
        rcond: Singular values below this part of the largest are zero; None for machine precision times the larger
            dimension.

    Raises:
        DecompositionError: A number is not finite, or no routine converges.
    """
    A, b = _finite(matrix), _finite(side)
    smallest = float(np.finfo(float).eps) * max(A.shape) if rcond is None else rcond

    def by_qr() -> Any:
        from scipy.linalg import lstsq as scipy_lstsq

        return scipy_lstsq(A, b, cond=smallest, lapack_driver="gelss", check_finite=False)[0]

    return np.asarray(_either(A, lambda: np.linalg.lstsq(A, b, rcond=smallest)[0], by_qr))


def pivoted_triangle(matrix: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    """Triangular factor R (r, p) of a matrix (m, p) with its columns reordered, and their order (p,).

    Each column is the one of which the columns before explain the least, so that R reveals the rank. SciPy's pivoted
    QR gives the same; loading it takes longer than the checks of a short log.
    """
    R: Floats = np.asarray(np.linalg.qr(_finite(matrix), mode="r"))
    rows, columns = R.shape
    order = np.arange(columns)
    for step in range(min(rows, columns)):
        left = np.linalg.norm(R[step:, step:], axis=0)
        best = step + int(np.argmax(left))
        R[:, [step, best]], order[[step, best]] = R[:, [best, step]], order[[best, step]]
        mirror = R[step:, step].copy()
        mirror[0] += np.copysign(left[best - step], mirror[0])
        length = float(mirror @ mirror)
        if length == 0.0:
            break
        R[step:, step:] -= np.outer(2.0 / length * mirror, mirror @ R[step:, step:])
        R[step + 1 :, step] = 0.0
    return R, order


def solve_upper(R: Floats, right: Floats) -> Floats:
    """Solve ``R @ x = right`` for an upper triangle (n, n) with no zero on its diagonal, and (n,) or (n, k)."""
    return np.asarray(lapack().dtrtrs(R.T, right, lower=1, trans=1)[0])  # transposed, R is in LAPACK's order


def is_regular_triangle(R: Floats, resolution: float) -> bool:
    """Whether an upper triangle (n, n) certainly has no singular value below a part of its largest one.

    The inverse of a triangle takes a fraction of the time of its singular values, and bounds their ratio: the largest
    is at most ``|R|``, the smallest at least ``1 / |inv(R)|`` (Frobenius' norms). False says nothing.
    """
    if not R.size or not np.all(np.isfinite(R)) or not np.all(np.diagonal(R)):
        return False
    inverse, failure = lapack().dtrtri(R.T, lower=1)
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large for a number is not regular
        ratio = float(np.linalg.norm(R)) * float(np.linalg.norm(np.tril(inverse)))
    return failure == 0 and CERTAINLY * resolution * ratio < 1.0


@functools.cache
def lapack() -> Any:
    """LAPACK's routines, as SciPy wraps them for Python.

    SciPy's wrapper is loaded by itself: its package ``scipy.linalg`` takes 0.15 s to load, the wrapper a tenth of that.
    Where SciPy has no such file, the package is loaded.
    """
    module = _compiled_part("_flapack")
    if module is not None:
        return module
    from scipy.linalg import lapack as wrapped

    return wrapped


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS and LAPACK use one thread for a while.

    The last bits of some of their results depend on the number of threads, and matrices as small as ours take longer
    with several.
    """
    with _blas_libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _blas_libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    lapack()  # SciPy brings a library of its own beside NumPy's
    return ThreadpoolController()


@contextmanager
def lent_libraries() -> Iterator[None]:
    """Let the cone solver find BLAS and LAPACK, which it imports as parts of SciPy, without all of ``scipy.linalg``."""
    names = [] if "scipy.linalg" in sys.modules else ["cython_blas", "cython_lapack"]
    parts = {f"scipy.linalg.{name}": _compiled_part(name) for name in names}
    lent = {name: module for name, module in parts.items() if module is not None}
    sys.modules.update(lent)
    try:
        yield
    finally:
        for name in lent:
            sys.modules.pop(name, None)  # the package imports them as its own, should it be loaded later


@functools.cache
def _compiled_part(name: str) -> Any:
    """A compiled module of ``scipy.linalg`` without the package; None where SciPy is built in another way."""
    whole = f"scipy.linalg.{name}"
    try:
        found = find_spec("scipy")
        folder = "" if found is None or found.origin is None else dirname(found.origin)
        paths = [join(folder, "linalg", name + suffix) for suffix in EXTENSION_SUFFIXES]
        spec = spec_from_file_location(whole, next(path for path in paths if isfile(path)))
        if "scipy.linalg" in sys.modules or spec is None or spec.loader is None:
            return None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except (ImportError, OSError, StopIteration):
        return None
    finally:
        if "scipy.linalg" not in sys.modules:
            sys.modules.pop(whole, None)  # the package imports it as its own, should it be loaded later
    return module


def matrix_rank(matrix: ArrayLike, tol: float | None = None) -> int:
    """Number of singular values above a tolerance; None: as `lstsq`; raises as `svd`."""
    A = _finite(matrix)
    sizes = singular_values(A)
    smallest = sizes.max(initial=0.0) * max(A.shape) * np.finfo(float).eps if tol is None else tol
    return int(np.count_nonzero(sizes > smallest))


def condition_number(matrix: ArrayLike) -> float:
    """Largest over smallest singular value; infinite for a singular matrix; raises as `svd`."""
    sizes = singular_values(matrix)
    return float(sizes[0] / sizes[-1]) if sizes.size and sizes[-1] > 0.0 else float("inf")


def pinv(matrix: ArrayLike, rcond: float = 1e-15) -> Floats:
    """Pseudoinverse (n, m) of a matrix (m, n); singular values below this part of the largest are zero.

    It raises as `svd`.
    """
    U, s, Vt = svd(matrix, full_matrices=False)
    kept = s > rcond * s.max(initial=0.0)
    return np.asarray((Vt[kept].T / s[kept]) @ U[:, kept].T)


def _finite(matrix: ArrayLike) -> Any:
    """The matrix as numbers of double precision, complex ones included."""
    given = np.asarray(matrix)
    A = given.astype(np.complex128 if np.iscomplexobj(given) else np.float64, copy=False)
    if not np.isfinite(A).all():
        wrong = int(np.count_nonzero(~np.isfinite(A)))
        raise DecompositionError(
            f"{wrong} of the {A.size} numbers of a {_shape(A)} matrix are not finite",
            remedy="Look for samples or parameters that are infinite or not a number: dynid check.",
        )
    return A


def _either(A: Any, quick: Callable[[], Any], sure: Callable[[], Any] | None) -> Any:
    """The quick routine's answer, or that of the sure one where the quick one does not converge."""
    try:
        return quick()
    except np.linalg.LinAlgError as error:
        reason = error
    try:
        if sure is not None:
            return sure()
    except np.linalg.LinAlgError as error:
        reason = error
    raise DecompositionError(
        f"no routine decomposes a finite {_shape(A)} matrix: {reason}",
        remedy="Scale the signals to usual units, or use other samples.",
    ) from reason


def _by_syev(block: Any) -> tuple[Floats, Any]:
    from scipy.linalg import eigh as scipy_eigh

    values, vectors = scipy_eigh(block, driver="ev", check_finite=False)
    return values, vectors


def _shape(A: Any) -> str:
    return " x ".join(str(length) for length in A.shape)
