"""The robot of an identification as a file format holds it: refitted, with terms that take over from missing ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.arrays import Floats
from dynid.estimation.equations import Factors, Samples, build_equations
from dynid.estimation.physical.nearest import with_possible_links
from dynid.estimation.physical.passivity import all_terms, steady_states
from dynid.estimation.physical.restriction import SteadyTorque, restrict_parameters
from dynid.links.identify import Identification
from dynid.robot.formats.mjcf.gears import takes_gears
from dynid.robot.formats.mjcf.tendons import springs_fit
from dynid.robot.model import Robot
from dynid.spatial import rotation_about
from dynid.terms.base import JointTerm, MemoryTerm, StateTerm, SteadyMotion, Term
from dynid.terms.coupling import MotorFriction
from dynid.terms.friction import Coulomb, CubicViscous, QuadraticViscous, SaturatingViscous, Viscous
from dynid.terms.load_dependent import BaseTilt, DriveGain, horizontal_axes
from dynid.terms.memory import TRAVELS, Hysteresis
from dynid.terms.springs import AngleHarmonic

STEADY_SPEEDS = 20
"""Number of speeds at which the powers are drawn to the friction of the whole model (convention)."""
LARGEST_GAIN = 2.0
"""Factor up to which a gain is that of a drive (convention): further off, a selected gain makes up for other terms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a file format can hold."""

    holds: Callable[[Term], bool]
    """Whether it holds a term of a robot."""
    tilt: bool = False
    """Whether it states gravity, so that a tilted base can be in it."""
    polynomial: bool = False
    """Whether friction can grow with powers of the speed, which takes over other shapes of friction."""
    yielding: bool = False
    """Whether it holds friction with presliding, as springs that yield."""
    gains: bool = False
    """Whether it holds gains of the drives, beside the robot."""

    def carries(self, robot: Robot, term: Term) -> bool:
        """Whether the format holds a selected term of a robot."""
        if isinstance(term, BaseTilt):
            return self.tilt
        if isinstance(term, DriveGain):
            return self.gains and takes_gears(robot)
        if isinstance(term, AngleHarmonic):
            return self.holds(term) and springs_fit(robot, term.acts_on(robot.joint_names)[0])
        if isinstance(term, StateTerm):
            return self.holds(term)
        return self.yielding and isinstance(_friction_of(term), Hysteresis)


@dataclass(frozen=True, slots=True, eq=False)
class RestrictedModel:
    """A robot with the terms that a format holds."""

    robot: Robot
    yielding: tuple[Term, ...] = ()
    """`Hysteresis` terms with their values, which the robot itself cannot carry."""
    gains: Mapping[str, float] = field(default_factory=dict)
    """Joint -> torque that the log states over the robot's, for the drives whose gain is not one."""

    @property
    def gain_vector(self) -> Floats:
        """(n,) torque that the log states over the robot's."""
        return np.array([self.gains.get(name, 1.0) for name in self.robot.joint_names])


def restrict_models(fit: Identification, capacities: Sequence[Capacity]) -> list[RestrictedModel]:
    """Refit the robot of an identification with what each format holds, nearest to the torques of the whole model.

    Where friction terms are missing from a format, its own shapes of friction take over what they can: powers of the
    speed in place of friction that saturates with the speed, and springs that yield in place of other friction with
    memory. Powers of the speed take power at every speed, however high. Gains of drives that the format holds are
    refitted, too.

    The samples are reduced once, with the further terms of all formats: each refit picks its columns.

    Raises:
        ArgumentError: The identification was read from a file, which does not hold the equations.
    """
    carried = [[term for term in fit.terms if capacity.carries(fit.robot, term)] for capacity in capacities]
    further: list[list[JointTerm]] = [
        _substitutes(fit, capacity, [term for term in fit.terms if term not in held])
        if isinstance(fit.equations, Samples)
        else []
        for capacity, held in zip(capacities, carried, strict=True)
    ]
    equations = _with_columns(fit.equations, list(dict.fromkeys(term for terms in further for term in terms)))
    return [
        _restrict_model(fit, equations, capacity, held, terms)
        for capacity, held, terms in zip(capacities, carried, further, strict=True)
    ]


def _restrict_model(
    fit: Identification, equations: Factors, capacity: Capacity, carried: list[Term], further: list[JointTerm]
) -> RestrictedModel:
    """Refit the robot with what one format holds; the equations may have more terms."""
    if not carried and not further:
        return RestrictedModel(fit.restrict_terms(capacity.holds))
    first = 10 * fit.robot.dof
    names = fit.base.layout.names[first:]
    dropped = [name for name, placed in zip(names, fit.robot.terms, strict=True) if not capacity.holds(placed.term)]
    signs = [name for name, placed in zip(names, fit.robot.terms, strict=True) if placed.term.is_non_negative]
    gains = _drive_gains(fit, carried)
    kept = (*(term for term in carried if not isinstance(term, DriveGain)), *further)
    signs += [term.name for term in kept if term.is_non_negative or isinstance(_friction_of(term), Hysteresis)]
    theta, refitted = restrict_parameters(
        equations if further else fit.equations,
        fit.estimate,
        fit.with_signs,
        dropped,
        kept,
        [name for name in signs if name not in dropped],
        _steady_torques(fit, kept, dropped),
        np.array([gains.get(name, 1.0) for name in fit.robot.joint_names]),
        (*fit.terms, *further) if further else None,
    )
    count = fit.standard.size
    valued = [term.with_value(value) for term, value in zip(kept, theta[count:].tolist(), strict=True)]
    robot = with_possible_links(fit.robot, theta[:count])
    robot = robot.with_terms(*(term for term in valued if isinstance(term, StateTerm)), keep=True)
    yielding = tuple(term for term in valued if isinstance(_friction_of(term), Hysteresis) and term.value)
    gains = {name: gain for name, gain in zip(robot.joint_names, refitted.tolist(), strict=True) if name in gains}
    return RestrictedModel(_tilted(robot, valued), yielding, gains)


