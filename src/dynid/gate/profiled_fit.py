"""The free fit of samples, against which faults are judged: only what no parameter can absorb counts for a fault.

Every joint's equations are weighted by their residual. Friction may depend on speed and load in more ways than the
usual terms say, and all torques may be late: such columns are fitted as well, so that no other cause stands for them.
Near a reversal no column holds what friction does under feedback: a joint sticks while its controller raises the
torque. Equations near the reversals of their joint are left out, if enough others remain. Samples of several logs
share the parameters; every log has offsets and a delay of its own, which differ from day to day on a faultless robot.

With the residual r of the fit and the part c of a fault's column that the fit does not span, the amount of the fault
and its standard error are

    amount = c'r / c'c,    error^2 = max(sum over blocks of time (c_b' e_b)^2, s^2 c'c) / (c'c)^2,    e = r - c amount

with the variance s^2 of the residual. The scores of blocks count, not the noise of samples alone, since residuals are
correlated in time; where the few blocks happen to agree too well, the noise of samples bounds the error from below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.gate.free_equations import FreeEquations, with_friction
from dynid.gate.quick_fit import FINEST, Samples, equations_of, has_masses, narrow_equations, of_motion, solve_singular
from dynid.kernels import regressor
from dynid.processing.delay import independent_values
from dynid.robot.model import Robot
from dynid.terms import usual_terms
from dynid.terms.base import Dependence

BLOCKS = 20
"""Number of blocks of time for the standard errors (convention)."""
RESOLUTION = 1e-10
"""Relative eigenvalue of scaled cross products below which a direction is not determined (rounding, squared)."""
HIDDEN = 1e-9
"""Share of the square of a column that the fit leaves, below which the column is rounding (convention)."""
ROWS_PER_COLUMN = 4
"""Smallest number of rows, over that of the columns of the fit, with which equations near reversals can be left out:
fits of fewer rows take much of the residual, and their scatter says too little (convention)."""
STEP_S = 1e-3
"""Time by which a motion is continued, forwards and backwards, to differentiate its torques [s] (derivation: the rate
of a sine of 30 Hz comes out 0.6 % too small, that of slower ones less)."""
FRICTION_SPEEDS = (0.03, 0.2)
"""Speeds, as shares of the joint's fastest, at which dry friction may change besides (convention)."""

GAIN_STEPS = 5
"""Number of fits of the factors, whose weights follow the factors (convention)."""
LARGEST_STEP = 4.0
"""Largest change of a factor in a step (convention)."""
NEIGHBOURS = 10.0
"""Number of samples that count as one, because neighbours are not independent (convention, as in model_checks.py)."""
RANK = 1e-8
"""Relative eigenvalue of scaled cross products below which a direction is not determined (rounding)."""


PLACEBOS = 7
"""Number of wrong times to which columns are moved (convention)."""
GOLDEN = 0.6180339887498949
"""Share of a log by which columns are moved, and its multiples: they fit no period of a motion."""


class Amounts(NamedTuple):
    """Amounts of faults, each judged by itself."""

    value: Floats
    """(k,) amount in the unit of the fault; NaN where the fit spans the column."""
    error: Floats
    """(k,) standard error; infinite where the fit spans the column."""
    gain: Floats
    """(k,) what the fault gains: twice the logarithm of the likelihood ratio with independent residuals."""


