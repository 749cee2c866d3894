"""Identify the parameters of a robot's servos from commands and encoders, without torques.

`identify_actuators` takes a robot, the law of its drives and logged motions (`CommandedMotion`: commands and encoder
readings). It simulates the motions under their commands and fits armature, friction, gains, delay and the like by
nonlinear least squares of measured minus simulated positions. The unknown numbers are the P *entries* of a
`ServoModel`, each a parameter of one joint or of several joints that share it. The result is an `ActuatorEstimate`.
servo_equations.py has the search, servo_knowledge.py the uncertainties, motion_errors.py the errors of motions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from dynid.array_types import Bools, Floats
from dynid.errors import ArgumentError
from dynid.findings import Finding
from dynid.robot.model import Robot
from dynid.servos.drive_laws import DriveLaw
from dynid.servos.kinds import DELAY
from dynid.servos.motion import CommandedMotion, stretches_of
from dynid.servos.motion_errors import MotionError, fit_followers, motion_error
from dynid.servos.servo_equations import Search, ServoEquations, search_servos
from dynid.servos.servo_knowledge import FEWEST_GROUPS, SIGNED_KINDS, OpenDirection, judge_knowledge
from dynid.servos.servo_model import ServoModel, ServoParameter
from dynid.servos.servo_simulator import simulate_servos


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ActuatorEstimate:
    """Identified parameters of servos, with their uncertainty and the errors of the motions that they predict."""

    model: ServoModel
    """The model, with the identified values as its start values."""
    values: Floats
    """(P,) values of the model's entries."""
    std: Floats
    """(P,) standard deviations: infinite for entries that the motions leave open, and for all entries of a search that
    did not converge; NaN for other values at a bound."""
    open_directions: tuple[OpenDirection, ...]
    """Changes of the entries that the motions do not determine: single entries, or several known together only."""
    at_bound: tuple[str, ...]
    """Names of the entries that are at a bound."""
    binding: tuple[str, ...]
    """Names of those of them for which values beyond the bound would fit significantly better."""
    biased: tuple[str, ...]
    """Names of the other entries that would change significantly without the bounds; their intervals reach that far."""
    errors: tuple[MotionError, ...]
    """Errors of the simulated motions: those of the fit, then held-out ones."""
    followers: Floats
    """(3, n) offset [rad or m], gain and lag [s] of joints that merely follow their commands, a simple prediction to
    compare with; see `dynid.servos.motion_errors.fit_followers`."""
    reach: Floats
    """(n, 2) smallest and largest measured positions of all motions, in the robot's coordinates [rad or m]."""
    iterations: int
    """Steps of the search."""
    converged: bool
    """Whether the search ended at a minimum."""

    @property
    def names(self) -> tuple[str, ...]:
        """(P,) names of the entries."""
        return tuple(entry.name for entry in self.model.entries)

    @property
    def interval(self) -> Floats:
        """(P, 2) 95 % intervals: infinite for open entries, NaN for values at bounds.

        They are cut at zero for parameters that are never negative.
        """
        half = norm.ppf(0.975) * self.std
        low = self.values - half
        high = self.values + half
        # a delay may be negative if the clocks of commands and encoders differ
        positive = np.array([e.kind not in (*SIGNED_KINDS, DELAY) for e in self.model.entries], dtype=bool)
        low = np.where(positive & np.isfinite(low) & (self.values >= 0.0), np.maximum(low, 0.0), low)
        return np.stack([low, high], axis=1)

    @property
    def error(self) -> MotionError:
        """Root mean square error over the motions that were not fitted, or over all where there are none."""
        return MotionError.mean([error for error in self.errors if not error.trained] or self.errors)

    @property
    def table(self) -> dict[str, Floats]:
        """Kind of parameter, such as ``viscous`` -> (n,) its values in all joints."""
        return self.model.table(self.values)

    @property
    def is_usable(self) -> bool:
        """Whether the search ended at a minimum, and motions are predicted well enough."""
        return self.converged and self.error.is_usable

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Warnings about the search, the law, values at bounds, open values and positions beyond limits."""
        misfit = self.error.finding  # a law that does not fit
        found = [] if misfit is None else [misfit]
        if self.binding:
            kinds = {entry.kind for entry in self.model.entries if entry.name in self.binding}
            consequence = f"; without it these would be others: {', '.join(self.biased)}" if self.biased else ""
            found.append(Finding(
                code="at-bound", severity="warning", where="values",
                message=f"the data want values beyond the bounds: {self._with_values(self.binding)}{consequence}",
                # where friction is at its bound, the damping of the drive is stated too large
                remedy=("Check kd, or leave it free (kd_scale under free)" if "viscous" in kinds else
                        "Check the law and its gains, or give other bounds ([lower], [upper])")
                + "; intervals reach to the values without bounds.",
                evidence={"values at bounds": len(self.binding)},
                brief=f"the data want {_some(self.binding)} beyond the bounds; this biases {_some(self.biased)}",
            ))  # fmt: skip
        if still := [name for name in self.at_bound if name not in self.binding]:
            found.append(Finding(
                code="at-bound", severity="warning", where="values",
                message=f"these stand at their bounds and are no estimates: {self._with_values(still)}",
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

    def _with_values(self, names: Sequence[str]) -> str:
        """Write entries with their values, such as "viscous joint1 at 0"."""
        return ", ".join(f"{name} at {self.values[self.names.index(name)]:g}" for name in names)

    @property
    def beyond_limits(self) -> tuple[str, ...]:
        """Names of the joints whose readings less the encoders' zeros lie beyond the limits in the robot's file."""
        pairs = zip(self.model.robot.moving_joints, self.reach, strict=True)
        return tuple(
            joint.name
            for joint, (low, high) in pairs
            if joint.kind != "continuous" and (low < joint.limits.lower or high > joint.limits.upper)
        )

    def simulate(self, motion: CommandedMotion) -> Floats:
        """Simulate the readings (N, n) of the encoders under a motion's commands [rad or m]."""
        return np.asarray(simulate_servos(self.model, self.values, motion))


