"""The prior robot: unknowns scaled by it, and how strongly it draws them ([LeeWensingPark2020], constant pull-back).

The scaled unknowns y are, for every body, `svec` of its pseudo-inertia whitened by the prior's; then the parameters of
the robot's own terms over their prior values, or over a size that their joint's torque gives them; then those of
further terms over the size that the noise gives them.

For a prior with pseudo-inertia ``P0 = L L^T`` the whitened pseudo-inertia ``Q = L^-1 P L^-T`` of a body is the identity
where the body is the prior. It is positive definite exactly when the body is physical, and its distance from the
identity has no unit: the metric of [LeeWensingPark2020] (constant pull-back).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import eigh
from dynid.estimation.equations import Factors
from dynid.estimation.physical.conic import svec, unsvec
from dynid.findings import Finding
from dynid.robot.inertia import Inertia

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


def _parameters_of(pseudo: Floats) -> Floats:
    """(K, 10) ``XX XY XZ YY YZ ZZ MX MY MZ M`` of pseudo-inertias (K, 4, 4)."""
    xx, yy, zz, m = np.diagonal(pseudo, axis1=1, axis2=2).T
    xy, xz, yz = pseudo[:, 0, 1], pseudo[:, 0, 2], pseudo[:, 1, 2]
    first = pseudo[:, :3, 3].T
    return np.stack([yy + zz, -xy, -xz, xx + zz, -yz, xx + yy, *first, m], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class WhitenedBody:
    """Coordinates of a body relative to a prior one."""

    from_whitened: Floats
    """(10, 10) parameters = from_whitened @ svec(Q)"""
    findings: tuple[Finding, ...]
    """What had to be done to make the prior a possible body; empty where it is one."""

    @classmethod
    def around(cls, prior: Inertia, name: str, smallest: float = 1e-4) -> WhitenedBody:
        """Coordinates around a prior body; an impossible or massless prior is replaced by the nearest possible body.

        Args:
            prior: The prior's mass properties.
            name: Name of the link, for the finding.
            smallest: Smallest eigenvalue of the pseudo-inertia that is kept, relative to the largest.
        """
        pseudo, message = prior.pseudo, ""
        values, vectors = eigh(pseudo)
        if values[-1] <= 0.0 or prior.mass <= 0.0:
            message = f"'{name}' has no mass in the prior: a ball of 1 kg and 0.1 m is used instead"
            pseudo = np.diag([0.004, 0.004, 0.004, 1.0])
        elif values[0] < smallest * 1e-6 * values[-1]:
            message = f"'{name}' is not a possible body in the prior: the nearest possible body is used instead"
            pseudo = (vectors * np.maximum(values, smallest * values[-1])) @ vectors.T
        root = np.linalg.cholesky(pseudo)
        found = Finding(code="prior-replaced", severity="note", where=name, message=message)
        return cls(
            _parameters_of(root @ np.stack([unsvec(unit) for unit in np.eye(10)]) @ root.T).T,
            (found,) if message else (),
        )
