"""From commands and encoders to the parameters of drives: the whole way, with what can and cannot be known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.findings import Finding
from dynid.robot.model import Robot
from dynid.servos.drive_laws import DriveLaw
from dynid.servos.kinds import DELAY
from dynid.servos.motion import CommandedMotion, stretches_of
from dynid.servos.motion_errors import MotionError, fit_followers, motion_error
from dynid.servos.servo_equations import Search, ServoEquations, search_servos
from dynid.servos.servo_knowledge import SIGNED, OpenDirection, judge_knowledge
from dynid.servos.servo_model import ServoModel, ServoParameter
from dynid.servos.servo_simulator import simulate_servos

FOLDS = 3
"""Parts of a single motion, and groups of several, that are predicted from the others. Convention."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActuatorEstimate:
    """Identified parameters of servos."""

    model: ServoModel
    """The model; its first guess is what was found."""
    values: Floats
    """(P,) values of the model's entries."""
    std: Floats
    """(P,) standard deviations: infinite for what the motions leave open, and for all entries of a search that did not
    converge; NaN for other values at a bound."""
    open_directions: tuple[OpenDirection, ...]
    """What the motions do not tell apart."""
    at_bound: tuple[str, ...]
    """Entries that stand at a bound."""
    binding: tuple[str, ...]
    """Those of them that the data want beyond it."""
    biased: tuple[str, ...]
    """Entries that this moves by more than chance; their intervals reach to where they would be without the bounds."""
    errors: tuple[MotionError, ...]
    """Errors of the simulated motions, trained ones first."""
    followers: Floats
    """(3, n) offset, gain and lag of joints that merely follow, see `motion_errors.fit_followers`."""
    reach: Floats
    """(n, 2) smallest and largest measured positions of all motions, in the description's coordinates [rad or m]."""
    iterations: int
    converged: bool

    @property
    def names(self) -> tuple[str, ...]:
        """(P,) names of the entries."""
        return tuple(entry.name for entry in self.model.entries)

    @property
    def interval(self) -> Floats:
        """(P, 2) 95 % intervals; infinite where open, NaN at bounds. Those of what cannot be negative end at zero."""
        half = norm.ppf(0.975) * self.std
        low, high = self.values - half, self.values + half
        positive = np.array([e.kind not in (*SIGNED, DELAY) for e in self.model.entries], dtype=bool)
        low = np.where(positive & np.isfinite(low) & (self.values >= 0.0), np.maximum(low, 0.0), low)
        return np.stack([low, high], axis=1)

    @property
    def error(self) -> MotionError:
        """The root mean square over the motions that were not fitted, or over all where there are none."""
        return MotionError.mean([error for error in self.errors if not error.trained] or self.errors)

    @property
    def table(self) -> dict[str, Floats]:
        """(n,) found values of every kind."""
        return self.model.table(self.values)

    @property
    def is_usable(self) -> bool:
        """Whether the search ended at a minimum, and motions are predicted well enough."""
        return self.converged and self.error.is_usable

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is to be known before the values are used: a search that stopped, a law that does not fit, bounds."""
        misfit = self.error.finding
        found = [] if misfit is None else [misfit]
        if self.binding:
            kinds = {entry.kind for entry in self.model.entries if entry.name in self.binding}
            then = f"; without it these would be others: {', '.join(self.biased)}" if self.biased else ""
            found.append(Finding(
                code="at-bound", severity="warning", where="values",
                message=f"the data want values beyond the bounds: {self._standing(self.binding)}{then}",
                remedy=("Check kd, or leave it free (kd_scale under free)" if "viscous" in kinds else
                        "Check the law and its gains, or give other bounds ([lower], [upper])")
                + "; intervals reach to the values without bounds.",
                evidence={"values at bounds": len(self.binding)},
                brief=f"the data want {_some(self.binding)} beyond the bounds; this biases {_some(self.biased)}",
            ))  # fmt: skip
        if still := [name for name in self.at_bound if name not in self.binding]:
            found.append(Finding(
                code="at-bound", severity="warning", where="values",
                message=f"these stand at their bounds and are no estimates: {self._standing(still)}",
                remedy="Leave them out, or record motions that show them.", evidence={"values at bounds": len(still)},
                brief=f"at their bounds, and no estimates: {_some(still)}",
            ))  # fmt: skip
        if self.open_directions:
            notes: dict[str, list[str]] = {}
            for direction in self.open_directions:
                notes.setdefault(direction.note, []).append(" + ".join(direction.names))
            opened = tuple(dict.fromkeys(name for direction in self.open_directions for name in direction.names))
            found.append(Finding(
                code="open-parameters", severity="warning", where="values",
                message="; ".join(f"{note}: {', '.join(names)}" for note, names in notes.items()),
                evidence={"open values": len(opened)},
                remedy="Record motions at other gains, loads and postures, or state what you know ([fixed]).",
                brief=f"{len(opened)} of {len(self.names)} values are open: {_some(opened)}",
            ))  # fmt: skip
        if beyond := self.beyond_limits:
            found.append(Finding(
                code="beyond-limits", severity="warning", where="zeros",
                message=f"readings less the zeros lie beyond the description's limits: {', '.join(beyond)}",
                remedy="Either a zero or a limit is wrong: measure the zeros ([fixed]), or bound them ([lower], "
                       "[upper]). Written files have limits that hold the motion.",
                evidence={"joints": len(beyond)},
            ))  # fmt: skip
        if not self.converged:
            found.insert(0, Finding(
                code="not-converged", severity="warning", where="search",
                message=f"the search stopped after {self.iterations} steps without reaching a minimum",
                remedy="The values are no estimates and have no intervals: start from other values ([start]).",
            ))  # fmt: skip
        return tuple(found)

    def _standing(self, names: Sequence[str]) -> str:
        """Entries with their values."""
        return ", ".join(f"{name} at {self.values[self.names.index(name)]:g}" for name in names)

    @property
    def beyond_limits(self) -> tuple[str, ...]:
        """Joints whose readings less their zeros lie beyond the limits of the description."""
        pairs = zip(self.model.robot.moving_joints, self.reach, strict=True)
        return tuple(
            joint.name
            for joint, (low, high) in pairs
            if joint.kind != "continuous" and (low < joint.limits.lower or high > joint.limits.upper)
        )

    def simulate(self, motion: CommandedMotion) -> Floats:
        """(N, n) readings under a motion's commands [rad or m]."""
        return np.asarray(simulate_servos(self.model, self.values, motion))


