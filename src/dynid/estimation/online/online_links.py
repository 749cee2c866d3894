"""Identification link by link on line ([Lin1995] section IV), with its excitation monitored while the robot moves.

Joint i's equations ``A_i w_i = y_i`` (eq. 111) determine the parameters ``w_i`` that no joint beyond it shows, once
those beyond are known. The samples are persistently exciting for them if ``M_i = A_i^T A_i`` (eq. 117) is positive
definite. M_i is never formed: its square root, a triangle of A_i, is enough.

Noise of a measured motion makes M_i positive definite even at rest. Where the noise is stated, A_i must stand out of
the errors that it causes, in every direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.checks import as_row
from dynid.errors import ArgumentError
from dynid.estimation.equations import Factors, factors_of
from dynid.estimation.estimate import Estimate
from dynid.estimation.linear.link_by_link import (
    SPARE,
    LinkByLink,
    LinkStep,
    estimate_links,
    link_steps,
    resolve_columns,
)
from dynid.estimation.online.arriving_samples import OnlineEstimator
from dynid.estimation.online.triangle import GrowingBlocks, RowTriangle
from dynid.information import reduce_samples
from dynid.information.factor import RESOLUTION
from dynid.information.joint_equations import equations as joint_equations
from dynid.kernels import regressor
from dynid.parameters.base_set import BaseParameters, conversion_matrix
from dynid.robot.model import Robot
from dynid.spatial import EXACT
from dynid.tables import Table


def excitation_table(given: Factors | Sequence[LinkStep]) -> Table:
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
    links = link_steps(given)[::-1] if isinstance(given, Factors) else given
    if not all(isinstance(link, LinkStep) for link in links):
        raise ArgumentError("not all items are of LinkStep", remedy="Give tracker.excitation, or equations.")
    rows = [
        (
            link.joint,
            "yes" if link.is_persistently_exciting else "no",
            link.condition,
            link.samples,
            " ".join(link.parameters),
            " ".join(link.unexcited),
        )
        for link in links
    ]
    header = ["joint", "persistently exciting", "condition", "samples", "parameters", "not excited"]
    return Table.of(header, rows)


def link_columns(robot: Robot, base: BaseParameters) -> tuple[tuple[int, ...], ...]:
    """For each joint the places in the base of its link's own parameters w_i.

    A parameter belongs to the outermost joint whose torque alone determines it, given those beyond, if the motion is
    rich: found from random samples.
    """
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, base.rank + SPARE, robot.dof))
    information = reduce_samples(robot, q, dq, ddq, np.ones_like(q), columns=base.columns)
    equations = Factors(robot=robot, base=base, information=information, blocks=((0,),), excerpts=())
    places = {name: place for place, name in enumerate(base.names)}
    return tuple(
        tuple(sorted(places[name] for name in step.parameters if name not in step.unexcited))
        for step in link_steps(equations)[::-1]
    )


def link_members(matrix: Floats, own: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """For each joint the members of another set that belong to its link: those of composite body i and no body before.

    Args:
        matrix: (b, b) from the values of the kept columns to those of the members.
        own: For each joint the places of its link's own kept columns.
    """
    found: list[tuple[int, ...]] = []
    left = np.ones(len(matrix), dtype=bool)
    for places in own:
        rows = np.abs(matrix[:, list(places)]) > EXACT * np.abs(matrix).max(axis=1, keepdims=True)
        mine = left & rows.any(axis=1)
        left &= ~mine
        found.append(tuple(np.flatnonzero(mine).tolist()))
    if [len(members) for members in found] != [len(places) for places in own]:
        raise ArgumentError(
            "the members of this set do not belong to single links",
            remedy="Use base_parameters(robot), and convert_estimate to this set afterwards.",
        )
    return tuple(found)


class OnlineLinkByLink(OnlineEstimator):
    """`LinkByLink` sample by sample, at any time and in bounded memory.

    After the last sample the values and the noise of each joint are those of the whole log, to 1e-9. The standard
    deviations are the same up to the autocorrelation factor of each joint (`Estimate.inflation`), which comes from
    other blocks of time: the tracker cannot know them before the end.

    Typical use, in the control loop::

        tracker = dynid.estimation.OnlineLinkByLink(robot)
        tracker.update(q, dq, ddq, tau)
        tracker.excitation[-1].is_persistently_exciting
        tracker.estimate().interval()

    Each joint's equations are a triangle per block of time; Householder reflections rotate a new row into it. What the
    samples so far do not determine has an infinite interval.
    """

    def __init__(
        self,
        robot: Robot,
        base: BaseParameters | None = None,
        *,
        motion_std: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    ) -> None:
        """Start, knowing nothing.

        Args:
            robot: Geometry and terms; friction is estimated if the robot has such terms (`Robot.with_terms`).
            base: The base parameters to estimate; those of every motion by default. Lin's own, with
                ``base_parameters(robot, method="minimal-combinations")``.
            motion_std: Standard deviations of the noise of positions, velocities and accelerations, each one number or
                (n,). Directions of the equations that do not stand out of it count as not excited. None for a motion
                that is exact.

        Raises:
            ArgumentError: A standard deviation is negative or not finite, or the base parameters are not those of the
                robot for every motion.
        """
        super().__init__(robot, base)
        self._supports = joint_equations(robot, self.kept.columns).supports
        self._blocks = GrowingBlocks([len(support) + 1 for support in self._supports])
        own = link_columns(robot, self.kept)
        matrix = conversion_matrix(self.kept, self.base)
        self._members = own if self.kept is self.base else link_members(matrix, own)
        self._turns = tuple(
            np.linalg.inv(matrix[np.ix_(rows, columns)]) for rows, columns in zip(self._members, own, strict=True)
        )
        self._own = tuple(np.searchsorted(acting, places) for acting, places in zip(self._supports, own, strict=True))
        self._square = np.zeros((robot.dof, self.kept.rank))
        self._errors = [RowTriangle(len(support)) for support in self._supports]
        self._draws = np.random.default_rng(0)
        self._std: list[Floats] | None = None
        if motion_std is not None:
            if len(motion_std) != 3:
                remedy = "Give three of them: of positions, velocities and accelerations."
                raise ArgumentError(f"motion_std has {len(motion_std)} entries", remedy=remedy)
            self._std = [as_row("motion_std", std, robot.dof, same=True, least=0.0) for std in motion_std]

    def update(
        self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, tau: ArrayLike, *, valid: ArrayLike | None = None
    ) -> None:
        """Add one sample, arrays (n,), or several, arrays (m, n), the latest last.

        Args:
            q: Joint positions [rad or m].
            dq: Joint velocities.
            ddq: Joint accelerations.
            tau: Joint torques [N m or N].
            valid: Whether each torque counts; all by default.

        Raises:
            ArgumentError: The arrays do not fit the robot.
            DataError: A number that counts is NaN or infinite; the sample and the joint are named, nothing changes.
        """
        new = self._take({"q": q, "dq": dq, "ddq": ddq}, tau, valid)
        matrix = regressor(self.robot, *new.motion, columns=self.kept.columns) * new.valid[..., None]
        if self._std is not None:  # another draw of the noise changes the equations by as much as they are wrong
            other = [x + std * self._draws.normal(size=x.shape) for x, std in zip(new.motion, self._std, strict=True)]
            change = regressor(self.robot, *other, columns=self.kept.columns) * new.valid[..., None] - matrix
            for j, (errors, acting) in enumerate(zip(self._errors, self._supports, strict=True)):
                errors.update(change[:, j, acting])
        torque = new.tau[..., None]
        rows = [np.hstack([matrix[:, j, acting], torque[:, j]]) for j, acting in enumerate(self._supports)]
        self._blocks.append(rows, new.valid)
        self._square += np.square(matrix).sum(axis=0)

    @property
    def excitation(self) -> tuple[LinkStep, ...]:
        """(n,) for each joint, from the base on, whether its link is persistently excited ([Lin1995] Definition 2)."""
        return tuple(self._judge(joint) for joint in range(self.robot.dof))

    @property
    def is_persistently_exciting(self) -> bool:
        """Whether the samples so far excite every link."""
        return all(link.is_persistently_exciting for link in self.excitation)

    def _judge(self, joint: int) -> LinkStep:
        own, turn = self._own[joint], self._turns[joint]
        names = [self.base.names[place] for place in self._members[joint]]
        triangle = RowTriangle(len(own))
        triangle.update(self._blocks.total(joint).R[:, own])  # square root of M_i, [Lin1995] eq. (117)
        errors = None if self._std is None else self._errors[joint].R[:, own] @ turn
        longest = float(np.sqrt(self._square.max(initial=0.0)))
        _, clear, condition = resolve_columns(triangle.R @ turn, RESOLUTION, longest, errors)
        return LinkStep(
            joint=self.robot.joint_names[joint],
            parameters=tuple(names),
            unexcited=tuple(compress(names, ~clear)),
            samples=int(self._blocks.counts[:, joint].sum()),
            condition=condition,
        )

    @property
    def equations(self) -> Factors:
        """The equations of all samples so far in kept columns, for any estimator of `Factors`, such as `dynid.WLS`."""
        return factors_of(self.robot, self.kept, self._blocks.triangles, self._blocks.counts, supports=self._supports)

    def _solve(self) -> Estimate:
        errors = None if self._std is None else [errors.R for errors in self._errors]
        return replace(estimate_links(self.equations, errors), references=LinkByLink.references)
