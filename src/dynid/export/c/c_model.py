"""The model that C code is generated from: the body frames in which it computes, and its parameter values.

A zero parameter costs no operation in generated code. Many of the p standard parameters theta (p,) (ten inertial ones
per link, then those of friction and other terms) act on the torques only in combinations, the base parameters
([GautierKhalil1990]). So `build_model`, which `generate_c` calls with a robot, *regroups* them: it finds parameters
with the same torques, of which all but a few are zero, and perhaps other body frames with fewer operations.

The code computes parts of the torque, too (gravity, friction, energy), so that regrouping here must not move torque
from friction into gravity or inertia. Values are either constants in the code ("folded") or read at run time
("struct").
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.array_types import Floats
from dynid.dynamics.inverse_dynamics import newton_euler
from dynid.errors import ArgumentError
from dynid.identifiability.base import choose_base
from dynid.identifiability.base_set import BaseParameters, require_kept_columns
from dynid.identifiability.layout import ParameterLayout, parameter_layout
from dynid.identifiability.numeric import keep_order, numeric_row_space, random_states, sample_regressor
from dynid.identifiability.row_space import RowSpace, row_space, successive_columns
from dynid.identifiability.structural import structural_row_space
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.model import Robot
from dynid.spatial import EXACT, ROUNDING
from dynid.tape import count, record
from dynid.terms.base import Dependence


@dataclass(frozen=True, slots=True, eq=False)
class Regrouping:
    """b linear combinations of the p standard parameters of a robot that give the same torques.

    With the regressor Y (n, p): ``Y @ theta == Y[:, columns] @ grouping @ theta``. Lin's minimal linear combinations
    [Lin1995] are an exception: they are not factors of single columns; `in_columns` converts them.
    """

    layout: ParameterLayout
    """The standard parameters."""
    columns: tuple[int, ...]
    """(b,) columns of the regressor that belong to the values; the other columns are not needed."""
    grouping: Floats
    """(b, p) matrix from standard parameters to values."""
    members: BaseParameters | None = None
    """The set of base parameters that the values are; None for values that were found here, without symbolic
    expressions."""

    @property
    def names(self) -> tuple[str, ...]:
        """(b,) names of the values: ``ZZR1`` where others were regrouped into ``ZZ1``."""
        if self.members is not None:
            return self.members.names
        kept = [self.layout[column] for column in self.columns]
        are_sums = np.count_nonzero(self.grouping, axis=1) > 1
        return tuple(
            parameter.regrouped_name if is_sum else parameter.name
            for parameter, is_sum in zip(kept, are_sums, strict=True)
        )

    @property
    def units(self) -> tuple[str, ...]:
        """(b,) SI units of the values."""
        if self.members is not None:
            return self.members.units
        return tuple(self.layout[column].unit for column in self.columns)

    def combine(self, theta: Floats) -> Floats:
        """Compute the values (b,) from standard parameters (p,); those within rounding of zero become zero.

        The rounding of a sum is a few units in the last place (4 eps) of the sum of its sizes.
        """
        rounding = 4.0 * np.finfo(float).eps * (np.abs(self.grouping) @ np.abs(theta))
        values = self.grouping @ theta
        return np.where(np.abs(values) <= rounding, 0.0, values)

    def in_columns(self, values: Any) -> Any:
        """Convert values (..., b) to the factors (..., b) of `columns`; they differ in Lin's set alone."""
        mixing = None if self.members is None else self.members.mixing
        return values if mixing is None else values @ mixing.T

    def standard(self, theta: Floats) -> Floats:
        """Find standard parameters (p,) that give the same torques as theta (p,) and are zero outside the columns."""
        full = np.zeros(theta.size)
        full[list(self.columns)] = self.in_columns(self.combine(theta))
        return full

    def select(self, rows: Iterable[int]) -> Regrouping:
        """Keep the values with these numbers."""
        rows = list(rows)
        return replace(self, columns=tuple(self.columns[row] for row in rows), grouping=self.grouping[rows])


def keep_standard(robot: Robot) -> Regrouping:
    """Keep the standard parameters of the robot as they are."""
    layout = parameter_layout(robot)
    return Regrouping(layout, tuple(range(len(layout))), np.eye(len(layout)))


