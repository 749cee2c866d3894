"""Bounds of the change of an estimate by errors of torques and motion ([GautierKhalil1992] section 3).

Names as in the paper: r equations ``W X = Y`` of b unknowns X. Their least-squares solution changes by dX if Y is wrong
by dY and W by dW (eq. 11). The paper bounds dX by the condition number: eq. (12) for dY alone, eq. (13) for dW alone,
both proven for r = b. For r > b the bound here is another one, in the 2-norm. With the residual ``e = Y - W X``, which
is orthogonal to W, and ``V = W + dW`` (``+`` for the pseudo-inverse),

    dX = V^+ (Y + dY - V X) = V^+ (dY - dW X) + (V^T V)^-1 dW^T e,      |V^+| <= |W^+| / (1 - Cond(W) |dW| / |W|).

A condition number is meaningful only if the columns of W have comparable sizes (the paper's Appendix, example 2).
`estimate_bounds`, for an estimate from logs, therefore scales them to length one. `perturbation_bounds`, for any
system of equations, takes W as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_number
from dynid.data_reduction.factor import Factor
from dynid.decompositions import lstsq, svd
from dynid.errors import ArgumentError
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationBounds:
    """Relative errors of Y and W, and the largest change of the solution X by them."""

    condition: float
    """``Cond(W) = |W| |W^+|`` (eqs. 14, 16); infinite if W does not have full rank."""
    target_error: float
    """``|dY| / |Y|``"""
    matrix_error: float
    """``|dW| / |W|``"""
    bound: float
    """Largest possible ``|dX| / |X|`` for these sizes of dY and dW together, proven for any r >= b in the 2-norm and
    for r = b in the others; infinite if nothing bounds it."""
    perturbed_condition: float | None = None
    """``Cond(W + dW)``; None if only the size of dW is known, not dW itself."""
    relative_change: float | None = None
    """``|dX| / |X|`` for the given dY and dW; None if only their sizes are known."""
    relative_change_of_perturbed: float | None = None
    """``|dX| / |X + dX|``, the left side of eq. (13); None if only the sizes of dY and dW are known."""

    @property
    def target_bound(self) -> float:
        """Right side of eq. (12): ``Cond(W) |dY| / |Y|``, a bound of ``|dX| / |X|`` if dW is zero and W X = Y."""
        return _product(self.condition, self.target_error)

    @property
    def matrix_bound(self) -> float:
        """Right side of eq. (13): ``Cond(W) |dW| / |W|``, a bound of ``|dX| / |X + dX|`` if dY is zero and r = b.

        For r > b and W X = Y it holds to first order in dW.
        """
        return _product(self.condition, self.matrix_error)

    @property
    def overestimate(self) -> float | None:
        """Bound (12) over the real change, ``Cond(W) |dY| |X| / (|Y| |dX|)``: last column of Tables 3 and 8."""
        return None if not self.relative_change else self.target_bound / self.relative_change

    @property
    def sentence(self) -> str:
        """The bound for errors of the torques as a sentence, or why there is no bound."""
        beginning = f"Worst case: torque errors of {100.0 * self.target_error:.3g} % could change the parameters "
        if not np.isfinite(self.bound):
            return f"{beginning}without bound: the motion leaves some of them open"
        return (
            f"{beginning}by up to {100.0 * self.bound:.3g} %, each weighed by the torque that it causes; "
            "their intervals state the usual change"
        )


def perturbation_bounds(
    W: ArrayLike, Y: ArrayLike, *, dY: ArrayLike | None = None, dW: ArrayLike | None = None, order: float = 2
) -> PerturbationBounds:
    """Solve ``W X = Y`` and the perturbed system (eq. 11) by least squares, and compare with the bounds (12), (13).

    Args:
        W: (r, b) equations, r >= b.
        Y: (r,) right side.
        dY: (r,) error of Y; none by default.
        dW: (r, b) error of W; none by default.
        order: The norm: 1, 2 or infinity.

    Raises:
        ArgumentError: Shapes do not fit, a number is not finite, or the norm is unknown.

    Example:
        >>> type(dynid.estimators.perturbation_bounds(np.eye(2), np.ones(2), dY=np.full(2, 0.1))).__name__
        'PerturbationBounds'
    """
    if order not in (1, 2, np.inf):
        raise ArgumentError(f"order is {order!r}", remedy="Choose the norm 1, 2 or numpy.inf.")
    matrix = np.asarray(W, dtype=float)
    target = np.asarray(Y, dtype=float)
    target_change, matrix_change = (np.asarray(0.0 if error is None else error, dtype=float) for error in (dY, dW))
    try:
        target_change = np.broadcast_to(target_change, target.shape)
        matrix_change = np.broadcast_to(matrix_change, matrix.shape)
        do_shapes_fit = matrix.shape[0] >= matrix.shape[1] > 0 and target.shape == matrix.shape[:1]
    except (IndexError, ValueError):
        do_shapes_fit = False
    if not do_shapes_fit:
        shapes = f"W {matrix.shape}, Y {target.shape}, dY {target_change.shape}, dW {matrix_change.shape}"
        remedy = "Give at least as many equations as unknowns, and one row of every array per equation."
        raise ArgumentError(f"the shapes do not fit: {shapes}", remedy=remedy)
    if not all(np.isfinite(part).all() for part in (matrix, target, target_change, matrix_change)):
        raise ArgumentError("W, Y, dY or dW holds numbers that are not finite", remedy="Leave those equations out.")
    X = lstsq(matrix, target)
    perturbed = lstsq(matrix + matrix_change, target + target_change)
    norm = partial(_norm, order=order)
    is_square = matrix.shape[0] == matrix.shape[1]
    condition = _condition(matrix, order)
    target_size = norm(target_change)
    matrix_size = norm(matrix_change)
    matrix_error = _ratio(matrix_size, norm(matrix))
    margin = 1.0 - _product(condition, matrix_error)  # above zero, W + dW has full rank for sure
    bound = 0.0 if target_size == matrix_size == 0.0 else np.inf
    if np.isfinite(condition) and margin > 0.0 and norm(X) > 0.0 and (order == 2 or is_square):
        inverse = condition / norm(matrix) / margin  # the bound of |V^+| above
        residual = 0.0 if is_square else norm(target - matrix @ X)
        bound = (inverse * (target_size + matrix_size * norm(X)) + inverse**2 * matrix_size * residual) / norm(X)
    return PerturbationBounds(
        condition=condition,
        target_error=_ratio(target_size, norm(target)),
        matrix_error=matrix_error,
        bound=bound,
        perturbed_condition=_condition(matrix + matrix_change, order),
        relative_change=_ratio(norm(perturbed - X), norm(X)),
        relative_change_of_perturbed=_ratio(norm(perturbed - X), norm(perturbed)),
    )


def estimate_bounds(
    equations: Factors | Factor, estimate: Estimate, *, target_error: float | None = None
) -> PerturbationBounds:
    """Compute the bound (12) of [GautierKhalil1992] for an estimate, as if it were the least-squares solution.

    Columns are scaled to length one, so that each parameter counts by the torque that it causes. The bound holds for
    the worst errors of a size; random errors, which `Estimate.stderr` counts, move the estimate far less.

    Args:
        equations: The equations that were solved; joints are weighted by the inverse variance of the estimate's noise.
            Or a triangle of them, such as `OnlineEnergy.factor`.
        estimate: The estimate.
        target_error: Norm of the torque errors over that of the torques; by default that of the residual, as if it
            acted in the worst direction.

    Raises:
        ArgumentError: The error is negative or not finite, or the estimate is of other parameters.

    Example:
        >>> type(dynid.estimators.estimate_bounds(fit.equations, fit.estimate)).__name__
        'PerturbationBounds'
    """
    if target_error is not None:
        as_number("target_error", target_error, least=0.0)
    factor = equations if isinstance(equations, Factor) else equations.information.weight(_joint_weights(estimate))
    if len(factor.columns) != len(estimate.values):
        raise ArgumentError(
            f"{len(factor.columns)} columns and {len(estimate.values)} estimated parameters",
            remedy="Give the equations that the estimate was made from.",
        )
    is_full = factor.rank == len(factor.columns) and not estimate.undetermined.any()
    smallest = float(factor.singular_values[-1])
    target_norm = float(np.sqrt(factor.z @ factor.z + factor.residual))
    if target_error is None:
        remaining = factor.z - factor.R @ estimate.values
        share = _ratio(float(np.sqrt(remaining @ remaining + factor.residual)), target_norm)
    else:
        share = float(target_error)
    return PerturbationBounds(
        condition=factor.condition if is_full else np.inf,
        target_error=share,
        matrix_error=0.0,
        # undetermined parameters are not known even without errors
        bound=_ratio(share * target_norm / smallest, _norm(estimate.values * factor.scale, 2)) if is_full else np.inf,
    )


def _joint_weights(estimate: Estimate) -> Floats:
    """Compute the inverse variance (n,) of each joint's torque; zero if unknown, one for all if all are unknown."""
    std = estimate.noise_std
    known = np.isfinite(std) & (std > 0.0)
    return np.where(known, 1.0 / np.where(known, std, 1.0) ** 2, 0.0) if known.any() else np.ones_like(std)


def _condition(W: Floats, order: float) -> float:
    """Compute ``|W| |W^+|`` in a norm (eq. 14); infinite if W does not have full rank."""
    U, s, Vt = svd(W, full_matrices=False)
    if not s[-1] > 0.0:
        return np.inf
    return float(s[0] / s[-1]) if order == 2 else _norm(W, order) * _norm((Vt.T / s) @ U.T, order)  # eqs. (16), (14)


def _norm(values: Floats, order: float) -> float:
    """Compute the norm of a vector or matrix."""
    return float(np.linalg.norm(values, order))


def _ratio(part: float, whole: float) -> float:
    """Divide norms; nothing over nothing is zero, anything else over nothing infinite."""
    if whole > 0.0:
        return part / whole
    return 0.0 if part == 0.0 else np.inf


def _product(condition: float, error: float) -> float:
    """Multiply; no error remains none, even by an infinite condition number."""
    return 0.0 if error == 0.0 else condition * error
