"""The prior robot: unknowns scaled by it, and the distance of a body from its prior ([LeeWensingPark2020]).

The scaled unknowns y are, for every body, `svec` of its pseudo-inertia whitened by the prior's; then the parameters of
the robot's own terms over their prior values; then those of further terms over the size that the noise gives them.

The distance of a body from its prior is measured in one of four ways. With the pseudo-inertia Q whitened by the prior's
(the identity where the body is the prior) and its eigenvalues l:

    pull-back    sum (l - 1)^2                  quadratic: one cone program
    euclidean    squares of the ten parameters  quadratic, each relative to the prior body's size
    entropic     2 sum (l - log l - 1)          convex; an impossible body is infinitely far
    geometric    sum (log l)^2                  the same for l and 1 / l: three times as heavy is as far as a third

Each is the squared norm of a residual that is linear (the first two) or a function of Q's eigenvalues, so that one
Gauss-Newton iteration over cone programs finds the minimum under all constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.errors import ArgumentError
from dynid.estimation.physical.pseudo_inertia import WhitenedBody, svec, unsvec
from dynid.findings import Finding
from dynid.robot.model import Robot

Distance = Literal["pull-back", "euclidean", "entropic", "geometric"]
IDENTITY = svec(np.eye(4))
"""(10,) the scaled unknowns of a body that is the prior."""
SMALLEST_EIGENVALUE = 1e-12
"""Eigenvalues below count as this (convention), so that logarithms stay finite."""
TRACE = 1e-6
"""Pull of what the prior does not know (convention): it only keeps the program strictly convex."""
FURTHER_TERM_SIZE = 1000.0
"""Torque of a further term, over all samples and in units of the noise, from which on the prior holds it back."""


@dataclass(frozen=True, slots=True, eq=False)
class PriorCoordinates:
    """Scaled unknowns y (p + k,) around a robot."""

    from_scaled: Floats
    """(p + k, p + k + s) standard parameters and terms = from_scaled @ y"""
    centre: Floats
    """(p + k + s,) the prior's y"""
    pull: Floats
    """(p + k + s,) how strongly each y is drawn to the centre, relative to the weight"""
    findings: tuple[Finding, ...]
    bodies: int
    """The first 10 * bodies unknowns are those of bodies; each of the others is one parameter, scaled."""

    @property
    def unknowns(self) -> Floats:
        """(p + k + s, p + k + s) standard parameters, terms and further unknowns = unknowns @ y."""
        rows, size = self.from_scaled.shape
        return np.vstack([self.from_scaled, np.eye(size)[rows:]])

    def rescale_rows(self, rows: Floats) -> Floats:
        """(m, p + k + s) rows over the scaled unknowns from such over parameters, terms and further unknowns.

        It is ``rows @ unknowns``. Only the unknowns of a body are mixed: friction is a product with numbers.
        """
        links, size = 10 * self.bodies, self.from_scaled.shape[1]
        scale = np.ones(size)
        scale[: len(self.from_scaled)] = np.diagonal(self.from_scaled)
        scaled = rows * scale
        if rows[:, :links].any():
            scaled[:, :links] = rows[:, :links] @ self.from_scaled[:links, :links]
        return np.asarray(scaled)

    def widened(self, count: int) -> PriorCoordinates:
        """The same with further unknowns behind, which are in no equation of the torques."""
        size = len(self.from_scaled)
        return replace(
            self,
            from_scaled=np.hstack([self.from_scaled, np.zeros((size, count))]),
            centre=np.concatenate([self.centre, np.zeros(count)]),
            pull=np.concatenate([self.pull, np.full(count, TRACE)]),
        )

    @classmethod
    def of(cls, robot: Robot, lengths: Floats) -> PriorCoordinates:
        """Around a robot; terms are scaled by the lengths (k,) of their weighted columns."""
        bodies = _whitened(robot)
        models = np.concatenate([robot.parameter_vector[10 * robot.dof :], np.zeros(lengths.size)])
        count = 10 * len(bodies) + models.size
        from_scaled = np.zeros((count, count))
        for j, body in enumerate(bodies):
            from_scaled[10 * j : 10 * j + 10, 10 * j : 10 * j + 10] = body.from_whitened
        size = np.where(models != 0.0, np.abs(models), 1.0)
        size[size.size - lengths.size :] = FURTHER_TERM_SIZE / np.where(np.isfinite(lengths), lengths, 1.0)
        from_scaled[range(10 * len(bodies), count), range(10 * len(bodies), count)] = size
        # unknown friction is left to the data; a trace of pull keeps the program strictly convex. Terms compete with
        # one another, so what the data cannot tell apart stays small
        pull = np.concatenate([np.ones(10 * len(bodies)), np.where(models != 0.0, 1e-2, TRACE)])
        pull[pull.size - lengths.size :] = 1.0
        return cls(
            from_scaled,
            np.concatenate([np.tile(IDENTITY, len(bodies)), models / size]),
            pull,
            tuple(finding for body in bodies for finding in body.findings),
            len(bodies),
        )


