"""One time step of a robot of servos, recorded on the tape, and the exact derivatives of this step.

Positions move half a step, velocities a whole one, positions the other half (second order for smooth motions). Viscous
friction and the drive's velocity feedback act on the mean of the old velocity v and the new one v'. Dry friction lambda
opposes the new velocity and may take any value within its bound F where v' is zero, so that a joint at rest stays
exactly at rest. With the step h, the positions q in its middle, the drives' torque tau, viscous friction b, the links'
inertia matrix M and bias (gravity, Coriolis and centrifugal torque):

    A (v' - v) + h lambda = h (tau(v) - b v - bias(q, v)),   A = M(q) + armature + h/2 (b - d tau/d v),
    lambda_i = F_i sign(v'_i) where v'_i is not zero, |lambda_i| <= F_i where it is.

This is one convex problem in v' with one solution. Sweeps over the joints and Newton steps find which joints
stick; the solution for these is then computed exactly, and the derivatives are those of this solution.

A tape cannot branch on values, so choices are written as products with signs: 1 for a joint that slides, 0 for one that
sticks. Arrays hold the recorder's symbols, which is why they have the type Any.
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

SWEEP_COUNT = 6
"""Sweeps over the joints that find roughly which of them stick. Experiment: with the Newton steps that follow,
tests/servos/test_servo_step.py finds the same joints as an exhaustive search on 200 random matrices."""
NEWTON_STEP_COUNT = 3
"""Newton steps that correct what the sweeps found. Experiment: as for the sweeps."""
CONSTANT_INPUTS = ("kp", "kd", "ki", "voltage")
"""Rows of the inputs that stay constant during a motion, (4, n): gains and voltage of the drives."""


@dataclass(frozen=True)
class ServoPlant:
    """What determines the equations of one chain or tree of servos; equal plants share one compiled step."""

    robot: Robot
    """Robot on a fixed base; its own terms are not used."""
    law: DriveLaw
    """Law of every joint's drive."""
    kinds: tuple[str, ...]
    """Kinds of parameters in the equations, see `kinds`; the parameters are the rows of (kinds, n) in a row."""

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return self.robot.dof

    @property
    def state(self) -> int:
        """Length s of the state: readings, velocities, and integrals of position errors where the law has them."""
        return (3 if self.law.integrates else 2) * self.dof

    @property
    def cells(self) -> int:
        """Number of parameters: one per kind and joint."""
        return len(self.kinds) * self.dof

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the tapes' inputs, see `step_tape`."""
        n = self.dof
        return {
            "state": (self.state,),
            "sample": (1 + 3 * n,),
            "given": (len(CONSTANT_INPUTS) * n,),
            "parameters": (self.cells,),
        }

    @property
    def _fields(self) -> tuple[object, ...]:
        """What equality and hash compare: the robot's fingerprint leaves its inertial parameters out."""
        return self.robot.fingerprint, self.robot.inertial_vector.tobytes(), repr(self.law), self.kinds

    def __hash__(self) -> int:
        return hash(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ServoPlant) and self._fields == other._fields


@dataclass(frozen=True, slots=True)
class _Forces:
    """What acts during a step; every field is (n,) unless it says otherwise."""

    h: Any
    """Length of the step, a number [s]."""
    theta: Any
    """(10 n,) inertial parameters of the bodies."""
    q: Any
    """Joint positions of the description in the middle of the step: readings less the encoders' zeros [rad or m]."""
    v: Any
    """Velocities at the start of the step [rad/s or m/s]."""
    drive: Any
    """Torque of the drives at the old velocities, plus the constant offset [N m or N]."""
    damping: Any
    """Viscous friction less the slope of the drive's torque over the velocity [N m s/rad or N s/m]."""
    viscous: Any
    """Coefficient of viscous friction [N m s/rad or N s/m]."""
    armature: Any
    """Reflected rotor inertia [kg m^2 or kg]."""
    bound: Any
    """Largest dry friction [N m or N]."""
    error: Any
    """Command less reading in the middle of the step [rad or m]."""