@dataclass(frozen=True, slots=True, eq=False)
class ProfiledFit:
    """The weighted free fit of samples; rows are samples times the u joints in use."""

    basis: Floats
    """(M u, r) orthonormal columns that the fit spans"""
    residual: Floats
    """(M u,) weighted residual"""
    explained: Floats
    """(M, u) torques of the parameters [N m or N]; zero where an equation does not count."""
    scale: Floats
    """(u,) weighted torque per N m or N of each joint in use"""
    joints: list[int]
    """The u joints in use."""
    theta: Floats
    """(p,) fitted parameters of `with_friction(robot)`; the robot's own values where the samples do not tell."""
    counted: Floats
    """(M u,) one for equations that count, zero for those near reversals."""
    slope: Floats | None
    """(M, n) rate of the torques that the parameters explain [N m/s or N/s]; None where reversals count."""

    @classmethod
    def of(cls, robot: Robot, samples: Samples) -> ProfiledFit:
        """Fit samples; of those with known jerks (`measured_samples`) without the equations near reversals."""
        equations, joints = equations_of(robot, samples), np.flatnonzero(samples.used)
        counted = _far_from_reversals(samples, equations.width)
        if counted is not None:
            model, far = with_friction(robot, tuple(samples.gravity.tolist())), samples.far_from_reversals
            equations = of_motion("far from reversals", model, samples, partial(equations.where, counted), far)
        counts = np.ones((len(samples.q), joints.size)) if counted is None else counted[:, joints]
        torque = (samples.effort * samples.weight)[:, joints] * counts
        first = _map_back(equations.weighted(samples.weight**2 * samples.used))
        along = equations.along(torque, samples.weight, joints).sum(axis=1)
        left = torque - equations.torques(first @ (first.T @ along))[:, joints] * samples.weight[joints]
        number = np.maximum(counts.sum(axis=0), 1.0)
        weight = 1.0 / np.maximum(np.sqrt(np.sum(left**2, axis=0) / number), 1e-3)
        torque, scale = torque * weight, weight * samples.weight[joints]
        basis, map_back = _spanned(equations, scale, joints)
        theta = np.zeros(equations.width)
        theta[: 10 * robot.dof] = robot.inertial_vector if has_masses(robot) else 0.0
        rest = torque - equations.torques(theta[equations.columns])[:, joints] * scale
        theta[equations.columns] += map_back @ (basis.T @ rest.reshape(-1))
        explained = equations.torques(theta[equations.columns])[:, joints] * (scale > 0.0)
        slope = None if counted is None else _explained_slope(robot, samples, theta)
        named = replace(samples, slope=samples.slope if slope is None else slope)
        extra = _nuisances(named, explained, scale, joints.tolist()) * counts.reshape(-1, 1)
        more, _ = orthonormal(extra - basis @ (basis.T @ extra))
        basis, torque = np.concatenate([basis, more], axis=1), torque.reshape(-1)
        residual = torque - basis @ (basis.T @ torque)
        return cls(basis, residual, explained, scale, joints.tolist(), theta, counts.reshape(-1), slope)

    def left(self, columns: Floats) -> Floats:
        """The part of columns (M u, k), in the equations that count, that the fit does not span."""
        seen = columns * self.counted[:, None]
        return np.asarray(seen - self.basis @ (self.basis.T @ seen))

    def with_column(self, column: Floats) -> ProfiledFit:
        """The fit with one more weighted column (M u,)."""
        return self.with_columns(column[:, None])

    def with_columns(self, columns: Floats) -> ProfiledFit:
        """The fit with more weighted columns (M u, k)."""
        more, _ = orthonormal(self.left(columns))
        basis = np.concatenate([self.basis, more], axis=1)
        return replace(self, basis=basis, residual=self.residual - more @ (more.T @ self.residual))

    @property
    def freedom(self) -> float:
        """Number of independent values that the residual has, less those that the fit took; at least one."""
        shape = (-1, len(self.joints))
        independent = float(independent_values(self.residual.reshape(shape), self.counted.reshape(shape)).sum())
        return max(independent - float(self.basis.shape[1]), 1.0)

    def placebos(self, columns: Floats) -> Iterator[Floats]:
        """Columns (M u, k) moved around to wrong times: what they explain, any columns as smooth would explain.

        Errors that are correlated in time for long are explained by many a column.
        """
        table = columns.reshape(-1, len(self.joints), columns.shape[1])
        for number in range(1, PLACEBOS + 1):
            yield np.roll(table, int(len(table) * (number * GOLDEN % 1.0)), axis=0).reshape(columns.shape)

    def explained_by(self, columns: Floats) -> float:
        """Squared length of the residual that columns (M u, k) explain together."""
        rest = self.with_columns(columns).residual
        return float(self.residual @ self.residual - rest @ rest)

    def at_joint(self, place: int, values: Floats) -> Floats:
        """(M u,) weighted torques: values (M,) [N m or N] in the rows of one joint in use, zero elsewhere."""
        return _at_joint(place, values * self.scale[place], len(self.joints))

    def judge(self, columns: Floats) -> Amounts:
        """Amounts of faults with weighted columns (M u, k)."""
        free, joints = self.left(columns), len(self.joints)
        size = np.einsum("ik,ik->k", free, free)
        shown = size > HIDDEN * np.einsum("ik,ik,i->k", columns, columns, self.counted)
        safe = np.where(shown, size, 1.0)
        value = np.where(shown, free.T @ self.residual / safe, 0.0)
        rest = self.residual[:, None] - free * value
        edges = joints * np.linspace(0, len(rest) // joints, BLOCKS + 1).astype(int)
        scores = np.add.reduceat(free * rest, edges[:-1], axis=0)
        by_blocks = np.sum(scores**2, axis=0) * BLOCKS / (BLOCKS - 1)
        squares = float(self.residual @ self.residual)
        noise = squares / max(float(self.counted.sum()) - self.basis.shape[1], 1.0)
        # few blocks scatter: the error is at least that of noise of the band that the residual has
        error = np.sqrt(np.maximum(by_blocks, squares / self.freedom * safe)) / safe
        gain = value**2 * safe / max(noise, 1e-300)
        return Amounts(np.where(shown, value, np.nan), np.where(shown, error, np.inf), np.where(shown, gain, 0.0))


def _spanned(equations: FreeEquations, scale: Floats, joints: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """(M u, r) orthonormal columns that span the weighted equations of some joints, and the matrix (c, r) behind them.

    Args:
        equations: The equations.
        scale: (u,) weight of each joint's equations.
        joints: The u joints.
    """
    weights = np.zeros(len(equations.products))
    weights[joints] = scale
    map_back = _map_back(equations.weighted(weights**2))
    basis = np.empty((len(equations.rows[0]), joints.size, map_back.shape[1]))
    for place, j in enumerate(joints.tolist()):
        basis[:, place] = equations.rows[j] @ (scale[place] * map_back[equations.places[j]])
    return basis.reshape(-1, map_back.shape[1]), map_back


def _far_from_reversals(samples: Samples, columns: int) -> Floats | None:
    """(M, n) one for the equations that count without those near reversals; None where these must serve, too."""
    if samples.jerk is None or samples.far_from_reversals is None:
        return None
    enough = samples.far_from_reversals[:, samples.used].sum() >= ROWS_PER_COLUMN * columns
    return samples.far_from_reversals.astype(float) if enough else None


def _explained_slope(robot: Robot, samples: Samples, theta: Floats) -> Floats:
    """(M, n) rate of the torques of parameters (p,), without dry friction, along the motion [N m/s or N/s].

    The rate of measured torques holds their noise, which would make every delay come out too small.
    """
    model = with_friction(robot, tuple(samples.gravity.tolist()))
    usual = [term.dependence for term in usual_terms()]
    smooth = theta.copy()
    smooth[10 * robot.dof + usual.index(Dependence.DIRECTION) :: len(usual)] = 0.0
    jerk = np.zeros_like(samples.q) if samples.jerk is None else samples.jerk

    def rates() -> Floats:
        before, after = (
            regressor(model, *(np.ascontiguousarray(x + step_s * rate) for x, rate in motion))
            for step_s in (-STEP_S, STEP_S)
        )
        after -= before
        return after

    motion = ((samples.q, samples.dq), (samples.dq, samples.ddq), (samples.ddq, jerk))
    return of_motion("rates", model, samples, rates, samples.jerk) @ smooth / (2.0 * STEP_S)


def orthonormal(rows: Floats) -> tuple[Floats, Floats]:
    """(N, r) orthonormal columns that span those of rows (N, p), and the matrix (p, r) that makes them of rows."""
    map_back = _map_back(rows.T @ rows)
    return np.asarray(rows @ map_back), map_back


def _map_back(products: Floats) -> Floats:
    """(p, r) matrix that makes orthonormal columns of rows (N, p) with some cross products (p, p)."""
    scale = np.sqrt(np.maximum(np.diagonal(products), 0.0))
    seen = scale > 1e-9 * max(float(scale.max(initial=0.0)), 1e-300)
    if not seen.any():
        return np.zeros((len(products), 0))
    values, vectors = eigh(products[np.ix_(seen, seen)] / np.outer(scale[seen], scale[seen]))
    good = values > RESOLUTION * values[-1]
    map_back = np.zeros((len(products), int(good.sum())))
    map_back[seen] = vectors[:, good] / np.sqrt(values[good]) / scale[seen][:, None]
    return map_back


def _nuisances(samples: Samples, explained: Floats, scale: Floats, joints: list[int]) -> Floats:
    """(M u, k) weighted columns of further friction, of a delay of all torques, and of offsets of all logs but one."""
    columns = []
    for place, j in enumerate(joints):
        speed, load = samples.dq[:, j], np.abs(explained[:, place])
        fastest = max(float(np.abs(speed).max()), 1e-300)
        shapes = [speed * np.abs(speed), speed**3, load * samples.sign[:, j]]
        shapes += [np.tanh(speed / (share * fastest)) for share in FRICTION_SPEEDS]
        columns += [_at_joint(place, shape * scale[place], len(joints)) for shape in shapes]
    if samples.slope is not None:
        late = samples.slope[:, joints] * scale
        columns += [(late * mine[:, None]).reshape(-1) for mine in logs_of(samples)]
    for mine in logs_of(samples)[1:]:
        columns += [_at_joint(place, mine * scale[place], len(joints)) for place in range(len(joints))]
    return np.stack(columns, axis=1)


def logs_of(samples: Samples) -> Floats:
    """(k, M) for each of the logs that samples come from one where a sample does, and zero elsewhere."""
    if samples.log is None:
        return np.ones((1, len(samples.q)))
    return np.asarray(samples.log == np.unique(samples.log)[:, None], dtype=np.float64)


def _at_joint(place: int, values: Floats, joints: int) -> Floats:
    table = np.zeros((len(values), joints))
    table[:, place] = values
    return table.reshape(-1)


def relative_gains(robot: Robot, samples: Samples) -> tuple[Floats, Floats]:
    """(n,) factors of the joints' torques with which one set of parameters explains them, and their relative errors.

    With the normal equations G_j, b_j of each joint and the variance s_j of what its own parameters leave, we minimise
    the sum over joints of ``(theta'G_j theta - 2 x_j theta'b_j + x_j^2 e_j) / (s_j x_j^2)`` over the parameters and the
    factors x, but for one of them. ``e_j = b_j'G_j^-1 b_j`` is what the joint explains by itself, less its share of the
    noise: with the whole torque instead, noise would pull the factors to zero. A factor that nothing determines stays
    near one.
    """
    equations = narrow_equations(robot, samples)
    joints = np.flatnonzero(samples.trust > 0.0)
    along = equations.along(samples.effort[:, joints], np.ones(robot.dof), joints).T
    size = np.sqrt(np.einsum("j,jcc->c", samples.weight**2, equations.products))
    shrink = np.where(size > 1e-9 * size.max(), 1.0 / np.maximum(size, 1e-300), 0.0)
    G, b = equations.products[joints] * np.outer(shrink, shrink), along * shrink
    alone = [_explained_alone(*pair) for pair in zip(G, b, strict=True)]
    explained, rank = (np.array(values) for values in zip(*alone, strict=True))
    left = np.sum(samples.effort[:, joints] ** 2, axis=0) - explained
    variance = np.maximum(left / np.maximum(len(samples.q) - rank, 1), (FINEST / samples.weight[joints]) ** 2)
    explained = np.maximum(explained - rank * variance, 0.0)
    x, errors = np.ones(joints.size), np.zeros(joints.size)
    for _ in range(GAIN_STEPS):
        weight = 1.0 / (NEIGHBOURS * variance * x**2)
        sides = (weight[:, None] * b).T
        A = np.diag(weight * explained) - sides.T @ solve_singular(np.einsum("j,jcd->cd", weight, G), sides)
        A = _without_negative(A * np.outer(x, x)) + np.eye(joints.size)  # of the logarithms, each with an error of one
        held = int(np.argmax(np.diagonal(A)))
        others = np.delete(np.arange(joints.size), held)
        covariance = np.linalg.inv(A[np.ix_(others, others)])
        step = covariance @ (1.0 / x[others] - A[others, held])
        x[others] *= np.clip(step, 1.0 / LARGEST_STEP, LARGEST_STEP)
        errors[others], errors[held] = np.sqrt(np.diagonal(covariance)), 0.0
    factors, spread = np.ones(robot.dof), np.full(robot.dof, np.inf)
    factors[joints], spread[joints] = x, errors
    return factors, spread


def _explained_alone(G: Floats, b: Floats) -> tuple[float, int]:
    """Sum of squares that normal equations (c, c), (c,) explain, and their rank."""
    values, vectors = eigh(G)
    good = values > RANK * values[-1]
    return float(np.sum((vectors[:, good].T @ b) ** 2 / values[good])), int(good.sum())


def _without_negative(A: Floats) -> Floats:
    """The symmetric matrix with its negative eigenvalues set to zero."""
    values, vectors = eigh(A)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
