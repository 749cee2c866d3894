"""Suspects that are estimated: encoder zeros, lengths and angles of links, tilt of the base, delay of the torques.

Gauss-Newton over the columns of the suspects, with all linear parameters and friction of any shape fitted anew at every
step. The robot itself is displaced and the torques are moved, so nothing is linearised in the result. What the logs do
not determine is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.array_types import Bools, Floats
from dynid.data_reduction.displacements import displace
from dynid.diagnosis.evidence import gather
from dynid.diagnosis.suspects import KINDS, Model, Suspect, placement_columns, placements
from dynid.diagnosis.verdicts import Fit, test_columns
from dynid.errors import ArgumentError
from dynid.findings import Finding
from dynid.logs.recording import Recording
from dynid.processing.experiment import Experiment
from dynid.processing.process import Processing, process
from dynid.robot.model import Robot
from dynid.spatial import rotation_about

FREEDOMS: dict[str, tuple[str, ...]] = {
    "zeros": ("zero", "slide zero"),
    "lengths": ("length",),
    "tilt": ("tilt",),
    "angles": ("angle",),
}
"""What a recipe may free, and the kinds of suspects that this means."""
MOST_STEPS = 8
"""Most steps of Gauss-Newton (convention: quantities within 10 % of the truth settle in three)."""
SETTLED_STEP_SHARE = 0.05
"""Largest step, over half its interval, that ends the search (convention)."""
LONGEST_S = 0.2
"""Largest delay that is looked for [s] (effect)."""
HOLDING_FACTOR = 6.0
"""Half the interval, over the effect worth telling, from which on a quantity is held (effect)."""


@dataclass(frozen=True, slots=True)
class Freed:
    """A quantity of the geometry that was estimated."""

    kind: str
    """A key of `KINDS`."""
    joint: str
    value: float
    """Found minus stated [rad or m]."""
    half_width: float
    """Half of the 95 % interval [rad or m]; infinite where the logs do not determine it and it was held."""

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return abs(self.value) > self.half_width


@dataclass(frozen=True, slots=True, eq=False)
class RefinedGeometry:
    """A robot with the geometry that logs show."""

    robot: Robot
    quantities: tuple[Freed, ...]
    findings: tuple[Finding, ...]

    @property
    def is_shown(self) -> bool:
        """Whether the logs determine every quantity, and one of them surely differs from the model."""
        return all(np.isfinite(q.half_width) for q in self.quantities) and any(q.is_sure for q in self.quantities)


def check_freedoms(names: Iterable[str]) -> None:
    """Refuse names that are not in `FREEDOMS`."""
    for name in names:
        if name not in FREEDOMS:
            raise ArgumentError(f"free: there is no '{name}'", remedy=f"Known names: {', '.join(FREEDOMS)}.")


def refine_geometry(robot: Robot, runs: Sequence[Experiment], names: Sequence[str]) -> RefinedGeometry:
    """Estimate quantities of a robot's geometry from experiments.

    Args:
        robot: The robot; its geometry is the start.
        runs: The experiments.
        names: Keys of `FREEDOMS`: "zeros", "lengths", "tilt", "angles".

    Example:
        >>> dynid.diagnosis.refine_geometry(robot, [run], ["zeros"]).robot.dof
        3
    """
    check_freedoms(names)
    kinds = [kind for name in names for kind in FREEDOMS[name]]
    ground = next(j for j, body in enumerate(robot.bodies) if body.parent < 0)
    chosen = [s for s in placements(robot) if s.kind in kinds and (s.kind != "tilt" or s.joint == ground)]
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
        moved = replace(moved, source=None)  # its text is written back with new inertias only
    found = tuple(
        Freed(s.kind, robot.joint_names[s.joint or 0], value, spread)
        for s, value, spread in zip(chosen, total.tolist(), half_width.tolist(), strict=True)
    )
    return RefinedGeometry(moved, found, tuple(_report(robot, chosen, found)))


def _step(
    robot: Robot, runs: Sequence[Experiment], chosen: Sequence[Suspect], held: Bools
) -> tuple[Floats, Floats, Bools]:
    """One step (k,), half the intervals (k,), and which quantities stay where they are."""
    model = Model.of(robot, runs)
    columns = [list(placement_columns(model, excerpt, chosen)) for excerpt in model.excerpts]
    evidence = gather(model.robot, model.base, model.excerpts, columns)
    fit, limit = Fit.of(evidence), HOLDING_FACTOR * np.array([KINDS[s.kind].least for s in chosen])
    alone = test_columns(fit, list(evidence.suspects.T[:, :, None]))
    held = held | np.array([np.isinf(found.half_width[0]) for found in alone])
    while True:
        step, half_width = np.zeros(len(chosen)), np.full(len(chosen), np.inf)
        if held.all():
            return step, half_width, held
        free = np.flatnonzero(~held)
        found = test_columns(fit, [evidence.suspects[:, free]])[0]
        step[free], half_width[free] = found.value, found.half_width
        worst = free[int(np.argmax((half_width / limit)[free]))]
        if half_width[worst] <= limit[worst]:
            return np.clip(step, -limit, limit), half_width, held
        # half a tilt of the base would be a tilt about another axis
        held = held | np.array([k == worst or s.kind == chosen[worst].kind == "tilt" for k, s in enumerate(chosen)])


def _move(robot: Robot, chosen: Sequence[Suspect], amounts: Floats) -> Robot:
    """The robot with other geometry; a tilt of the base turns gravity the other way and leaves the base's frame."""
    shifts: dict[str, Floats] = {}
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


