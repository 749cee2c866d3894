"""The friction of each joint as a whole: a curve of torque over speed, and Coulomb and viscous friction.

Several terms can share the friction of one joint, so that a single coefficient is only a part of it. What a person can
compare with a data sheet is the sum of all terms at constant speed (`Term.steady_torque`): the curve of the rich model.
Coulomb and viscous friction are the coefficients of the plain model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynid.array_types import Bools, Floats
from dynid.decompositions import pinv
from dynid.estimators.estimate import TWO_SIDED_95
from dynid.estimators.physical.passivity import all_terms, placed_terms
from dynid.estimators.rows import torque_along
from dynid.processing.experiment import Experiment, matched_runs
from dynid.tables import Table
from dynid.terms.base import Reference, SteadyMotion, Surface, Term
from dynid.terms.friction import Coulomb, Viscous

if TYPE_CHECKING:  # an identification looks down at its friction
    from dynid.identification.identify import Identification

SPEEDS = np.concatenate([np.geomspace(0.01, 0.1, 11)[:-1], np.linspace(0.1, 1.0, 19)])
"""Speeds of a curve, as parts of the joint's highest speed in the data; closer together near rest."""
STATED = (0.1, 0.5, 1.0)
"""Members of `SPEEDS` that tables state."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its standard deviation."""

    value: float
    stderr: float
    """Standard deviation, in the unit of the value; infinite if the data do not determine it."""

    @property
    def text(self) -> str:
        """The value and half of its 95 % interval, both rounded to the second significant digit of the latter."""
        if not np.isfinite(self.stderr):
            return f"{self.value:.3g} (open)"
        if not self.stderr > 0.0:
            return f"{self.value:.3g}"
        half = TWO_SIDED_95 * self.stderr
        digits = max(0, 1 - int(np.floor(np.log10(half))))
        return f"{self.value:.{digits}f}\u00a0±\u00a0{half:.{digits}f}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointFriction:
    """The friction of one joint, or of one motor that turns several joints, at constant speed."""

    name: str
    """The joint, or the joints joined by ``+``."""
    unit: str
    """``N m`` or ``N``."""
    dry: Figure
    """Coulomb friction of the plain model [N m or N]."""
    viscous: Figure
    """Viscous friction of the plain model [N m s/rad or N s/m]."""
    speed: Floats
    """(m,) ascending speeds, the negative ones mirroring the positive ones [rad/s or m/s]."""
    torque: Floats
    """(m,) friction of the rich model at these speeds and at the mean load of the data [N m or N]."""
    stderr: Floats
    """(m,) standard deviation of this torque [N m or N]."""
    load: float
    """Mean magnitude of the links' torque on the joint in the data, for which the curve holds [N m or N]."""
    terms: tuple[str, ...]
    """Names of the parameters of the rich model that carry the friction."""

    @property
    def speed_unit(self) -> str:
        """``rad/s`` or ``m/s``."""
        return "m/s" if self.unit == "N" else "rad/s"

    @property
    def viscous_unit(self) -> str:
        """``N m s/rad`` or ``N s/m``."""
        return "N s/m" if self.unit == "N" else "N m s/rad"

    @property
    def line(self) -> tuple[Figure, Figure]:
        """Dry and viscous friction of the straight line that fits the curve best.

        Lines of different models are comparable, whichever terms carry the friction in them.
        """
        dry, viscous = pinv(np.column_stack([np.sign(self.speed), self.speed])) @ self.torque
        return Figure(float(dry), self.dry.stderr), Figure(float(viscous), self.viscous.stderr)

    def at(self, part: float) -> tuple[float, Figure]:
        """Look up the curve at a part of the highest speed; return that speed and the mean of both directions."""
        half = self.speed.size // 2  # the first positive speed
        place = half + int(np.argmin(np.abs(self.speed[half:] - part * self.speed[-1])))
        mirrored = self.speed.size - 1 - place
        torque = 0.5 * (self.torque[place] - self.torque[mirrored])  # friction changes its sign with the direction
        spread = 0.5 * (self.stderr[place] + self.stderr[mirrored])
        return float(self.speed[place]), Figure(float(torque), float(spread))


def friction_table(joints: Sequence[JointFriction], stated: Sequence[float] = STATED) -> Table:
    """Show one row per joint: Coulomb and viscous friction of the plain model, and the rich curve at stated speeds.

    Args:
        joints: The joints.
        stated: Speeds of the curve, as parts of the highest.
    """
    header = ["joint", "unit", "Coulomb ±95 %", "viscous ±95 %"]
    header += [f"at {100 * part:g} % of the speed" for part in stated]
    rows = []
    for joint in joints:
        found = [joint.at(part) for part in stated]
        curve = [f"{figure.text} ({speed:.2g} {joint.speed_unit})" for speed, figure in found]
        rows.append((joint.name, joint.unit, joint.dry.text, joint.viscous.text, *curve))
    return Table.of(header, rows)


