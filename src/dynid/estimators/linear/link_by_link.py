"""Identification link by link, from the last link to the first ([Lin1995] section IV).

The torque of joint i depends only on the links that it carries. So the equations of the last joint determine the
parameters that act on it; with those known, the equations of the joint before determine further ones, and so on. Each
step solves the few equations ``A_i w_i = y_i`` of eq. (111) by least squares: w_i are the parameters that no later
joint determined, and ``y_i`` (eq. 108) is the torque minus that of the known parameters.

The paper has four cases (rotational or translational joint, before or beyond the first joint that is not parallel to
the first rotational one), which differ in which parameters are new at a joint; the base parameters contain that
already.

Order of this file: the estimator, its functions, the recursion (`_Chain`), and the test which columns of A_i are
determined (`resolve_columns`), which the tracker on line uses as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.decompositions import svd
from dynid.estimators.equations import Factors
from dynid.estimators.estimate import Estimate, Estimator
from dynid.estimators.noise import check_data, correlation_inflation
from dynid.estimators.score_covariance import OPEN
from dynid.spatial import EXACT

LEAST_SIGNAL_TO_NOISE = 5.0
"""How many times a direction of the equations must be longer than its errors by the noise of the motion (derivation:
least squares shrinks it by the inverse square, here 4 %)."""
SPARE = 10
"""A joint must have so many more equations than unknowns, so that its residual shows the noise (derivation: with ten,
the 97.5 % point of Student's distribution is 14 % above that of the normal one)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStep:
    """One step of the recursion: which parameters the equations of one joint determine."""

    joint: str
    """Name of the joint."""
    parameters: tuple[str, ...]
    """Names of the parameters w_i that are estimated in this step, the joint's friction among them. In a fit they
    include parameters of later links that the later joints left undetermined; on line only the link's own."""
    unexcited: tuple[str, ...]
    """Names of those parameters that these samples do not determine here; they are left to the joints before."""
    samples: int
    """Number of the joint's equations, N of eq. (117)."""
    condition: float
    """Condition number of the excitation matrix A_i, columns scaled to length one; infinite for dependent columns."""

    @property
    def is_persistently_exciting(self) -> bool:
        """Whether ``M_i = A_i^T A_i`` is positive definite, [Lin1995] Definition 2 with eq. (117)."""
        return not self.unexcited


@dataclass(frozen=True, slots=True)
class LinkByLink(Estimator):
    """Recursive least squares along the chain, one joint's torque at a time. It works for trees as well."""

    name: ClassVar[str] = "link-by-link"
    title: ClassVar[str] = "identification link by link"
    use: ClassVar[str] = "the last links matter most, or a joint torque of the first is missing"
    references: ClassVar[tuple[str, ...]] = ("Lin1995",)

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; the covariance contains how the errors of a joint act on all links before it."""
        check_data(equations, spare=1)
        return estimate_links(equations)

    def steps(self, equations: Factors) -> tuple[LinkStep, ...]:
        """Compute the steps with their condition numbers and excitation tests, last joint first."""
        check_data(equations, spare=1)
        return link_steps(equations)


def estimate_links(equations: Factors, matrix_errors: Sequence[Floats] | None = None) -> Estimate:
    """Estimate from any number of equations, even none; what they do not determine is marked as undetermined.

    Args:
        equations: The equations.
        matrix_errors: For each joint a triangle (w, w) of its columns' errors by the noise of the motion; None for a
            motion that is exact.
    """
    chain = _Chain(equations, matrix_errors)
    inflation = correlation_inflation(equations, chain.beta)
    variances = chain.noise**2 * inflation
    covariance = np.sum([v * E @ E.T for v, E in zip(variances, chain.errors, strict=True)], axis=0)
    undetermined = ~chain.known
    covariance[undetermined, undetermined] = np.inf
    conditions = {f"condition {step.joint}": step.condition for step in chain.steps}
    return Estimate.of(
        equations,
        values=chain.beta,
        covariance=covariance,
        undetermined=undetermined,
        noise_std=chain.noise,
        inflation=inflation,
        condition=max(conditions.values()),
        method="link-by-link least squares",
        extras=conditions,
    )


def link_steps(equations: Factors) -> tuple[LinkStep, ...]:
    """Compute the steps of any number of equations, last joint first; see `estimate_links`."""
    return tuple(_Chain(equations).steps)


class _Chain:
    """The recursion from the last joint to the first, over b parameters of n joints.

    Attributes:
        beta: (b,) values so far.
        known: (b,) whether the joints so far determine the value.
        errors: For each joint j the matrix (b, w_j) from the errors of its w_j reduced equations to those of ``beta``.
        noise: (n,) standard deviation of each joint's residual torque.
        steps: One step per joint, last joint first.
    """

    def __init__(self, equations: Factors, matrix_errors: Sequence[Floats] | None = None) -> None:
        b = len(equations.names)
        n = equations.robot.dof
        self.equations = equations
        self.matrix_errors = matrix_errors
        self.beta = np.zeros(b)
        self.known = np.zeros(b, dtype=bool)
        self.errors = [np.zeros((b, len(support) + 1)) for support in equations.information.supports]
        self.noise = np.zeros(n)
        self.resolution = equations.information.weight().resolution
        triangles = [equations.information.factor(joint) for joint in range(n)]
        self.longest = max(float(np.linalg.norm(R[:, :-1], axis=0).max(initial=0.0)) for R in triangles)
        self.has_torques = any(np.any(R[:, -1]) for R in triangles)
        self.steps = [self._step(joint) for joint in reversed(range(n))]

    def _step(self, joint: int) -> LinkStep:
        """Solve one joint's equations for what is still unknown ([Lin1995] steps 2, 3.2 and 4.2)."""
        information = self.equations.information
        support = np.array(information.supports[joint], dtype=int)  # the parameters that act on the joint
        triangle = information.factor(joint)  # of the QR decomposition of the joint's [W, torque]
        is_new = ~self.known[support]
        new = support[is_new]
        old = support[~is_new]
        A = triangle[:, :-1][:, is_new]
        B = triangle[:, :-1][:, ~is_new]
        A_errors = None if self.matrix_errors is None else self.matrix_errors[joint][:, is_new]
        resolved = resolve_columns(A, self.resolution, self.longest, A_errors)
        spare = int(information.samples[:, joint].sum()) - len(new)
        determined = resolved.determined & (spare >= SPARE and self.has_torques)
        y = triangle[:, -1] - B @ self.beta[old]  # [Lin1995] eq. (108)
        w = resolved.inverse @ y  # [Lin1995] eq. (111)
        residual = y - A @ w
        # errors of the known parameters, which stem from joints farther out, pass on to the new ones
        for E in self.errors:
            E[new] = -resolved.inverse @ (B @ E[old])
        self.errors[joint][new] += resolved.inverse
        self.beta[new] = w
        self.known[new[determined]] = True
        self.noise[joint] = float(np.linalg.norm(residual)) / np.sqrt(max(spare, 1))
        names = [self.equations.names[k] for k in new]
        return LinkStep(
            joint=self.equations.robot.joint_names[joint],
            parameters=tuple(names),
            unexcited=tuple(compress(names, ~determined)),
            samples=spare + len(new),
            condition=resolved.condition,
        )


class ResolvedColumns(NamedTuple):
    """Pseudo-inverse of equations (m, k), and which of their k unknowns they determine."""

    inverse: Floats
    """(k, m) pseudo-inverse, without the directions that the equations do not show."""
    determined: NDArray[np.bool_]
    """(k,) whether the unknown is determined."""
    condition: float
    """Condition number, columns scaled to length one; infinite if a direction is not shown."""


def resolve_columns(A: Floats, resolution: float, longest: float, errors: Floats | None = None) -> ResolvedColumns:
    """Find out which unknowns of ``A w = y`` are determined.

    Args:
        A: (m, k) equations; columns are scaled to length one before anything is judged.
        resolution: Singular value, over the largest one, below which it is rounding.
        longest: Length of the longest column of all equations of the robot, to which rounding is relative.
        errors: (m, k) errors of A by the noise of the motion; columns and directions that are not
            `LEAST_SIGNAL_TO_NOISE` times as long do not count. None for a motion that is exact.
    """
    length = np.linalg.norm(A, axis=0)
    empty = length <= EXACT * max(longest, 1e-300)
    if errors is not None:
        empty |= length <= LEAST_SIGNAL_TO_NOISE * np.linalg.norm(errors, axis=0)
    scale = np.where(empty, 1.0, length)
    U, s, Vt = svd(np.where(empty, 0.0, A / scale), full_matrices=False)
    shown = s > resolution * max(float(s.max(initial=0.0)), 1e-300)
    basis = Vt[shown].T / s[shown]
    coordinates = U[:, shown].T
    hidden = Vt[~shown].T  # (k, h) directions of the unknowns that the equations do not show
    determined = ~empty & (_shares(hidden) < OPEN**2)
    if errors is not None and shown.any():
        # the basis has length one in A, so t are the ratios of errors to signal, by direction
        _, t, Zt = svd(np.where(empty, 0.0, errors / scale) @ basis)
        is_noise = np.append(t, np.zeros(len(Zt) - t.size)) > 1.0 / LEAST_SIGNAL_TO_NOISE
        hidden = np.column_stack([hidden, basis @ Zt[is_noise].T])
        basis, coordinates = basis @ Zt[~is_noise].T, Zt[~is_noise] @ coordinates
        determined &= _shares(hidden) < 1.0 / LEAST_SIGNAL_TO_NOISE**2
    if not s.size:  # no unknowns
        condition = 1.0
    elif hidden.size:
        condition = float("inf")
    else:
        condition = float(s[0] / s[-1])
    return ResolvedColumns(basis @ coordinates / scale[:, None], determined, condition)


def _shares(directions: Floats) -> Floats:
    """Compute the share (k,) of each unit vector's square that lies in the span of directions (k, h)."""
    return np.asarray((np.linalg.qr(directions)[0] ** 2).sum(axis=1))
