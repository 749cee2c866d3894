"""What generated code computes with: a robot in well-chosen frames, values folded in, values read at run time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.energy import potential_energy_row
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import ArgumentError
from dynid.export.c.c_regrouping import Regrouping, apart, regroup, ungrouped
from dynid.parameters.base import BaseParameters
from dynid.parameters.layout import parameter_layout
from dynid.parameters.numeric import random_states, sampled_regressor
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.model import Robot
from dynid.tape import Tape, count, record

__all__ = ["CodeModel", "build_model"]

_LOAD = (0.02, -0.01, -0.01, 0.02, -0.01, 0.02, 0.1, 0.1, 0.1, 1.0)
"""XX XY XZ YY YZ ZZ MX MY MZ M of a load to try: 1 kg at (0.1, 0.1, 0.1) m."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodeModel:
    """A robot customised for code."""

    robot: Robot
    """As the user knows it; what the code is checked against."""
    internal: Robot
    """The same robot in the frames in which the code computes; equal to `robot` unless everything is folded in."""
    values: Floats
    """(p,) parameters of `internal`; base parameters in their columns, zeros elsewhere."""
    columns: tuple[int, ...]
    """Which of the values are read at run time (k of them)."""
    base: BaseParameters | None
    """The base parameters the user asked for: columns of the regressor."""
    grouping: Floats
    """(k, p) the values read at run time from the robot's own parameters: ``values = grouping @ theta``."""
    load: bool
    """Whether what is read at run time changes with a load on the last body."""
    motion_values: Floats
    """(p,) the same torques of any motion, in values that make inverse dynamics shorter; like `values` otherwise."""
    names: tuple[str, ...]
    """(p,) names of the parameters in use: ``ZZR1`` where others were regrouped into ``ZZ1``."""

    @property
    def runtime_names(self) -> tuple[str, ...]:
        """(k,) names of the values read at run time."""
        return tuple(self.names[column] for column in self.columns)

    @property
    def runtime_values(self) -> Floats:
        """(k,) values they have before anybody changes them."""
        return self.values[list(self.columns)]

    @property
    def load_map(self) -> Floats:
        """(k, 10) change of the values read at run time per unit of each parameter of a load on the last body."""
        return self.grouping[:, 10 * (self.robot.dof - 1) : 10 * self.robot.dof]

    @property
    def regrouped(self) -> bool:
        """Whether the values in use are not the robot's own one by one."""
        return not np.array_equal(self.values, self.robot.parameter_vector)

    @property
    def potential_offset(self) -> float:
        """Potential energy [J] that regrouping has lost: a constant, because the torques are the same."""
        at_zero = np.zeros(self.robot.dof)
        links = slice(10 * self.robot.dof)
        true = potential_energy_row(self.robot, at_zero) @ self.robot.parameter_vector[links]
        return float(true - potential_energy_row(self.internal, at_zero) @ self.values[links])

    @property
    def model_hash(self) -> str:
        """SHA-256 of the equations and the parameter values, in hexadecimal."""
        return hashlib.sha256(self.robot.fingerprint.encode() + self.robot.parameter_vector.tobytes()).hexdigest()

    def folded(self) -> CodeModel:
        """The same values, none to be changed."""
        return replace(self, columns=(), grouping=self.grouping[:0], load=False)

    def theta(self, runtime: Any) -> Any:
        """(p,) parameters with those read at run time (k,) in their places."""
        theta: Any = np.array(self.values.tolist(), dtype=object if self.columns else float)
        if self.columns:
            theta[list(self.columns)] = runtime
        return theta

    def motion_theta(self, theta: Any) -> Any:
        """(p,) what inverse dynamics computes with, where `theta` is what everything else computes with."""
        return theta if self.columns else self.motion_values

    def record(self, function: Callable[..., Any], **states: tuple[int, ...]) -> Tape:
        """Record ``function(theta, **states)``; the tape reads ``parameters`` (k,) last, where there are any."""
        if not self.columns:
            return record(lambda **given: function(self.values, **given), **states)
        shapes = {**states, "parameters": (len(self.columns),)}
        return record(lambda parameters, **given: function(self.theta(parameters), **given), **shapes)


