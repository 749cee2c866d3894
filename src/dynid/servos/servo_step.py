"""One time step of a simulated robot with n servos, as a recorded program, and the exact derivatives of this step.

Positions move half a step, velocities a whole one, positions the other half (second order for smooth motions). Viscous
friction and the drive's velocity feedback act on the mean of the old velocity v and the new one v'. Dry friction lambda
opposes the new velocity and may take any value within its bound F where v' is zero, so that a joint at rest stays
exactly at rest. With the step h, the positions q in its middle, the drives' torque tau, viscous friction b, the links'
inertia matrix M and bias (gravity, Coriolis and centrifugal torque):

    A (v' - v) + h lambda = h (tau(v) - b v - bias(q, v)),   A = M(q) + armature + h/2 (b - d tau/d v),
    lambda_i = F_i sign(v'_i) where v'_i is not zero, |lambda_i| <= F_i where it is.

A is symmetric and positive definite, so these are the conditions of a convex problem in v' with one solution. Sweeps
over the joints and Newton steps find which joints *stick* (v'_i = 0) and which *slide*; for the sliding ones v' is then
the solution of linear equations, and the derivatives are those of these equations.

A *tape* is a program recorded once as a list of scalar operations, which dynid.tape compiles and differentiates.
`step_tape` records the step and `slope_tape` its derivatives; servo_run.py compiles both and repeats the step. While
they are recorded, arrays hold symbols instead of numbers, which is why they have the type Any here. A tape cannot
branch on values, so choices are written as products with signs: 1 for a joint that slides, 0 for one that sticks.
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
"""The four constants of each joint's drive during a motion: gains, and the supply voltage. The tapes' input ``gains``
(4 n,) has n numbers of each."""


@dataclass(frozen=True)
class ServoPlant:
    """The robot, drive law and parameter kinds that determine the equations; equal plants share one compiled step."""

    robot: Robot
    """Robot on a fixed base; its own friction terms are not used."""
    law: DriveLaw
    """Formula for the torque of every joint's drive."""
    kinds: tuple[str, ...]
    """Kinds of parameters in the equations, such as ``viscous``, by their names in dynid.servos.kinds. The tapes' input
    ``parameters`` has n numbers, one per joint, of each kind in turn."""

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return self.robot.dof

    @property
    def state_size(self) -> int:
        """Length s of the state: encoder readings, velocities, and integrals of position errors if the law has them."""
        return (3 if self.law.integrates else 2) * self.dof

    @property
    def parameter_count(self) -> int:
        """Number of parameters: one per kind and joint."""
        return len(self.kinds) * self.dof

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name of each input of the tapes -> its shape; `step_tape` says what they hold."""
        n = self.dof
        return {
            "state": (self.state_size,),
            "sample": (1 + 3 * n,),
            "gains": (len(CONSTANT_INPUTS) * n,),
            "parameters": (self.parameter_count,),
        }

    @property
    def _fields(self) -> tuple[object, ...]:
        """The facts that equality and hash compare; the fingerprint does not include the inertial parameters."""
        return self.robot.fingerprint, self.robot.inertial_vector.tobytes(), repr(self.law), self.kinds

    def __hash__(self) -> int:
        return hash(self._fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ServoPlant) and self._fields == other._fields


@dataclass(frozen=True, slots=True)
class _Forces:
    """Inertia, torques and friction during a step; every field is (n,) unless its text says otherwise."""

    h: Any
    """Length of the step, a number [s]."""
    theta: Any
    """(10 n,) inertial parameters of the bodies: XX XY XZ YY YZ ZZ MX MY MZ M of each."""
    q: Any
    """Joint positions in the middle of the step, in the robot's coordinates: readings less the encoders' zeros [rad or
    m]."""
    v: Any
    """Velocities at the start of the step [rad/s or m/s]."""
    drive: Any
    """Torque tau of the drives at the old velocities, plus the constant offset [N m or N]."""
    damping: Any
    """b - d tau/d v: viscous friction less the slope of the drive's torque over the velocity [N m s/rad or N s/m]."""
    viscous: Any
    """Coefficient b of viscous friction [N m s/rad or N s/m]."""
    armature: Any
    """Reflected rotor inertia [kg m^2 or kg]."""
    bound: Any
    """Largest dry friction F [N m or N]."""
    error: Any
    """Commanded position less encoder reading in the middle of the step [rad or m]."""