def _some(names: Sequence[str]) -> str:
    """Write up to three names, and the number of the others."""
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
        parameters: Parameters to find; the name of a kind stands for one value in each joint.
        held_out: Motions that are predicted with the result, and not fitted.

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
    """Fit a model and judge the result; arguments and errors as for `identify_actuators`."""
    _refuse_copies(motions, held_out)
    equations, found = fit_values(model, motions)
    return _judge(equations, found, stretches_of(held_out))


def fit_values(model: ServoModel, motions: Sequence[CommandedMotion]) -> tuple[ServoEquations, Search]:
    """Find the values alone, without judging them; return the equations with the result of the search."""
    if not motions:
        raise ArgumentError("there is no motion to fit", remedy="Give one motion or more.")
    equations = ServoEquations(model, stretches_of(motions))
    return equations, search_servos(equations.normal, equations.cost, model.start, model.bounds)


def predict_parts(model: ServoModel, motions: Sequence[CommandedMotion]) -> tuple[MotionError, ...]:
    """Cross-validate a model: predict each third of the motions, or of a single motion, with a fit to the others.

    Motion k belongs to the third k modulo 3.

    Returns:
        The errors of the predicted motions.

    Raises:
        ArgumentError: A single motion is too short.
        EstimationError: A simulated motion runs away.
    """
    pieces = motions[0].cut_at(*np.arange(1, FEWEST_GROUPS) / FEWEST_GROUPS) if len(motions) == 1 else motions
    errors = []
    for fold in range(min(FEWEST_GROUPS, len(pieces))):
        equations, found = fit_values(model, [piece for k, piece in enumerate(pieces) if k % FEWEST_GROUPS != fold])
        followers = fit_followers(equations.motions)
        errors += [
            motion_error(model, found.values, motion, followers, trained=False)
            for motion in stretches_of(pieces[fold::FEWEST_GROUPS])
        ]
    return tuple(errors)


def _judge(equations: ServoEquations, found: Search, held_out: Sequence[CommandedMotion]) -> ActuatorEstimate:
    """Make the estimate from the result of a search: judge its values and predict all motions."""
    model = equations.model
    values = found.values
    known = judge_knowledge(equations, values)
    followers = fit_followers(equations.motions)
    # standard deviations hold near a minimum only: where the search merely stopped, nothing is known
    std = known.std if found.converged else np.full_like(known.std, np.inf)
    return ActuatorEstimate(
        model=model.with_values(values),
        values=values,
        std=std,
        open_directions=known.open_directions,
        at_bound=_names_where(model, known.at_bound),
        binding=_names_where(model, known.binds),
        biased=_names_where(model, known.biased),
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


def _names_where(model: ServoModel, is_chosen: Bools) -> tuple[str, ...]:
    """Name the entries of a model for which a flag (P,) is True."""
    return tuple(model.entries[k].name for k in np.flatnonzero(is_chosen))


def _reach(model: ServoModel, values: Floats, motions: Sequence[CommandedMotion]) -> Floats:
    """Find the smallest and largest readings (n, 2) of all motions, less the encoders' zeros [rad or m].

    A zero is the reading of an encoder where the robot's description has the position zero.
    """
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
