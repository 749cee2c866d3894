"""Identification link by link, from the last link to the first ([Lin1995] section IV).

The torque of joint i depends on the links it carries only. So joint n's equations determine the parameters that first
act there; with those known, joint n - 1's determine the next, and so on: each step solves the few equations
``A_i w_i = y_i`` of eq. (111) by least squares, with ``y_i`` of eq. (108) the torque less what the links beyond
contribute. The paper's four cases (rotational or translational, before or beyond the first joint that is not parallel
to the first rotational one) differ in which parameters are new at a joint; the base parameters contain that already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import svd
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate, Estimator
from dynid.estimation.noise import check_data, correlation_inflation
from dynid.estimation.score_covariance import OPEN
from dynid.information.triangular import NOISE

MARGIN = 5.0
"""How many times a direction of the equations must be longer than its errors by the noise of the motion (derivation:
least squares shrinks it by the inverse square, here 4 %)."""


def resolve_columns(
    A: Floats, resolution: float, longest: float, errors: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_], float]:
    """Of a matrix the pseudo-inverse, which of its columns are determined, and its condition number.

    Args:
        A: (m, k) equations; columns are scaled to length one before anything is judged.
        resolution: Singular values below this part of the largest are rounding.
        longest: Length of the longest column of all equations of the robot, to which rounding is relative.
        errors: (m, k) errors of A by the noise of the motion; columns and directions that do not stand out of them do
            not count.
    """
    length = np.linalg.norm(A, axis=0)
    empty = length <= NOISE * max(longest, 1e-300)
    if errors is not None:
        empty |= length <= MARGIN * np.linalg.norm(errors, axis=0)
    scale = np.where(empty, 1.0, length)
    U, s, Vt = svd(np.where(empty, 0.0, A / scale), full_matrices=False)
    good = s > resolution * max(float(s.max(initial=0.0)), 1e-300)
    basis, coordinates, hidden = Vt[good].T / s[good], U[:, good].T, Vt[~good].T
    clear = ~empty & (_shares(hidden) < OPEN**2)
    if errors is not None and good.any():
        _, t, Zt = svd(np.where(empty, 0.0, errors / scale) @ basis)  # errors over what A shows, by direction
        loud = np.append(t, np.zeros(len(Zt) - t.size)) > 1.0 / MARGIN
        hidden = np.column_stack([hidden, basis @ Zt[loud].T])
        basis, coordinates = basis @ Zt[~loud].T, Zt[~loud] @ coordinates
        clear &= _shares(hidden) < 1.0 / MARGIN**2
    condition = 1.0 if not s.size else float("inf") if hidden.size else float(s[0] / s[-1])
    return basis @ coordinates / scale[:, None], clear, condition


def _shares(directions: Floats) -> Floats:
    """(k,) share of each column's square that lies in the span of directions (k, h)."""
    return np.asarray((np.linalg.qr(directions)[0] ** 2).sum(axis=1))


SPARE = 10
"""Number of a joint's equations beyond its unknowns from which on its residual tells the noise (derivation: with ten,
the 97.5 % point of Student's distribution is 14 % above that of the normal one)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStep:
    """What one joint's equations say about the parameters of its link."""

    joint: str
    """The joint whose equations they are."""
    parameters: tuple[str, ...]
    """The parameters that are sought here: on line the link's own w_i, the joint's friction among them."""
    unexcited: tuple[str, ...]
    """Those of them that take part in a combination which these samples do not show here: left to the joints before."""
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
    """Recursive least squares along the chain, one joint's torque at a time. Works for trees as well."""

    name: ClassVar[str] = "link-by-link"
    title: ClassVar[str] = "identification link by link"
    use: ClassVar[str] = "the last links matter most, or a joint torque of the first is missing"
    references: ClassVar[tuple[str, ...]] = ("Lin1995",)

    def estimate(self, equations: Factors) -> Estimate:
        """Estimate; a joint's errors are carried on to all links before it."""
        check_data(equations, spare=1)
        return estimate_links(equations)

    def steps(self, equations: Factors) -> tuple[LinkStep, ...]:
        """The steps with their condition numbers and excitation tests, last joint first."""
        check_data(equations, spare=1)
        return link_steps(equations)


def estimate_links(equations: Factors, matrix_errors: Sequence[Floats] | None = None) -> Estimate:
    """What any number of equations says, also none: what they do not determine is open.

    Args:
        equations: The equations.
        matrix_errors: For each joint a triangle (w, w) of its columns' errors by the noise of the motion, where known.
    """
    chain = _Chain(equations, matrix_errors)
    inflation = correlation_inflation(equations, chain.beta)
    noise = chain.noise**2 * inflation
    covariance = np.sum([v * E @ E.T for v, E in zip(noise, chain.errors, strict=True)], axis=0)
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
    """The steps of any number of equations, last joint first; see `estimate_links`."""
    return tuple(_Chain(equations).steps)


class _Chain:
    """The recursion: values found so far, and how each joint's torque errors act on them."""

    def __init__(self, equations: Factors, matrix_errors: Sequence[Floats] | None = None) -> None:
        b, n = len(equations.names), equations.robot.dof
        self.equations, self.matrix_errors = equations, matrix_errors
        self.beta, self.known = np.zeros(b), np.zeros(b, dtype=bool)
        self.errors = [np.zeros((b, len(support) + 1)) for support in equations.information.supports]
        self.noise = np.zeros(n)
        self.resolution = equations.information.weight().resolution
        triangles = [equations.information.factor(joint) for joint in range(n)]
        self.longest = max(float(np.linalg.norm(R[:, :-1], axis=0).max(initial=0.0)) for R in triangles)
        self.is_silent = not any(np.any(R[:, -1]) for R in triangles)
        self.steps = [self._step(joint) for joint in reversed(range(n))]

    def _step(self, joint: int) -> LinkStep:
        """Solve one joint's equations for what is still unknown ([Lin1995] steps 2, 3.2 and 4.2)."""
        information = self.equations.information
        support = np.array(information.supports[joint], dtype=int)
        triangle = information.factor(joint)
        new = ~self.known[support]
        A, B = triangle[:, :-1][:, new], triangle[:, :-1][:, ~new]
        fresh, old = support[new], support[~new]
        shaken = None if self.matrix_errors is None else self.matrix_errors[joint][:, new]
        inverse, clear, condition = resolve_columns(A, self.resolution, self.longest, shaken)
        spare = int(information.samples[:, joint].sum()) - len(fresh)
        clear &= spare >= SPARE and not self.is_silent
        y = triangle[:, -1] - B @ self.beta[old]  # [Lin1995] eq. (108)
        w = inverse @ y  # [Lin1995] eq. (111)
        residual = y - A @ w
        for E in self.errors:
            E[fresh] = -inverse @ (B @ E[old])
        self.errors[joint][fresh] += inverse
        self.beta[fresh] = w
        self.known[fresh[clear]] = True
        self.noise[joint] = float(np.linalg.norm(residual)) / np.sqrt(max(spare, 1))
        names = [self.equations.names[k] for k in fresh]
        return LinkStep(
            joint=self.equations.robot.joint_names[joint],
            parameters=tuple(names),
            unexcited=tuple(compress(names, ~clear)),
            samples=spare + len(fresh),
            condition=condition,
        )
