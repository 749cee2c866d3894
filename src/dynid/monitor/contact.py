"""The link that was touched, and the force and moment of the contact, from torques from outside.

Torques from outside (n,) are what `dynid.monitor.MomentumObserver` estimates. A push on a link reaches only the joints
between the base and this link. The wrench F follows from ``tau = J^T F`` as a posterior mean: with noise of covariance
S and a prior of covariance P, F has the covariance ``(J S^-1 J^T + P^-1)^-1``. The prior says how large a contact can
be. Components that the posture does not show stay near zero with the uncertainty of the prior, and are named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.array_types import Floats
from dynid.checks import as_row
from dynid.compiled import link_jacobian, link_pose
from dynid.errors import ArgumentError
from dynid.estimators.estimate import TWO_SIDED_95
from dynid.robot.model import Robot

FORCE_N = 300.0
"""Standard deviation of the forces of contacts [N] (convention: above what people and most collisions exert)."""
MOMENT_NM = 30.0
"""Standard deviation of the moments of contacts [N m] (convention: the force at a tenth of a metre)."""
FAINT_N, FAINT_NM = 10.0, 1.0
"""Force [N] and moment [N m] of a light touch (convention): a component is undetermined where its interval holds zero
and reaches beyond them."""
HELPER_MASS_SHARE = 0.05
"""Share of a body's mass below which a link is an auxiliary frame without a mass of its own (convention)."""
SURE_DEVIATIONS = 3.0
"""Size of a torque in standard deviations above which a joint is surely reached (convention: three sigma)."""
AXES = ("fx", "fy", "fz", "mx", "my", "mz")
UNITS = ("N", "N", "N", "N m", "N m", "N m")


