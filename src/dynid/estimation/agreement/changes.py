"""What may differ between runs, and what it gains to let it differ; `check_runs` has the equations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.estimation.agreement.run_tables import RESOLUTION, Run, offset_places
from dynid.estimation.equations import Factors
from dynid.estimation.noise import block_inflation
from dynid.terms.friction import Coulomb, Viscous

ROUNDING = 1e-12
"""Share of the squared torque below which residuals are rounding (double precision)."""


@dataclass(frozen=True, slots=True, eq=False)
class Cause:
    """A change of some parameters in one run only, or of the gain of one joint's torque."""

    name: str
    unit: str
    directions: Floats
    """(m + d, k) change of the unknowns and of the drifts per unit; no columns for a gain."""
    joint: int | None = None
    """Index of the joint whose gain it is."""
    is_load: bool = False
    """Whether it is a load on one of the last bodies."""
    is_link: bool = False
    """Whether it is a change of a link between two joints: of its inertia, or of its length."""
    steady: int | None = None
    """Number of the cause that is this one without its last column: the offset that here drifts."""
    parts: tuple[tuple[str, str], ...] = ()
    """Name and unit of each column where several parameters change together."""

    @property
    def is_drift(self) -> bool:
        """Whether it changes with time."""
        return self.steady is not None

    @property
    def size(self) -> int:
        """Number of columns."""
        return 1 if self.joint is not None else self.directions.shape[1]


def list_causes(equations: Factors) -> Iterator[Cause]:
    """What may differ between runs: parameters of terms, drifts, loads on the last bodies, links, gains of drives."""
    base, robot, offsets = equations.base, equations.robot, offset_places(equations)
    first, m = 10 * robot.dof, len(equations.names)
    size = m + len(offsets)
    terms = [place for place, column in enumerate(base.columns) if column >= first]
    for place in terms:
        yield Cause(base.names[place], base.units[place], np.eye(size)[:, [place]])
    for number, place in enumerate(offsets, start=m):
        # nobody knows at what time a drifting offset is that of the other runs: it is a line, not through zero
        line = np.eye(size)[:, [place, number]]
        yield Cause(base.names[place], base.units[place], line, steady=terms.index(place))
    for joint, places in _frictions(equations).items():  # cold gears change all of the friction
        parts = tuple((base.names[place], base.units[place]) for place in places)
        yield Cause(f"friction of {joint}", "", np.eye(size)[:, places], parts=parts)
    parents = {body.parent for body in robot.bodies}
    for j, body in enumerate(robot.bodies):
        change = np.zeros((size, 10))
        change[: base.rank] = base.grouping[:, 10 * j : 10 * j + 10]
        # a longer link shifts all that it carries, as another mass at its end or another inertia of the next link would
        if np.any(change):
            yield Cause(body.joint.child, "kg", change, is_load=j not in parents, is_link=j in parents)
    for j, name in enumerate(robot.joint_names):
        yield Cause(name, "", np.zeros((size, 0)), joint=j)


def _frictions(equations: Factors) -> dict[str, list[int]]:
    """Joint, or all joints -> places of the unknowns that are viscous and dry friction, where there are both."""
    robot, columns = equations.robot, equations.base.columns
    found: dict[str, list[int]] = {}
    for place, column in enumerate(columns):
        if column < 10 * robot.dof:
            continue
        placed = robot.terms[column - 10 * robot.dof]
        if isinstance(placed.term, Viscous | Coulomb):
            found.setdefault(robot.joint_names[placed.joints[0]], []).append(place)
    together = {joint: places for joint, places in found.items() if len(places) > 1}
    every = [place for places in together.values() for place in places]
    return together | ({"all joints": every} if len(together) > 1 else {})


def weigh_joints(runs: Sequence[Run]) -> Floats:
    """(n,) inverse residual variance of each joint, every run fitted by itself, so that differences do not count."""
    joints = len(runs[0].total)
    torque = np.maximum(np.sum([run.total[:, -1, -1] for run in runs], axis=0), 1e-300)
    weights = 1.0 / torque
    for _ in range(2):
        squares = np.zeros(joints)
        for run in runs:
            beta = np.append(_solve(*weigh(run.total, weights)), -1.0)
            squares += np.einsum("i,jik,k->j", beta, run.total, beta)
        weights = 1.0 / np.maximum(
            squares, ROUNDING * np.array([sum(r.total[j, -1, -1] for r in runs) for j in range(joints)]) + 1e-300
        )
    return np.asarray(weights)


def independent_values(runs: Sequence[Run], weights: Floats, m: int) -> float:
    """Number of independent values that a run has on average over all runs, of all joints together.

    Every run is fitted by itself, so that differences between runs do not count as correlation.
    """
    found = []
    for run in runs:
        beta = np.append(_solve(*weigh(run.total, weights, m)), -1.0)
        places = [*range(m), -1]
        squares = np.einsum("i,jik,k->j", beta, run.total[:, places][:, :, places], beta)
        variances = squares / np.maximum(run.samples * (1.0 - m / max(run.samples.sum(), m + 1.0)), 1.0)
        groups = []
        for joint, table in enumerate(run.total):
            mine = np.flatnonzero(np.diagonal(table)[:m])
            tables = run.blocks[:, joint]
            scores = tables[:, mine, -1] - tables[:, mine, :m] @ beta[:-1]
            groups.append(list(zip(tables[:, mine[:, None], mine], scores, strict=True)))
        found.append(np.sum(run.samples / block_inflation(groups, variances, m)))
    return float(np.mean(found))


