"""Which parameters a robot's torques reveal, and why the others stay hidden: `base_parameters`, by four methods.

The torques are linear in the p standard parameters, ``tau = Y(q, dq, ddq) theta``: ten inertial parameters per link,
and one per *term* of friction, motor or spring. The columns of Y are linearly dependent over all motions. Base
parameters are the b combinations ``beta = grouping @ theta`` that act on the torques; most often b columns of Y are
kept, and beta are their factors. Identification, reports and exports start from them.

Two methods need formulas of the geometry (closed form, minimal combinations) and two find the row space of Y
(structural, numeric), from which this file chooses the kept columns. Tests check the methods against one another. The
end of the file says for each parameter without effect why it has none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dynid.array_types import Floats
from dynid.errors import ArgumentError
from dynid.identifiability.base_set import EVERY_MOTION, BaseParameters
from dynid.identifiability.closed_form import closed_form
from dynid.identifiability.dh_frames import chain_in_dh_frames, has_closed_form
from dynid.identifiability.expression import Combination
from dynid.identifiability.layout import Parameter, ParameterLayout, parameter_layout
from dynid.identifiability.minimal_combinations import MinimalSet, minimal_combinations
from dynid.identifiability.numeric import explains_torques, keep_order, numeric_row_space
from dynid.identifiability.regrouping import read_combinations
from dynid.identifiability.row_space import RowSpace, row_space, successive_columns
from dynid.identifiability.structural import attainable_spans, knows_terms, structural_row_space
from dynid.robot.model import Robot, require_robot
from dynid.spatial import SAME, SIX_DIGITS

Method = Literal["closed-form", "minimal-combinations", "numeric", "structural"]
"""How base parameters are found."""
REFERENCES: Mapping[Method, tuple[str, ...]] = {
    "closed-form": ("GautierKhalil1990",),
    "minimal-combinations": ("Lin1995",),
    "numeric": ("Izaguirre1992",),
    "structural": (),
}
"""Papers that each method comes from: keys of docs/references.md."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _MethodResult:
    """Result of a method: kept columns with their combinations, or a row space from which to choose columns."""

    space: RowSpace | None = None
    """The row space of the regressor; None where the method has chosen columns itself."""
    columns: tuple[int, ...] = ()
    """(b,) the kept columns, where the method has chosen them."""
    combinations: tuple[Combination, ...] = ()
    """(b,) formulas of the base parameters, where the method has chosen columns."""
    symbols: Mapping[str, float] = field(default_factory=dict)
    """Values of the symbols in these formulas: lengths [m], cosines and sines."""
    gap: float = float("inf")
    """Ratio of the last singular value that counts to the next, where the row space was found from samples."""
    remark: str = ""
    """Text after the name of the method in the result."""
    minimal: MinimalSet | None = None
    """The set of [Lin1995], from the method of minimal combinations."""


def base_parameters(
    robot: Robot,
    method: Method | Literal["auto"] | None = None,
    *,
    unmoved: str | Sequence[str] | Mapping[str, float] = (),
    static: bool = False,
    order: Sequence[str] | None = None,
) -> BaseParameters:
    """Find the combinations of parameters that act on the torques.

    Args:
        robot: The robot.
        method: ``"closed-form"`` ([GautierKhalil1990]) and ``"minimal-combinations"`` ([Lin1995]) for serial robots
            that move freely, each in the set of its paper, ``"structural"`` (exact, any tree), ``"numeric"`` (sampled
            regressors, anything). By default ("auto" or None) the first of closed-form, structural, numeric that
            applies. `dynid.identifiability.conversion_matrix` leads from one set to another.
        unmoved: Joints that do not move in the logs (at zero, or at the given positions) and whose torque is not
            measured. Their links stay bodies of their own; `read_urdf(..., hold=...)` makes them parts of others.
        static: Whether the robot only stands still.
        order: Names of the parameters to keep rather than others, the most wanted first ([Izaguirre1992] section 6.1);
            the rest follows in the order of [GautierKhalil1990], with Lin's method too.

    Raises:
        ArgumentError: The method does not apply to this robot or motion; the error names one that does.

    Example:
        >>> dynid.base_parameters(robot).rank
        21
    """
    require_robot(robot)
    unmoved_positions = _unmoved_positions(robot, unmoved)
    layout = parameter_layout(robot)
    motion = _describe_motion(robot, unmoved_positions, static)
    chosen = _default_method(robot, motion) if method in (None, "auto") else method
    assert chosen != "auto"  # for the type checker
    result = _apply_method(robot, layout, chosen, motion, unmoved_positions, static)
    mixing = None
    units: tuple[str, ...] = ()
    if result.minimal is not None and not order:
        # Lin's set stays unchanged; its kept columns are standard parameters that can represent its members
        combinations, units, grouping, lin_columns, symbols = result.minimal
        columns = lin_columns or successive_columns(row_space(grouping), keep_order(robot))[0]
        mixing = np.asarray(np.linalg.inv(grouping[:, list(columns)]), dtype=float)
    elif result.space is not None or order:
        # columns are chosen from the row space: first those the user wants, then in the usual order
        space = result.space or row_space(_coefficients(layout, result.combinations, result.symbols))
        wanted = [layout.index(name) for name in order or ()]
        rest = [column for column in keep_order(robot) if column not in wanted]
        columns, grouping = successive_columns(space, wanted + rest)
        combinations, symbols = read_combinations(layout, columns, grouping, robot)
    else:
        # the closed form has chosen the columns and their combinations
        columns = result.columns
        combinations = result.combinations
        symbols = result.symbols
        grouping = _coefficients(layout, combinations, symbols)
    hidden = {name for name, acts in zip(layout.names, np.any(grouping != 0.0, axis=0), strict=True) if not acts}
    return BaseParameters(
        robot=robot.name,
        layout=layout,
        columns=columns,
        grouping=grouping,
        combinations=combinations,
        symbols=symbols,
        reasons=explain_hidden(robot, layout, hidden, unmoved=unmoved_positions, static=static),
        method=chosen + result.remark,
        references=REFERENCES[chosen],
        motion=motion,
        rank_gap=result.gap,
        mixing=mixing,
        member_units=units,
        fingerprint=robot.fingerprint,
    )


