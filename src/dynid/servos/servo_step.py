"""One time step of a robot of servos, recorded on the tape, and the exact derivatives of this step.

Positions move half a step, velocities a whole one, positions the other half (second order for smooth motions). Viscous
friction and the drive's velocity feedback act on the mean of the old and the new velocity v'. Dry friction opposes the
new velocity and may take any value within its bound F where v' is zero, so that a joint at rest stays exactly at rest:

    A (v' - v) + h lambda = h (tau(v) - b v - bias(q, v)),   A = M(q) + armature + h/2 (b - d tau/d v),
    lambda_i = F_i sign(v'_i) where v'_i is not zero, |lambda_i| <= F_i where it is.

This is one convex problem in v' with one solution. Sweeps over the joints and Newton steps find which joints
stick; the solution for these is then computed exactly, and the derivatives are those of this solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from dynid.dynamics.forward_dynamics import solve_symmetric
from dynid.dynamics.inertia_matrix import composite_inertia_matrix
from dynid.dynamics.inverse_dynamics import rigid_body_torque
from dynid.robot.model import Robot
from dynid.servos.drive_laws import DriveLaw, Seen
from dynid.servos.kinds import LINKS
from dynid.tape import Tape, jvp, record
from dynid.tape.record import Recorder, replay

SWEEPS = 6
"""Sweeps over the joints that find out roughly which of them stick. Experiment: with the Newton steps that follow,
tests/servos/test_servo_step.py finds the same joints as an exhaustive search on 200 random matrices."""
NEWTON_STEPS = 3
"""Newton steps that correct what the sweeps found. Experiment: as for the sweeps."""
GIVEN = ("kp", "kd", "ki", "voltage")
"""Rows of the numbers that are constant during a motion, (4, n)."""


@dataclass(frozen=True)
class ServoPlant:
    """The equations of one chain or tree of servos: geometry, links, law, and the kinds of parameters it has."""

    robot: Robot
    """Robot on a fixed base; its own terms are not used."""
    law: DriveLaw
    """Law of every joint's drive."""
    kinds: tuple[str, ...]
    """Kinds that the equations contain; the parameters are (kinds, n), flat."""

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return self.robot.dof

    @property
    def state(self) -> int:
        """Numbers of the state: readings of the encoders, velocities, and integrals where the law has them."""
        return (3 if self.law.integrates else 2) * self.dof

    @property
    def cells(self) -> int:
        """Number of parameters."""
        return len(self.kinds) * self.dof

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Inputs of the tapes; a sample is the step [s], then command, commanded velocity and enabled of each joint."""
        n = self.dof
        return {"state": (self.state,), "sample": (1 + 3 * n,), "given": (len(GIVEN) * n,), "parameters": (self.cells,)}

    @property
    def _fields(self) -> tuple[object, ...]:
        return self.robot.fingerprint, self.robot.inertial_vector.tobytes(), repr(self.law), self.kinds

    def __hash__(self) -> int:
        return hash(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ServoPlant) and self._fields == other._fields


@dataclass(frozen=True, slots=True)
class _Forces:
    """What acts during a step; every field (n,) but the step."""

    h: Any
    theta: Any
    """(10 n,) inertial parameters of the bodies."""
    q: Any
    """Positions of the description in the middle of the step."""
    v: Any
    drive: Any
    """Torque of the drives at the old velocities, and constant torque."""
    damping: Any
    """Viscous friction minus the slope of the drive's torque."""
    viscous: Any
    armature: Any
    bound: Any
    """Largest dry friction."""
    error: Any
    """Position error in the middle of the step."""


