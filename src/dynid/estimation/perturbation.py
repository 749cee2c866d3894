"""How far errors of measured torques and of the motion can move an estimate ([GautierKhalil1992] section 3).

The least-squares solution of ``W X = Y`` moves by dX if Y is wrong by dY and W by dW (eq. 11). The paper bounds dX by
the condition number: eq. (12) for dY alone, eq. (13) for dW alone, both proven for as many equations as unknowns,
r = b. For r > b this derivation, in the 2-norm, is used beside them. With the residual ``e = Y - W X``, which is
orthogonal to W, and ``V = W + dW``,

    dX = V^+ (Y + dY - V X) = V^+ (dY - dW X) + (V^T V)^-1 dW^T e,      |V^+| <= |W^+| / (1 - Cond(W) |dW| / |W|).

A condition number says something only if the columns of W have comparable sizes (the paper's Appendix, example 2).
`estimate_bounds` therefore scales them to length one; `perturbation_bounds` takes W as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_number
from dynid.decompositions import lstsq, svd
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.information.factor import Factor


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationBounds:
    """Relative errors of Y and W, and how far they move the solution X at most."""

    condition: float
    """``Cond(W) = |W| |W^+|`` (eqs. 14, 16); infinite where W does not have full rank."""
    target_error: float
    """``|dY| / |Y|``"""
    matrix_error: float
    """``|dW| / |W|``"""
    bound: float
    """Largest possible ``|dX| / |X|`` for these sizes of dY and dW together, proven for any r >= b in the 2-norm and
    for r = b in the others; infinite where there is none."""
    perturbed_condition: float | None = None
    """``Cond(W + dW)``, where dW itself is known."""
    relative_change: float | None = None
    """``|dX| / |X|``, where dY and dW themselves are known."""
    relative_change_of_perturbed: float | None = None
    """``|dX| / |X + dX|``, the left side of eq. (13), where dY and dW themselves are known."""

    @property
    def target_bound(self) -> float:
        """Right side of eq. (12): ``Cond(W) |dY| / |Y|``, not less than ``|dX| / |X|`` if dW is zero and W X = Y."""
        return _product(self.condition, self.target_error)

    @property
    def matrix_bound(self) -> float:
        """Right side of eq. (13): ``Cond(W) |dW| / |W|``, not less than ``|dX| / |X + dX|`` if dY is zero and r = b.

        For r > b and W X = Y it holds to first order in dW.
        """
        return _product(self.condition, self.matrix_error)

    @property
    def overestimate(self) -> float | None:
        """Bound (12) over what happened, ``Cond(W) |dY| |X| / (|Y| |dX|)``: last column of Tables 3 and 8."""
        return None if not self.relative_change else self.target_bound / self.relative_change

    @property
    def sentence(self) -> str:
        """The bound for errors of the torques in words, or why there is none."""
        size = f"Worst case: torque errors of {100.0 * self.target_error:.3g} % could change the parameters "
        if not np.isfinite(self.bound):
            return size + "without bound: the motion leaves some of them open"
        return (
            f"{size}by up to {100.0 * self.bound:.3g} %, each weighed by the torque that it causes; their intervals "
            "state the usual change"
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
        >>> type(dynid.estimation.perturbation_bounds(np.eye(2), np.ones(2), dY=np.full(2, 0.1))).__name__
        'PerturbationBounds'
    """
    if order not in (1, 2, np.inf):
        raise ArgumentError(f"order is {order!r}", remedy="Choose the norm 1, 2 or numpy.inf.")
    matrix, right = np.asarray(W, dtype=float), np.asarray(Y, dtype=float)
    change, tilt = (np.asarray(0.0 if error is None else error, dtype=float) for error in (dY, dW))
    try:
        change, tilt = np.broadcast_to(change, right.shape), np.broadcast_to(tilt, matrix.shape)
        is_fit = matrix.shape[0] >= matrix.shape[1] > 0 and right.shape == matrix.shape[:1]
    except (IndexError, ValueError):
        is_fit = False
    if not is_fit:
        shapes = f"W {matrix.shape}, Y {right.shape}, dY {change.shape}, dW {tilt.shape}"
        remedy = "Give at least as many equations as unknowns, and one row of every array per equation."
        raise ArgumentError(f"the shapes do not fit: {shapes}", remedy=remedy)
    if not all(np.isfinite(part).all() for part in (matrix, right, change, tilt)):
        raise ArgumentError("W, Y, dY or dW holds numbers that are not finite", remedy="Leave those equations out.")
    X, moved = lstsq(matrix, right), lstsq(matrix + tilt, right + change)
    norm = partial(_norm, order=order)
    is_exact = matrix.shape[0] == matrix.shape[1]
    condition, dY, dW = _condition(matrix, order), norm(change), norm(tilt)
    matrix_error = _ratio(dW, norm(matrix))
    loss = 1.0 - _product(condition, matrix_error)
    bound = 0.0 if dY == dW == 0.0 else np.inf
    if np.isfinite(condition) and loss > 0.0 and norm(X) > 0.0 and (order == 2 or is_exact):
        inverse = condition / norm(matrix) / loss  # of |V^+|
        rest = 0.0 if is_exact else norm(right - matrix @ X)
        bound = (inverse * (dY + dW * norm(X)) + inverse**2 * dW * rest) / norm(X)
    return PerturbationBounds(
        condition=condition,
        target_error=_ratio(dY, norm(right)),
        matrix_error=matrix_error,
        bound=bound,
        perturbed_condition=_condition(matrix + tilt, order),
        relative_change=_ratio(norm(moved - X), norm(X)),
        relative_change_of_perturbed=_ratio(norm(moved - X), norm(moved)),
    )