def regroup(robot: Robot) -> Regrouping:
    """Find the fewest values that determine every part of the torque.

    The row space of the regressor holds all combinations that act on the torques. It is found symbolically, or by a
    singular value decomposition at random states.
    """
    try:
        space = structural_row_space(robot)
    except ArgumentError:  # a term without a closed form
        space = numeric_row_space(robot)
    return _represent(robot, space)


def _represent(robot: Robot, space: RowSpace) -> Regrouping:
    """Choose the columns that represent a row space, without mixing friction with other parameters.

    Columns are kept in the order of [GautierKhalil1990] while they are independent of the earlier ones; every other
    one becomes a combination of the kept ones.
    """
    layout = parameter_layout(robot)
    columns, grouping = successive_columns(_separate_friction_rows(layout, space), keep_order(robot))
    return Regrouping(layout, columns, grouping)


def separate_friction(robot: Robot, base: BaseParameters) -> Regrouping:
    """Keep given base parameters; if one mixes friction with gravity or inertia, split it into two values.

    Raises:
        ArgumentError: A member of Lin's set mixes them.
    """
    friction = _is_friction(base.layout)
    grouping = base.kept_grouping  # (b, p) from standard parameters to the factors of the kept columns
    is_mixed = grouping[:, friction].any(axis=1) & grouping[:, ~friction].any(axis=1)
    if not is_mixed.any():
        return Regrouping(base.layout, base.columns, base.grouping, base)
    if base.mixing is not None:
        raise ArgumentError(
            "a member of Lin's set mixes friction with gravity or inertia: the code cannot tell their torques apart",
            remedy="Use base_parameters(robot), or leave out the offset of sliding joints with a rotor inertia.",
        )
    return _represent(robot, row_space(base.grouping))


def _separate_friction_rows(layout: ParameterLayout, space: RowSpace) -> RowSpace:
    """Split each row of a row space into two: its entries of friction with offsets, and of gravity with inertia.

    On a joint that slides along gravity, the torque of a rotor equals that of a mass minus an offset,
    ``IA = M - g OFF``. Regrouping by this relation keeps the sum but moves the weight into the offset, where the
    function `gravity` does not include it.
    """
    friction = _is_friction(layout)
    parts = row_space(np.vstack([np.where(friction, 0.0, space.basis), np.where(friction, space.basis, 0.0)]))
    return replace(parts, scale=parts.scale * space.scale) if friction.any() else space


def _is_friction(layout: ParameterLayout) -> NDArray[np.bool_]:
    """(p,) whether each parameter belongs to friction and offsets, not to a link (None) or to rotor inertia."""
    return np.array([e.dependence not in (None, Dependence.ACCELERATION) for e in layout], dtype=bool)