def _forces(plant: ServoPlant, state: Any, sample: Any, given: Any, parameters: Any) -> _Forces:
    n, h = plant.dof, sample[0]
    z, v = state[:n], state[n : 2 * n]
    table = {kind: parameters[k * n : (k + 1) * n] for k, kind in enumerate(plant.kinds)}
    nothing = np.zeros(n)
    q = z - table.get("zero", nothing) + 0.5 * h * v
    error = sample[1 : 1 + n] - z - 0.5 * h * v
    drive, slope = _drive(plant, table, error, state, sample, given)
    theta = _inertial(plant, table)
    bound = table.get("coulomb", nothing)
    if "breakaway" in table:
        ratio = v / table["stribeck_speed"]
        bound = bound + table["breakaway"] * np.exp(-(ratio * ratio))
    if "load_drive" in table:
        bound = bound + table["load_drive"] * np.abs(drive)
    if "load_external" in table:
        weight = rigid_body_torque(plant.robot, theta, q, nothing, nothing)
        bound = bound + table["load_external"] * np.abs(weight)
    viscous = table.get("viscous", nothing)
    return _Forces(
        h=h,
        theta=theta,
        q=q,
        v=v,
        drive=drive + table.get("offset", nothing),
        damping=viscous - slope,
        viscous=viscous,
        armature=table.get("armature", nothing),
        bound=bound,
        error=error,
    )


def _inertial(plant: ServoPlant, table: dict[str, Any]) -> Any:
    """(10 n,) parameters of the bodies: those of the description, changed by kinds of links."""
    theta: Any = plant.robot.inertial_vector
    changes = {kind: place for kind, place in LINKS.items() if kind in table}
    if not changes:
        return theta
    changed = np.array(theta, dtype=object)
    for kind, place in changes.items():
        for j in range(plant.dof):
            changed[10 * j + place] = changed[10 * j + place] + table[kind][j]
    return changed


def _drive(
    plant: ServoPlant, table: dict[str, Any], error: Any, state: Any, sample: Any, given: Any
) -> tuple[Any, Any]:
    """Torques of the drives and their slopes over the velocities (n,); nothing where a drive is off."""
    n = plant.dof
    torques, slopes = [], []
    for j in range(n):
        known = dict(zip(GIVEN, (given[k * n + j] for k in range(len(GIVEN))), strict=True))
        integral = state[2 * n + j] if plant.law.integrates else 0.0
        seen = Seen(error[j], sample[1 + n + j], state[n + j], integral, **known)
        torque, slope = plant.law.torque({kind: values[j] for kind, values in table.items()}, seen)
        on = sample[1 + 2 * n + j]
        torques.append(on * torque)
        slopes.append(on * slope)
    return np.array(torques), np.array(slopes)


@lru_cache(maxsize=32)
def step_tape(plant: ServoPlant) -> Tape:
    """``(state, sample, given, parameters) -> state`` one step later."""
    n, robot = plant.dof, plant.robot

    def step(state: Any, sample: Any, given: Any, parameters: Any) -> Any:
        f = _forces(plant, state, sample, given, parameters)
        A = composite_inertia_matrix(robot, f.theta, f.q) + np.diag(f.armature + 0.5 * f.h * f.damping)
        bias = rigid_body_torque(robot, f.theta, f.q, f.v, np.zeros(n))
        right = A @ f.v + f.h * (f.drive - f.viscous * f.v - bias)
        signs = _signs(A, right, f.h * f.bound, f.v)
        later = _solve_sliding(A, right - f.h * f.bound * signs, np.abs(signs))
        moved = state[:n] + 0.5 * f.h * (f.v + later)
        rest = [state[2 * n :] + f.h * f.error] if plant.law.integrates else []
        return np.concatenate([moved, later, *rest])

    return record(step, **plant.shapes)


def _signs(A: Any, right: Any, bound: Any, start: Any) -> Any:
    """(n,) directions of the new velocities, zero where a joint sticks, by descent and by Newton's method."""
    n = len(right)
    x: list[Any] = list(start)
    reciprocals = [1.0 / A[i, i] for i in range(n)]
    signs: Any = np.zeros(n)
    for _ in range(SWEEPS if n > 1 else 1):
        for i in range(n):
            alone = right[i] - sum((A[i, j] * x[j] for j in range(n) if j != i), 0.0)
            beyond = np.abs(alone) - bound[i]
            x[i] = np.sign(alone) * 0.5 * (beyond + np.abs(beyond)) * reciprocals[i]  # exactly zero within the bound
    signs = np.array([np.sign(value) for value in x])
    for _ in range(NEWTON_STEPS if n > 1 else 0):
        x_here = _solve_sliding(A, right - bound * signs, np.abs(signs))
        alone = right - A @ x_here + np.diagonal(A) * x_here  # what each joint would need alone
        signs = np.sign(alone) * (0.5 + 0.5 * np.sign(np.abs(alone) - bound))
    return signs