_WHITENED: WeakKeyDictionary[Robot, tuple[WhitenedBody, ...]] = WeakKeyDictionary()
"""Robot -> its bodies: many programs are solved around one robot."""


def _whitened(robot: Robot) -> tuple[WhitenedBody, ...]:
    """The coordinates of each body, found once."""
    if robot not in _WHITENED:
        _WHITENED[robot] = tuple(WhitenedBody.around(body.inertia, body.joint.child) for body in robot.bodies)
    return _WHITENED[robot]


def term_signs(robot: Robot) -> list[bool]:
    """Whether the parameter of each term must not be negative."""
    return [placed.term.is_non_negative for placed in robot.terms]


def check_distance(distance: str) -> None:
    """Refuse the name of a distance that is none."""
    if distance not in get_args(Distance):
        raise ArgumentError(
            f"'{distance}' is no distance from a prior", remedy=f"One of {', '.join(get_args(Distance))}."
        )


def prior_residual(distance: Distance, y: Floats, from_whitened: Floats) -> tuple[Floats, Floats]:
    """Residual r (10,) whose square is a body's distance from the prior, and its slope dr/dy (10, 10).

    Args:
        distance: Name of the distance.
        y: (10,) `svec` of the whitened pseudo-inertia.
        from_whitened: (10, 10) parameters = from_whitened @ y.
    """
    if distance == "pull-back":
        return y - IDENTITY, np.eye(10)
    if distance == "euclidean":
        rows = euclidean_rows(from_whitened)
        return rows @ (y - IDENTITY), rows
    values, vectors = eigh(unsvec(y))
    bent = np.maximum(values, SMALLEST_EIGENVALUE)
    h, slope = (np.log(bent), 1.0 / bent) if distance == "geometric" else _entropic(bent)
    # the derivative of a function of a matrix (Daleckii and Krein): divided differences between its eigenvalues
    gaps = np.subtract.outer(bent, bent)
    near = np.abs(gaps) < 1e-6 * np.add.outer(bent, bent)
    quotient = np.subtract.outer(h, h) / np.where(near, 1.0, gaps)
    quotient = np.where(near, 0.5 * np.add.outer(slope, slope), quotient)
    columns = [vectors @ (quotient * (vectors.T @ unsvec(unit) @ vectors)) @ vectors.T for unit in np.eye(10)]
    return svec((vectors * h) @ vectors.T), np.stack([svec(column) for column in columns], axis=1)


def _entropic(bent: Floats) -> tuple[Floats, Floats]:
    """The signed root of ``2 (l - log l - 1)`` and its slope; both by their series near one."""
    e = bent - 1.0
    near = np.abs(e) < 1e-3
    safe = np.where(near, 2.0, bent)
    root = np.sign(e) * np.sqrt(2.0 * (safe - np.log(safe) - 1.0))
    h = np.where(near, e - e**2 / 3.0 + 7.0 * e**3 / 36.0, root)
    slope = np.where(near, 1.0 - 2.0 * e / 3.0 + 7.0 * e**2 / 12.0, (1.0 - 1.0 / safe) / np.where(near, 1.0, root))
    return h, slope


def euclidean_rows(from_whitened: Floats) -> Floats:
    """(10, 10) parameters over the prior body's own mass, mass times radius, and mass times radius squared."""
    prior = from_whitened @ IDENTITY
    mass = prior[9]
    radius = np.sqrt(max(0.5 * (prior[0] + prior[3] + prior[5]) / mass, 1e-12))
    size = np.concatenate([np.full(6, mass * radius**2), np.full(3, mass * radius), [mass]])
    return np.asarray(from_whitened / size[:, None])
