"""Parameters regrouped for code: fewer values that give the same torques, part by part.

Base parameters are those of the whole torque. The code also computes parts of it (gravity, friction, energy), so
regrouping must not move anything from one part into another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import ArgumentError
from dynid.parameters.base import choose_base
from dynid.parameters.base_set import BaseParameters, base_vector, require_kept_columns
from dynid.parameters.layout import ParameterLayout, parameter_layout
from dynid.parameters.numeric import keep_order, numeric_row_space, random_states, sample_regressor
from dynid.parameters.row_space import RowSpace, row_space, successive_columns
from dynid.parameters.structural import structural_row_space
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.model import Robot
from dynid.spatial import EXACT, ROUNDING
from dynid.tape import Tape, count, record
from dynid.terms.base import Dependence


@dataclass(frozen=True, slots=True, eq=False)
class Regrouping:
    """Base parameters without their symbolic expressions, which take longer to find than the numbers."""

    columns: tuple[int, ...]
    """(b,) kept columns."""
    grouping: Floats
    """(b, p)"""

    def values(self, theta: Floats) -> Floats:
        """(p,) base values in the kept columns, zeros elsewhere; values within rounding of zero are zero."""
        rounding = 4.0 * np.finfo(float).eps * (np.abs(self.grouping) @ np.abs(theta))
        beta = self.grouping @ theta
        values = np.zeros(theta.size)
        values[list(self.columns)] = np.where(np.abs(beta) <= rounding, 0.0, beta)
        return values

    def names(self, robot: Robot) -> tuple[str, ...]:
        """(p,) names of the parameters."""
        layout = parameter_layout(robot)
        names = list(layout.names)
        for column, row in zip(self.columns, self.grouping, strict=True):
            if np.count_nonzero(row) > 1:
                names[column] = layout[column].regrouped_name
        return tuple(names)


def ungrouped(robot: Robot) -> Regrouping:
    """Keep the standard parameters of the robot as they are."""
    size = robot.parameter_vector.size
    return Regrouping(tuple(range(size)), np.eye(size))


def regroup(robot: Robot) -> Regrouping:
    """Find the fewest values that determine every part of the torque."""
    try:
        space = structural_row_space(robot, unmoved={}, static=False)
    except ArgumentError:  # a term without a closed form
        space = numeric_row_space(robot, unmoved={}, static=False, states=None)
    return Regrouping(*successive_columns(_friction_apart(parameter_layout(robot), space), keep_order(robot)))


def separate_friction(robot: Robot, base: BaseParameters) -> Regrouping:
    """Keep given base parameters; if one mixes friction with gravity or inertia, split it into two values."""
    friction = _is_friction(base.layout)
    mixed = base.grouping[:, friction].any(axis=1) & base.grouping[:, ~friction].any(axis=1)
    if not mixed.any():
        return Regrouping(base.columns, base.grouping)
    return Regrouping(*successive_columns(_friction_apart(base.layout, row_space(base.grouping)), keep_order(robot)))


def _friction_apart(layout: ParameterLayout, space: RowSpace) -> RowSpace:
    """Row space in which friction and offsets are separate from gravity and inertia.

    On a joint that slides along gravity, the torque of a rotor equals that of a mass minus an offset,
    ``IA = M - g OFF``. Regrouping by this relation keeps the sum but moves the weight into the offset, where the
    function `gravity` does not include it.
    """
    friction = _is_friction(layout)
    parts = row_space(np.vstack([np.where(friction, 0.0, space.basis), np.where(friction, space.basis, 0.0)]))
    return replace(parts, scale=parts.scale * space.scale) if friction.any() else space


def _is_friction(layout: ParameterLayout) -> NDArray[np.bool_]:
    """(p,) whether each parameter belongs to friction and offsets."""
    return np.array([e.dependence not in (None, Dependence.ACCELERATION) for e in layout], dtype=bool)


_LOAD = (0.02, -0.01, -0.01, 0.02, -0.01, 0.02, 0.1, 0.1, 0.1, 1.0)
"""XX XY XZ YY YZ ZZ MX MY MZ M of the load with which regrouping is tested: 1 kg at (0.1, 0.1, 0.1) m; a convention."""
_TORQUE_ROUNDING = 1e-13
"""Largest torque error of regrouped values, relative to the size of the terms; a tenth of the code's tolerance."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodeModel:
    """A robot prepared for code generation."""

    robot: Robot
    """The original robot; the code is checked against it."""
    internal: Robot
    """The robot in the frames that the code uses; equal to `robot` unless all values are constants."""
    values: Floats
    """(p,) parameters of `internal`; base parameters in their columns, zeros elsewhere."""
    columns: tuple[int, ...]
    """Columns of the k values that are read at run time."""
    base: BaseParameters | None
    """The base parameters that the user asked for: columns of the regressor. Lin's set also asks for the recursion in
    minimal linear combinations."""
    grouping: Floats
    """(k, p) the values read at run time from standard parameters: ``values = grouping @ theta``."""
    load: bool
    """Whether a load on the last body can be set at run time."""
    names: tuple[str, ...]
    """(p,) names of the parameters in use: ``ZZR1`` where others were regrouped into ``ZZ1``."""
    mixing: Floats | None = None
    """(k, k) values in `columns` from those read at run time, where these are members of Lin's set; otherwise None."""

    @property
    def runtime_names(self) -> tuple[str, ...]:
        """(k,) names of the values read at run time."""
        return tuple(self.names[column] for column in self.columns)

    @property
    def runtime_values(self) -> Floats:
        """(k,) defaults of the values read at run time."""
        if self.mixing is not None:
            return np.asarray(self.grouping @ self.robot.parameter_vector)
        return self.values[list(self.columns)]

    @property
    def runtime_units(self) -> tuple[str, ...]:
        """(k,) SI units of the values read at run time."""
        if self.mixing is not None and self.base is not None:
            return self.base.units
        layout = parameter_layout(self.internal)
        return tuple(layout[column].unit for column in self.columns)

    def in_columns(self, runtime: Any) -> Any:
        """Values in `columns` (..., k) from those read at run time (..., k)."""
        return runtime if self.mixing is None else runtime @ self.mixing.T

    @property
    def load_map(self) -> Floats:
        """(k, 10) change of the values read at run time per unit of each parameter of a load on the last body."""
        return self.grouping[:, 10 * (self.robot.dof - 1) : 10 * self.robot.dof]

    @property
    def regrouped(self) -> bool:
        """Whether the values in use differ from the standard parameters of the robot."""
        return not np.array_equal(self.values, self.robot.parameter_vector)

    @property
    def model_hash(self) -> str:
        """SHA-256 of the equations and the parameter values, in hexadecimal."""
        return hashlib.sha256(self.robot.fingerprint.encode() + self.robot.parameter_vector.tobytes()).hexdigest()

    @property
    def is_minimal(self) -> bool:
        """Whether the code computes in Lin's minimal linear combinations."""
        return self.base is not None and self.base.mixing is not None

    def theta(self, runtime: Any) -> Any:
        """(p,) parameters with those read at run time (k,) in their places."""
        theta: Any = np.array(self.values.tolist(), dtype=object if self.columns else float)
        if self.columns:
            theta[list(self.columns)] = self.in_columns(runtime)
        return theta

    def minimal_theta(self, theta: Any) -> Any:
        """(p,) parameters of `robot` for the recursion in minimal linear combinations, which finds its members."""
        return theta if self.columns else self.robot.parameter_vector

    def record(self, function: Callable[..., Any], **states: tuple[int, ...]) -> Tape:
        """Record ``function(theta, **states)``; run-time ``parameters`` (k,), if any, are the last input."""
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
    """Choose frames and values for the code of a robot.

    Args:
        robot: The robot with its parameter values.
        parameters: Whether all values can be changed at run time.
        base: Base parameters to compute with; found automatically if the values are constants.
        load: Whether a load on the last body can be changed at run time.

    Raises:
        ArgumentError: The robot has no moving joint, or the base parameters are not the robot's.
    """
    if robot.dof == 0:
        raise ArgumentError(
            f"robot '{robot.name}' has no moving joint", remedy="Use a robot with a joint that is not fixed."
        )
    if base is not None:
        choose_base(robot, base, every_motion=parameters == "struct")
    if base is not None and parameters == "folded" and load is not None:
        require_kept_columns(base)
    if base is not None and base.mixing is not None and parameters == "struct":
        return _minimal_model(robot, base, load is not None)
    if parameters == "folded" and load is None:
        internal, values = _cheapest(robot)
        return CodeModel(
            robot=robot,
            internal=internal,
            values=values,
            columns=(),
            base=base,
            grouping=np.zeros((0, values.size)),
            load=False,
            names=parameter_layout(internal).names,
        )
    if parameters == "folded":
        regrouping = _keep_exact(robot, regroup(robot))
    else:
        regrouping = ungrouped(robot) if base is None else separate_friction(robot, base)
    values = regrouping.values(robot.parameter_vector)
    by_load = regrouping.grouping[:, 10 * (robot.dof - 1) : 10 * robot.dof].any(axis=1)
    changeable = np.flatnonzero(by_load | (parameters == "struct"))
    return CodeModel(
        robot=robot,
        internal=robot,
        values=values,
        columns=tuple(regrouping.columns[row] for row in changeable),
        base=base,
        grouping=regrouping.grouping[changeable],
        load=load is not None,
        names=regrouping.names(robot),
    )