def _solve_sliding(A: Any, right: Any, slides: Any) -> Any:
    """(n,) or (n, k) solution of ``A x = right`` for joints that slide (1), zero for those that stick (0)."""
    n = len(slides)
    masked: Any = np.empty((n, n), dtype=object)
    for i in range(n):
        for j in range(n):
            masked[i, j] = slides[i] * slides[j] * A[i, j] if i != j else slides[i] * A[i, i] + (1.0 - slides[i])
    if np.ndim(right) == 1:
        return solve_symmetric(masked, slides * right)
    return np.stack([solve_symmetric(masked, slides * right[:, k]) for k in range(right.shape[1])], axis=1)


@lru_cache(maxsize=32)
def slope_tape(plant: ServoPlant, width: int) -> Tape:
    """Derivatives of the step at ``(state, sample, given, parameters, later)``, with the new velocities given.

    Outputs: ``transition`` (r, s), new velocities (and integrals) by the old state; ``columns`` (r, width), by the
    parameters, then by commands and by commanded velocities of the n joints, filled up with zeros.
    """
    n, s, robot = plant.dof, plant.state, plant.robot
    shapes = plant.shapes | {"later": (n,)}

    def unbalance(state: Any, sample: Any, given: Any, parameters: Any, later: Any) -> Any:
        """What the equations of the step leave over; its derivatives at given v' are those of v', solved."""
        f = _forces(plant, state, sample, given, parameters)
        change = later - f.v
        links = rigid_body_torque(robot, f.theta, f.q, f.v, change / f.h)
        rest = f.drive - f.viscous * f.v - links - f.bound * np.sign(later)
        return f.h * rest - (f.armature + 0.5 * f.h * f.damping) * change

    tape = record(unbalance, **shapes)
    recorder = Recorder()
    inputs = {name: recorder.input(name, shape) for name, shape in shapes.items()}
    slopes = _slopes(tape, ("state", "parameters", "sample"), recorder, list(inputs.values()))
    f = _forces(plant, *list(inputs.values())[:4])
    A = composite_inertia_matrix(robot, f.theta, f.q) + np.diag(f.armature + 0.5 * f.h * f.damping)
    first = plant.shapes["state"][0] + 1  # the inputs come in the tape's order: state, sample, parameters
    order = [*range(s), *range(s + 1 + 3 * n, s + 1 + 3 * n + plant.cells), *range(first, first + 2 * n)]
    solved = _solve_sliding(A, slopes[:, order], np.abs(np.array([np.sign(x) for x in inputs["later"]])))
    rows = [solved]
    if plant.law.integrates:
        errors: Any = np.full((n, len(order)), 0.0, dtype=object)
        for j in range(n):
            errors[j, 2 * n + j] = 1.0
            errors[j, j], errors[j, n + j], errors[j, s + plant.cells + j] = -f.h, -0.5 * f.h * f.h, f.h
        rows.append(errors)
    table = np.concatenate(rows)
    columns: Any = np.full((len(table), width), 0.0, dtype=object)
    columns[:, : table.shape[1] - s] = table[:, s:]
    return recorder.tape({"transition": table[:, :s], "columns": columns})


def _slopes(tape: Tape, wrt: tuple[str, ...], recorder: Recorder, inputs: list[Any]) -> Any:
    """(outputs, inputs) derivatives of a tape's only output, unit by unit, on the given scalars."""
    along = jvp(tape, "output", wrt=list(wrt))
    flat = np.concatenate([np.ravel(array) for array in inputs])
    count = sum(entry.size for entry in tape.inputs if entry.name in wrt)
    targets = along.outputs[0].elements.ravel().tolist()
    slopes: Any = np.full((len(targets), count), 0.0, dtype=object)
    for direction in range(count):
        unit = np.full(count, 0.0, dtype=object)
        unit[direction] = 1.0
        value = replay(along, np.concatenate([flat, unit]))
        slopes[:, direction] = [value(element) for element in targets]
    return slopes