def _forces(plant: ServoPlant, state: Any, sample: Any, gains: Any, parameters: Any) -> _Forces:
    """Evaluate inertia, torques and friction during a step; the inputs are those of `step_tape`."""
    n = plant.dof
    h = sample[0]
    z = state[:n]  # readings of the encoders
    v = state[n : 2 * n]
    # kind -> (n,) values; a kind that the plant does not have has no effect
    table = {kind: parameters[k * n : (k + 1) * n] for k, kind in enumerate(plant.kinds)}
    nothing = np.zeros(n)
    q = z - table.get("zero", nothing) + 0.5 * h * v
    error = sample[1 : 1 + n] - z - 0.5 * h * v
    drive, slope = _drive(plant, table, error, state, sample, gains)
    theta = _inertial(plant, table)
    bound = table.get("coulomb", nothing)
    if "breakaway" in table:  # Stribeck friction: extra friction that fades with the speed
        ratio = v / table["stribeck_speed"]
        bound = bound + table["breakaway"] * np.exp(-(ratio * ratio))
    if "load_drive" in table:  # friction of loaded gears, by the torque of the drive ...
        bound = bound + table["load_drive"] * np.abs(drive)
    if "load_external" in table:  # ... and by the gravity torque
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
    plant: ServoPlant, table: dict[str, Any], error: Any, state: Any, sample: Any, gains: Any
) -> tuple[Any, Any]:
    """Evaluate the drives' torques and their slopes over the velocities, (n,) each; zero where a drive is off.

    Args:
        plant: The robot and its drive law.
        table: Kind of parameter -> (n,) values.
        error: (n,) commanded less measured positions [rad or m].
        state: As for `step_tape`.
        sample: As for `step_tape`.
        gains: As for `step_tape`.
    """
    n = plant.dof
    torques = []
    slopes = []
    for j in range(n):
        known = {name: gains[k * n + j] for k, name in enumerate(CONSTANT_INPUTS)}
        integral = state[2 * n + j] if plant.law.integrates else 0.0
        # the quantities that the drive of joint j measures or gets: position error, commanded velocity, velocity, ...
        seen = Seen(error[j], sample[1 + n + j], state[n + j], integral, **known)
        torque, slope = plant.law.torque({kind: values[j] for kind, values in table.items()}, seen)
        enabled = sample[1 + 2 * n + j]  # 1 or 0
        torques.append(enabled * torque)
        slopes.append(enabled * slope)
    return np.array(torques), np.array(slopes)


@lru_cache(maxsize=32)
def step_tape(plant: ServoPlant) -> Tape:
    """Record the step ``(state, sample, gains, parameters) -> state`` one step later.

    ``state`` (s,) holds the encoders' readings [rad or m], the velocities and, if the law integrates, the integrals of
    the position errors, n numbers each. ``sample`` (1 + 3 n,) holds the length of the step [s], then commanded
    positions, commanded velocities and 1 where the drive is enabled, else 0. ``gains`` (4 n,) holds the
    `CONSTANT_INPUTS`, ``parameters`` (kinds n,) the plant's kinds, n numbers each.
    """
    n = plant.dof
    robot = plant.robot

    def step(state: Any, sample: Any, gains: Any, parameters: Any) -> Any:
        f = _forces(plant, state, sample, gains, parameters)
        A = composite_inertia_matrix(robot, f.theta, f.q) + np.diag(f.armature + 0.5 * f.h * f.damping)
        bias = rigid_body_torque(robot, f.theta, f.q, f.v, np.zeros(n))  # inverse dynamics without acceleration
        right = A @ f.v + f.h * (f.drive - f.viscous * f.v - bias)  # A v' + h lambda = right
        signs = _find_signs(A, right, f.h * f.bound, f.v)
        later = _solve_sliding(A, right - f.h * f.bound * signs, np.abs(signs))
        readings = state[:n] + 0.5 * f.h * (f.v + later)
        integrals = [state[2 * n :] + f.h * f.error] if plant.law.integrates else []
        return np.concatenate([readings, later, *integrals])

    return record(step, **plant.shapes)