def _some(names: Sequence[str]) -> str:
    """Up to three of some names, and how many there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}" if names else "no other value"


def identify_actuators(
    robot: Robot,
    motions: Sequence[CommandedMotion],
    *,
    law: DriveLaw,
    parameters: Sequence[ServoParameter | str] = ("armature", "viscous", "coulomb"),
    held_out: Sequence[CommandedMotion] = (),
) -> ActuatorEstimate:
    """Find armature, friction, gains, delay and the like of a robot's drives from commands and encoders.

    Args:
        robot: Geometry and links, on a fixed base.
        motions: The motions to explain.
        law: The law of the drives: `PositionLaw` or `MotorLaw`, or one of your own.
        parameters: Kinds of parameters; a bare name is free in each joint.
        held_out: Motions that the result is tried on.

    Raises:
        ArgumentError: The same motion comes twice, or none.
        EstimationError: The first guess cannot be simulated.

    Example:
        >>> found = dynid.identify_actuators(pendulum, [sensed], law=dynid.servos.PositionLaw(kp=60.0, kd=2.0))
        >>> found.values.round(3).tolist()
        [0.05, 0.4, 0.3]
    """
    return fit_servos(ServoModel(robot, law, tuple(parameters)), motions, held_out)


def fit_servos(
    model: ServoModel, motions: Sequence[CommandedMotion], held_out: Sequence[CommandedMotion] = ()
) -> ActuatorEstimate:
    """Fit a model; arguments and errors as for `identify_actuators`."""
    _refuse_copies(motions, held_out)
    equations, found = fit_values(model, motions)
    return _judge(equations, found, stretches_of(held_out))


def fit_values(model: ServoModel, motions: Sequence[CommandedMotion]) -> tuple[ServoEquations, Search]:
    """The values alone, without judging what is known of them."""
    if not motions:
        raise ArgumentError("there is no motion to fit", remedy="Give one motion or more.")
    equations = ServoEquations(model, stretches_of(motions))
    return equations, search_servos(equations.normal, equations.cost, model.start, model.bounds)


def predict_parts(model: ServoModel, motions: Sequence[CommandedMotion]) -> tuple[MotionError, ...]:
    """Errors of motions, or of thirds of a single one, that are each predicted from the others.

    Raises:
        ArgumentError: A single motion is too short.
        EstimationError: A simulated motion runs away.
    """
    pieces = motions[0].cut_at(*np.arange(1, FOLDS) / FOLDS) if len(motions) == 1 else motions
    errors = []
    for fold in range(min(FOLDS, len(pieces))):
        equations, found = fit_values(model, [piece for k, piece in enumerate(pieces) if k % FOLDS != fold])
        followers = fit_followers(equations.motions)
        errors += [
            motion_error(model, found.values, motion, followers, trained=False)
            for motion in stretches_of(pieces[fold::FOLDS])
        ]
    return tuple(errors)


def _judge(equations: ServoEquations, found: Search, held_out: Sequence[CommandedMotion]) -> ActuatorEstimate:
    """The estimate with its covariance, open directions and errors."""
    model, values = equations.model, found.values
    known, followers = judge_knowledge(equations, values), fit_followers(equations.motions)
    # where a search merely stopped, the curvature says nothing of the distance to the truth
    std = known.std if found.converged else np.full_like(known.std, np.inf)
    return ActuatorEstimate(
        model=model.with_values(values),
        values=values,
        std=std,
        open_directions=known.open_directions,
        **{
            name: tuple(model.entries[k].name for k in np.flatnonzero(which))
            for name, which in (("at_bound", known.at_bound), ("binding", known.binds), ("biased", known.biased))
        },
        errors=tuple(
            motion_error(model, values, motion, followers, trained=trained)
            for group, trained in ((equations.motions, True), (held_out, False))
            for motion in group
        ),
        followers=followers,
        reach=_reach(model, values, (*equations.motions, *held_out)),
        iterations=found.iterations,
        converged=found.converged,
    )


def _reach(model: ServoModel, values: Floats, motions: Sequence[CommandedMotion]) -> Floats:
    """(n, 2) smallest and largest readings less the zeros [rad or m]."""
    lows = np.min([motion.position.min(axis=0) for motion in motions], axis=0)
    highs = np.max([motion.position.max(axis=0) for motion in motions], axis=0)
    zeros = model.table(values).get("zero", np.zeros(model.dof))
    return np.stack([lows - zeros, highs - zeros], axis=1)


def _refuse_copies(motions: Sequence[CommandedMotion], held_out: Sequence[CommandedMotion]) -> None:
    """Refuse a motion that comes twice: a copy adds no knowledge, and what is held out must be new."""
    seen = dict[bytes, str]()
    for motion in (*motions, *held_out):
        numbers = b"".join(values.tobytes() for values in (motion.time, motion.position, motion.command))
        if numbers in seen:
            remedy = "Give each motion once, and hold out one that the fit does not see."
            raise ArgumentError(f"'{motion.name}' is given twice, also as '{seen[numbers]}'", remedy=remedy)
        seen[numbers] = motion.name