def _forces(plant: ServoPlant, state: Any, sample: Any, given: Any, parameters: Any) -> _Forces:
    """Evaluate everything that acts during a step; the inputs are those of `step_tape`."""
    n = plant.dof
    h = sample[0]
    z = state[:n]  # readings of the encoders
    v = state[n : 2 * n]
    table = {kind: parameters[k * n : (k + 1) * n] for k, kind in enumerate(plant.kinds)}
    nothing = np.zeros(n)
    q = z - table.get("zero", nothing) + 0.5 * h * v
    error = sample[1 : 1 + n] - z - 0.5 * h * v
    drive, slope = _drive(plant, table, error, state, sample, given)
    theta = _inertial(plant, table)
    bound = table.get("coulomb", nothing)
    if "breakaway" in table:  # Stribeck friction: extra friction that fades with the speed
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
    """Add the identified changes of the links to the inertial parameters (10 n,) of the description."""
    theta: Any = plant.robot.inertial_vector
    changes = {kind: place for kind, place in LINKS.items() if kind in table}  # place among a body's ten parameters
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
    """Evaluate the drives' torques and their slopes over the velocities, (n,) each; zero where a drive is off.

    Columns of ``sample`` and ``given`` are those of `step_tape`.
    """
    n = plant.dof
    torques = []
    slopes = []
    for j in range(n):
        known = dict(zip(CONSTANT_INPUTS, (given[k * n + j] for k in range(len(CONSTANT_INPUTS))), strict=True))
        integral = state[2 * n + j] if plant.law.integrates else 0.0
        seen = Seen(error[j], sample[1 + n + j], state[n + j], integral, **known)
        torque, slope = plant.law.torque({kind: values[j] for kind, values in table.items()}, seen)
        enabled = sample[1 + 2 * n + j]  # 1 or 0
        torques.append(enabled * torque)
        slopes.append(enabled * slope)
    return np.array(torques), np.array(slopes)


@lru_cache(maxsize=32)
def step_tape(plant: ServoPlant) -> Tape:
    """Record ``(state, sample, given, parameters) -> state`` one step later.

    ``state`` holds the encoders' readings, the velocities and, where the law integrates, the integrals of the position
    errors, (n,) each. ``sample`` holds the length of the step [s], then commands, commanded velocities and 1 where the
    drive is enabled, (n,) each. ``given`` holds the rows of `CONSTANT_INPUTS`, ``parameters`` those of the kinds.
    """
    n = plant.dof
    robot = plant.robot

    def step(state: Any, sample: Any, given: Any, parameters: Any) -> Any:
        f = _forces(plant, state, sample, given, parameters)
        A = composite_inertia_matrix(robot, f.theta, f.q) + np.diag(f.armature + 0.5 * f.h * f.damping)
        bias = rigid_body_torque(robot, f.theta, f.q, f.v, np.zeros(n))
        right = A @ f.v + f.h * (f.drive - f.viscous * f.v - bias)
        signs = _signs(A, right, f.h * f.bound, f.v)
        later = _solve_sliding(A, right - f.h * f.bound * signs, np.abs(signs))
        readings = state[:n] + 0.5 * f.h * (f.v + later)
        integrals = [state[2 * n :] + f.h * f.error] if plant.law.integrates else []
        return np.concatenate([readings, later, *integrals])

    return record(step, **plant.shapes)


def _signs(A: Any, right: Any, bound: Any, start: Any) -> Any:
    """Find the signs (n,) of the new velocities x, zero where a joint sticks, in ``A x + bound sign(x) = right``.

    Sweeps solve for one joint after the other (Gauss-Seidel) from ``start`` (n,); Newton steps then correct all
    signs at once. One joint needs a single sweep. A joint sticks where the force on it alone is within its bound.
    """
    n = len(right)
    x: list[Any] = list(start)
    reciprocals = [1.0 / A[i, i] for i in range(n)]
    signs: Any = np.zeros(n)
    for _ in range(SWEEP_COUNT if n > 1 else 1):
        for i in range(n):
            alone = right[i] - sum((A[i, j] * x[j] for j in range(n) if j != i), 0.0)
            beyond = np.abs(alone) - bound[i]
            # (y + |y|) / 2 is the positive part of y
            x[i] = np.sign(alone) * 0.5 * (beyond + np.abs(beyond)) * reciprocals[i]  # exactly zero within the bound
    signs = np.array([np.sign(value) for value in x])
    for _ in range(NEWTON_STEP_COUNT if n > 1 else 0):
        x_here = _solve_sliding(A, right - bound * signs, np.abs(signs))
        alone = right - A @ x_here + np.diagonal(A) * x_here  # force on each joint if it alone did not move
        signs = np.sign(alone) * (0.5 + 0.5 * np.sign(np.abs(alone) - bound))
    return signs


