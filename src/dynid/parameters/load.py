"""Which of a load's ten parameters a wrist sensor or the joint torques reveal ([Atkeson1986] section 2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.kinematics import body_motions
from dynid.dynamics.wrench import body_wrench_regressor
from dynid.errors import ArgumentError
from dynid.parameters.base_set import BaseParameters
from dynid.parameters.inertia_maps import transport
from dynid.parameters.layout import INERTIAL_KINDS, INERTIAL_SYMBOLS, INERTIAL_UNITS, Parameter, ParameterLayout
from dynid.parameters.number_recognition import readable_combinations
from dynid.parameters.numeric import States, numeric_row_space, random_states
from dynid.parameters.row_space import RowSpace, row_space, successive_columns
from dynid.robot.model import Robot

__all__ = ["load_base_parameters", "load_layout"]

Floats = NDArray[np.float64]

_ORDER = (9, 6, 7, 8, 0, 3, 5, 1, 2, 4)
"""Mass first, then first moments: what is known best is kept."""


def load_layout(link: str = "load") -> ParameterLayout:
    """The ten parameters of a load, ``XXL XYL ... ML``, in the frame of the link that carries it."""
    return ParameterLayout(
        tuple(
            Parameter(f"{symbol}L", unit, link, kind, 0, symbol)
            for symbol, unit, kind in zip(INERTIAL_SYMBOLS, INERTIAL_UNITS, INERTIAL_KINDS, strict=True)
        )
    )


def load_base_parameters(
    robot: Robot,
    *,
    link: str | None = None,
    sensor: Literal["wrist", "joints"] = "wrist",
    static: bool = False,
    states: Sequence[ArrayLike] | States | None = None,
) -> BaseParameters:
    """What can be known of a load whose robot is known.

    Args:
        robot: The robot that carries it.
        link: The link it is fixed to and in whose frame its parameters are expressed; the last body's by default.
        sensor: ``"wrist"`` for forces and moments (6,) between robot and load, ``"joints"`` for joint torques.
        static: Whether the robot only stands still, in many postures.
        states: ``(q, dq, ddq)``, each (N, n): only this very motion.
    """
    name = robot.bodies[-1].joint.child if link is None else link
    body, T_body_link = robot.link_body(name)
    if body < 0:
        raise ArgumentError(f"link '{name}' does not move", remedy="Name a link that a joint carries.")
    given = None if states is None else States.of(states, robot.dof)
    to_body = transport(T_body_link[:3, :3], T_body_link[:3, 3])
    if sensor == "wrist":
        rows = _wrench_rows(robot, body, given or random_states(robot, 40, static=static))
    else:
        rows = numeric_row_space(robot, static=static, states=given).rows[:, 10 * body : 10 * body + 10]
    return _result(robot, load_layout(name), row_space(rows @ to_body), static, given)


def _wrench_rows(robot: Robot, body: int, states: States) -> Floats:
    """The body's wrench regressor at every state, one below the other (6 N, 10)."""
    motions = [body_motions(robot, *state)[body] for state in zip(states.q, states.dq, states.ddq, strict=True)]
    return np.vstack([body_wrench_regressor(*motion[1:]) for motion in motions]).astype(float)


def _result(
    robot: Robot, layout: ParameterLayout, space: RowSpace, static: bool, states: States | None
) -> BaseParameters:
    columns, grouping = successive_columns(space, _ORDER)
    reason = "at rest it does not act" if static else "the motion does not show it"
    hidden = [name for name, acts in zip(layout.names, np.any(grouping != 0.0, axis=0), strict=True) if not acts]
    return BaseParameters(
        robot=f"load of {robot.name}",
        layout=layout,
        columns=columns,
        grouping=grouping,
        combinations=readable_combinations(layout, columns, grouping, {}),
        reasons=dict.fromkeys(hidden, reason),
        method="numeric",
        motion="the given motion" if states is not None else "at rest" if static else "every motion",
        rank_gap=space.gap,
    )