def joint_friction(fit: Identification, runs: Sequence[Experiment] | None = None) -> tuple[JointFriction, ...]:
    """Compute the friction of every joint and coupled motor, with the uncertainty of the estimate.

    Args:
        fit: The identification.
        runs: Experiments whose speeds and loads the curves cover; those of the identification by default.

    Example:
        >>> [friction.name for friction in dynid.identification.joint_friction(fit)]
        ['joint1', 'joint2', 'joint3']
    """
    used = [run for run in matched_runs(fit.robot, runs or fit.equations.excerpts) if run.samples]
    names = fit.robot.joint_names
    # surface -> its terms, each with its place among the parameters: links, own terms of the robot, further terms
    members: dict[Surface, list[tuple[int, Term]]] = {}
    for place, term in enumerate(all_terms(fit.equations), start=10 * fit.robot.dof):
        surface = term.surface(names)
        if surface is not None:
            members.setdefault(surface, []).append((place, term))
    links = Reference(fit.rich.theta).of_links(fit.robot.dof)
    loads = [np.where(run.valid, np.abs(torque_along(fit.robot, links.theta, run)), np.nan) for run in used]
    every = np.concatenate([np.zeros((0, fit.robot.dof)), *loads])
    load = np.nansum(every, axis=0) / np.maximum(np.isfinite(every).sum(axis=0), 1)
    # joints first, then motors; the load of a motor is that of its last joint
    found = (
        _of_surface(fit, surface, members[surface], used, float(load[surface[-1][0]]))
        for surface in sorted(members, key=lambda surface: (len(surface), surface))
    )
    return tuple(friction for friction in found if friction is not None)


def _of_surface(
    fit: Identification, surface: Surface, members: Sequence[tuple[int, Term]], runs: Sequence[Experiment], load: float
) -> JointFriction | None:
    """Compute the friction of one surface.

    Args:
        fit: The identification.
        surface: A joint, or a motor by its joints: pairs of joint index and ratio.
        members: Its terms, each with its place among all parameters.
        runs: Experiments whose speeds the curve covers.
        load: Magnitude of the links' torque for which the curve holds [N m or N].

    Returns:
        The friction; None if the terms have no torque at constant speed.
    """
    joint = surface[-1][0]
    body = fit.robot.bodies[joint]
    limit = fit.robot.moving_joints[joint].limits.velocity
    fastest = [np.abs(sum(ratio * run.dq[:, j] for j, ratio in surface)).max(initial=0.0) for run in runs]
    # without motion in the data: the speed limit of the joint, or 1 rad/s
    high = float(max(fastest, default=0.0)) or (limit if np.isfinite(limit) else 1.0)
    speed = high * np.concatenate([-SPEEDS[::-1], SPEEDS])
    steady = SteadyMotion(q=np.zeros_like(speed), speed=speed, load=np.full(speed.size, load))
    columns = np.column_stack([term.steady_torque(steady) for _, term in members])  # (m, k) per unit of each parameter
    acting = np.asarray(columns.any(axis=0))
    if not acting.any():
        return None
    columns = columns[:, acting]
    places = [place for (place, _), acts in zip(members, acting, strict=True) if acts]
    values, rows, known = _parameters(fit, places)
    size = fit.rich.theta.size

    def spread(table: Floats) -> Floats:
        """Standard deviations of ``table @ values``; infinite if an unknown parameter takes part."""
        return np.where((table[:, ~known] != 0.0).any(axis=1), np.inf, fit.in_columns.estimate.spread(table @ rows))

    # Coulomb and viscous friction get the standard deviations of the straight line that fits the curve best
    line = pinv(np.column_stack([np.sign(speed), speed])) @ columns
    dry, viscous = spread(line)
    # the robot's own terms with their parameters in the plain model
    own = zip(placed_terms(fit.robot), fit.plain.theta[10 * fit.robot.dof :].tolist(), strict=True)
    plain = {(type(term), term.surface(fit.robot.joint_names)): value for term, value in own}
    return JointFriction(
        name="+".join(fit.robot.joint_names[j] for j, _ in surface),
        unit="N" if body.is_prismatic else "N m",
        dry=Figure(plain.get((Coulomb, surface), 0.0), float(dry)),
        viscous=Figure(plain.get((Viscous, surface), 0.0), float(viscous)),
        speed=speed,
        torque=columns @ values,
        stderr=spread(columns),
        load=load,
        terms=tuple(fit.base.layout.names[p] if p < size else fit.rich.terms[p - size].name for p in places),
    )


def _parameters(fit: Identification, places: Sequence[int]) -> tuple[Floats, Floats, Bools]:
    """Look up parameters of the rich model.

    Args:
        fit: The identification.
        places: k places among the standard parameters and, behind them, the further terms.

    Returns:
        Their values (k,), the matrix (k, b) that picks them from the estimated parameters (a zero row if unknown), and
        whether each is known (k,).
    """
    size = fit.rich.theta.size
    base = fit.equations.base
    estimate = fit.in_columns.estimate
    alone = base.rows_alone  # a parameter that is grouped with others has no row of its own: -1
    rows = [alone.get(place, -1) if place < size else base.rank + place - size for place in places]
    every = np.concatenate([fit.rich.theta, [term.value for term in fit.rich.terms]])
    known = np.array([row >= 0 and not estimate.undetermined[row] for row in rows])
    return every[list(places)], np.eye(len(estimate.names))[rows] * known[:, None], known