def _drive_gains(fit: Identification, carried: Sequence[Term]) -> dict[str, float]:
    """Joint -> torque that the log states over that of the robot, for the carried gains.

    Those that the data leave open count as one. Gains of which one is none of a drive stand for something else, which
    the format lacks, and all count as one.
    """
    found = np.where(fit.estimate.undetermined, 0.0, fit.estimate.values)[fit.base.rank :]
    values = dict(zip(fit.terms, found.tolist(), strict=True))
    gains = {fit.robot.joint_names[t.joint]: 1.0 + values[t] for t in carried if isinstance(t, DriveGain)}
    return gains if all(1.0 / LARGEST_GAIN < gain < LARGEST_GAIN for gain in gains.values()) else {}


def _steady_torques(fit: Identification, kept: Sequence[Term], dropped: Sequence[str]) -> list[SteadyTorque]:
    """The friction of joints with powers of the speed, beyond the speeds of the data: powers grow without end."""
    joints = sorted({term.joint for term in kept if isinstance(term, CubicViscous) and term.joint is not None})
    if not joints:
        return []
    first, names = 10 * fit.robot.dof, fit.robot.joint_names
    own = all_terms(fit.equations)[: len(fit.robot.terms)]
    own_names = fit.base.layout.names[first:]
    values = [*fit.with_signs.parameter_vector[first:], *fit.estimate.values[fit.base.rank :]]
    whole = [(v, term, term.surface(names)) for v, term in zip(values, (*own, *fit.terms), strict=True)]
    mine = [(first + k, term, term.surface(names)) for k, term in enumerate(own) if own_names[k] not in dropped]
    mine += [(fit.standard.size + k, term, term.surface(names)) for k, term in enumerate(kept)]
    found = []
    for j in joints:
        surface = ((j, 1.0),)
        grid = steady_states(surface, fit.equations.excerpts)
        high = float(grid.speed.max())
        speed = np.linspace(high / STEADY_SPEEDS, high, STEADY_SPEEDS)
        middle = np.full(STEADY_SPEEDS, float(np.mean(grid.q)))
        state = SteadyMotion(q=middle, speed=speed, load=np.full(STEADY_SPEEDS, float(np.mean(grid.load))))
        columns = np.zeros((STEADY_SPEEDS, fit.standard.size + len(kept)))
        for place, term, own_surface in mine:
            if own_surface == surface:
                columns[:, place] = term.steady_torque(state)
        torque = sum(v * term.steady_torque(state) for v, term, own_surface in whole if own_surface == surface)
        found.append(SteadyTorque(j, columns, np.asarray(torque, dtype=float)))
    return found


def _friction_of(term: Term) -> Term:
    return term.friction if isinstance(term, MotorFriction) else term


def _with_columns(equations: Factors, further: list[JointTerm]) -> Factors:
    """The equations with the columns of further terms behind the others."""
    if not further or not isinstance(equations, Samples):
        return equations
    blocks = max(len(block) for block in equations.blocks)
    return build_equations(
        equations.robot,
        equations.experiments,
        base=equations.base,
        terms=[*equations.terms, *further],
        band_hz=equations.band_hz,
        blocks=blocks,
    )


def _substitutes(fit: Identification, capacity: Capacity, missing: list[Term]) -> list[JointTerm]:
    """Terms of the format that take over from missing friction, on the joints where some is missing."""
    names = fit.robot.joint_names
    surfaces = [(term, term.surface(names)) for term in missing]
    curved = [surface for term, surface in surfaces if isinstance(_friction_of(term), SaturatingViscous)]
    joints = sorted({j for surface in curved for j, _ in surface or ()})
    found: list[JointTerm] = []
    if capacity.polynomial:
        own = {(type(placed.term), j) for placed in fit.robot.terms for j in placed.joints}
        joints = [j for j in joints if {(Viscous, j), (Coulomb, j)} <= own]
        found += [kind(joint=j) for j in joints for kind in (QuadraticViscous, CubicViscous)]
    if capacity.yielding:
        runs = fit.equations.excerpts
        travel = np.max([np.ptp(run.q, axis=0) for run in runs], axis=0)
        remembering = {j for term, surface in surfaces if isinstance(term, MemoryTerm) for j, _ in surface or ()}
        scales = [(j, float(part * travel[j])) for j in sorted(remembering) for part in TRAVELS]
        found += [Hysteresis(joint=j, scale=scale) for j, scale in scales if scale > 0.0]
    present = {term.name for term in fit.terms}
    return [term for term in found if term.name not in present]


def _tilted(robot: Robot, terms: list[Term]) -> Robot:
    """The robot under gravity turned by the angles of its base."""
    tilts = [term for term in terms if isinstance(term, BaseTilt)]
    if not tilts:
        return robot
    turn = sum((term.value * horizontal_axes(robot.gravity)[term.axis] for term in tilts), np.zeros(3))
    angle = float(np.linalg.norm(turn))
    if not angle:
        return robot
    return replace(robot, gravity=np.asarray(rotation_about(turn / angle, angle) @ robot.gravity, dtype=float))
