"""Parameters regrouped for code: fewer values that give the same torques, part by part.

Base parameters are those of the whole torque. The code also computes parts of it (gravity, friction, energy), so
regrouping must not move anything from one part into another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Floats
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import ArgumentError
from dynid.parameters.base import choose_base
from dynid.parameters.base_set import BaseParameters, require_kept_columns
from dynid.parameters.layout import ParameterLayout, parameter_layout
from dynid.parameters.numeric import keep_order, numeric_row_space, random_states, sample_regressor
from dynid.parameters.row_space import RowSpace, row_space, successive_columns
from dynid.parameters.structural import structural_row_space
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.model import Robot
from dynid.spatial import EXACT, ROUNDING
from dynid.tape import count, record
from dynid.terms.base import Dependence


@dataclass(frozen=True, slots=True, eq=False)
class Regrouping:
    """Values that give the same torques as the p standard parameters of a robot, without symbolic expressions."""

    layout: ParameterLayout
    columns: tuple[int, ...]
    """(b,) kept columns."""
    grouping: Floats
    """(b, p) the values from standard parameters."""
    members: BaseParameters | None = None
    """The set of which they are the members; those of Lin's set do not stand in the kept columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """(b,) names of the values: ``ZZR1`` where others were regrouped into ``ZZ1``."""
        if self.members is not None:
            return self.members.names
        kept = [self.layout[column] for column in self.columns]
        is_sum = np.count_nonzero(self.grouping, axis=1) > 1
        return tuple(k.regrouped_name if regrouped else k.name for k, regrouped in zip(kept, is_sum, strict=True))

    @property
    def units(self) -> tuple[str, ...]:
        """(b,) SI units of the values."""
        if self.members is not None:
            return self.members.units
        return tuple(self.layout[column].unit for column in self.columns)

    def combine(self, theta: Floats) -> Floats:
        """(b,) values; those within rounding of zero are zero."""
        rounding = 4.0 * np.finfo(float).eps * (np.abs(self.grouping) @ np.abs(theta))
        values = self.grouping @ theta
        return np.where(np.abs(values) <= rounding, 0.0, values)

    def in_columns(self, values: Any) -> Any:
        """What stands in the kept columns (..., b) for some values (..., b)."""
        mixing = None if self.members is None else self.members.mixing
        return values if mixing is None else values @ mixing.T

    def standard(self, theta: Floats) -> Floats:
        """(p,) standard parameters with the same torques: zeros outside the kept columns."""
        full = np.zeros(theta.size)
        full[list(self.columns)] = self.in_columns(self.combine(theta))
        return full

    def select(self, rows: Iterable[int]) -> Regrouping:
        """Some of the values."""
        rows = list(rows)
        return replace(self, columns=tuple(self.columns[row] for row in rows), grouping=self.grouping[rows])


def ungrouped(robot: Robot) -> Regrouping:
    """Keep the standard parameters of the robot as they are."""
    layout = parameter_layout(robot)
    return Regrouping(layout, tuple(range(len(layout))), np.eye(len(layout)))


def regroup(robot: Robot) -> Regrouping:
    """Find the fewest values that determine every part of the torque."""
    try:
        space = structural_row_space(robot)
    except ArgumentError:  # a term without a closed form
        space = numeric_row_space(robot)
    layout = parameter_layout(robot)
    return Regrouping(layout, *successive_columns(_friction_apart(layout, space), keep_order(robot)))


def separate_friction(robot: Robot, base: BaseParameters) -> Regrouping:
    """Keep given base parameters; if one mixes friction with gravity or inertia, split it into two values.

    Raises:
        ArgumentError: A member of Lin's set mixes them.
    """
    friction, grouping = _is_friction(base.layout), base.kept_grouping
    if not (grouping[:, friction].any(axis=1) & grouping[:, ~friction].any(axis=1)).any():
        return Regrouping(base.layout, base.columns, base.grouping, base)
    if base.mixing is not None:
        raise ArgumentError(
            "a member of Lin's set mixes friction with gravity or inertia: the code cannot tell their torques apart",
            remedy="Use base_parameters(robot), or leave out the offset of sliding joints with a rotor inertia.",
        )
    apart = _friction_apart(base.layout, row_space(base.grouping))
    return Regrouping(base.layout, *successive_columns(apart, keep_order(robot)))


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


