"""Estimation of geometry and delay from logs: encoder zeros, lengths and angles of links, tilt of the base, torque lag.

These quantities a enter the torques nonlinearly. Gauss-Newton solves for them: in each step the torques are linearised,

    torque = X x + Z a + noise,

with Z the derivatives of the torques by a, and X the columns of links and friction, whose values x are fitted together
with a. Then the robot is displaced by a, or the torques are moved in time, and Z is computed again; so the result is
not linearised. Quantities that the logs do not determine are held at the model's values.

`identify` calls `refine_geometry` with processed runs (recipe entry ``free``). The readers of logs call
`resolve_delay` with a raw recording (option ``delay_s=auto``), and `dynid.diagnosis.naming` calls `find_delay`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.array_types import Bools, Floats
from dynid.checks import check_names
from dynid.data_reduction.displacements import displace
from dynid.diagnosis.suspects import KINDS, FittedRobot, Suspect, linear_suspects
from dynid.diagnosis.verdicts import Fit, test_columns
from dynid.findings import Finding
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Processing, process
from dynid.robot.model import Robot
from dynid.spatial import rotation_about

FREEDOMS = {"zeros": ["zero", "slide zero"], "lengths": ["length"], "tilt": ["tilt"], "angles": ["angle"]}
"""Name in a recipe -> the kinds of quantities (keys of `dynid.diagnosis.suspects.KINDS`) that it frees."""
MOST_STEPS = 8
"""Most steps of Gauss-Newton (convention: quantities within 10 % of the truth settle in three)."""
SETTLED_STEP_SHARE = 0.05
"""The search ends at steps smaller than this share of the half width of the interval (convention)."""
LONGEST_S = 0.2
"""Largest delay that is looked for [s] (effect)."""
HOLDING_FACTOR = 6.0
"""A quantity is held if half its interval is more than so many times the least reported amount of its kind (effect)."""


@dataclass(frozen=True, slots=True)
class EstimatedQuantity:
    """A quantity of the geometry that was estimated."""

    kind: str
    """A key of `KINDS`."""
    joint: str
    value: float
    """Estimated minus the model's [rad or m]."""
    half_width: float
    """Half of the 95 % interval [rad or m]; infinite where the logs do not determine it and it was held."""

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return abs(self.value) > self.half_width


@dataclass(frozen=True, slots=True, eq=False)
class RefinedGeometry:
    """A robot with estimated geometry."""

    robot: Robot
    quantities: tuple[EstimatedQuantity, ...]
    findings: tuple[Finding, ...]


def refine_geometry(robot: Robot, runs: Sequence[Experiment], names: Sequence[str]) -> RefinedGeometry:
    """Estimate quantities of a robot's geometry from experiments.

    Args:
        robot: The robot; its geometry is the start of the search.
        runs: The processed logs.
        names: Keys of `FREEDOMS`: "zeros", "lengths", "tilt", "angles".

    Returns:
        The displaced robot, the estimated quantities, and findings on those that differ or were held.

    Example:
        >>> dynid.diagnosis.refine_geometry(robot, [run], ["zeros"]).robot.dof
        3
    """
    check_names("free", names, FREEDOMS)
    kinds = [kind for name in names for kind in FREEDOMS[name]]
    # of the robot's possible displacements those that are free; the tilt of the base once, at the first joint on it
    ground = next(j for j, body in enumerate(robot.bodies) if body.parent < 0)
    chosen = [s for s in linear_suspects(robot) if s.kind in kinds and (s.kind != "tilt" or s.joint == ground)]
    total, held, moved = np.zeros(len(chosen)), np.zeros(len(chosen), dtype=bool), robot
    half_width = np.full(len(chosen), np.inf)
    for _ in range(MOST_STEPS if chosen else 0):
        before = held
        step, half_width, held = _step(moved, runs, chosen, held)
        total = np.where(held, 0.0, total + step)
        moved = _move(robot, chosen, total)
        if np.array_equal(held, before) and np.all(np.abs(step[~held]) <= SETTLED_STEP_SHARE * half_width[~held]):
            break
    if robot.source is not None and robot.source.format == "mjcf":
        moved = replace(moved, source=None)  # that text would be written back; other formats are written anew
    amounts = zip(chosen, total.tolist(), half_width.tolist(), strict=True)  # a displacement always has a joint
    found = tuple(EstimatedQuantity(s.kind, robot.joint_names[s.joint or 0], *amount) for s, *amount in amounts)
    return RefinedGeometry(moved, found, tuple(_report(robot, chosen, found)))


