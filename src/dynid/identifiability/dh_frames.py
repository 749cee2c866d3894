"""Robots in DH frames: modified ones for the closed forms, standard ones for the elimination of [Izaguirre1992].

`base_parameters` calls `has_closed_form` and `chain_in_dh_frames`: the methods "closed-form" (Gautier and Khalil) and
"minimal-combinations" (Lin) need a serial robot in modified DH frames, which lie at the near end of each link.

The user calls `distal_base_parameters`: [Izaguirre1992] describes each link in its standard DH frame, which lies at the
far end of the link ("distal"), on the next joint's axis, and eliminates dependent parameters one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dynid.array_types import Floats
from dynid.dynamics.chain import Chain, find_chain
from dynid.dynamics.inertia_maps import transport
from dynid.errors import ArgumentError
from dynid.identifiability.base_set import BaseParameters
from dynid.identifiability.layout import ParameterLayout, parameter_layout
from dynid.identifiability.numeric import numeric_row_space
from dynid.identifiability.regrouping import read_combinations
from dynid.identifiability.row_space import row_space, successive_columns
from dynid.identifiability.structural import knows_terms, structural_row_space
from dynid.robot.formats.modified_dh import modified_dh
from dynid.robot.model import Body, Robot, require_robot
from dynid.spatial import SAME, inverse_transform, rotation_about, transform
from dynid.terms.base import Dependence

LINK_ORDER = ("M", "MX", "MY", "MZ", "XX", "YY", "ZZ", "XY", "YZ", "XZ")
"""Order in which the parameters of a link are kept: the letters m x y z a b c d e f of [Izaguirre1992] Table 1."""


def has_closed_form(robot: Robot) -> bool:
    """Whether the closed forms describe this robot.

    That is a serial robot whose joints may have rotor inertias, usual friction and torque offsets, but no motor that
    turns with several joints.
    """
    return _obstacle(robot) is None


def _obstacle(robot: Robot) -> str | None:
    """Why the closed forms do not describe a robot, in words that follow "the method"; None where they do."""
    if not robot.bodies or any(body.parent != j - 1 for j, body in enumerate(robot.bodies)):  # it branches
        return f"needs a serial robot, '{robot.name}' is none"
    unknown = [p.term for p in robot.terms if len(p.joints) > 1 or p.term.dependence is Dependence.OTHER]
    return f"does not know the term {type(unknown[0]).__name__}" if unknown else None


def chain_in_dh_frames(robot: Robot, method: str) -> tuple[Chain, Floats | None]:
    """The DH table of a serial robot (as a `Chain`), and the map of its parameters to the modified DH frames.

    Args:
        robot: The robot.
        method: Name of the method that needs the chain, for the error message.

    Returns:
        The chain, and the map (p, p) from the parameters in the robot's body frames to those in the DH frames; None
        where the body frames are modified DH frames already.

    Raises:
        ArgumentError: The robot branches, or has couplings or terms of other kinds.
    """
    obstacle = _obstacle(robot)
    if obstacle:
        raise ArgumentError(
            f"the {method} method {obstacle}",
            remedy="Use method='numeric', or 'structural' if it knows the terms.",
        )
    chain = find_chain(robot)
    if chain.T_body_frame is None:
        return chain, None
    to_dh = np.eye(robot.parameter_vector.size)
    for j, T_body_mdh in enumerate(chain.T_body_frame):
        T_mdh_body = inverse_transform(T_body_mdh)
        block = slice(10 * j, 10 * j + 10)
        to_dh[block, block] = transport(T_mdh_body[:3, :3], T_mdh_body[:3, 3])
    return chain, to_dh


class DistalBase(NamedTuple):
    """Base parameters in distal frames, at the far ends of the links."""

    base: BaseParameters
    """Names, combinations and hidden parameters; all link parameters are those in the distal frames."""
    to_body: Floats
    """(p, p) map from the parameter vector in the distal frames to that in the robot's body frames."""


