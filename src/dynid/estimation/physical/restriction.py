"""The possible robot that comes nearest to an identified model without the terms that its destination cannot hold.

    minimise |R (K x - beta)|^2   over possible robots x in which the absent terms are zero

with the triangle R of the weighted equations and the identified parameters beta: the difference of the torques over the
motion of the data. The remaining terms take over what they can, so that nothing is lost that the destination could
hold: the dry friction of a smooth sign goes into the Coulomb friction, a missing rotor inertia into the links.

Gains g of drives that the destination holds beside the robot are found with it, ``|beta's torque - g K x's torque|^2``,
each between one and the identified gain: where friction of the load is absent, its share is no gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import lstsq
from dynid.estimation.cross_validation import Folds
from dynid.estimation.equations import Factors
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.least_squares import refined_weights
from dynid.estimation.physical.bounds import Bounds
from dynid.estimation.physical.feasible import FeasibleWLS, feasible_parameters
from dynid.information import Factor
from dynid.information.information import RESOLUTION
from dynid.robot.model import Robot
from dynid.terms.base import Term

PULL = 0.3
"""Weight of the identified links as the prior in the first solution, and in all where there are too few blocks of time
to choose it by cross-validation; against torques in units of what the absent terms leave. It was chosen with the
held-out errors of the logs of docs/real-data.md in view."""
STRONGEST = 1e8
"""Squared torque over squared noise beyond which data do not count as better: the cone solver's own accuracy."""

STEADY_SHARE = 0.1
"""Weight of the steady friction over that of a joint's samples (convention: the data lead where they are)."""
UNMIXED = 1e-9
"""Relative error up to which a combination of base parameters is the friction alone (convention)."""
FEWEST_BLOCKS = 3
"""Blocks of time from which on the weight is chosen by cross-validation (convention)."""
ROUNDS = 3
"""Number of solutions (convention): each weighs the joints by the residuals of the one before, because what the absent
terms leave is much larger than the noise."""
TINY = 1e-300
"""Keeps quotients finite where there is no torque or no residual."""


@dataclass(frozen=True, slots=True, eq=False)
class SteadyTorque:
    """Friction of a joint at some constant speeds."""

    joint: int
    columns: Floats
    """(m, p + k) torque per unit of each standard parameter and kept term."""
    torque: Floats
    """(m,) of the whole model [N m or N]"""


class RestrictedParameters(NamedTuple):
    """Parameters of a possible robot without some terms."""

    theta: Floats
    """(p + k,) standard parameters, and those of the kept terms"""
    gains: Floats
    """(n,) torque of the whole model over that of this robot, where the destination holds gains; ones elsewhere"""


def restrict_parameters(
    equations: Factors,
    estimate: Estimate,
    identified: Robot,
    absent: Sequence[str],
    kept: Sequence[Term] = (),
    nonnegative: Sequence[str] = (),
    steady: Sequence[SteadyTorque] = (),
    gains: Floats | None = None,
    terms: Sequence[Term] | None = None,
) -> RestrictedParameters:
    """Refit the standard parameters without some of the terms.

    The weight of the identified links as the prior is chosen by cross-validation over blocks of time of the equations.

    Args:
        equations: The equations of the estimate; they may have further terms at the end.
        estimate: The identified parameters.
        identified: A possible robot with the identified parameters, for what the data leave open.
        absent: Names of the parameters of the robot's own terms that are zero in the result.
        kept: Further terms that stay; none by default.
        nonnegative: Names of parameters that must not be negative by themselves, because the destination refuses it.
        steady: Friction of the whole model beyond the speeds of the data, which shall be met as well as possible.
        gains: (n,) identified gains of the drives, where the destination holds them beside the robot; ones by default.
        terms: Terms of the equations that take part, those of the estimate first; all by default.

    Raises:
        EstimationError: The convex program has no solution.
    """
    identified_gains = np.ones(identified.dof) if gains is None else gains
    # blocks of time matter for cross-validation alone: all else is found from all of them together
    whole = replace(equations, information=equations.information.as_one())
    links = identified.parameter_vector.copy()
    links[10 * identified.dof :] = 0.0  # terms take over from absent ones: nothing draws them to what they were
    whole = whole if terms is None else whole.keep(terms)
    own = replace(whole.keep(kept), robot=identified.with_parameters(links))
    settings = FeasibleWLS(prior_weight=PULL, signs=True, bounds=Bounds(absent=tuple(absent)))
    places = [*range(equations.base.rank), *(equations.base.rank + place for place in whole.term_places(kept))]
    weights = refined_weights(equations if terms is None else whole) / estimate.inflation
    friction = _steady_rows(own, steady)
    values = np.zeros(len(whole.names))
    values[: estimate.values.size] = np.where(estimate.undetermined, 0.0, estimate.values)
    theta, pull, found = identified.parameter_vector, PULL, np.zeros(len(whole.names))
    present, free = identified_gains, np.zeros(identified.dof, dtype=bool)
    for place in range(ROUNDS):
        scaled = whole.information.with_scaled_torques(1.0 / present)
        factor = _torque_difference(whole, values / present[:, None], weights, places, found, free)
        factor = _with_steady_torques(factor, weights * equations.counts, friction)
        theta = feasible_parameters(own, factor, pull, settings, nonnegative).theta
        found[places] = own.grouping @ theta
        squares = scaled.per_joint_residual(found).sum(axis=0)
        weights = equations.counts / np.maximum(squares, TINY) / estimate.inflation
        present, free = _refit_gains(whole, values, found, identified_gains)
        if place == 0 and np.count_nonzero(equations.information.samples.any(axis=1)) >= FEWEST_BLOCKS:
            layout, blocks = equations.base.layout, equations.information.with_scaled_torques(1.0 / present)
            folds = Folds(replace(equations, robot=own.robot, information=blocks), weights, terms=kept)
            pull = folds.best_weight(kept, [layout.index(name) for name in absent])
    return RestrictedParameters(theta, present)