def choose_base(robot: Robot, base: BaseParameters | None = None, *, every_motion: bool = False) -> BaseParameters:
    """Return the given set of base parameters if it is of this robot; without one, find `base_parameters(robot)`.

    Args:
        robot: The robot with its terms.
        base: The set, or None.
        every_motion: Whether to refuse also sets of a restricted motion, which have fewer members.

    Raises:
        ArgumentError: The set is not of this robot, or not of every motion.
    """
    if base is None:
        return base_parameters(robot)
    if not isinstance(base, BaseParameters):
        raise ArgumentError(f"base is {base!r}", remedy="Use base_parameters(robot).")
    # the fingerprint is a hash of geometry and terms; where it differs, the set may still be right, see `_explains`
    if base.layout != parameter_layout(robot) or not (base.fingerprint == robot.fingerprint or _explains(robot, base)):
        raise ArgumentError(
            f"the base parameters belong to another robot ('{base.robot}') than '{robot.name}', or to other terms",
            remedy="Use base_parameters(robot) of the robot with its terms.",
        )
    if every_motion and base.motion != EVERY_MOTION:
        raise ArgumentError(
            f"the base parameters are those of another motion ({base.motion}): {base.rank} of "
            f"{base_parameters(robot).rank}",
            remedy="Use base_parameters(robot); what the motion does not show stays open in the estimate.",
        )
    return base


def _explains(robot: Robot, base: BaseParameters) -> bool:
    """Whether all members of a set of base parameters are combinations of this robot's base parameters.

    That holds, for example, for a set of a robot that differs from this one in a constant of a term only.
    """
    robots_base = base_parameters(robot)
    # equals base.grouping where that is a combination of the rows of robots_base.grouping
    combined = base.grouping[:, list(robots_base.columns)] @ robots_base.grouping
    missed = np.abs(combined - base.grouping).max(initial=0.0)
    return bool(missed <= SIX_DIGITS * np.abs(base.grouping).max(initial=0.0))


def _describe_motion(robot: Robot, unmoved: Mapping[int, float], static: bool) -> str:
    """The motion in words, for `BaseParameters.motion`."""
    parts = []
    if static:
        parts.append("at rest")
    if unmoved:
        parts.append(f"joints that do not move: {', '.join(robot.joint_names[j] for j in unmoved)}")
    return ", ".join(parts) or EVERY_MOTION


def _default_method(robot: Robot, motion: str) -> Method:
    """The first of closed-form, structural and numeric that applies."""
    if has_closed_form(robot) and motion == EVERY_MOTION:
        return "closed-form"
    return "structural" if knows_terms(robot) else "numeric"


def _apply_method(
    robot: Robot, layout: ParameterLayout, method: Method, motion: str, unmoved: Mapping[int, float], static: bool
) -> _MethodResult:
    """Find the row space or the combinations by a method; see `base_parameters` for the arguments."""
    if method == "numeric":
        space = numeric_row_space(robot, unmoved=unmoved, static=static)
        return _MethodResult(space=space, gap=space.gap)
    if method == "structural":
        return _MethodResult(space=structural_row_space(robot, unmoved=unmoved, static=static))
    if motion != EVERY_MOTION:
        raise ArgumentError(
            f"the {method} method does not know motion restricted to {motion}", remedy="Use method='structural'."
        )
    if method not in ("closed-form", "minimal-combinations"):
        known = "closed-form, minimal-combinations, numeric or structural"
        raise ArgumentError(f"there is no method {method!r}", remedy=f"Use {known}.")
    return _apply_in_dh_frames(robot, layout, method)