def _report(robot: Robot, chosen: Sequence[Suspect], found: Sequence[Freed]) -> Iterable[Finding]:
    """One finding for each quantity that surely differs from the model, and one for all that were held."""
    for suspect, freed in zip(chosen, found, strict=True):
        if not freed.is_sure:
            continue
        kind = KINDS[suspect.kind]
        large = abs(freed.value) > kind.least
        yield Finding(
            code="freed-geometry",
            severity="warning" if large else "note",
            where="model",
            joint=None if suspect.kind == "tilt" else freed.joint,
            message=suspect.describe(robot, freed.value, freed.half_width),
            evidence={f"amount [{suspect.unit(robot)}]": kind.factor * freed.value},
            remedy="The identified robot has this geometry; measure it to be sure." if large else "",
        )
    held = [s.name(robot) for s, freed in zip(chosen, found, strict=True) if not np.isfinite(freed.half_width)]
    if held:
        yield Finding(
            code="untestable",
            severity="note",
            where="model",
            message=f"the logs do not determine {', '.join(dict.fromkeys(held))}: there the model's geometry stays",
            remedy="Other motions may show them; some never act on the torques.",
        )


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
    """Estimate the delay of the torques of runs, processed without a delay.

    Args:
        robot: The robot.
        runs: The runs.

    Example:
        >>> abs(dynid.diagnosis.find_delay(robot, [run]).seconds) < 0.005
        True
    """
    seconds, half_width = 0.0, np.inf
    for _ in range(MOST_STEPS):
        model = Model.of(robot, runs, seconds)
        late = [[dict(enumerate(-excerpt.slope.T))] for excerpt in model.excerpts]
        evidence = gather(model.robot, model.base, model.excerpts, late)
        amount = test_columns(Fit.of(evidence), [evidence.suspects])[0]
        step, half_width = float(amount.value[0]), float(amount.half_width[0])
        if not np.isfinite(half_width):
            return Delay(0.0, np.inf)
        seconds = float(np.clip(seconds + step, -LONGEST_S, LONGEST_S))
        if abs(step) < SETTLED_STEP_SHARE * half_width:
            break
    return Delay(seconds, half_width)


def resolve_delay(recording: Recording, options: Processing, robot: Robot | None = None) -> tuple[Processing, str]:
    """Replace an unknown delay of the torques by its estimate; return the options and a note for the experiment.

    Torques are moved only where the interval of the delay excludes zero.

    Args:
        recording: The log.
        options: Processing options; only ``effort_delay_s="auto"`` is replaced.
        robot: The robot, by whose equations the delay is found; without it nothing is moved.
    """
    if options.effort_delay_s != "auto":
        return options, ""
    unmoved = replace(options, effort_delay_s=0.0, filter_effort=False, rate_hz=None)
    if robot is None or recording.isolated or recording.effort is None:
        return replace(options, effort_delay_s=0.0), ""
    delay = find_delay(robot, [process(recording, unmoved)])
    text = f"torques are {1e3 * delay.seconds:+.3g} +- {1e3 * delay.half_width_s:.2g} ms late by the robot's equations"
    if not delay.is_sure:
        return replace(options, effort_delay_s=0.0), f"{text}: not moved"
    return replace(options, effort_delay_s=delay.seconds), f"{text}: moved back"
