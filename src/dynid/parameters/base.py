"""Which parameters a robot's torques reveal: one function, four methods that check one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import ArgumentError
from dynid.parameters.base_set import BaseParameters, base_vector
from dynid.parameters.expression import Combination
from dynid.parameters.layout import parameters
from dynid.parameters.numeric import States, keep_order, numeric_row_space
from dynid.parameters.reasons import reasons_for
from dynid.parameters.row_space import RowSpace, successive_columns
from dynid.parameters.structural import structural_row_space
from dynid.parameters.symbols import geometry_of, readable_combinations
from dynid.robot.model import Robot

__all__ = ["BaseParameters", "Method", "base_parameters", "base_vector"]

Method = Literal["closed-form", "minimal-combinations", "numeric", "structural"]


def base_parameters(
    robot: Robot,
    method: Method | None = None,
    *,
    locked: Sequence[str] | Mapping[str, float] = (),
    static: bool = False,
    states: Sequence[ArrayLike] | States | None = None,
) -> BaseParameters:
    """Find the combinations of parameters that act on the torques.

    Args:
        robot: The robot.
        method: ``"closed-form"`` ([GautierKhalil1990]) and ``"minimal-combinations"`` ([Lin1995]) for serial robots,
            ``"structural"`` (exact, any tree), ``"numeric"`` (sampled regressors, anything). By default the first that applies.
        locked: Joints held still (at zero, or at the given positions), whose torque is not measured.
        static: Whether the robot only stands still.
        states: ``(q, dq, ddq)``, each (N, n): only this very motion, found numerically.

    Raises:
        ArgumentError: The method does not apply to this robot or motion; the error names one that does.
    """
    held = _held(robot, locked)
    space = _space(robot, method, held, static, states)
    layout = parameters(robot)
    columns, grouping = successive_columns(space, keep_order(robot))
    geometry = geometry_of(robot)
    hidden = [name for name, acts in zip(layout.names, np.any(grouping != 0.0, axis=0), strict=True) if not acts]
    return BaseParameters(
        robot=robot.name,
        layout=layout,
        columns=columns,
        grouping=grouping,
        combinations=readable_combinations(robot, layout, columns, grouping, geometry),
        symbols=geometry,
        reasons=reasons_for(robot, layout, hidden, locked=held, static=static),
        method=method or "structural",
        motion=_motion(robot, held, static, states),
        rank_gap=space.gap,
    )


def _space(robot: Robot, method: Method | None, held: Mapping[int, float], static: bool, states: object) -> RowSpace:
    if states is not None:
        return numeric_row_space(robot, states=States.of(states, robot.dof), locked=held)
    if method == "numeric":
        return numeric_row_space(robot, locked=held, static=static)
    return structural_row_space(robot, locked=held, static=static)


def _held(robot: Robot, locked: Sequence[str] | Mapping[str, float]) -> dict[int, float]:
    positions = dict(locked) if isinstance(locked, Mapping) else dict.fromkeys(locked, 0.0)
    unknown = [name for name in positions if name not in robot.joint_names]
    if unknown:
        raise ArgumentError(
            f"robot '{robot.name}' has no moving joint '{unknown[0]}' to lock",
            remedy=f"Its moving joints are: {', '.join(robot.joint_names)}.",
        )
    return {robot.joint_names.index(name): float(position) for name, position in positions.items()}


def _motion(robot: Robot, held: Mapping[int, float], static: bool, states: object) -> str:
    parts = []
    if states is not None:
        parts.append("the given motion")
    if static:
        parts.append("at rest")
    if held:
        parts.append(f"locked: {', '.join(robot.joint_names[j] for j in held)}")
    return ", ".join(parts) or "every motion"
