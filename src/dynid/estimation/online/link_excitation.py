"""Persistent excitation of each link while the robot moves ([Lin1995] Definition 2).

Joint i's equations ``A_i w_i = y_i`` (eq. 111) determine the parameters ``w_i`` that no joint beyond it shows, once
those beyond are known. The samples are persistently exciting for them if ``M_i = A_i^T A_i`` (eq. 117) is positive
definite. M_i is never formed: its square root, a triangle of A_i, is enough.

Noise of a measured motion makes M_i positive definite even at rest. Where the noise is stated, A_i must stand out of
the errors that it causes, in every direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors
from dynid.estimation.linear.link_by_link import link_steps
from dynid.information import reduce_samples
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot
from dynid.tables import Table

GENERIC_SAMPLES = 4
"""Random samples per parameter with which the columns of each link are found (convention: plenty)."""
MEMBER = 1e-12
"""Part of a member's largest coefficient that is rounding (convention)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkExcitation:
    """How far the samples so far excite the parameters of one link."""

    joint: str
    """The joint whose equations determine them."""
    parameters: tuple[str, ...]
    """The link's own base parameters w_i, the joint's friction among them."""
    unexcited: tuple[str, ...]
    """Those of `parameters` that take part in a combination that these samples do not show at this joint."""
    samples: int
    """Number of the joint's equations, N of eq. (117)."""
    condition: float
    """Condition number of A_i, columns scaled to length one; infinite where a combination of them is not excited."""

    @property
    def is_persistently_exciting(self) -> bool:
        """Whether M_i is positive definite ([Lin1995] Definition 2), beyond stated noise of the motion."""
        return bool(np.isfinite(self.condition))


def excitation_table(given: Factors | tuple[LinkExcitation, ...]) -> Table:
    """Whether samples are persistently exciting for each link ([Lin1995] Definition 2), one row per joint.

    Args:
        given: The equations of logs, such as ``fit.equations``, or `OnlineLinkByLink.excitation`.

    Example:
        >>> print(dynid.estimation.excitation_table(fit.equations).header[:2])
        ('joint', 'persistently exciting')
        >>> tracker = dynid.estimation.OnlineLinkByLink(robot)
        >>> for q, dq, ddq, effort in zip(run.q[100:150], run.dq[100:150], run.ddq[100:150], run.effort[100:150]):
        ...     tracker.update(q, dq, ddq, effort)
        >>> len(dynid.estimation.excitation_table(tracker.excitation).rows)
        3
    """
    if isinstance(given, Factors):
        steps = [
            (s.joint, "no" if s.postponed else "yes", s.condition, " ".join((*s.parameters, *s.postponed)))
            for s in reversed(link_steps(given))
        ]
        return Table.of(["joint", "persistently exciting", "condition", "parameters"], steps)
    if not all(isinstance(link, LinkExcitation) for link in given):
        raise ArgumentError("not all items are LinkExcitation", remedy="Give tracker.excitation, or equations.")
    rows = [
        (
            link.joint,
            "yes" if link.is_persistently_exciting else "no",
            link.condition,
            link.samples,
            " ".join(link.unexcited),
        )
        for link in given
    ]
    return Table.of(["joint", "persistently exciting", "condition", "samples", "not excited"], rows)


def link_columns(robot: Robot, base: BaseParameters) -> tuple[tuple[int, ...], ...]:
    """For each joint the places in the base of its link's own parameters w_i.

    A parameter belongs to the outermost joint whose torque alone determines it, given those beyond, if the motion is
    rich: found from random samples.
    """
    count = GENERIC_SAMPLES * (base.rank + 10)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, count, robot.dof))
    torque = np.ones_like(q)
    information = reduce_samples(robot, q, dq, ddq, torque, columns=base.columns)
    equations = Factors(robot=robot, base=base, information=information, blocks=((0,),), excerpts=())
    places = {name: place for place, name in enumerate(base.names)}
    steps = reversed(link_steps(equations))
    return tuple(tuple(sorted(places[name] for name in step.parameters)) for step in steps)


def link_members(matrix: Floats, own: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """For each joint the members of another set that belong to its link: those of composite body i and no body before.

    Args:
        matrix: (b, b) from the values of the kept columns to those of the members.
        own: For each joint the places of its link's own kept columns.
    """
    found: list[tuple[int, ...]] = []
    left = np.ones(len(matrix), dtype=bool)
    for places in own:
        rows = np.abs(matrix[:, list(places)]) > MEMBER * np.abs(matrix).max(axis=1, keepdims=True)
        mine = left & rows.any(axis=1)
        left &= ~mine
        found.append(tuple(np.flatnonzero(mine).tolist()))
    if [len(members) for members in found] != [len(places) for places in own]:
        raise ArgumentError(
            "the members of this set do not belong to single links",
            remedy="Use base_parameters(robot), and convert_estimate to this set afterwards.",
        )
    return tuple(found)