def build_model(
    robot: Robot,
    *,
    parameters: Literal["folded", "struct"],
    base: BaseParameters | None,
    load: Literal["struct"] | None,
) -> CodeModel:
    """Choose frames and values for a robot's code.

    Args:
        robot: The robot with its parameter values.
        parameters: Whether all values can be changed at run time.
        base: Base parameters to compute with; found automatically where values are folded in.
        load: Whether a load on the last body can be changed at run time.
    """
    if robot.dof == 0:
        raise ArgumentError(f"robot '{robot.name}' has no moving joint", remedy="Give it a joint that is not fixed.")
    if base is not None and base.layout != parameter_layout(robot):
        raise ArgumentError("the base parameters belong to another robot", remedy="Use base_parameters(robot).")
    if parameters == "folded" and load is None:
        internal, values = _cheapest(robot)
        flat = flattened(internal, values)
        return CodeModel(
            robot=robot,
            internal=internal,
            values=values,
            motion_values=min((values, flat), key=lambda theta: count(_inverse_dynamics(internal, theta)).flops),
            columns=(),
            base=base,
            grouping=np.zeros((0, values.size)),
            load=False,
            names=parameter_layout(internal).names,
        )
    if parameters == "folded":
        regrouping = _exact(robot, regroup(robot))
    else:
        regrouping = ungrouped(robot) if base is None else apart(robot, base)
    values = regrouping.values(robot.parameter_vector)
    by_load = regrouping.grouping[:, 10 * (robot.dof - 1) : 10 * robot.dof].any(axis=1)
    changeable = np.flatnonzero(by_load | (parameters == "struct"))
    return CodeModel(
        robot=robot,
        internal=robot,
        values=values,
        motion_values=values,
        columns=tuple(regrouping.columns[row] for row in changeable),
        base=base,
        grouping=regrouping.grouping[changeable],
        load=load is not None,
        names=regrouping.names(robot),
    )


def _cheapest(robot: Robot) -> tuple[Robot, Floats]:
    """The frames and values with the shortest inverse dynamics: as given, regrouped, or that in modified DH frames."""
    theta = robot.parameter_vector
    candidates = [(robot, theta), (robot, regroup(robot).values(theta))]
    try:
        table = modified_dh(robot)
    except ArgumentError:  # not a chain
        pass
    else:
        changed = any(not np.allclose(T, np.eye(4), rtol=0.0, atol=1e-12) for T in table.T_body_mdh)
        if changed and table.deviation <= 1e-14:
            candidates.append((table.robot, regroup(table.robot).values(table.robot.parameter_vector)))
    exact = [
        (frames, values) for frames, values in candidates if _keeps_torques(frames, values, frames.parameter_vector)
    ]
    return min(exact or candidates[:1], key=lambda candidate: count(_inverse_dynamics(*candidate)).flops)


def _exact(robot: Robot, regrouping: Regrouping) -> Regrouping:
    """The regrouping, or none where the robot's torques or those of a load would lose digits by it."""
    load = np.zeros(robot.parameter_vector.size)
    load[10 * (robot.dof - 1) : 10 * robot.dof] = _LOAD
    kept = (_keeps_torques(robot, regrouping.values(own), own) for own in (robot.parameter_vector, load))
    return regrouping if all(kept) else ungrouped(robot)


def _keeps_torques(robot: Robot, values: Floats, own: Floats) -> bool:
    """Whether regrouped values have the torques of the robot's own, but for rounding.

    Where axes are nearly parallel, or frames far from their bodies, regrouping loses digits that the code must have.
    """
    Y = sampled_regressor(robot, random_states(robot, 5))
    terms = float((np.abs(Y) @ np.abs(own)).max())
    return bool(np.abs(Y @ (values - own)).max() <= 1e-13 * terms)


def flattened(robot: Robot, theta: Floats) -> Floats:
    """(p,) parameters with the same torques in which bodies on revolute z axes are flat: ``ZZ = XX + YY``.

    Mass spread along a joint's axis, without weight or balance, feels no turn about it: it may be counted to this body
    or to the one that carries it. Tip to base, it is chosen so that Euler's equations need the fewest products.
    """
    flat = np.array(theta, dtype=float)
    for j in reversed(range(robot.dof)):
        body, own = robot.bodies[j], flat[10 * j : 10 * j + 6]  # XX XY XZ YY YZ ZZ
        if body.prismatic or abs(body.axis[2]) != 1.0:
            continue
        spread = 0.5 * (own[5] - own[0] - own[3])
        own[[0, 3]] = _cleaned(own[[0, 3]], np.full(2, spread))
        own[5] = own[0] + own[3]
        if body.parent >= 0:
            along = body.R_parent_joint @ body.axis
            effect = (np.eye(3) - np.outer(along, along))[np.triu_indices(3)]
            carrier = slice(10 * body.parent, 10 * body.parent + 6)
            flat[carrier] = _cleaned(flat[carrier], -spread * effect)
    return flat


def _cleaned(values: Floats, change: Floats) -> Floats:
    """Sums in which what is zero but for rounding is zero."""
    total = values + change
    return np.where(np.abs(total) <= 4.0 * np.finfo(float).eps * np.abs(change), 0.0, total)


def _inverse_dynamics(robot: Robot, values: Floats) -> Tape:
    shape = (robot.dof,)
    return record(lambda q, dq, ddq: newton_euler(robot, values, q, dq, ddq), q=shape, dq=shape, ddq=shape)
