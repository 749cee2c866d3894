"""Causes why an arm, or one of its logs, does not fit the others: a load, a wrong gain of a torque, other links.

The equations of an arm, own unknowns eliminated, are ``R s + G d = z + noise`` of unit variance with the shared
parameters s and the errors d of the joints' torque gains. At the others' estimate s' with covariance C the difference
``z - R s'`` has the covariance ``I + R C R^T``. A load changes s by ``D x``, so its columns are ``R D``; that of a
gain is one column of G. What the columns of a cause explain of the whitened difference is its gain of likelihood;
without any cause the gain of rank k follows chi^2_k.

Friction and offsets are own unknowns, free in every comparison: what they can explain is never put down to a load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Floats
from dynid.decompositions import svd
from dynid.fleet.pooling import Pool, solve_shared
from dynid.parameters.base_set import BaseParameters
from dynid.robot.model import Robot

RESOLUTION = 1e-8
"""Relative singular value of a cause's columns below which a direction is not determined (convention)."""
SPARE_GAIN = 2.0
"""Gain per further parameter, in units of the usual one, that a general change may have beyond a load before it is
preferred (convention: twice what chance gives)."""
SPARE_SHARE = 5e-3
"""Share of the gain that a load or a gain of a torque need not explain to be preferred (convention: no model is
perfect; torques of a load that are wrong by 7 %, as by friction that grows with it, leave this share). Simulated arms
with other links, which leave 0.003 to 0.2 beside a load, were in view."""
OPEN = 1e-6
"""Share of a cause's parameter in a direction without equations that leaves it open (as for single robots)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cause:
    """What may be different."""

    kind: str
    """``load``, ``gain`` or ``links`` (any change of the shared parameters)."""
    name: str = ""
    """Link that would carry a load, or joint whose torque is measured wrongly."""
    directions: Floats | None = None
    """(s, k) change of the shared parameters per unit; for a load its ten parameters, the mass last."""
    joint: int = -1
    """Number of the joint of a gain."""


def possible_causes(robot: Robot, base: BaseParameters, pool: Pool) -> list[Cause]:
    """Loads on the last bodies, gains of the torques where they are not own parameters, and any change of the links."""
    parents = {body.parent for body in robot.bodies}
    rows = list(pool.shared_places)
    loads = [
        Cause(kind="load", name=body.joint.child, directions=base.grouping[rows][:, 10 * j : 10 * j + 10])
        for j, body in enumerate(robot.bodies)
        if j not in parents
    ]
    fixed = enumerate(robot.joint_names) if pool.gain_spread == 0.0 else ()
    gains = [Cause(kind="gain", name=name, joint=j) for j, name in fixed]
    return [*loads, *gains, Cause(kind="links", directions=np.eye(len(rows)))]


@dataclass(frozen=True, slots=True, eq=False)
class Gain:
    """What a cause explains of a difference."""

    size: float
    rank: int
    change: Floats
    """(k,) the cause's parameters."""
    std: Floats
    """(k,) their standard deviations; infinite where they are not determined."""

    def chance(self, usual: float, alike: int) -> float:
        """Probability of such a gain without any cause, where `alike` others told the usual one."""
        from scipy.special import fdtrc

        if not self.rank:
            return 1.0
        return float(fdtrc(self.rank, self.rank * max(alike - 1, 1), self.size / (self.rank * usual)))


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One arm or log beside others, whitened."""

    x: Floats
    """(m,) difference, of unit variance."""
    shared: Floats
    """(m, s) columns of the shared parameters."""
    gains: Floats
    """(m, n) columns of the gains."""

    def gain(self, cause: Cause) -> Gain:
        """What a cause explains."""
        columns = self.gains[:, [cause.joint]] if cause.directions is None else self.shared @ cause.directions
        scale = np.linalg.norm(columns, axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        U, values, Vt = svd(columns / scale, full_matrices=False)
        good = values > RESOLUTION * max(float(values.max(initial=0.0)), 1e-300)
        inverse = (Vt[good].T / values[good]) / scale[:, None]
        part = U[:, good].T @ self.x
        is_open = np.any(np.abs(Vt[~good]) > OPEN, axis=0) if np.any(~good) else np.zeros(len(scale), dtype=bool)
        std = np.where(is_open, np.inf, np.linalg.norm(inverse, axis=1))
        return Gain(float(part @ part), int(np.count_nonzero(good)), inverse @ part, std)


def compare(triangle: Floats, others: Sequence[Floats], shared: int) -> Comparison:
    """Set one arm or log against others.

    Args:
        triangle: (m + 1, s + n + 1) its equations, see `without_own`.
        others: (., s + 1) equations of the others.
        shared: Number s of shared parameters.
    """
    value, covariance, null = solve_shared(others)
    R, G, z = triangle[:-1, :shared], triangle[:-1, shared:-1], triangle[:-1, -1]
    x = z - R @ value
    if null.size:  # directions that the others leave open say nothing about a difference
        U = svd(R @ null, full_matrices=False)[0]
        R, G, x = R - U @ (U.T @ R), G - U @ (U.T @ G), x - U @ (U.T @ x)
    root = np.linalg.cholesky(np.eye(len(x)) + R @ covariance @ R.T)
    return Comparison(*(np.linalg.solve(root, part) for part in (x, R, G)))


def usual_gain(gains: Sequence[Gain]) -> float:
    """How much larger the gains of those that are alike are than noise makes them; at least one."""
    from scipy.special import chdtri

    ratios = [gain.size / float(chdtri(gain.rank, 0.5)) for gain in gains if gain.rank]
    return max(1.0, float(np.median(ratios))) if ratios else 1.0


def likeliest(causes: Sequence[Cause], gains: Sequence[Gain], usual: Sequence[float]) -> int:
    """Number of the cause that explains a difference best; loads and gains of torques before links in general.

    A load or gain that leaves more than a share of the largest gain unexplained, beyond what further parameters would
    explain by chance, is no explanation: then the links differ.
    """
    most = max(range(len(causes)), key=lambda k: gains[k].size)
    best = gains[most]
    simple = [
        k
        for k, cause in enumerate(causes)
        if cause.kind != "links"
        and best.size - gains[k].size
        <= usual[most] * SPARE_GAIN * max(best.rank - gains[k].rank, 1) + SPARE_SHARE * best.size
    ]
    if not simple:
        return next((k for k, cause in enumerate(causes) if cause.kind == "links"), most)
    return max(simple, key=lambda k: gains[k].size / usual[most] - SPARE_GAIN * gains[k].rank)
