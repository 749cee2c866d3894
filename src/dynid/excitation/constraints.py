"""All limits of a robot as constraints, how far a motion stays from them, and which limits are not stated.

`build_constraints` turns every finite limit of a `MotionLimits` into a `Constraint`; `measure_margins` compares a
motion with them; `find_unchecked_limits` lists what the motion was not measured against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Bools, Floats, Ints
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.dynamics.kinematics import body_velocities
from dynid.errors import ArgumentError
from dynid.excitation.base import Constraint, Differentiable, RecordedConstraint
from dynid.excitation.body_limits import collision_constraint, wall_constraint
from dynid.excitation.limits import MotionLimits, Workspace
from dynid.excitation.trajectory import Motion
from dynid.robot.model import Robot
from dynid.spatial import cross

_SMALLEST = 1e-6
"""Smallest limit [SI] by which an excess is divided: zero limits stay finite. Convention."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a motion stays from one limit at its closest."""

    limit: str
    """Name of the constraint: ``position``, ``velocity``, ``torque``, ..."""
    where: str
    """The joint, wall or pair of links."""
    margin: float
    """Smallest distance to the limit, negative beyond it, in ``unit``."""
    relative: float
    """The margin as a share of the limit (of 0.1 m for distances between bodies)."""
    unit: str
    """SI unit of ``margin``."""


@dataclass(frozen=True)
class _JointBounds(RecordedConstraint):
    """Bounds on a derivative of the positions, or on the torque."""

    order: int
    """0 position, 1 velocity, 2 acceleration, 3 jerk; of the torque it is the recorded function that counts."""
    joints: Ints
    """(m,) the joint of each column."""
    sign: Floats
    """(m,) 1 for an upper bound, -1 for a lower one."""
    bound: Floats
    """(m,) signed bounds, so that ``sign * value <= bound``."""

    def excess(self, motion: Motion) -> Floats:
        values = motion[self.order] if self.function is None else self.values(motion)
        return (values[:, self.joints] * self.sign - self.bound) / self.scale

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        onto_joint = self.joints[:, None] == np.arange(motion.q.shape[1])
        gradient = (cotangent * (self.sign / self.scale)) @ onto_joint
        if self.function is not None:
            return self.pull(motion, gradient)
        zero = np.zeros_like(motion.q)
        return Motion(*(gradient if order == self.order else zero for order in range(4)))


@dataclass(frozen=True)
class _ToolSpeed(RecordedConstraint):
    def excess(self, motion: Motion) -> Floats:
        return np.asarray(np.linalg.norm(self.values(motion), axis=1, keepdims=True) / self.scale - 1.0)

    def pullback(self, motion: Motion, cotangent: Floats) -> Motion:
        velocity = self.values(motion)
        speed = np.linalg.norm(velocity, axis=1, keepdims=True)
        direction = np.divide(velocity, speed, out=np.zeros_like(velocity), where=speed > 0.0)
        return self.pull(motion, direction * (cotangent / self.scale))


def build_constraints(robot: Robot, limits: MotionLimits) -> tuple[Constraint, ...]:
    """Every limit that is finite, as a constraint; recorded and compiled where it needs the robot."""
    return _build_all(robot, limits)[0]


def _build_all(robot: Robot, limits: MotionLimits) -> tuple[tuple[Constraint, ...], list[str]]:
    """The constraints, and phrases for bodies that are beyond a wall or near each other by build."""
    constraints = _joint_constraints(robot, limits)
    unchecked: list[str] = []
    for workspace in limits.workspaces:
        if workspace.link is not None and robot.link_body(workspace.link)[0] < 0:
            raise ArgumentError(
                f"link '{workspace.link}' does not move: its workspace limits nothing", remedy="Name the tool's link."
            )
        if workspace.half_spaces:
            walls, beyond = wall_constraint(robot, workspace, limits.hulls)
            constraints.append(walls)
            unchecked += beyond
        if np.isfinite(workspace.speed):
            constraints.append(_tool_speed(robot, workspace))
    apart, near = collision_constraint(robot, limits)
    return (*constraints, *([] if apart is None else [apart])), [*unchecked, *near]


