"""The prior: unknowns scaled by the prior robot, their prior means and weights ([LeeWensingPark2020]).

The p + k scaled unknowns y are, in this order,

- ten numbers per body: `svec` of its 4 x 4 pseudo-inertia, whitened by that of the prior (see below);
- the parameters of the robot's own terms over their prior values or, if the prior has none, over usual sizes;
- the parameters of the k further terms over a size that the noise gives them.

For a prior body with pseudo-inertia ``P0 = L L^T`` the whitened pseudo-inertia ``Q = L^-1 P L^-T`` of a body P is the
identity if P is P0. It is positive definite exactly when the body is possible, and its distance from the identity has
no unit: the metric that [LeeWensingPark2020] calls constant pull-back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.array_types import Floats
from dynid.decompositions import eigh
from dynid.estimators.equations import Factors
from dynid.estimators.physical.conic import svec, unsvec
from dynid.findings import Finding
from dynid.robot.inertia import Inertia

IDENTITY = svec(np.eye(4))
"""(10,) scaled unknowns of a body that equals its prior."""
ROUGH_PULL = 1e-2
"""Prior weight of what is known up to a factor of ten only: friction, and bodies without mass in the prior
(convention)."""
FURTHER_TERM_SIZE = 1000.0
"""Unit of a further term's unknown: its torque over all samples, in standard deviations of the noise (convention: the
prior acts only on larger terms)."""


@dataclass(frozen=True, slots=True, eq=False)
class PriorCoordinates:
    """The scaled unknowns y (p + k,) around a prior robot."""

    from_scaled: Floats
    """(p + k, p + k) standard parameters and further terms = from_scaled @ y."""
    centre: Floats
    """(p + k,) prior mean of each unknown."""
    pull: Floats
    """(p + k,) prior information (inverse variance) of each unknown, relative to the weight of the prior."""
    findings: tuple[Finding, ...]
    """What had to be changed to make the prior possible."""

    @classmethod
    def of(cls, equations: Factors, lengths: Floats) -> PriorCoordinates:
        """Make the scaled unknowns around the robot of some equations.

        Args:
            equations: The equations; the parameters of their robot are the prior.
            lengths: (k,) lengths of the weighted columns of the further terms, which give their sizes.
        """
        robot = equations.robot
        bodies = [WhitenedBody.around(body.inertia, body.joint.child) for body in robot.bodies]
        own = robot.parameter_vector[10 * robot.dof :]
        known = np.isfinite(lengths) & (lengths > 0.0)  # a joint at rest has no column
        further = FURTHER_TERM_SIZE / np.where(known, lengths, 1.0)
        size = np.concatenate([np.where(own != 0.0, np.abs(own), usual_sizes(equations)), further])
        links = 10 * len(bodies)
        count = links + size.size
        from_scaled = np.zeros((count, count))
        for j, body in enumerate(bodies):
            from_scaled[10 * j : 10 * j + 10, 10 * j : 10 * j + 10] = body.from_whitened
        from_scaled[range(links, count), range(links, count)] = size
        # further terms have prior mean zero: of those that the data cannot tell apart each stays small
        term_centre = np.concatenate([own, np.zeros(lengths.size)]) / size
        term_pull = np.concatenate([np.where(own != 0.0, ROUGH_PULL, 1.0), np.ones(lengths.size)])
        body_pull = np.repeat([1.0 if body.inertia.mass > 0.0 else ROUGH_PULL for body in robot.bodies], 10)
        return cls(
            from_scaled=from_scaled,
            centre=np.concatenate([np.tile(IDENTITY, len(bodies)), term_centre]),
            pull=np.concatenate([body_pull, term_pull]),
            findings=tuple(finding for body in bodies for finding in body.findings),
        )


def usual_sizes(equations: Factors) -> Floats:
    """Compute usual sizes (p - 10 n,) of the robot's own terms, for those without a prior value.

    At the speed (or acceleration) of the fastest joint, a term of usual size has the torque of its own joint. So a
    joint that was slow in training does not get a viscous friction that stalls it at the speed of the others.
    """
    information = equations.information
    first = 10 * equations.robot.dof  # place of the first term's parameter: each link has ten
    columns = equations.base.grouping[:, first:]
    strengths = np.zeros((information.dof, columns.shape[1]))  # RMS torque of each joint per unit of each term
    torques = np.zeros(information.dof)  # RMS torque of each joint
    for joint, support in enumerate(information.supports):
        rigid = [place for place, column in enumerate(support) if column < len(columns)]  # without further terms
        rows = information.factor(joint) / np.sqrt(max(1, equations.counts[joint]))
        strengths[joint] = np.linalg.norm(rows[:, rigid] @ columns[[support[place] for place in rigid]], axis=0)
        torques[joint] = np.linalg.norm(rows[:, -1])
    kinds = np.array([name.rstrip("0123456789") for name in equations.base.layout.names[first:]])  # FV3 -> FV
    fastest = np.array([strengths[:, kinds == kind].max() for kind in kinds])
    sizes = torques[strengths.argmax(axis=0)] / np.where(fastest > 0.0, fastest, 1.0)
    return np.where(sizes > 0.0, sizes, 1.0)


def _parameters_of(pseudo: Floats) -> Floats:
    """Compute the parameters ``XX XY XZ YY YZ ZZ MX MY MZ M`` (K, 10) of pseudo-inertias (K, 4, 4)."""
    xx, yy, zz, m = np.diagonal(pseudo, axis1=1, axis2=2).T
    xy, xz, yz = pseudo[:, 0, 1], pseudo[:, 0, 2], pseudo[:, 1, 2]
    first = pseudo[:, :3, 3].T
    return np.stack([yy + zz, -xy, -xz, xx + zz, -yz, xx + yy, *first, m], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class WhitenedBody:
    """Whitened coordinates of a body relative to a prior body."""

    from_whitened: Floats
    """(10, 10) parameters = from_whitened @ svec(Q)."""
    findings: tuple[Finding, ...]
    """What had to be changed to make the prior a possible body; empty if it is one."""

    @classmethod
    def around(cls, prior: Inertia, name: str) -> WhitenedBody:
        """Make the coordinates around a prior body; one that is impossible or without mass is replaced.

        Args:
            prior: The prior's mass properties.
            name: Name of the link, for the finding.
        """
        pseudo = prior.pseudo
        message = ""
        values, vectors = eigh(pseudo)
        if prior.mass <= 0.0:
            message = f"'{name}' has no mass in the prior: a ball of 1 kg and 0.14 m is used instead"
            pseudo = np.diag([0.004, 0.004, 0.004, 1.0])  # second moments [kg m^2] and mass [kg]
        elif values[0] < 1e-10 * values[-1]:  # thin bodies stay: only rounding and less is replaced
            message = f"'{name}' is not a possible body in the prior: the nearest possible body is used instead"
            pseudo = (vectors * np.maximum(values, 1e-4 * values[-1])) @ vectors.T
        root = np.linalg.cholesky(pseudo)
        found = Finding(code="prior-replaced", severity="note", where=name, message=message)
        return cls(
            _parameters_of(root @ np.stack([unsvec(unit) for unit in np.eye(10)]) @ root.T).T,
            (found,) if message else (),
        )