def weigh(total: Floats, weights: Floats, count: int | None = None) -> tuple[Floats, Floats]:
    """Cross products of the columns, or of the first of them, and with the torque, over all joints."""
    table = np.einsum("j,jik->ik", weights, total)
    columns = slice(total.shape[-1] - 1 if count is None else count)
    return table[columns, columns], table[columns, -1]


def inverse_of(A: Floats) -> Floats:
    """Inverses of semidefinite cross products (..., k, k) within the directions that they determine."""
    scale = np.sqrt(np.maximum(np.diagonal(A, axis1=-2, axis2=-1), 0.0))
    scale = np.where(scale > 0.0, scale, 1.0)
    values, vectors = eigh(A / (scale[..., :, None] * scale[..., None, :]))
    good = values > RESOLUTION * np.maximum(values[..., -1:], 1e-300)
    rows = vectors / scale[..., :, None]
    factors = np.where(good, 1.0 / np.where(good, values, 1.0), 0.0)
    return np.asarray((rows * factors[..., None, :]) @ np.swapaxes(rows, -1, -2))


def _solve(A: Floats, b: Floats) -> Floats:
    return np.asarray(inverse_of(A) @ b)


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What all causes change in a part of the data, or in each of several parts by itself."""

    g: Floats
    """(..., K) of the K columns of all causes together"""
    M: Floats
    """(..., K, K)"""
    places: tuple[range, ...]
    """Columns of each cause."""

    @classmethod
    def of(cls, parts: Floats, whole: tuple[Floats, Floats], weights: Floats, causes: Sequence[Cause]) -> Changes:
        """The changes in parts with cross products (..., n, size + 1, size + 1).

        Args:
            parts: The parts.
            whole: (m, m) cross products of the first columns of all data, which are fitted, and (m,) with the torque.
            weights: (n,) of the joints.
            causes: The causes, gains of drives last.
        """
        m, size = len(whole[1]), parts.shape[-1] - 1
        inverse, beta = np.zeros((size, size)), np.zeros(size)
        inverse[:m, :m] = inverse_of(whole[0])
        beta[:m] = inverse[:m, :m] @ whole[1]
        weighted = weights[:, None, None] * parts[..., :-1, :]
        together = weighted.sum(axis=-3)
        D = np.concatenate([cause.directions for cause in causes], axis=1)
        drives = [cause.joint for cause in causes if cause.joint is not None]
        # a gain adds beta to the unknowns that its joint feels, any other cause its directions to those of all joints
        own = weighted[..., drives, :, :-1] @ beta  # (..., drives, size)
        moved = np.concatenate([together[..., :-1] @ D, np.swapaxes(own, -1, -2)], axis=-1)  # (..., size, K)
        crossed, alone = own @ D, own @ beta
        k, K = D.shape[1], moved.shape[-1]
        S = np.zeros((*moved.shape[:-2], K, K))
        S[..., :k, :k] = D.T @ moved[..., :k]
        S[..., k:, :k], S[..., :k, k:] = crossed, np.swapaxes(crossed, -1, -2)
        S[..., range(k, K), range(k, K)] = alone
        left = together[..., -1] - together[..., :-1] @ beta
        g = np.concatenate([left @ D, weighted[..., -1][..., drives, :] @ beta - alone], axis=-1)
        ends = np.cumsum([cause.size for cause in causes]).tolist()
        places = tuple(range(end - cause.size, end) for cause, end in zip(causes, ends, strict=True))
        M = S - np.swapaxes(moved, -1, -2) @ inverse @ moved
        # what the fit of all data has already, as the offset of a run that is alone, is rounding
        new = np.diagonal(M, axis1=-2, axis2=-1) > RESOLUTION * np.diagonal(S, axis1=-2, axis2=-1)
        return cls(g * new, M * new[..., :, None] * new[..., None, :], places)

    def gain(self, *chosen: int) -> Gain:
        """What some causes together gain."""
        if not chosen:
            return Gain(0.0, 0, np.zeros(0), np.zeros((0, 0)))
        columns = [place for cause in chosen for place in self.places[cause]]
        g, M = self.g[..., columns], self.M[..., columns, :][..., columns]
        inverse = inverse_of(M)
        change = (inverse @ g[..., None])[..., 0]
        rank = np.rint(np.einsum("...ij,...ji->...", inverse, M))
        return Gain(float(np.sum(g * change)), int(rank.sum()), change, inverse)


class Gain(NamedTuple):
    """What a change gains."""

    value: float
    """In all parts together"""
    rank: int
    """Its degrees of freedom"""
    change: Floats
    """(..., k)"""
    covariance: Floats
    """(..., k, k) of the change"""


def usual_gains(runs: Sequence[Run], weights: Floats, causes: Sequence[Cause], m: int) -> list[float]:
    """For each cause the mean gain per degree of freedom when a block differs from the rest of its run.

    Without model errors it is one in units of the noise, as the weights give the sum of squares of all samples the size
    one. What drifts within a run is usual for all that does not drift; a drift is compared with what is left beside it.
    """
    usual = [np.inf] * len(causes)
    for drifting, fitted in ((False, m), (True, None)):
        places = [place for place, cause in enumerate(causes) if cause.is_drift == drifting]
        if not places:
            continue
        alike = [causes[place] for place in places]
        within = [Changes.of(run.blocks, weigh(run.total, weights, fitted), weights, alike) for run in runs]
        for number, place in enumerate(places):
            found = [changes.gain(number) for changes in within]
            if ranks := sum(gain.rank for gain in found):
                usual[place] = sum(gain.value for gain in found) / ranks
    return usual
