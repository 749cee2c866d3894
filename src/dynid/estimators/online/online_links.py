"""Identification link by link on line ([Lin1995] section IV), with its excitation monitored while the robot moves.

The equations of joint i, ``A_i w_i = y_i`` (eq. 111), determine the parameters ``w_i`` of its link once those of the
links beyond are known (see `dynid.estimators.linear.link_by_link`). The samples are persistently exciting for the link
if ``M_i = A_i^T A_i`` (eq. 117) is positive definite. M_i is never formed: its square root, a triangle of A_i, is
enough.

Noise of a measured motion makes M_i positive definite even at rest. If its standard deviations are given
(``motion_std``), A_i must be several times as large as the errors that the noise causes, in every direction.

Two sets of base parameters occur: the *kept* ones, in whose columns the equations are reduced, and the *members* of the
set that the user wants, such as Lin's, which are combinations of kept ones. They are the same by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_row
from dynid.compiled import regressor
from dynid.data_reduction import reduce_samples
from dynid.data_reduction.factor import RESOLUTION
from dynid.data_reduction.joint_equations import equations as joint_equations
from dynid.errors import ArgumentError
from dynid.estimators.equations import Factors, factors_of
from dynid.estimators.estimate import Estimate
from dynid.estimators.linear.link_by_link import (
    SPARE,
    LinkByLink,
    LinkStep,
    estimate_links,
    link_steps,
    resolve_columns,
)
from dynid.estimators.online.arriving_samples import OnlineEstimator
from dynid.estimators.online.triangle import GrowingBlocks, RowTriangle
from dynid.identifiability.base_set import BaseParameters, conversion_matrix
from dynid.robot.model import Robot
from dynid.spatial import EXACT
from dynid.tables import Table


def excitation_table(given: Factors | Sequence[LinkStep]) -> Table:
    """Show whether samples are persistently exciting for each link ([Lin1995] Definition 2), one row per joint.

    Args:
        given: The equations of logs, such as ``fit.equations``, or `OnlineLinkByLink.excitation`.

    Example:
        >>> print(dynid.estimators.excitation_table(fit.equations).header[:2])
        ('joint', 'persistently exciting')
        >>> tracker = dynid.estimators.OnlineLinkByLink(robot)
        >>> for q, dq, ddq, effort in zip(run.q[100:150], run.dq[100:150], run.ddq[100:150], run.effort[100:150]):
        ...     tracker.update(q, dq, ddq, effort)
        >>> len(dynid.estimators.excitation_table(tracker.excitation).rows)
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
    """Find for each joint the places in the base of its link's own parameters w_i.

    A parameter belongs to the outermost joint whose torque determines it if the motion is rich and the parameters of
    the links beyond are known: found with random samples.
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
    """Find for each joint the members of another set that belong to its link.

    A member belongs to the first link, from the base on, whose own kept parameters it contains.

    Args:
        matrix: (b, b) from the kept parameters to the members.
        own: For each joint the places of its link's own kept parameters.

    Raises:
        ArgumentError: A link does not get as many members as it has kept parameters.
    """
    found: list[tuple[int, ...]] = []
    unassigned = np.ones(len(matrix), dtype=bool)
    for places in own:
        contains = np.abs(matrix[:, list(places)]) > EXACT * np.abs(matrix).max(axis=1, keepdims=True)
        assigned = unassigned & contains.any(axis=1)
        unassigned &= ~assigned
        found.append(tuple(np.flatnonzero(assigned).tolist()))
    if [len(members) for members in found] != [len(places) for places in own]:
        raise ArgumentError(
            "the members of this set do not belong to single links",
            remedy="Use base_parameters(robot), and convert_estimate to this set afterwards.",
        )
    return tuple(found)


class OnlineLinkByLink(OnlineEstimator):
    """`LinkByLink` sample by sample, in bounded memory, with a test of excitation.

    After the last sample the values and the noise of each joint are those of the whole log, to 1e-9. The standard
    deviations are the same up to the autocorrelation factor of each joint (`Estimate.inflation`), because the tracker
    has other blocks of time: it does not know the length of the log in advance.

    Typical use, in the control loop::

        tracker = dynid.estimators.OnlineLinkByLink(robot)
        tracker.update(q, dq, ddq, tau)
        tracker.excitation[-1].is_persistently_exciting
        tracker.estimate().interval()

    Parameters that the samples so far do not determine have infinite intervals.
    """

    def __init__(
        self,
        robot: Robot,
        base: BaseParameters | None = None,
        *,
        motion_std: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    ) -> None:
        """Start without samples.

        Args:
            robot: Geometry and terms; friction is estimated if the robot has such terms (`Robot.with_terms`).
            base: The base parameters to estimate; those of every motion by default. Lin's own, with
                ``base_parameters(robot, method="minimal-combinations")``.
            motion_std: Standard deviations of the noise of positions, velocities and accelerations, each one number or
                (n,). Directions of the equations that are not far larger than the errors by this noise count as not
                excited. None for a motion that is exact.

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
        # for each link the matrix from its members to its kept parameters
        self._from_members = tuple(
            np.linalg.inv(matrix[np.ix_(rows, columns)]) for rows, columns in zip(self._members, own, strict=True)
        )
        # for each joint the places of its link's own parameters among those that act on the joint
        self._own = tuple(np.searchsorted(acting, places) for acting, places in zip(self._supports, own, strict=True))
        self._squares = np.zeros((robot.dof, self.kept.rank))  # of the columns of each joint's equations
        self._errors = [RowTriangle(len(support)) for support in self._supports]  # of the equations, by motion noise
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
        new = self._take({"q": q, "dq": dq, "ddq": ddq, "tau": tau}, valid)
        matrix = regressor(self.robot, *new.motion, columns=self.kept.columns) * new.valid[..., None]
        if self._std is not None:  # adding more noise of the same size changes the equations by about their errors
            noisy = [x + std * self._draws.normal(size=x.shape) for x, std in zip(new.motion, self._std, strict=True)]
            change = regressor(self.robot, *noisy, columns=self.kept.columns) * new.valid[..., None] - matrix
            for j, (errors, acting) in enumerate(zip(self._errors, self._supports, strict=True)):
                errors.update(change[:, j, acting])
        torque = new.tau[..., None]
        rows = [np.hstack([matrix[:, j, acting], torque[:, j]]) for j, acting in enumerate(self._supports)]
        self._blocks.append(rows, new.valid)
        self._squares += np.square(matrix).sum(axis=0)

    @property
    def excitation(self) -> tuple[LinkStep, ...]:
        """(n,) excitation of each link, from the base on ([Lin1995] Definition 2)."""
        return tuple(self._link_excitation(joint) for joint in range(self.robot.dof))

    @property
    def is_persistently_exciting(self) -> bool:
        """Whether the samples so far excite every link."""
        return all(link.is_persistently_exciting for link in self.excitation)

    def _link_excitation(self, joint: int) -> LinkStep:
        """Test whether the samples so far determine the own parameters of one link."""
        own = self._own[joint]
        from_members = self._from_members[joint]
        names = [self.base.names[place] for place in self._members[joint]]
        triangle = RowTriangle(len(own))
        triangle.update(self._blocks.total(joint).R[:, own])  # square root of M_i, [Lin1995] eq. (117)
        errors = None if self._std is None else self._errors[joint].R[:, own] @ from_members
        longest = float(np.sqrt(self._squares.max(initial=0.0)))
        resolved = resolve_columns(triangle.R @ from_members, RESOLUTION, longest, errors)
        return LinkStep(
            joint=self.robot.joint_names[joint],
            parameters=tuple(names),
            unexcited=tuple(compress(names, ~resolved.determined)),
            samples=int(self._blocks.counts[:, joint].sum()),
            condition=resolved.condition,
        )

    @property
    def equations(self) -> Factors:
        """The equations of all samples so far in kept parameters, for estimators of `Factors` such as `dynid.WLS`."""
        return factors_of(self.robot, self.kept, self._blocks.triangles, self._blocks.counts, supports=self._supports)

    def _solve(self) -> Estimate:
        errors = None if self._std is None else [errors.R for errors in self._errors]
        return replace(estimate_links(self.equations, errors), references=LinkByLink.references)