def _apply_in_dh_frames(robot: Robot, layout: ParameterLayout, method: Method) -> _MethodResult:
    """Find the base parameters by closed form or minimal combinations, in modified DH frames.

    Where rounding spoils the result, for example with lengths of very different sizes, the structural method replaces
    it. The closed form chooses columns itself only if the robot's body frames are modified DH frames.
    """
    # to_dh (p, p) maps parameters in the body frames to the DH frames; None where these are the same
    chain, to_dh = chain_in_dh_frames(robot, method)
    remark = f", axes taken as parallel within {chain.deviation:.0e}" if chain.deviation > SAME else ""
    if method == "minimal-combinations":
        minimal = minimal_combinations(robot, layout, chain, to_dh)
        space = row_space(minimal.grouping)
        if not explains_torques(robot, space):
            return _MethodResult(
                space=structural_row_space(robot), remark=", by the structural method: rounding spoils it"
            )
        return _MethodResult(space=space, remark=remark, minimal=minimal)
    columns, combinations, symbols = closed_form(chain, layout)
    grouping = _coefficients(layout, combinations, symbols)
    space = row_space(grouping if to_dh is None else grouping @ to_dh)
    if not explains_torques(robot, space):
        return _MethodResult(space=structural_row_space(robot), remark=", by the structural method: rounding spoils it")
    if to_dh is None:
        return _MethodResult(columns=columns, combinations=combinations, symbols=symbols)
    return _MethodResult(space=space, remark=remark)


def _coefficients(layout: ParameterLayout, combinations: Sequence[Combination], symbols: Mapping[str, float]) -> Floats:
    """Coefficients of the combinations as numbers (b, p)."""
    matrix = np.zeros((len(combinations), len(layout)))
    for row, combination in zip(matrix, combinations, strict=True):
        for term in combination.terms:
            row[layout.index(term.parameter)] = term.coefficient.value(symbols)
    return matrix


def _unmoved_positions(robot: Robot, unmoved: str | Sequence[str] | Mapping[str, float]) -> dict[int, float]:
    """Index of each unmoved joint -> its position [rad or m], from one name, several names, or a table by names."""
    names = (unmoved,) if isinstance(unmoved, str) else unmoved
    positions = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, 0.0)
    if not all(np.isfinite(position) for position in positions.values()):
        raise ArgumentError(f"joints can stay at finite positions only, not {positions}")
    unknown = [name for name in positions if name not in robot.joint_names]
    if unknown:
        raise ArgumentError(
            f"robot '{robot.name}' has no moving joint '{unknown[0]}' that could stay unmoved",
            remedy=f"Its moving joints are: {', '.join(robot.joint_names)}.",
        )
    return {robot.joint_names.index(name): float(position) for name, position in positions.items()}


# --- why parameters are hidden ---------------------------------------------------------------------------------------


def explain_hidden(
    robot: Robot, layout: ParameterLayout, hidden: Collection[str], *, unmoved: Mapping[int, float], static: bool
) -> dict[str, str]:
    """Say in one clause per hidden parameter why it has no effect.

    The reason follows from the kind of the parameter and from the angular velocities that its link can have.

    Args:
        robot: The robot.
        layout: Its parameters.
        hidden: Names of the parameters without effect.
        unmoved: Index of a joint -> position [rad or m] at which it stays.
        static: Whether the robot only stands still.

    Returns:
        Name of a hidden parameter -> the reason.
    """
    spans = attainable_spans(robot, unmoved=unmoved, static=static)
    vertical = " parallel to gravity" if np.linalg.norm(robot.gravity) > 0.0 else ""

    def reason(parameter: Parameter) -> str:
        """Why this parameter, which is known to have no effect, has none."""
        index = parameter.number - 1  # of its body or joint
        kind = parameter.kind
        link = f"link '{parameter.owner}'"
        if kind == "term":
            if index in unmoved:
                return f"joint '{parameter.owner}' does not move"
            return "at rest it does not act" if static else "the motion does not excite it"
        if static:
            if kind == "inertia":
                return "at rest no moment of inertia acts"
            return f"at rest only weights act, and no joint lifts this of {link}"
        if kind == "mass":
            return f"the origin of {link} stays where it is, so its mass alone never moves"
        turning = spans[index].turning  # one row per independent direction of its angular velocity
        if len(turning) == 0:
            return f"{link} never turns, so it does not matter how its mass is spread"
        if len(turning) > 1:
            return f"however {link} turns, no joint feels it: it is neither sped up nor lifted"
        only = f"{link} only turns about {_name_axis(turning[0])}"
        if kind == "inertia":
            return f"{only}, so no other moment of inertia acts"
        if _is_parallel(turning[0]["XYZ".index(parameter.symbol[1])]):  # a first moment: MX, MY or MZ
            return f"{only}, so mass may shift along it unnoticed"
        return f"{only}{vertical}, so where its mass lies shows only in its moment of inertia"

    return {parameter.name: reason(parameter) for parameter in layout if parameter.name in hidden}


def _is_parallel(cosine: float) -> bool:
    """Whether two directions are parallel, by the cosine of the angle between them."""
    return abs(cosine) > 1.0 - SAME


def _name_axis(direction: Floats) -> str:
    """Name of a unit vector (3,) in the frame of a link, for messages."""
    k = int(np.argmax(np.abs(direction)))
    return f"its {'xyz'[k]} axis" if _is_parallel(direction[k]) else "one oblique axis"