LOAD = np.array((0.07, -0.01, -0.01, 0.07, -0.01, 0.07, 0.1, 0.1, 0.1, 1.0))
"""XX XY XZ YY YZ ZZ MX MY MZ M of a load with which code is tested: 1 kg at (0.1, 0.1, 0.1) m, about itself 0.05 kg m^2
along all axes; a convention."""
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
    """(p,) parameters of `internal`; regrouped ones in their columns, zeros elsewhere."""
    runtime: Regrouping
    """The k values that are read at run time, with their columns among `values`."""
    base: BaseParameters | None
    """The base parameters that the user asked for: columns of the regressor. Lin's set also asks for the recursion in
    minimal linear combinations."""
    load: bool = False
    """Whether a load on the last body can be set at run time."""

    @property
    def as_given(self) -> CodeModel:
        """The robot as it was given, with every parameter read at run time: what the code is compared with."""
        return replace(self, internal=self.robot, runtime=ungrouped(self.robot), base=None)

    @property
    def defaults(self) -> Floats:
        """(k,) values read at run time, as the robot has them."""
        return self.runtime.combine(self.robot.parameter_vector)

    @property
    def load_map(self) -> Floats:
        """(k, 10) change of the values read at run time per unit of each parameter of a load on the last body."""
        return self.runtime.grouping[:, _last_body(self.robot)]

    @property
    def is_regrouped(self) -> bool:
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
        """(..., p) parameters with those read at run time (..., k), numbers or symbols, in their places."""
        shape = (*runtime.shape[:-1], self.values.size)
        theta = np.broadcast_to(self.values, shape).astype(runtime.dtype)
        theta[..., list(self.runtime.columns)] = self.runtime.in_columns(runtime)
        return theta

    def of_robot(self, theta: Any) -> Any:
        """(p,) parameters of `robot` where those in use are theta: constants may belong to other frames."""
        return theta if self.runtime.columns else self.robot.parameter_vector


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
    if parameters == "folded" and load is None:
        internal, values = _cheapest(robot)
        runtime = ungrouped(internal).select(())
        return CodeModel(robot=robot, internal=internal, values=values, runtime=runtime, base=base)
    if parameters == "folded":
        if base is not None:
            require_kept_columns(base)
        chosen = _keep_exact(robot, regroup(robot))
        runtime = chosen.select(np.flatnonzero(chosen.grouping[:, _last_body(robot)].any(axis=1)))
    else:
        chosen = runtime = ungrouped(robot) if base is None else separate_friction(robot, base)
    values = chosen.standard(robot.parameter_vector)
    return CodeModel(robot=robot, internal=robot, values=values, runtime=runtime, base=base, load=load is not None)


def _last_body(robot: Robot) -> slice:
    """Columns of the last body."""
    return slice(10 * (robot.dof - 1), 10 * robot.dof)


def _cheapest(robot: Robot) -> tuple[Robot, Floats]:
    """Choose the frames and values with the shortest inverse dynamics: given, regrouped, or in modified DH frames."""
    frames, candidates = [robot], [(robot, robot.parameter_vector)]
    try:
        table = modified_dh(robot)
    except ArgumentError:  # not a chain
        pass
    else:
        changed = any(not np.allclose(T, np.eye(4), rtol=0.0, atol=EXACT) for T in table.T_body_mdh)
        frames += [table.robot] if changed and table.deviation <= ROUNDING else []
    for frame in frames:
        own = frame.parameter_vector
        values = regroup(frame).standard(own)
        candidates += [(frame, values)] if _keeps_torques(frame, values, own) else []
    return min(candidates, key=_operations)


def _operations(candidate: tuple[Robot, Floats]) -> int:
    """How many operations the inverse dynamics of a robot takes with some values."""
    shape = (candidate[0].dof,)
    return count(record(lambda q, dq, ddq: newton_euler(*candidate, q, dq, ddq), q=shape, dq=shape, ddq=shape)).flops


def _keep_exact(robot: Robot, regrouping: Regrouping) -> Regrouping:
    """Return the regrouping, or none if it would lose digits of the torques of the robot or of a load."""
    load = np.zeros(robot.parameter_vector.size)
    load[_last_body(robot)] = LOAD
    kept = (_keeps_torques(robot, regrouping.standard(own), own) for own in (robot.parameter_vector, load))
    return regrouping if all(kept) else ungrouped(robot)


def _keeps_torques(robot: Robot, values: Floats, own: Floats) -> bool:
    """Whether regrouped values give the torques of the original ones, except for rounding.

    If axes are nearly parallel, or frames far from their bodies, regrouping loses digits that the code needs.
    """
    Y = sample_regressor(robot, random_states(robot, 5))
    terms = float((np.abs(Y) @ np.abs(own)).max())
    return bool(np.abs(Y @ (values - own)).max() <= _TORQUE_ROUNDING * terms)
