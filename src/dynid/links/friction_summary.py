"""The friction of each joint as a whole, whichever terms of the model carry it.

Several terms can share the friction of one joint: Coulomb friction, hysteresis, a smooth sign. A single coefficient is
then a part of the friction only, and may even be negative. The sum of all terms at constant speed
(`Term.steady_torque`) is the friction that a person can compare with a data sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.decompositions import pinv
from dynid.estimation.estimate import TWO_SIDED_95, Estimate
from dynid.estimation.physical.passivity import all_terms
from dynid.kernels import kernel
from dynid.links.identify import Identification
from dynid.processing.experiment import Experiment, matched_runs
from dynid.robot.model import Robot
from dynid.robot.term_names import term_words
from dynid.terms.base import Reference, SteadyMotion, Surface, Term
from dynid.terms.load_dependent import LoadFriction

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
    """Mean magnitude of the links' torque on the joint in the data, for which the curve holds [N m or N]."""
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
    def viscous_unit(self) -> str:
        """``N m s/rad`` or ``N s/m``."""
        return "N s/m" if self.unit == "N" else "N m s/rad"

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


def joint_friction(fit: Identification, runs: Sequence[Experiment] | None = None) -> tuple[JointFriction, ...]:
    """Compute the friction of every joint and coupled motor, with the uncertainty of the estimate.

    Args:
        fit: The identification.
        runs: Experiments whose speeds, positions and loads the curves cover; those of the identification by default.

    Example:
        >>> [friction.name for friction in dynid.links.joint_friction(fit)]
        ['joint1', 'joint2', 'joint3']
    """
    if runs is not None:
        return _found_in(fit, matched_runs(fit.robot, runs))
    if fit not in _KNOWN:
        _KNOWN[fit] = _found_in(fit, fit.equations.excerpts)
    return _KNOWN[fit]


_KNOWN: WeakKeyDictionary[Identification, tuple[JointFriction, ...]] = WeakKeyDictionary()
"""Identification -> friction over its own runs: screen and report show the same."""


def _found_in(fit: Identification, given: Sequence[Experiment]) -> tuple[JointFriction, ...]:
    """The friction of every joint and coupled motor over some runs."""
    names, first = fit.robot.joint_names, 10 * fit.robot.dof
    used = [run for run in given if run.samples]
    members: dict[Surface, list[tuple[int, Term]]] = {}
    for place, term in enumerate(all_terms(fit.equations)):
        surface = term.surface(names)
        if surface is not None:
            members.setdefault(surface, []).append((first + place, term))
    links, loads = Reference(fit.torque_parameters).of_links(fit.robot.dof), dict[int, Floats]()
    found = []
    for surface in sorted(members, key=lambda surface: (len(surface), surface)):
        # the load as the terms that depend on it have it, so that their friction under it is right
        pressing = [term.reference for _, term in members[surface] if isinstance(term, LoadFriction)]
        reference = pressing[0] if pressing else links
        if id(reference) not in loads:
            loads[id(reference)] = _mean_loads(fit.robot, reference, used)
        states = _States.of(fit, surface, used, float(loads[id(reference)][surface[-1][0]]))
        friction = _of_surface(fit, members[surface], states)
        if friction is not None:
            found.append(friction)
    return tuple(found)


def _mean_loads(robot: Robot, reference: Reference, runs: Sequence[Experiment]) -> Floats:
    """(n,) mean magnitude of the torque of the links on each joint, over the samples that count [N m or N]."""
    evaluate = kernel(robot, "inverse_dynamics", symbolic_parameters=True)
    total, count = np.zeros(robot.dof), np.zeros(robot.dof)
    for run in runs:
        total += np.sum(np.abs(evaluate(run.q, run.dq, run.ddq, reference.theta)) * run.valid, axis=0)
        count += np.sum(run.valid, axis=0)
    return np.asarray(total / np.maximum(count, 1.0))