def _step(
    robot: Robot, runs: Sequence[Experiment], chosen: Sequence[Suspect], held: Bools
) -> tuple[Floats, Floats, Bools]:
    """Make one step of Gauss-Newton in k chosen quantities, of which some are held already.

    Returns:
        (k,) step [rad or m], zero where held; (k,) half widths of the 95 % intervals; (k,) which are held now.
    """
    model = FittedRobot.of(robot, runs)  # with linear parameters fitted to the runs, which Z depends on
    evidence = model.evidence(chosen)
    fit, limit = Fit.of(evidence), HOLDING_FACTOR * np.array([KINDS[s.kind].least for s in chosen])
    held = held | ~fit.is_shown(evidence.suspects)  # those whose column X explains almost entirely
    while True:  # hold the least determined one until all that remain are determined well enough
        step, half_width = np.zeros(len(chosen)), np.full(len(chosen), np.inf)
        if held.all():
            return step, half_width, held
        free = np.flatnonzero(~held)
        found = test_columns(fit, [evidence.suspects[:, free]])[0]
        step[free], half_width[free] = found.value, found.half_width
        worst = free[int(np.argmax((half_width / limit)[free]))]
        if half_width[worst] <= limit[worst]:
            return np.clip(step, -limit, limit), half_width, held  # no farther than Z may be taken for constant
        # the two axes of a tilt are held together: one alone would be a tilt about another axis
        held = held | np.array([k == worst or s.kind == chosen[worst].kind == "tilt" for k, s in enumerate(chosen)])


def _move(robot: Robot, chosen: Sequence[Suspect], amounts: Floats) -> Robot:
    """Displace a robot by amounts (k,) of the chosen quantities.

    A tilt of the base is made by turning gravity the opposite way, so that the base's frame stays.
    """
    shifts: dict[str, Floats] = {}  # joint -> (6,) slide [m] and turn [rad] in the parent body's frame
    tilt = np.zeros(3)
    for suspect, amount in zip(chosen, amounts.tolist(), strict=True):
        direction = np.zeros(6) if suspect.direction is None else suspect.direction
        if suspect.kind == "tilt":
            tilt = tilt + amount * direction[3:]
            continue
        name = robot.joint_names[suspect.joint or 0]
        shifts[name] = shifts.get(name, np.zeros(6)) + amount * direction
    angle = float(np.linalg.norm(tilt))
    if angle > 0.0:
        robot = robot.with_gravity(rotation_about(tilt / angle, -angle) @ robot.gravity)
    return displace(robot, shifts)


def _report(robot: Robot, chosen: Sequence[Suspect], found: Sequence[EstimatedQuantity]) -> Iterable[Finding]:
    """One finding for each quantity that surely differs from the model, and one for all that were held."""
    for suspect, freed in zip(chosen, found, strict=True):
        if not freed.is_sure:
            continue
        kind = KINDS[suspect.kind]
        large = abs(freed.value) > kind.least
        yield Finding("freed-geometry", "warning" if large else "note", "model",
                      suspect.describe(robot, freed.value, freed.half_width),
                      "The identified robot has this geometry; measure it to be sure." if large else "",
                      joint=None if suspect.kind == "tilt" else freed.joint,
                      evidence={f"amount [{suspect.unit(robot)}]": kind.factor * freed.value})  # fmt: skip
    held = [s.name(robot) for s, freed in zip(chosen, found, strict=True) if not np.isfinite(freed.half_width)]
    if held:
        yield Finding("untestable", "note", "model",
                      f"the logs do not determine {', '.join(dict.fromkeys(held))}: there the model's geometry stays",
                      "Other motions may show them; some never act on the torques.")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Delay:
    """A delay of the torques behind the motion with its 95 % interval."""

    seconds: float
    """[s]; negative where the torques are early."""
    half_width_s: float
    """Half of the 95 % interval [s]; infinite where the runs do not show the delay."""

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return abs(self.seconds) > self.half_width_s


def find_delay(robot: Robot, runs: Sequence[Experiment]) -> Delay:
    """Estimate by how much torques of processed logs, not moved yet, come later than the motion that they belong to.

    Example:
        >>> abs(dynid.diagnosis.find_delay(robot, [run]).seconds) < 0.005
        True
    """
    seconds, half_width = 0.0, np.inf
    for _ in range(MOST_STEPS):
        # with the torques moved back by the delay so far
        evidence = FittedRobot.of(robot, runs, seconds).evidence([Suspect("delay", None)])
        amount = test_columns(Fit.of(evidence), [evidence.suspects])[0]
        step, half_width = float(amount.value[0]), float(amount.half_width[0])
        if not np.isfinite(half_width):
            return Delay(0.0, np.inf)
        seconds = float(np.clip(seconds + step, -LONGEST_S, LONGEST_S))
        if abs(step) < SETTLED_STEP_SHARE * half_width:
            break
    return Delay(seconds, half_width)


def resolve_delay(recording: Recording, options: Processing, robot: Robot | None = None) -> tuple[Processing, str]:
    """Replace an unknown delay of the torques of a raw log, ``effort_delay_s="auto"``, by its estimate in seconds.

    It is found by the equations of the robot; without a robot, or where its interval includes zero, it is zero. Returns
    the options with this delay, and a note for the experiment.
    """
    if options.effort_delay_s != "auto":
        return options, ""
    # processed as for identification, but without a delay, without filtering torques, at the recorded rate
    unmoved = replace(options, effort_delay_s=0.0, filter_effort=False, rate_hz=None)
    if robot is None or recording.isolated or recording.effort is None:
        return replace(options, effort_delay_s=0.0), ""
    delay = find_delay(robot, [process(recording, unmoved)])
    amount = f"{1e3 * delay.seconds:+.3g} +- {1e3 * delay.half_width_s:.2g} ms"
    note = f"torques are {amount} late by the robot's equations: {'moved back' if delay.is_sure else 'not moved'}"
    return replace(options, effort_delay_s=delay.seconds if delay.is_sure else 0.0), note