def _find_signs(A: Any, right: Any, bound: Any, start: Any) -> Any:
    """Find the signs (n,) of the new velocities x, zero where a joint sticks, in ``A x + bound sign(x) = right``.

    Sweeps solve for one joint after the other, with the others as they are (Gauss-Seidel); Newton steps then correct
    all signs at once. A joint sticks if the impulse that it would get while it does not move is within its bound. One
    joint needs a single sweep.

    Args:
        A: (n, n) matrix of the step's equations.
        right: (n,) right side.
        bound: (n,) largest impulse h F of dry friction.
        start: (n,) first guess of x.
    """
    n = len(right)
    x: list[Any] = list(start)
    reciprocals = [1.0 / A[i, i] for i in range(n)]
    for _ in range(SWEEP_COUNT if n > 1 else 1):
        for i in range(n):
            alone = right[i] - sum((A[i, j] * x[j] for j in range(n) if j != i), 0.0)
            beyond = np.abs(alone) - bound[i]
            # (y + |y|) / 2 is the positive part of y
            x[i] = np.sign(alone) * 0.5 * (beyond + np.abs(beyond)) * reciprocals[i]  # exactly zero within the bound
    signs: Any = np.array([np.sign(value) for value in x])
    for _ in range(NEWTON_STEP_COUNT if n > 1 else 0):
        x_here = _solve_sliding(A, right - bound * signs, np.abs(signs))
        alone = right - A @ x_here + np.diagonal(A) * x_here  # impulse on each joint if it alone did not move
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
    """Record the derivatives of the step's result with respect to its inputs.

    Inputs are those of `step_tape`, and ``later``, the new velocities v' (n,) that it found. Derivatives are those of
    the r = n new velocities, or of these and the n new integrals (r = 2 n); new positions follow from the velocities.

    Outputs are ``transition`` (r, s), the derivatives with respect to the old state (s,); and ``columns`` (r, width),
    those with respect to the parameters, then to the commanded positions (n,) and the commanded velocities (n,), filled
    up with columns of zeros.
    """
    n = plant.dof
    s = plant.state_size
    robot = plant.robot
    shapes = plant.shapes | {"later": (n,)}

    def unbalance(state: Any, sample: Any, gains: Any, parameters: Any, later: Any) -> Any:
        """Compute the residual (n,) of the step's equations at given v'.

        By the implicit function theorem the derivatives of v' are A^-1 times those of the residual, for sliding joints.
        """
        f = _forces(plant, state, sample, gains, parameters)
        change = later - f.v
        links = rigid_body_torque(robot, f.theta, f.q, f.v, change / f.h)  # inverse dynamics: M change/h + bias
        rest = f.drive - f.viscous * f.v - links - f.bound * np.sign(later)
        return f.h * rest - (f.armature + 0.5 * f.h * f.damping) * change

    # record the residual, then a second tape with the residual's derivatives and the solution of the linear equations
    tape = record(unbalance, **shapes)
    recorder = Recorder()
    inputs = {name: recorder.input(name, shape) for name, shape in shapes.items()}
    slopes = _slopes(tape, ("state", "parameters", "sample"), list(inputs.values()))
    f = _forces(plant, *list(inputs.values())[:4])
    A = composite_inertia_matrix(robot, f.theta, f.q) + np.diag(f.armature + 0.5 * f.h * f.damping)
    # `slopes` has its columns in the tape's order: state (s), sample (1 + 3 n), parameters; wanted are state,
    # parameters, commanded positions and velocities
    commands = s + 1  # behind the state and the length of the step
    after_sample = s + 1 + 3 * n
    order = [*range(s), *range(after_sample, after_sample + plant.parameter_count), *range(commands, commands + 2 * n)]
    solved = _solve_sliding(A, slopes[:, order], np.abs(np.array([np.sign(x) for x in inputs["later"]])))
    rows = [solved]
    if plant.law.integrates:
        # integral' = integral + h (command - reading - h/2 v): its derivatives by reading, v, integral and command
        integrals: Any = np.full((n, len(order)), 0.0, dtype=object)
        for j in range(n):
            integrals[j, j] = -f.h
            integrals[j, n + j] = -0.5 * f.h * f.h
            integrals[j, 2 * n + j] = 1.0
            integrals[j, s + plant.parameter_count + j] = f.h
        rows.append(integrals)
    table = np.concatenate(rows)
    columns: Any = np.full((len(table), width), 0.0, dtype=object)
    columns[:, : table.shape[1] - s] = table[:, s:]
    return recorder.tape({"transition": table[:, :s], "columns": columns})


def _slopes(tape: Tape, wrt: tuple[str, ...], inputs: list[Any]) -> Any:
    """Record the derivatives of a tape's only output on a new tape.

    Args:
        tape: The tape, with an output of m numbers.
        wrt: Names of the inputs with respect to which it is differentiated, of k numbers together.
        inputs: Symbols of the new tape's recorder for all inputs of the old tape, in its order.

    Returns:
        (m, k) symbols of the new tape.
    """
    # forward mode: `jvp` makes the tape of the derivative along a direction; it is replayed for every unit vector
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