def _minimal_model(robot: Robot, base: BaseParameters, load: bool) -> CodeModel:
    """A model whose values read at run time are the members of Lin's set."""
    if separate_friction(robot, base).grouping.shape != base.grouping.shape:
        raise ArgumentError(
            "a member of Lin's set mixes friction with gravity or inertia: the code cannot tell their torques apart",
            remedy="Use base_parameters(robot), or leave out the offset of sliding joints with a rotor inertia.",
        )
    values, names = base_vector(base, robot.parameter_vector), list(base.layout.names)
    for column, name in zip(base.columns, base.names, strict=True):
        names[column] = name
    return CodeModel(
        robot=robot,
        internal=robot,
        values=values,
        columns=base.columns,
        base=base,
        grouping=base.grouping,
        load=load,
        names=tuple(names),
        mixing=base.mixing,
    )


def _cheapest(robot: Robot) -> tuple[Robot, Floats]:
    """Choose the frames and values with the shortest inverse dynamics: given, regrouped, or in modified DH frames."""
    theta = robot.parameter_vector
    candidates = [(robot, theta), (robot, regroup(robot).values(theta))]
    try:
        table = modified_dh(robot)
    except ArgumentError:  # not a chain
        pass
    else:
        changed = any(not np.allclose(T, np.eye(4), rtol=0.0, atol=EXACT) for T in table.T_body_mdh)
        if changed and table.deviation <= ROUNDING:
            candidates.append((table.robot, regroup(table.robot).values(table.robot.parameter_vector)))
    exact = [
        (frames, values) for frames, values in candidates if _keeps_torques(frames, values, frames.parameter_vector)
    ]
    return min(exact or candidates[:1], key=lambda candidate: count(_inverse_dynamics(*candidate)).flops)


def _keep_exact(robot: Robot, regrouping: Regrouping) -> Regrouping:
    """Return the regrouping, or none if it would lose digits of the torques of the robot or of a load."""
    load = np.zeros(robot.parameter_vector.size)
    load[10 * (robot.dof - 1) : 10 * robot.dof] = _LOAD
    kept = (_keeps_torques(robot, regrouping.values(own), own) for own in (robot.parameter_vector, load))
    return regrouping if all(kept) else ungrouped(robot)


def _keeps_torques(robot: Robot, values: Floats, own: Floats) -> bool:
    """Whether regrouped values give the torques of the original ones, except for rounding.

    If axes are nearly parallel, or frames far from their bodies, regrouping loses digits that the code needs.
    """
    Y = sample_regressor(robot, random_states(robot, 5))
    terms = float((np.abs(Y) @ np.abs(own)).max())
    return bool(np.abs(Y @ (values - own)).max() <= _TORQUE_ROUNDING * terms)


def _inverse_dynamics(robot: Robot, values: Floats) -> Tape:
    shape = (robot.dof,)
    return record(lambda q, dq, ddq: newton_euler(robot, values, q, dq, ddq), q=shape, dq=shape, ddq=shape)
