"""The friction of each joint as a whole: what the model does at stated speeds, whichever terms carry it.

Several terms can share the friction of one joint, so that a single coefficient is a part of it only. The torque against
the motion at constant speed (`Term.steady_torque`) is what a person can compare with a data sheet; Coulomb and viscous
friction are those of the plain model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dynid.arrays import Bools, Floats
from dynid.decompositions import pinv
from dynid.estimation.estimate import TWO_SIDED_95
from dynid.estimation.physical.passivity import all_terms, own_terms
from dynid.estimation.rows import torque_along
from dynid.processing.experiment import Experiment, matched_runs
from dynid.tables import Table
from dynid.terms.base import Reference, SteadyMotion, Surface, Term
from dynid.terms.friction import Coulomb, Viscous

if TYPE_CHECKING:  # an identification looks down at its friction
    from dynid.identification.identify import Identification

SPEEDS = np.concatenate([np.geomspace(0.01, 0.1, 11)[:-1], np.linspace(0.1, 1.0, 19)])
"""Speeds of a curve, as parts of the joint's highest in the data."""
STATED = (0.1, 0.5, 1.0)
"""Those of them that tables state."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its standard deviation; infinite where the data do not determine it."""

    value: float
    stderr: float

    @property
    def text(self) -> str:
        """The value and half of its 95 % interval, both rounded to the second digit of the latter."""
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
    """(m,) ascending speeds in both directions [rad/s or m/s]."""
    torque: Floats
    """(m,) torque of the rich model against the motion at the mean load of the data [N m or N]."""
    stderr: Floats
    """(m,) its standard deviation [N m or N]."""
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
        """Dry and viscous friction as a straight line through the curve: comparable whichever terms carry them."""
        dry, viscous = pinv(np.column_stack([np.sign(self.speed), self.speed])) @ self.torque
        return Figure(float(dry), self.dry.stderr), Figure(float(viscous), self.viscous.stderr)

    def at(self, part: float) -> tuple[float, Figure]:
        """The speed that is a part of the highest, and the friction there, mean of both directions."""
        half = self.speed.size // 2
        place = half + int(np.argmin(np.abs(self.speed[half:] - part * self.speed[-1])))
        mirrored = self.speed.size - 1 - place
        torque = 0.5 * (self.torque[place] - self.torque[mirrored])
        spread = 0.5 * (self.stderr[place] + self.stderr[mirrored])
        return float(self.speed[place]), Figure(float(torque), float(spread))


def friction_table(joints: Sequence[JointFriction], stated: Sequence[float] = STATED) -> Table:
    """Friction by joint name: Coulomb and viscous of the plain model, and what the rich model does at stated speeds."""
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
    members: dict[Surface, list[tuple[int, Term]]] = {}
    for place, term in enumerate(all_terms(fit.equations), start=10 * fit.robot.dof):
        surface = term.surface(names)
        if surface is not None:
            members.setdefault(surface, []).append((place, term))
    links = Reference(fit.rich.theta).of_links(fit.robot.dof)
    loads = [np.where(run.valid, np.abs(torque_along(fit.robot, links.theta, run)), np.nan) for run in used]
    load = np.nanmean(np.concatenate(loads), axis=0) if loads else np.zeros(fit.robot.dof)
    found = (
        _of_surface(fit, surface, members[surface], used, float(np.nan_to_num(load[surface[-1][0]])))
        for surface in sorted(members, key=lambda surface: (len(surface), surface))
    )
    return tuple(friction for friction in found if friction is not None)


def _of_surface(
    fit: Identification, surface: Surface, members: Sequence[tuple[int, Term]], runs: Sequence[Experiment], load: float
) -> JointFriction | None:
    """The friction of one surface; None where its terms have no torque at constant speed."""
    joint = surface[-1][0]
    body, limit = fit.robot.bodies[joint], fit.robot.moving_joints[joint].limits.velocity
    moved = [np.abs(sum(ratio * run.dq[:, j] for j, ratio in surface)).max(initial=0.0) for run in runs]
    high = float(max(moved, default=0.0)) or (limit if np.isfinite(limit) else 1.0)
    speed = high * np.concatenate([-SPEEDS[::-1], SPEEDS])
    steady = SteadyMotion(q=np.zeros_like(speed), speed=speed, load=np.full(speed.size, load))
    columns = np.column_stack([term.steady_torque(steady) for _, term in members])
    acting = np.asarray(columns.any(axis=0))
    if not acting.any():
        return None
    columns, places = columns[:, acting], [place for (place, _), acts in zip(members, acting, strict=True) if acts]
    values, rows, known = _parameters(fit, places)
    size = fit.rich.theta.size

    def spread(table: Floats) -> Floats:
        return np.where((table[:, ~known] != 0.0).any(axis=1), np.inf, fit.in_columns.estimate.spread(table @ rows))

    # Coulomb and viscous friction as straight lines through the curve: what of its errors they share
    line = pinv(np.column_stack([np.sign(speed), speed])) @ columns
    dry, viscous = spread(line)
    plain = {(type(term), term.surface(fit.robot.joint_names)): value for term, value in _plain_terms(fit)}
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


def _plain_terms(fit: Identification) -> list[tuple[Term, float]]:
    """The own terms of the plain model and their parameters."""
    return list(zip(own_terms(fit.robot), fit.plain.theta[10 * fit.robot.dof :].tolist(), strict=True))


def _parameters(fit: Identification, places: Sequence[int]) -> tuple[Floats, Floats, Bools]:
    """Parameters (k,) of the rich model at places, as combinations (k, b) of the estimate, and which are known (k,)."""
    size, base, estimate = fit.rich.theta.size, fit.equations.base, fit.in_columns.estimate
    alone = base.rows_alone
    rows = [alone.get(place, -1) if place < size else base.rank + place - size for place in places]
    every = np.concatenate([fit.rich.theta, [term.value for term in fit.rich.terms]])
    known = np.array([row >= 0 and not estimate.undetermined[row] for row in rows])
    return every[list(places)], np.eye(len(estimate.names))[rows] * known[:, None], known