def estimate_bounds(
    equations: Factors | Factor, estimate: Estimate, *, target_error: float | None = None
) -> PerturbationBounds:
    """The bound (12) of [GautierKhalil1992] for any estimate: of the least-squares solution of its equations.

    Columns are scaled to length one, so that each parameter counts by the torque that it causes. It holds for the worst
    errors of that size; random errors, which `Estimate.stderr` counts, move it far less.

    Args:
        equations: The equations that were solved; their joints count by the inverse of the estimate's noise. Or a
            triangle of them, such as `OnlineEnergy.factor`.
        estimate: The estimate.
        target_error: Error of the torques relative to themselves; by default what the estimate leaves unexplained, as
            if errors as large as the whole residual acted in the worst direction.

    Raises:
        ArgumentError: The error is negative or not finite, or the estimate is of other parameters.

    Example:
        >>> type(dynid.estimation.estimate_bounds(fit.equations, fit.estimate)).__name__
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
    smallest, Y = float(factor.singular_values[-1]), float(np.sqrt(factor.z @ factor.z + factor.residual))
    left = factor.z - factor.R @ estimate.values
    share = _ratio(float(np.sqrt(left @ left + factor.residual)), Y) if target_error is None else float(target_error)
    return PerturbationBounds(
        condition=factor.condition if is_full else np.inf,
        target_error=share,
        matrix_error=0.0,
        # of what is open nothing is known, with or without errors
        bound=_ratio(share * Y / smallest, _norm(estimate.values * factor.scale, 2)) if is_full else np.inf,
    )


def _joint_weights(estimate: Estimate) -> Floats:
    """(n,) inverse variance of each joint's torque; one for all where none has any noise."""
    std = estimate.noise_std
    known = np.isfinite(std) & (std > 0.0)
    return np.where(known, 1.0 / np.where(known, std, 1.0) ** 2, 0.0) if known.any() else np.ones_like(std)


def _condition(W: Floats, order: float) -> float:
    """``|W| |W^+|`` in a norm (eq. 14); infinite where W does not have full rank."""
    U, s, Vt = svd(W, full_matrices=False)
    if not s[-1] > 0.0:
        return np.inf
    return float(s[0] / s[-1]) if order == 2 else _norm(W, order) * _norm((Vt.T / s) @ U.T, order)  # eqs. (16), (14)


def _norm(values: Floats, order: float) -> float:
    return float(np.linalg.norm(values, order))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else 0.0 if part == 0.0 else np.inf


def _product(condition: float, error: float) -> float:
    """Their product, zero where there is no error."""
    return 0.0 if error == 0.0 else condition * error
