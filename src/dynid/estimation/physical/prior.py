"""The prior robot: unknowns scaled by it, and how strongly it draws them ([LeeWensingPark2020], constant pull-back).

The scaled unknowns y are, for every body, `svec` of its pseudo-inertia whitened by the prior's; then the parameters of
the robot's own terms over their prior values, or over a size that their joint's torque gives them; then those of
further terms over the size that the noise gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.equations import Factors
from dynid.estimation.physical.pseudo_inertia import WhitenedBody, svec
from dynid.findings import Finding

IDENTITY = svec(np.eye(4))
"""(10,) the scaled unknowns of a body that is the prior."""
ROUGH = 1e-2
"""Pull of what is known to a factor, not to a percent (convention): friction, and a body that the prior leaves out."""
FURTHER_TERM_SIZE = 1000.0
"""Torque of a further term, over all samples and in units of the noise, from which on the prior holds it back."""


@dataclass(frozen=True, slots=True, eq=False)
class PriorCoordinates:
    """Scaled unknowns y (p + k,) around a robot."""

    from_scaled: Floats
    """(p + k, p + k) standard parameters and terms = from_scaled @ y"""
    centre: Floats
    """(p + k,) the prior's y"""
    pull: Floats
    """(p + k,) how strongly each y is drawn to the centre, relative to the weight"""
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, equations: Factors, lengths: Floats) -> PriorCoordinates:
        """Around the robot of some equations; lengths (k,) of weighted columns scale the further terms."""
        robot = equations.robot
        bodies = [WhitenedBody.around(body.inertia, body.joint.child) for body in robot.bodies]
        own = robot.parameter_vector[10 * robot.dof :]
        known = np.isfinite(lengths) & (lengths > 0.0)  # a joint at rest has no column
        further = FURTHER_TERM_SIZE / np.where(known, lengths, 1.0)
        size = np.concatenate([np.where(own != 0.0, np.abs(own), usual_sizes(equations)), further])
        links, count = 10 * len(bodies), 10 * len(bodies) + size.size
        from_scaled = np.zeros((count, count))
        for j, body in enumerate(bodies):
            from_scaled[10 * j : 10 * j + 10, 10 * j : 10 * j + 10] = body.from_whitened
        from_scaled[range(links, count), range(links, count)] = size
        # further terms compete with one another: what the data cannot tell apart stays small
        centre = np.concatenate([own, np.zeros(lengths.size)]) / size
        pull = np.concatenate([np.where(own != 0.0, ROUGH, 1.0), np.ones(lengths.size)])
        return cls(
            from_scaled=from_scaled,
            centre=np.concatenate([np.tile(IDENTITY, len(bodies)), centre]),
            pull=np.concatenate(
                [np.repeat([1.0 if body.inertia.mass > 0.0 else ROUGH for body in robot.bodies], 10), pull]
            ),
            findings=tuple(finding for body in bodies for finding in body.findings),
        )


def usual_sizes(equations: Factors) -> Floats:
    """(p - 10 n,) sizes of the robot's own terms that the prior does not know.

    At the speed, or acceleration, of the joint that moves fastest, a term is of the size of its own joint's torque.
    So a joint that was slow in training does not get a viscous friction that stalls it at the speed of the others.
    """
    information, first = equations.information, 10 * equations.robot.dof
    columns = equations.base.grouping[:, first:]
    strengths, torques = np.zeros((information.dof, columns.shape[1])), np.zeros(information.dof)
    for joint, support in enumerate(information.supports):
        rigid = [place for place, column in enumerate(support) if column < len(columns)]
        rows = information.factor(joint) / np.sqrt(max(1, equations.counts[joint]))
        strengths[joint] = np.linalg.norm(rows[:, rigid] @ columns[[support[place] for place in rigid]], axis=0)
        torques[joint] = np.linalg.norm(rows[:, -1])
    kinds = np.array([name.rstrip("0123456789") for name in equations.base.layout.names[first:]])
    fastest = np.array([strengths[:, kinds == kind].max() for kind in kinds])
    sizes = torques[strengths.argmax(axis=0)] / np.where(fastest > 0.0, fastest, 1.0)
    return np.where(sizes > 0.0, sizes, 1.0)
