"""The friction of each joint as a whole, whichever terms of the model carry it.

Several terms can share the friction of one joint: Coulomb friction, hysteresis, a smooth sign. A single coefficient is
then a part of the friction only, and may even be negative. The sum of all terms at constant speed
(`Term.steady_torque`) is the friction that a person can compare with a data sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.decompositions import pinv
from dynid.estimation.estimate import TWO_SIDED_95
from dynid.estimation.physical.passivity import all_terms
from dynid.links.identify import Identification
from dynid.processing.experiment import Experiment, matched_runs
from dynid.public_calls import public
from dynid.robot.term_names import term_words
from dynid.terms.base import SteadyMotion, Surface, Term

__all__ = ["Figure", "JointFriction", "joint_friction"]

Floats = NDArray[np.float64]
SLOWEST = 0.002
"""Smallest speed of a curve, as a share of the largest one (convention)."""
CREEP = 0.3
"""Share of the largest speed that divides creep from the part through which a straight line is drawn (convention)."""
POINTS = 40
"""Points of a curve below `CREEP`, and as many above, in each direction (convention)."""
PLACES = 9
"""Positions over which the friction is averaged, quantiles of those in the data (convention)."""
EXCESS = 0.05
"""Share of the dry friction by which the breakaway must exceed it for a Stribeck speed to be stated (convention)."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its standard deviation; infinite where the data do not determine it."""

    value: float
    stderr: float

    @property
    def text(self) -> str:
        """The value and the half width of its 95 % interval."""
        if not np.isfinite(self.stderr):
            return f"{self.value:.3g} (not determined)"
        return f"{self.value:.3g}\u00a0±\u00a0{TWO_SIDED_95 * self.stderr:.2g}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointFriction:
    """The friction of one joint, or of one motor that turns several joints, at constant speed."""

    name: str
    """The joint, or the joints joined by ``+``."""
    unit: str
    """``N m`` or ``N``."""
    speed_unit: str
    speed: Floats
    """(m,) ascending speeds in both directions [rad/s or m/s]."""
    torque: Floats
    """(m,) torque against the motion at the mean load of the data [N m or N], positive at positive speed."""
    stderr: Floats
    """(m,) its standard deviation [N m or N]."""
    load: float
    """Mean magnitude of the joint's torque in the data, for which the curve holds [N m or N]."""
    dry: Figure
    """Torque at which the straight line through the fast part meets zero speed, mean of both directions [N m or N]."""
    viscous: Figure
    """Slope of that line [N m s/rad or N s/m]."""
    breakaway: Figure
    """Largest torque at creep speed, less the viscous part [N m or N]."""
    stribeck_speed: float | None
    """Speed at which breakaway has fallen to dry friction but for 1/e of the difference [rad/s or m/s].

    None where breakaway does not exceed dry friction beyond the uncertainty."""
    load_share: Figure | None
    """Friction per torque that presses on the joint [1]; None where no term depends on the load."""
    asymmetry: Figure | None
    """Mean difference between the two directions at high speed, half of it [N m or N]; None where there is none."""
    terms: tuple[str, ...]
    """Names of the parameters that carry the friction."""
    kinds: str = ""
    """Kinds of these terms in words."""

    @property
    def remark(self) -> str:
        """A sentence where the line through the fast part meets zero speed below zero; else empty."""
        if not self.dry.value < 0.0:
            return ""
        slowest = float(np.min(self.torque[self.speed > 0.0]))
        if slowest >= 0.0:
            return (
                f"The friction of {self.name} grows faster than its speed, so that the straight line gives a negative "
                "dry friction; the friction itself brakes at all speeds of the data."
            )
        return f"The friction of {self.name} is negative at some speeds: it would drive the joint."


@public
def joint_friction(fit: Identification, runs: Sequence[Experiment] | None = None) -> tuple[JointFriction, ...]:
    """Compute the friction of every joint and coupled motor, with the uncertainty of the estimate.

    Args:
        fit: The identification.
        runs: Experiments whose speeds, positions and loads the curves cover; those of the identification by default.

    Example:
        >>> [friction.name for friction in dynid.links.joint_friction(fit)]
        ['joint1', 'joint2', 'joint3']
    """
    names, first = fit.robot.joint_names, 10 * fit.robot.dof
    given = fit.equations.excerpts if runs is None else matched_runs(fit.robot, runs)
    used = [run for run in given if run.samples]
    members: dict[Surface, list[tuple[int, Term]]] = {}
    for place, term in enumerate(all_terms(fit.equations)):
        surface = term.surface(names)
        if surface is not None:
            members.setdefault(surface, []).append((first + place, term))
    found = []
    for surface in sorted(members, key=lambda surface: (len(surface), surface)):
        friction = _of_surface(fit, surface, members[surface], used)
        if friction is not None:
            found.append(friction)
    return tuple(found)