def _solve_sliding(A: Any, right: Any, slides: Any) -> Any:
    """Solve ``A x = right``, (n,) or (n, k), for the joints that slide (1); x is zero for those that stick (0).

    Rows and columns of joints that stick become those of the identity.
    """
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
    """Record the derivatives of the step at ``(state, sample, given, parameters, later)``, ``later`` the velocities v'.

    Outputs, with r = n new velocities, or 2 n with the new integrals: ``transition`` (r, s), their derivatives with
    respect to the old state (s,); ``columns`` (r, width), with respect to the parameters, then the commands and the
    commanded velocities of the n joints, filled up with zeros.
    """
    n = plant.dof
    s = plant.state
    robot = plant.robot
    shapes = plant.shapes | {"later": (n,)}

    def unbalance(state: Any, sample: Any, given: Any, parameters: Any, later: Any) -> Any:
        """Residual (n,) of the step's equations at given v'.

        By the implicit function theorem the derivatives of v' are A^-1 times the residual's.
        """
        f = _forces(plant, state, sample, given, parameters)
        change = later - f.v
        links = rigid_body_torque(robot, f.theta, f.q, f.v, change / f.h)
        rest = f.drive - f.viscous * f.v - links - f.bound * np.sign(later)
        return f.h * rest - (f.armature + 0.5 * f.h * f.damping) * change

    tape = record(unbalance, **shapes)
    recorder = Recorder()
    inputs = {name: recorder.input(name, shape) for name, shape in shapes.items()}
    slopes = _slopes(tape, ("state", "parameters", "sample"), list(inputs.values()))
    f = _forces(plant, *list(inputs.values())[:4])
    A = composite_inertia_matrix(robot, f.theta, f.q) + np.diag(f.armature + 0.5 * f.h * f.damping)
    # `slopes` has its columns in the tape's order: state (s), sample (1 + 3 n), parameters
    commands = s + 1  # behind the state and the length of the step
    after_sample = s + 1 + 3 * n
    order = [*range(s), *range(after_sample, after_sample + plant.cells), *range(commands, commands + 2 * n)]
    solved = _solve_sliding(A, slopes[:, order], np.abs(np.array([np.sign(x) for x in inputs["later"]])))
    rows = [solved]
    if plant.law.integrates:
        # integral' = integral + h (command - reading - h/2 v)
        integrals: Any = np.full((n, len(order)), 0.0, dtype=object)
        for j in range(n):
            integrals[j, j] = -f.h
            integrals[j, n + j] = -0.5 * f.h * f.h
            integrals[j, 2 * n + j] = 1.0
            integrals[j, s + plant.cells + j] = f.h
        rows.append(integrals)
    table = np.concatenate(rows)
    columns: Any = np.full((len(table), width), 0.0, dtype=object)
    columns[:, : table.shape[1] - s] = table[:, s:]
    return recorder.tape({"transition": table[:, :s], "columns": columns})


def _slopes(tape: Tape, wrt: tuple[str, ...], inputs: list[Any]) -> Any:
    """Record the derivatives (outputs, inputs) of a tape's only output with respect to the inputs named in ``wrt``.

    Args:
        tape: The tape.
        wrt: Names of its inputs.
        inputs: Symbols of a recorder, that of the new tape, for all inputs of the old one, in its order.
    """
    # forward mode: the derivative along a direction of the inputs, replayed for every unit vector
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
