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

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.decompositions import lstsq, svd
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.information import Factor
from dynid.tables import Table

ORDERS = (1, 2, np.inf)
"""Norms that are offered: those that NumPy computes for matrices as well as for vectors."""


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

    def table(self) -> Table:
        """One row per figure."""
        rows = [
            ("Cond(W)", self.condition),
            ("Cond(W + dW)", self.perturbed_condition),
            ("|dY| / |Y|", self.target_error),
            ("|dW| / |W|", self.matrix_error),
            ("|dX| / |X|", self.relative_change),
            ("bound (12)", self.target_bound),
            ("bound (13)", self.matrix_bound),
            ("bound for both", self.bound),
        ]
        return Table.of(["figure", "value"], [(name, value) for name, value in rows if value is not None])


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
    if order not in ORDERS:
        raise ArgumentError(f"order is {order!r}", remedy="Choose the norm 1, 2 or numpy.inf.")
    matrix, right = np.asarray(W, dtype=float), np.asarray(Y, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] < matrix.shape[1] or matrix.shape[1] == 0:
        raise ArgumentError(f"W has shape {matrix.shape}", remedy="Give at least as many equations as unknowns.")
    change = np.zeros_like(right) if dY is None else np.asarray(dY, dtype=float)
    tilt = np.zeros_like(matrix) if dW is None else np.asarray(dW, dtype=float)
    if right.shape != matrix.shape[:1] or change.shape != right.shape or tilt.shape != matrix.shape:
        shapes = f"Y {right.shape}, dY {change.shape}, dW {tilt.shape}"
        raise ArgumentError(f"the shapes {shapes} do not fit W {matrix.shape}", remedy="Give one row per equation.")
    if not all(np.isfinite(part).all() for part in (matrix, right, change, tilt)):
        raise ArgumentError("W, Y, dY or dW holds numbers that are not finite", remedy="Leave those equations out.")
    X, moved = lstsq(matrix, right), lstsq(matrix + tilt, right + change)
    residual = right - matrix @ X
    size = _Sizes(
        condition=_condition(matrix, order),
        W=_norm(matrix, order),
        X=_norm(X, order),
        Y=_norm(right, order),
        residual=_norm(residual, order),
        is_exact=matrix.shape[0] == matrix.shape[1],
    )
    dX = _norm(moved - X, order)
    return PerturbationBounds(
        condition=size.condition,
        target_error=_ratio(_norm(change, order), size.Y),
        matrix_error=_ratio(_norm(tilt, order), size.W),
        bound=size.bound(_norm(change, order), _norm(tilt, order)) if order == 2 or size.is_exact else np.inf,
        perturbed_condition=_condition(matrix + tilt, order),
        relative_change=_ratio(dX, size.X),
        relative_change_of_perturbed=_ratio(dX, _norm(moved, order)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """Norms of a system and its solution."""

    condition: float
    W: float
    X: float
    Y: float
    residual: float
    is_exact: bool

    def bound(self, dY: float, dW: float) -> float:
        """Largest ``|dX| / |X|`` for errors of these norms, by the derivation at the top of this file."""
        tilt = _product(self.condition, dW / self.W) if self.W > 0.0 else np.inf
        if not (np.isfinite(self.condition) and tilt < 1.0 and self.X > 0.0):
            return 0.0 if dY == dW == 0.0 else np.inf
        inverse = self.condition / self.W / (1.0 - tilt)  # of |V^+|
        residual = 0.0 if self.is_exact else self.residual
        return (inverse * (dY + dW * self.X) + inverse**2 * dW * residual) / self.X


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EstimateBounds:
    """How far errors of the torques and of the motion can move an estimate; columns of W are scaled to length one."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    overall: PerturbationBounds
    """Of the scaled parameters: each counts by the torque that it causes."""
    largest_changes: Floats
    """(b,) largest change of each parameter by itself, to first order; infinite where it is not determined."""
    weakest: Floats
    """(b,) the combination of scaled parameters, of length one, that errors move most."""

    @property
    def sentence(self) -> str:
        """The bound for the errors in words, or why there is none."""
        if np.isinf(self.largest_changes).all():
            return "Nothing is determined yet: the equations leave every parameter open, so nothing bounds its error"
        percent = 100.0 * self.overall.target_error
        size = f"Worst case: torque errors of {percent:.3g} % could change "
        if not np.isfinite(self.overall.condition):
            return size + "the parameters without bound: the motion leaves some of them open"
        if self.overall.matrix_bound >= 1.0:
            return (
                f"An error of {100.0 * self.overall.matrix_error:.3g} % of the equations' matrix (matrix_error) is too "
                f"large for a bound: with the condition number {self.overall.condition:.3g} it must be below "
                f"{100.0 / self.overall.condition:.3g} %"
            )
        if not np.isfinite(self.overall.bound):
            return size + "the parameters without bound: the estimate is zero, to which nothing can be relative"
        if self.overall.matrix_error > 0.0:
            matrix = f" % and errors of the equations' matrix of {100.0 * self.overall.matrix_error:.3g} % could"
            size = size.replace(" % could", matrix)
        return (
            f"{size}the parameters by up to {100.0 * self.overall.bound:.3g} %, each weighed by the torque that it "
            "causes; their intervals state the usual change"
        )

    def table(self) -> Table:
        """One row per parameter: its largest change, and its share in the weakest combination."""
        rows = [
            (name, float(change), unit, float(share))
            for name, change, unit, share in zip(
                self.names, self.largest_changes, self.units, self.weakest, strict=True
            )
        ]
        return Table.of(["parameter", "largest change", "unit", "in the weakest combination"], rows)


def estimate_bounds(
    equations: Factors | Factor,
    estimate: Estimate,
    *,
    target_error: float | None = None,
    matrix_error: float = 0.0,
) -> EstimateBounds:
    """The bounds (12), (13) of [GautierKhalil1992] for any estimate: of the least-squares solution of its equations.

    They hold for the worst errors of that size; random errors, which `Estimate.stderr` counts, move it far less.

    Args:
        equations: The equations that were solved; their joints count by the inverse of the estimate's noise. Or a
            triangle of them, such as `OnlineEnergy.factor`.
        estimate: The estimate.
        target_error: Error of the torques relative to themselves; by default what the estimate leaves unexplained, as
            if errors as large as the whole residual acted in the worst direction.
        matrix_error: Error of the equations' matrix, which comes from the motion, relative to itself.

    Raises:
        ArgumentError: An error is negative or not finite, or the estimate is of other parameters.

    Example:
        >>> type(dynid.estimation.estimate_bounds(fit.equations, fit.estimate)).__name__
        'EstimateBounds'
    """
    for name, value in (("target_error", target_error), ("matrix_error", matrix_error)):
        if value is not None and not 0.0 <= value < np.inf:
            raise ArgumentError(f"{name} is {value!r}", remedy="Give a number from zero up, 0.01 for 1 %.")
    factor = equations if isinstance(equations, Factor) else equations.information.weight(_joint_weights(estimate))
    if len(factor.columns) != len(estimate.values):
        raise ArgumentError(
            f"{len(factor.columns)} columns and {len(estimate.values)} estimated parameters",
            remedy="Give the equations that the estimate was made from.",
        )
    return _bound_factor(factor, estimate, target_error, matrix_error)


def _bound_factor(
    factor: Factor, estimate: Estimate, target_error: float | None, matrix_error: float
) -> EstimateBounds:
    scale = np.where(np.isfinite(factor.scale), factor.scale, 1.0)
    _, s, Vt = svd(np.where(np.isfinite(factor.scale), factor.R / scale, 0.0))
    is_full = bool(s[-1] > factor.resolution * max(float(s[0]), 1e-300)) and not estimate.undetermined.any()
    X = estimate.values * scale
    Y = float(np.sqrt(factor.z @ factor.z + factor.residual))
    left = factor.z - factor.R @ estimate.values
    unexplained = float(np.sqrt(left @ left + factor.residual))
    share = _ratio(unexplained, Y) if target_error is None else float(target_error)
    residual = float(np.sqrt(factor.residual))
    size = _Sizes(
        condition=float(s[0] / s[-1]) if is_full else np.inf,
        W=float(s[0]),
        X=float(np.linalg.norm(X)),
        Y=Y,
        residual=residual,
        is_exact=False,
    )
    dY, dW = share * Y, float(matrix_error) * size.W
    with np.errstate(divide="ignore"):
        inverse = np.where(s > factor.resolution * s[0], 1.0 / s, 0.0)
    rows = np.linalg.norm(Vt.T * inverse, axis=1)  # of W^+
    squares = np.linalg.norm(Vt.T * inverse**2, axis=1)  # of (W^T W)^-1
    changes = (rows * (dY + dW * size.X) + squares * dW * residual) / scale
    overall = PerturbationBounds(
        condition=size.condition,
        target_error=share,
        matrix_error=float(matrix_error),
        bound=size.bound(dY, dW) if is_full else np.inf,  # of what is open nothing is known, with or without errors
    )
    return EstimateBounds(
        names=estimate.names,
        units=estimate.units,
        overall=overall,
        largest_changes=np.where(estimate.undetermined, np.inf, changes),
        weakest=np.asarray(Vt[-1] * np.sign(Vt[-1][np.argmax(np.abs(Vt[-1]))])),
    )


def _joint_weights(estimate: Estimate) -> Floats:
    """(n,) inverse variance of each joint's torque; one for all where none has any noise."""
    std = estimate.noise_std
    known = np.isfinite(std) & (std > 0.0)
    if not known.any():
        return np.ones_like(std)
    return np.where(known, 1.0 / np.where(known, std, 1.0) ** 2, 0.0)


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