@dataclass(frozen=True, slots=True, eq=False)
class ContactWrench:
    """Force and moment on a link at a point, in the axes of the base."""

    link: str
    """Name of the link."""
    point: Floats
    """(3,) point in the link's frame [m]."""
    wrench: Floats
    """(6,) force [N], then moment about the point [N m]; (3,) force alone if the contact exerts no moment."""
    covariance: Floats
    """(6, 6) or (3, 3) covariance of the wrench."""
    determined: NDArray[np.bool_]
    """(6,) or (3,) whether the 95 % interval of each component excludes zero, or holds values of a light touch only."""

    @property
    def force(self) -> Floats:
        """(3,) force [N]."""
        return self.wrench[:3]

    @property
    def stderr(self) -> Floats:
        """Standard deviation of each component."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def sentence(self) -> str:
        """The determined components with units and 95 % intervals, then the undetermined ones."""
        components = zip(AXES, UNITS, self.wrench, TWO_SIDED_95 * self.stderr, self.determined, strict=False)
        determined = []
        undetermined = []
        for name, unit, value, half, is_determined in components:
            interval = f"± {float(f'{half:.2g}'):g} {unit}"  # 590, not 5.9e+02
            if is_determined:
                determined.append(f"{name} {value:.3g} {interval}")
            else:
                undetermined.append(f"{name} ({interval})")
        known = f"{', '.join(determined)} (95 % intervals)" if determined else "no component is told"
        unknown = f"; posture and noise do not tell {', '.join(undetermined)}" if undetermined else ""
        return f"{self.link}: {known}{unknown}"


@dataclass(frozen=True, slots=True)
class TouchedLink:
    """The link that a push acts on."""

    link: str | None
    """None where no joint is surely reached: nothing touches the arm, or nothing that moves."""
    body: int
    """Index of the moving body, from the base on; -1 where no joint is reached."""
    excess: float
    """Torque of the last joint that is reached, in standard deviations; where none is, the largest one."""

    @property
    def sentence(self) -> str:
        """Which link was touched, if any."""
        size = f"{self.excess:.1f} standard deviations"
        if self.link is None:
            return f"nothing surely touches a moving link: the largest torque is {size}"
        return f"{self.link} was touched: the torque of its joint is {size}"


def contact_wrench(
    robot: Robot,
    link: str,
    q: ArrayLike,
    external: ArrayLike,
    std: ArrayLike,
    *,
    point: ArrayLike = (0.0, 0.0, 0.0),
    with_moment: bool = True,
) -> ContactWrench:
    """Estimate the wrench of a contact on a link, with its covariance.

    Args:
        robot: Geometry.
        link: The link that was touched.
        q: (n,) joint positions [rad or m].
        external: (n,) torques from outside [N m or N].
        std: (n,) their standard deviations, or one for all.
        point: (3,) point of the contact in the link's frame [m].
        with_moment: Whether the contact exerts a moment, too; a finger or an edge does not.

    Example:
        >>> found = dynid.monitor.contact_wrench(robot, "link3", q, [1.0, 0.0, 0.0], 0.1)
        >>> found.wrench.shape
        (6,)
    """
    torque = as_row("external", external, robot.dof)
    spread = as_row("std", std, robot.dof, same=True, above=0.0)
    J = _jacobian_at(robot, link, np.asarray(q, dtype=float), as_row("point", point, 3))
    prior = np.array([FORCE_N] * 3 + [MOMENT_NM] * 3)
    if not with_moment:
        J, prior = J[:3], prior[:3]
    weighted = J / spread  # J S^-1/2, (6, n): posterior of normal noise and prior
    covariance = np.asarray(np.linalg.inv(weighted @ weighted.T + np.diag(prior**-2)), dtype=np.float64)
    wrench = np.asarray(covariance @ (weighted @ (torque / spread)), dtype=np.float64)
    half = TWO_SIDED_95 * np.sqrt(np.diag(covariance))
    faint = np.array([FAINT_N] * 3 + [FAINT_NM] * 3)[: len(prior)]
    determined = (np.abs(wrench) > half) | (np.abs(wrench) + half < faint)
    return ContactWrench(link, as_row("point", point, 3), wrench, covariance, determined)


def _jacobian_at(robot: Robot, link: str, q: Floats, point: Floats) -> Floats:
    """Compute the Jacobian (6, n) of a point (3,) of a link, in the axes of the base."""
    J = np.array(link_jacobian(robot, link, q))
    x, y, z = link_pose(robot, link, q)[:3, :3] @ point
    cross = np.array([[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]])  # minus the matrix of (x, y, z) x
    J[:3] += cross @ J[3:]
    return J


def find_touched_link(robot: Robot, external: ArrayLike, std: ArrayLike) -> TouchedLink:
    """Find the link that was touched: the last one whose joint is surely reached.

    It is that with the most joints between it and the base; of several branches that with the largest torque.

    Args:
        robot: Geometry.
        external: (n,) torques from outside [N m or N].
        std: (n,) their standard deviations, or one for all.

    Raises:
        ArgumentError: The robot has no moving joint.

    Example:
        >>> dynid.monitor.find_touched_link(robot, [3.0, 1.0, 0.0], 0.1).link
        'link2'
    """
    if robot.dof == 0:
        raise ArgumentError("the robot has no moving joint", remedy="Give it a joint that is not fixed.")
    size = np.abs(as_row("external", external, robot.dof) / as_row("std", std, robot.dof, same=True, above=0.0))
    reached = np.flatnonzero(size > SURE_DEVIATIONS)  # indices of joints and of the bodies that they move
    if not reached.size:
        return TouchedLink(None, -1, float(size.max()))
    depth = [len(_ancestors(robot, int(j))) for j in reached]
    best = max(range(len(reached)), key=lambda k: (depth[k], size[reached[k]]))
    last = int(reached[best])
    return TouchedLink(_main_link(robot, last), last, float(size[last]))


def _main_link(robot: Robot, body: int) -> str:
    """Name the link that a joint carries; where that is almost without mass, the heaviest link fixed to it."""
    masses = {name: robot.link(name).inertia.mass for name, _ in robot.bodies[body].members}
    child = robot.bodies[body].joint.child
    has_mass = masses[child] >= HELPER_MASS_SHARE * sum(masses.values())
    return child if has_mass else max(masses, key=lambda name: masses[name])


def _ancestors(robot: Robot, body: int) -> list[int]:
    """List the bodies from one back to the base."""
    chain = []
    while body >= 0:
        chain.append(body)
        body = robot.bodies[body].parent
    return chain