def _refit_gains(
    equations: Factors, values: Floats, found: Floats, identified: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """The gains (n,) with which the found unknowns come nearest to the whole estimate, and which of them are free.

    A gain lies between one and the identified one; at either end it is not free.
    """
    best = np.ones(identified.size)
    for joint in np.flatnonzero(identified != 1.0).tolist():
        table, support = equations.information.factor(joint)[:, :-1], list(equations.information.supports[joint])
        torque = table @ found[support]
        best[joint] = torque @ (table @ values[support]) / max(float(torque @ torque), TINY)
    gains = np.clip(best, np.minimum(identified, 1.0), np.maximum(identified, 1.0))
    return gains, (gains == best) & (identified != 1.0)


def _torque_difference(
    equations: Factors,
    values: Floats,
    weights: Floats,
    places: Sequence[int],
    present: Floats,
    free: NDArray[np.bool_],
) -> Factor:
    """The difference of the torques of some of the unknowns from those of the whole estimate, as a triangle.

    Args:
        equations: The equations.
        values: (n, b + k) the whole estimate, divided by the gain of each joint.
        weights: (n,) weight of each joint's squared residuals.
        places: Places of these unknowns.
        present: (b + k,) the unknowns as last found, zero elsewhere.
        free: (n,) joints with a free gain: what follows their present torques is left to the gain.
    """
    information, size, rows = equations.information, len(places), []
    for joint, support in enumerate(information.supports):
        table = np.zeros((len(support) + 1, present.size))
        table[:, support] = information.factor(joint)[:, :-1]
        both = np.column_stack([table[:, places], table @ values[joint]])
        if free[joint]:
            along = table @ present / max(float(np.linalg.norm(table @ present)), TINY)
            both -= np.outer(along, along @ both)
        rows.append(np.sqrt(weights[joint]) * both)
    stacked = np.vstack(rows)
    triangle: Floats = np.asarray(np.linalg.qr(stacked, mode="r"))
    triangle = triangle * min(1.0, np.sqrt(STRONGEST) / max(float(np.linalg.norm(stacked[:, -1])), TINY))
    return Factor(
        columns=tuple(information.columns[place] for place in places),
        R=triangle[:size, :size],
        z=triangle[:size, size],
        residual=float(np.sum(triangle[size:, size] ** 2)),
        samples=int(information.samples.sum()),
        resolution=RESOLUTION[information.kind],
    )


def _steady_rows(own: Factors, steady: Sequence[SteadyTorque]) -> list[tuple[SteadyTorque, Floats]]:
    """The friction of some joints, and its columns (m, b + k) per unit of the unknowns of the equations.

    Where other parameters hide in a friction, it is left out.
    """
    if not steady:
        return []
    grouping, columns = own.grouping, np.vstack([part.columns for part in steady])
    tables = np.split(lstsq(grouping.T, columns.T).T, np.cumsum([len(part.columns) for part in steady])[:-1])
    return [
        (part, table)
        for part, table in zip(steady, tables, strict=True)
        if np.allclose(table @ grouping, part.columns, atol=UNMIXED * np.abs(part.columns).max())
    ]


def _with_steady_torques(factor: Factor, weights: Floats, steady: Sequence[tuple[SteadyTorque, Floats]]) -> Factor:
    """The triangle with the steady friction of some joints as further equations.

    Args:
        factor: The triangle.
        weights: (n,) weight of all samples of a joint together.
        steady: The friction, as `_steady_rows` gives it.
    """
    if not steady:
        return factor
    scales = [np.sqrt(STEADY_SHARE * weights[part.joint] / len(part.torque)) for part, _ in steady]
    rows = [scale * table for scale, (_, table) in zip(scales, steady, strict=True)]
    sides = [scale * part.torque for scale, (part, _) in zip(scales, steady, strict=True)]
    size = factor.R.shape[1]
    below = np.column_stack([np.vstack(rows), np.concatenate(sides)])
    stacked = np.vstack([np.column_stack([factor.R, factor.z]), below])
    triangle: Floats = np.asarray(np.linalg.qr(stacked, mode="r"))
    return replace(
        factor,
        R=triangle[:size, :size],
        z=triangle[:size, size],
        residual=factor.residual + float(np.sum(triangle[size:, size] ** 2)),
    )