def _of_surface(fit: Identification, members: Sequence[tuple[int, Term]], states: _States) -> JointFriction | None:
    """The friction of one surface; None where its terms have no torque at constant speed."""
    surface = states.surface
    columns = np.column_stack([states.curve(term, states.load) for _, term in members])
    acting = np.asarray(columns.any(axis=0))
    if not acting.any():
        return None
    columns, members = (
        columns[:, acting],
        [member for member, acts in zip(members, acting.tolist(), strict=True) if acts],
    )
    parameters = _Parameters.of(fit, [place for place, _ in members])
    values = parameters.values

    def figure(row: Floats) -> Figure:
        return Figure(float(row @ values), float(parameters.spread(row[None])[0]))

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
        stderr=parameters.spread(columns),
        load=states.load,
        dry=figure(line[0]),
        viscous=figure(line[1]),
        breakaway=figure(excess[peak]),
        stribeck_speed=_stribeck_speed(states.speeds, excess, line[0], peak, parameters),
        load_share=figure(pressed) if pressed.any() else None,
        asymmetry=figure(even[fast].mean(axis=0)) if even[fast].any() else None,
        terms=tuple(layout[place] for place, _ in members),
        kinds=term_words(term for _, term in members),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _States:
    """Speeds, positions and load of a surface in the data."""

    surface: Surface
    speeds: Floats
    """(h,) ascending, positive [rad/s or m/s]."""
    places: Floats
    """Positions over which curves are averaged [rad or m]."""
    load: float

    @classmethod
    def of(cls, fit: Identification, surface: Surface, runs: Sequence[Experiment], load: float) -> _States:
        """The states of a surface in experiments under a load; the limit of the joint's speed where there are none."""
        joint = surface[-1][0]
        q = [sum(ratio * run.q[:, j] for j, ratio in surface) for run in runs]
        dq = [np.abs(sum(ratio * run.dq[:, j] for j, ratio in surface)) for run in runs]
        limit = fit.robot.moving_joints[joint].limits.velocity
        high = max((float(x.max(initial=0.0)) for x in dq), default=0.0) or (limit if np.isfinite(limit) else 1.0)
        slow = np.geomspace(SLOWEST, CREEP, POINTS, endpoint=False)
        places = np.quantile(np.concatenate(q), np.linspace(0.05, 0.95, PLACES)) if q else np.zeros(1)
        return cls(surface, high * np.concatenate([slow, np.linspace(CREEP, 1.0, POINTS)]), places, load)

    def curve(self, term: Term, load: float) -> Floats:
        """(2 h,) torque per unit of a term's parameter over ascending speeds, averaged over the positions."""
        speeds = np.concatenate([-self.speeds[::-1], self.speeds])
        speed, place = (grid.ravel() for grid in np.meshgrid(speeds, self.places, indexing="ij"))
        steady = SteadyMotion(q=place, speed=speed, load=np.full(speed.size, load))
        return np.asarray(term.steady_torque(steady).reshape(speeds.size, -1).mean(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class _Parameters:
    """The parameters of the terms of a surface."""

    values: Floats
    """(k,)"""
    estimate: Estimate
    rows: Floats
    """(k, b) each of them as a combination of the estimate's values; zero where it is none."""
    known: NDArray[np.bool_]
    """(k,) whether the data determine the parameter by itself."""

    @classmethod
    def of(cls, fit: Identification, places: Sequence[int]) -> _Parameters:
        """The parameters at places among standard parameters and further terms."""
        size, base, estimate = fit.standard.size, fit.base, fit.estimate
        alone = {base.layout.index(name) for name in base.identifiable}
        row_of = {column: row for row, column in enumerate(base.columns) if column in alone}
        rows = [row_of.get(place, -1) if place < size else base.rank + place - size for place in places]
        pairs = list(zip(rows, places, strict=True))
        standard = fit.torque_parameters
        values = np.array([estimate.values[row] if row >= 0 else standard[place] for row, place in pairs], dtype=float)
        known = np.array([row >= 0 and not estimate.undetermined[row] for row in rows])
        return cls(values, estimate, np.eye(len(estimate.names))[rows] * known[:, None], known)

    def spread(self, rows: Floats) -> Floats:
        """(m,) standard deviations of linear combinations (m, k); infinite where the data determine a part not."""
        is_open = (rows[:, ~self.known] != 0.0).any(axis=1)
        return np.where(is_open, np.inf, self.estimate.spread(rows @ self.rows))


def _stribeck_speed(speeds: Floats, excess: Floats, dry: Floats, peak: int, parameters: _Parameters) -> float | None:
    """Speed at which the excess over dry friction has fallen to 1/e of its peak."""
    above = (excess - dry) @ parameters.values
    uncertain = TWO_SIDED_95 * float(parameters.spread((excess[peak] - dry)[None])[0])
    if not above[peak] > max(uncertain, EXCESS * abs(float(dry @ parameters.values))):
        return None
    below = np.flatnonzero(above[peak:] <= above[peak] / np.e)
    if not below.size:
        return None
    after = peak + int(below[0])
    return float(np.interp(above[peak] / np.e, above[[after, after - 1]], speeds[[after, after - 1]]))