def _joint_constraints(robot: Robot, limits: MotionLimits) -> list[Constraint]:
    span = limits.upper - limits.lower
    half = np.where(np.isfinite(span), 0.5 * span, 1.0)  # a bound on one side only is measured in rad or m
    judged = np.where(carries_mass(robot), limits.torque, np.inf)
    units, efforts = robot.position_units, ["N" if body.is_prismatic else "N m" for body in robot.bodies]
    kinds = [("position", limits.lower, limits.upper, half, units)]
    for per, name in enumerate(("velocity", "acceleration", "jerk"), start=1):
        bound, power = getattr(limits, name), "" if per == 1 else f"^{per}"
        kinds.append((name, -bound, bound, bound, tuple(f"{unit}/s{power}" for unit in units)))
    kinds.append(("torque", -judged, judged, judged, tuple(efforts)))
    theta = robot.parameter_vector
    torque = Differentiable(lambda **x: newton_euler(robot, theta, **x), robot.dof, "q", "dq", "ddq")
    found: list[Constraint] = []
    for order, (name, lower, upper, size, unit) in enumerate(kinds):
        low, high = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
        joints = np.concatenate([high, low])
        if joints.size:
            found.append(
                _JointBounds(
                    name,
                    tuple(f"joint '{limits.joint_names[j]}'" for j in joints),
                    np.maximum(size[joints], _SMALLEST),
                    tuple(unit[j] for j in joints),
                    torque if name == "torque" else None,
                    order,
                    joints,
                    np.repeat([1.0, -1.0], [len(high), len(low)]),
                    np.concatenate([upper[high], -lower[low]]),
                )
            )
    return found


def _tool_speed(robot: Robot, workspace: Workspace) -> Constraint:
    link = str(workspace.link)
    body, T = robot.link_body(link)
    point = T[:3, :3] @ workspace.point + T[:3, 3]

    def velocity(q: Any, dq: Any) -> Any:
        w, v = body_velocities(robot, q, dq)[body]
        return v + cross(w, point)

    function = Differentiable(velocity, robot.dof, "q", "dq")
    return _ToolSpeed("tool speed", (link,), np.array([workspace.speed]), ("m/s",), function)


def measure_speed_shares(motion: Motion, velocity: Floats) -> Floats:
    """Peak speeds (n, 2) forwards and backwards as shares of the limits (n,), or of the larger peak without a limit."""
    peaks = np.stack([motion.dq.max(axis=0), -motion.dq.min(axis=0)], axis=1)
    limit = np.where(np.isfinite(velocity), velocity, peaks.max(axis=1))
    shares: Floats = np.divide(peaks, limit[:, None], out=np.zeros_like(peaks), where=limit[:, None] > 0.0)
    return shares


def measure_margins(constraints: tuple[Constraint, ...], motion: Motion) -> tuple[Margin, ...]:
    """The closest approach to every limit over a motion."""
    found = []
    for constraint in constraints:
        closest = constraint.closest(motion)
        rows = zip(constraint.where, -closest, constraint.scale, constraint.units, strict=True)
        for where, relative, scale, unit in rows:
            found.append(Margin(constraint.name, where, float(relative * scale), float(relative), unit))
    return tuple(found)


def carries_mass(robot: Robot) -> Bools:
    """Whether each joint (n,) carries a body with mass or inertia in the model: only then its torque can be judged."""
    heavy = np.array([bool(np.any(body.inertia.vector)) for body in robot.bodies], dtype=bool)
    for index in reversed(range(robot.dof)):
        if heavy[index] and robot.bodies[index].parent >= 0:
            heavy[robot.bodies[index].parent] = True
    return heavy


def find_unchecked_limits(robot: Robot, limits: MotionLimits) -> tuple[str, ...]:
    """A phrase for everything that a motion within these limits is not checked against, with the reason if one is."""
    kinds = ("velocity", "acceleration", "jerk", "torque")
    found = [_joints_text(kind, np.isinf(getattr(limits, kind)), limits.joint_names) for kind in kinds]
    limited, carried = np.isfinite(limits.torque), carries_mass(robot)
    if where := _joints_text("torque", limited & ~carried, limits.joint_names):
        found.append(f"{where} (torques cannot be judged, masses are zero)")
    empty = [body.joint.child for body in robot.bodies if not np.any(body.inertia.vector)]
    if empty and np.any(limited & carried):
        found.append(f"torque for {', '.join(empty)} (masses are zero: torques are judged without them)")
    tools = [space for space in limits.workspaces if space.link is not None]
    if all(space.link is not None for space in limits.workspaces):
        walled = any(space.half_spaces for space in tools)
        found.append("floor and walls for anything but the tool" if walled else "floor and walls")
    elif not limits.hulls:
        found.append("floor and walls for the bodies around the joint origins")
    found += [] if any(np.isfinite(space.speed) for space in tools) else ["tool speed"]
    found += [] if limits.hulls and limits.clearance is not None else ["self-collision"]
    return tuple(phrase for phrase in (*found, *_build_all(robot, limits)[1]) if phrase)


def _joints_text(kind: str, missing: Bools, names: tuple[str, ...]) -> str:
    """``kind of a, b`` for the joints concerned; the kind alone where it is all of them, empty where it is none."""
    if missing.all():
        return kind
    return f"{kind} of {', '.join(names[j] for j in np.flatnonzero(missing))}" if missing.any() else ""