def _of_surface(
    fit: Identification, surface: Surface, members: Sequence[tuple[int, Term]], runs: Sequence[Experiment]
) -> JointFriction | None:
    """The friction of one surface; None where its terms have no torque at constant speed."""
    states = _States.of(fit, surface, runs)
    columns = np.column_stack([states.curve(term, states.load) for _, term in members])
    acting = np.asarray(columns.any(axis=0))
    if not acting.any():
        return None
    columns, members = (
        columns[:, acting],
        [member for member, acts in zip(members, acting.tolist(), strict=True) if acts],
    )
    values, covariance = _parameters(fit, [place for place, _ in members])

    def figure(row: Floats) -> Figure:
        return Figure(float(row @ values), _spread(row[None], covariance)[0])

    half = states.speeds.size
    odd, even = 0.5 * (columns[half:] - columns[:half][::-1]), 0.5 * (columns[half:] + columns[:half][::-1])
    fast = states.speeds >= CREEP * states.speeds[-1]
    line = pinv(np.column_stack([np.ones(fast.sum()), states.speeds[fast]])) @ odd[fast]
    excess = odd - states.speeds[:, None] * line[1]
    peak = int(np.argmax((excess @ values)[~fast]))
    bare = np.column_stack([states.curve(term, 0.0) for _, term in members])
    pressed = (columns - bare)[half:][fast].mean(axis=0) / states.load if states.load else np.zeros(len(members))
    body = fit.robot.bodies[surface[-1][0]]
    layout = (*fit.base.layout.names, *(term.name for term in fit.terms))
    return JointFriction(
        name="+".join(fit.robot.joint_names[joint] for joint, _ in surface),
        unit="N" if body.is_prismatic else "N m",
        speed_unit="m/s" if body.is_prismatic else "rad/s",
        speed=np.concatenate([-states.speeds[::-1], states.speeds]),
        torque=columns @ values,
        stderr=_spread(columns, covariance),
        load=states.load,
        dry=figure(line[0]),
        viscous=figure(line[1]),
        breakaway=figure(excess[peak]),
        stribeck_speed=_stribeck_speed(states.speeds, excess, line[0], peak, values, covariance),
        load_share=figure(pressed) if pressed.any() else None,
        asymmetry=figure(even[fast].mean(axis=0)) if even[fast].any() else None,
        terms=tuple(layout[place] for place, _ in members),
        kinds=term_words(term for _, term in members),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _States:
    """Speeds, positions and load of a surface in the data."""

    speeds: Floats
    """(h,) ascending, positive [rad/s or m/s]."""
    places: Floats
    """Positions over which curves are averaged [rad or m]."""
    load: float

    @classmethod
    def of(cls, fit: Identification, surface: Surface, runs: Sequence[Experiment]) -> _States:
        """The states of a surface in experiments; the limit of the joint's speed where there are none."""
        joint = surface[-1][0]
        q = [sum(ratio * run.q[:, j] for j, ratio in surface) for run in runs]
        dq = [np.abs(sum(ratio * run.dq[:, j] for j, ratio in surface)) for run in runs]
        effort = [np.abs(run.effort[run.valid[:, joint], joint]) for run in runs]
        limit = fit.robot.moving_joints[joint].limits.velocity
        high = max((float(x.max(initial=0.0)) for x in dq), default=0.0) or (limit if np.isfinite(limit) else 1.0)
        slow = np.geomspace(SLOWEST, CREEP, POINTS, endpoint=False)
        places = np.quantile(np.concatenate(q), np.linspace(0.05, 0.95, PLACES)) if q else np.zeros(1)
        load = float(np.concatenate(effort).mean()) if sum(x.size for x in effort) else 0.0
        return cls(high * np.concatenate([slow, np.linspace(CREEP, 1.0, POINTS)]), places, load)

    def curve(self, term: Term, load: float) -> Floats:
        """(2 h,) torque per unit of a term's parameter over ascending speeds, averaged over the positions."""
        speeds = np.concatenate([-self.speeds[::-1], self.speeds])
        speed, place = (grid.ravel() for grid in np.meshgrid(speeds, self.places, indexing="ij"))
        steady = SteadyMotion(q=place, speed=speed, load=np.full(speed.size, load))
        return np.asarray(term.steady_torque(steady).reshape(speeds.size, -1).mean(axis=1))


def _parameters(fit: Identification, places: Sequence[int]) -> tuple[Floats, Floats]:
    """Values (k,) of the parameters at places among standard parameters and further terms, and covariance (k, k).

    The variance is infinite where the data do not determine a parameter by itself.
    """
    size, base = fit.standard.size, fit.base
    alone = {base.layout.index(name) for name in base.identifiable}
    row_of = {column: row for row, column in enumerate(base.columns) if column in alone}
    rows = [row_of.get(place, -1) if place < size else base.rank + place - size for place in places]
    estimate, standard = fit.estimate, fit.torque_parameters
    values = [estimate.values[row] if row >= 0 else standard[place] for row, place in zip(rows, places, strict=True)]
    covariance = np.zeros((len(rows), len(rows)))
    known = np.array([row >= 0 and not estimate.undetermined[row] for row in rows])
    inner = np.flatnonzero(known)
    chosen = [rows[k] for k in inner]
    covariance[np.ix_(inner, inner)] = estimate.covariance[np.ix_(chosen, chosen)]
    covariance[~known, ~known] = np.inf
    return np.array(values, dtype=float), covariance


def _spread(rows: Floats, covariance: Floats) -> Floats:
    """Standard deviations (m,) of linear combinations (m, k) of parameters."""
    free = np.isinf(np.diag(covariance))
    finite = np.where(np.isfinite(covariance), covariance, 0.0)
    variance = np.einsum("ij,jk,ik->i", rows, finite, rows)
    return np.where((rows[:, free] != 0.0).any(axis=1), np.inf, np.sqrt(np.maximum(variance, 0.0)))


def _stribeck_speed(
    speeds: Floats, excess: Floats, dry: Floats, peak: int, values: Floats, covariance: Floats
) -> float | None:
    """Speed at which the excess over dry friction has fallen to 1/e of its peak."""
    above = (excess - dry) @ values
    uncertain = TWO_SIDED_95 * _spread((excess[peak] - dry)[None], covariance)[0]
    if not above[peak] > max(uncertain, EXCESS * abs(float(dry @ values))):
        return None
    below = np.flatnonzero(above[peak:] <= above[peak] / np.e)
    if not below.size:
        return None
    after = peak + int(below[0])
    return float(np.interp(above[peak] / np.e, above[[after, after - 1]], speeds[[after, after - 1]]))