def distal_frames(robot: Robot) -> tuple[Floats, ...]:
    """Poses (4, 4) of the standard DH frame at the far end of every link, in the link's body frame.

    The frame of link j has its origin and z axis on the axis of joint j + 1 and x along the common perpendicular of the
    axes of joints j and j + 1. The last link keeps its modified DH frame. If a link is fixed to the body and its frame
    already lies on the next axis, as in a robot from a standard DH table, its frame is used.

    Raises:
        ArgumentError: The robot is not a serial chain.
    """
    require_robot(robot)
    table = modified_dh(robot)
    found = []
    for j, body in enumerate(robot.bodies):
        following = robot.bodies[j + 1] if j + 1 < robot.dof else None
        # frames of fixed links that will do; the body's own frame is the first member
        given = [T for name, T in body.members[1:] if following is None or _lies_on_axis(T, following)]
        far = np.eye(4)  # pose in the modified DH frame of link j
        if following is not None:
            row = table.rows[j + 1]
            turn = rotation_about(np.array([1.0, 0.0, 0.0]), row.alpha)
            far = transform(np.asarray(turn, dtype=float), np.array([row.d, 0.0, 0.0]))
        found.append(given[0] if given else table.T_body_mdh[j] @ far)
    return tuple(found)


def _lies_on_axis(T: Floats, following: Body) -> bool:
    """Whether a frame with pose T (4, 4) in the body has its origin and z axis on the axis of the following body."""
    axis = following.R_parent_joint @ following.axis
    away = np.cross(T[:3, 3] - following.p_parent_joint, axis)
    return bool(np.abs(away).max() <= SAME and np.abs(np.cross(T[:3, 2], axis)).max() <= SAME)


def distal_base_parameters(robot: Robot, *, order: Sequence[str] = ()) -> DistalBase:
    """Eliminate dependent parameters one by one, with each link described at its far end ([Izaguirre1992] section 6.1).

    Args:
        robot: The robot, a serial chain.
        order: Names of parameters that are kept in preference to others, the most wanted first. The rest follows in
            the paper's order: rotor inertias, links from the last to the first, other terms.

    Raises:
        ArgumentError: The robot is not a serial chain.

    Example:
        >>> dynid.identifiability.distal_base_parameters(robot).base.rank
        21
    """
    layout = parameter_layout(robot)
    to_body = np.eye(len(layout))
    for j, T in enumerate(distal_frames(robot)):
        to_body[10 * j : 10 * j + 10, 10 * j : 10 * j + 10] = transport(T[:3, :3], T[:3, 3])
    # rows that span the regressor's row space, in the body frames and in the distal frames
    known = structural_row_space(robot) if knows_terms(robot) else numeric_row_space(robot)
    space = row_space(known.rows @ to_body)
    wanted = [layout.index(name) for name in order]
    wanted += [column for column in _papers_order(robot, layout) if column not in wanted]
    columns, grouping = successive_columns(space, wanted)  # [Izaguirre1992] eqs. (27)-(29)
    base = BaseParameters(
        robot=robot.name,
        layout=layout,
        columns=columns,
        grouping=grouping,
        combinations=read_combinations(layout, columns, grouping)[0],
        method="elimination in distal frames",
        references=("Izaguirre1992",),
        rank_gap=known.gap,
    )
    return DistalBase(base, to_body)


def _papers_order(robot: Robot, layout: ParameterLayout) -> list[int]:
    """All columns in the order in which [Izaguirre1992] keeps them: rotor inertias, links from the last, the rest."""
    rotors = [c for c, p in enumerate(layout) if p.dependence is Dependence.ACCELERATION]
    links = [layout.index(f"{symbol}{j}") for j in range(robot.dof, 0, -1) for symbol in LINK_ORDER]
    return [*rotors, *links, *(c for c in range(10 * robot.dof, len(layout)) if c not in rotors)]