LOAD_OF_TESTS = np.array((0.07, -0.01, -0.01, 0.07, -0.01, 0.07, 0.1, 0.1, 0.1, 1.0))
"""XX XY XZ YY YZ ZZ MX MY MZ M of a load with which code is tested (convention: 1 kg at (0.1, 0.1, 0.1) m, about its
centre of mass 0.05 kg m^2 along all axes)."""
_TORQUE_ROUNDING = 1e-13
"""Largest torque error of regrouped values, relative to the size of the terms (convention: a tenth of the code's
tolerance)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CodeModel:
    """A robot prepared for code generation."""

    robot: Robot
    """The original robot; the code is checked against it."""
    internal: Robot
    """The robot in the frames that the code uses; equal to `robot` unless all values are constants."""
    values: Floats
    """(p,) parameters of `internal` that the code computes with; regrouped ones are zero outside the kept columns."""
    runtime: Regrouping
    """The k values that are read at run time, with their columns among `values`; none where all are constants."""
    base: BaseParameters | None
    """The base parameters that the user asked for, which are the columns of the regressor; None for standard ones.
    Lin's set also asks for his recursion in minimal linear combinations, see `is_minimal`."""
    load: bool = False
    """Whether a load on the last body can be set at run time."""

    @property
    def as_given(self) -> CodeModel:
        """The model for comparison: the robot as it was given, with all standard parameters as inputs."""
        return replace(self, internal=self.robot, runtime=keep_standard(self.robot), base=None)

    @property
    def defaults(self) -> Floats:
        """(k,) values read at run time, from the parameters of the robot."""
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
        """Whether the code computes in Lin's minimal linear combinations ([Lin1995] section III)."""
        return self.base is not None and self.base.mixing is not None

    def theta(self, runtime: Any) -> Any:
        """Put the values read at run time (..., k), numbers or symbols, among the parameters (..., p)."""
        shape = (*runtime.shape[:-1], self.values.size)
        theta = np.broadcast_to(self.values, shape).astype(runtime.dtype)
        theta[..., list(self.runtime.columns)] = self.runtime.in_columns(runtime)
        return theta

    def of_robot(self, theta: Any) -> Any:
        """Return parameters (p,) of `robot`, given theta (p,) of `internal`.

        Values that are read at run time belong to both. Constants may belong to other frames: then the parameters are
        those of the robot itself.
        """
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
        runtime = keep_standard(internal).select(())
        return CodeModel(robot=robot, internal=internal, values=values, runtime=runtime, base=base)
    if parameters == "folded":  # constants, except for the values that a load changes
        if base is not None:
            require_kept_columns(base)
        chosen = _keep_exact(robot, regroup(robot))
        runtime = chosen.select(np.flatnonzero(chosen.grouping[:, _last_body(robot)].any(axis=1)))
    else:
        chosen = runtime = keep_standard(robot) if base is None else separate_friction(robot, base)
    values = chosen.standard(robot.parameter_vector)
    return CodeModel(robot=robot, internal=robot, values=values, runtime=runtime, base=base, load=load is not None)


def _last_body(robot: Robot) -> slice:
    """Columns of the ten parameters of the last body."""
    return slice(10 * (robot.dof - 1), 10 * robot.dof)


def _cheapest(robot: Robot) -> tuple[Robot, Floats]:
    """Choose the frames and values with the fewest operations of inverse dynamics.

    Candidates are the robot as given, with regrouped parameters, and with regrouped parameters in the frames of its
    modified Denavit-Hartenberg table: these make the most entries of joint transforms zero.

    Returns:
        The robot in the chosen frames, and its parameters (p,).
    """
    frames = [robot]
    candidates = [(robot, robot.parameter_vector)]
    try:
        table = modified_dh(robot)
    except ArgumentError:  # not a chain
        pass
    else:
        changed = any(not np.allclose(T, np.eye(4), rtol=0.0, atol=EXACT) for T in table.T_body_mdh)
        # `deviation`: largest difference of the poses of the table from those of the robot
        frames += [table.robot] if changed and table.deviation <= ROUNDING else []
    for frame in frames:
        values = regroup(frame).standard(frame.parameter_vector)
        candidates += [(frame, values)] if _keeps_torques(frame, values, frame.parameter_vector) else []
    return min(candidates, key=_operations)


def _operations(candidate: tuple[Robot, Floats]) -> int:
    """Count the floating-point operations of the inverse dynamics of (robot, constant parameters (p,))."""
    shape = (candidate[0].dof,)
    return count(record(lambda q, dq, ddq: newton_euler(*candidate, q, dq, ddq), q=shape, dq=shape, ddq=shape)).flops


def _keep_exact(robot: Robot, regrouping: Regrouping) -> Regrouping:
    """Return the regrouping, or the standard parameters if it would lose digits of the torques of robot or load."""
    load = np.zeros(robot.parameter_vector.size)
    load[_last_body(robot)] = LOAD_OF_TESTS
    kept = (_keeps_torques(robot, regrouping.standard(theta), theta) for theta in (robot.parameter_vector, load))
    return regrouping if all(kept) else keep_standard(robot)


def _keeps_torques(robot: Robot, values: Floats, theta: Floats) -> bool:
    """Whether regrouped values (p,) give the torques of the parameters theta (p,) at random states, up to rounding.

    If axes are nearly parallel, or frames far from their bodies, regrouping loses digits that the code needs.
    """
    Y = sample_regressor(robot, random_states(robot, 5))
    largest_term = float((np.abs(Y) @ np.abs(theta)).max())
    return bool(np.abs(Y @ (values - theta)).max() <= _TORQUE_ROUNDING * largest_term)
