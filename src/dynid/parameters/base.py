"""Which parameters a robot's torques reveal, and why the others stay hidden: one function, four methods.

The methods check one another: closed form, minimal combinations, structural and numeric.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.parameters.base_set import EVERY_MOTION, BaseParameters
from dynid.parameters.closed_form import closed_form
from dynid.parameters.dh_frames import chain_in_dh_frames, has_closed_form
from dynid.parameters.expression import Combination
from dynid.parameters.layout import Parameter, ParameterLayout, parameter_layout
from dynid.parameters.minimal_combinations import Members, minimal_combinations
from dynid.parameters.numeric import LARGEST_REST_SHARE, explains_torques, keep_order, numeric_row_space
from dynid.parameters.regrouping import read_combinations
from dynid.parameters.row_space import RowSpace, row_space, successive_columns
from dynid.parameters.structural import attainable_spans, knows_terms, structural_row_space
from dynid.robot.model import Robot, require_robot
from dynid.spatial import SAME


def explain_hidden(
    robot: Robot, layout: ParameterLayout, hidden: Collection[str], *, unmoved: Mapping[int, float], static: bool
) -> dict[str, str]:
    """Say in one clause per hidden parameter why it has no effect.

    Args:
        robot: The robot.
        layout: Its parameters.
        hidden: Names of the parameters without effect.
        unmoved: Joint number (from 0) -> position at which it is held.
        static: Whether the robot only stands still.
    """
    spans = attainable_spans(robot, unmoved=unmoved, static=static)
    vertical = " parallel to gravity" if np.linalg.norm(robot.gravity) > 0.0 else ""

    def reason(parameter: Parameter) -> str:
        body, kind, link = parameter.number - 1, parameter.kind, f"link '{parameter.owner}'"
        if kind == "term":
            held = f"joint '{parameter.owner}' does not move"
            free = "at rest it does not act" if static else "the motion does not excite it"
            return held if body in unmoved else free
        if static:
            weight = f"at rest only weights act, and no joint lifts this of {link}"
            return "at rest no moment of inertia acts" if kind == "inertia" else weight
        if kind == "mass":
            return f"the origin of {link} stays where it is, so its mass alone never moves"
        turning = spans[body].turning
        if len(turning) == 0:
            return f"{link} never turns, so it does not matter how its mass is spread"
        if len(turning) > 1:
            return f"however {link} turns, no joint feels it: it is neither sped up nor lifted"
        only = f"{link} only turns about {_axis_words(turning[0])}"
        if kind == "inertia":
            return f"{only}, so no other moment of inertia acts"
        if _is_axis(turning[0]["XYZ".index(parameter.symbol[1])]):
            return f"{only}, so mass may shift along it unnoticed"
        return f"{only}{vertical}, so where its mass lies shows only in its moment of inertia"

    return {parameter.name: reason(parameter) for parameter in layout if parameter.name in hidden}


def _is_axis(cosine: float) -> bool:
    return abs(cosine) > 1.0 - SAME


def _axis_words(direction: Floats) -> str:
    k = int(np.argmax(np.abs(direction)))
    return f"its {'xyz'[k]} axis" if _is_axis(direction[k]) else "one oblique axis"


Method = Literal["closed-form", "minimal-combinations", "numeric", "structural"]
REFERENCES: Mapping[Method, tuple[str, ...]] = {
    "closed-form": ("GautierKhalil1990",),
    "minimal-combinations": ("Lin1995",),
    "numeric": ("Izaguirre1992",),
    "structural": (),
}
"""Papers that each method comes from: keys of docs/references.md."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """Result of a method: kept columns with their combinations, or a row space from which to choose them."""

    space: RowSpace | None = None
    columns: tuple[int, ...] = ()
    combinations: tuple[Combination, ...] = ()
    symbols: Mapping[str, float] = field(default_factory=dict)
    gap: float = float("inf")
    remark: str = ""
    minimal: Members | None = None


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
            applies. `dynid.parameters.conversion_matrix` leads from one set to another.
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
    held, layout = _unmoved_positions(robot, unmoved), parameter_layout(robot)
    parts = ["at rest"] * static
    parts += [f"joints that do not move: {', '.join(robot.joint_names[j] for j in held)}"] * bool(held)
    motion = ", ".join(parts) or EVERY_MOTION
    chosen = _default_method(robot, motion) if method in (None, "auto") else method
    assert chosen != "auto"
    found = _find(robot, layout, chosen, motion, held, static)
    columns, combinations, symbols = found.columns, found.combinations, found.symbols
    grouping, mixing, units = _coefficients(layout, combinations, symbols), None, tuple[str, ...]()
    if found.minimal is not None and not order:  # Lin's own members; standard parameters can take their places
        combinations, units, grouping, own, symbols = found.minimal
        columns = own or successive_columns(row_space(grouping), keep_order(robot))[0]
        mixing = np.asarray(np.linalg.inv(grouping[:, list(columns)]), dtype=float)
    elif found.space is not None or order:
        wanted = [layout.index(name) for name in order or ()]
        rest = [column for column in keep_order(robot) if column not in wanted]
        columns, grouping = successive_columns(found.space or row_space(grouping), wanted + rest)
        combinations, symbols = read_combinations(layout, columns, grouping, robot)
    hidden = {name for name, acts in zip(layout.names, np.any(grouping != 0.0, axis=0), strict=True) if not acts}
    return BaseParameters(
        robot=robot.name,
        layout=layout,
        columns=columns,
        grouping=grouping,
        combinations=combinations,
        symbols=symbols,
        reasons=explain_hidden(robot, layout, hidden, unmoved=held, static=static),
        method=chosen + found.remark,
        references=REFERENCES[chosen],
        motion=motion,
        rank_gap=found.gap,
        mixing=mixing,
        member_units=units,
        fingerprint=robot.fingerprint,
    )


def choose_base(robot: Robot, base: BaseParameters | None = None, *, every_motion: bool = False) -> BaseParameters:
    """The base parameters that were given, if they are the robot's; `base_parameters(robot)` where there are none.

    Args:
        robot: The robot with its terms.
        base: The set that was given.
        every_motion: Whether sets of a restricted motion, which hold less, are refused too.

    Raises:
        ArgumentError: The set is not of this robot, or not of every motion.
    """
    if base is None:
        return base_parameters(robot)
    if not isinstance(base, BaseParameters):
        raise ArgumentError(f"base is {base!r}", remedy="Use base_parameters(robot).")
    if base.layout != parameter_layout(robot) or not (base.fingerprint == robot.fingerprint or _acts(robot, base)):
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


def _acts(robot: Robot, base: BaseParameters) -> bool:
    """Whether the robot's torques depend on these combinations, as of robots that differ in a term's constants only."""
    own = base_parameters(robot)
    missed = np.abs(base.grouping[:, list(own.columns)] @ own.grouping - base.grouping).max(initial=0.0)
    return bool(missed <= LARGEST_REST_SHARE * np.abs(base.grouping).max(initial=0.0))


def _default_method(robot: Robot, motion: str) -> Method:
    if has_closed_form(robot) and motion == EVERY_MOTION:
        return "closed-form"
    return "structural" if knows_terms(robot) else "numeric"


def _find(
    robot: Robot, layout: ParameterLayout, method: Method, motion: str, unmoved: Mapping[int, float], static: bool
) -> _Found:
    if method == "numeric":
        space = numeric_row_space(robot, unmoved=unmoved, static=static)
        return _Found(space=space, gap=space.gap)
    if method == "structural":
        return _Found(space=structural_row_space(robot, unmoved=unmoved, static=static))
    if motion != EVERY_MOTION:
        raise ArgumentError(
            f"the {method} method does not know motion restricted to {motion}", remedy="Use method='structural'."
        )
    if method not in ("closed-form", "minimal-combinations"):
        known = "closed-form, minimal-combinations, numeric or structural"
        raise ArgumentError(f"there is no method {method!r}", remedy=f"Use {known}.")
    return _find_in_dh_frames(robot, layout, method)


def _find_in_dh_frames(robot: Robot, layout: ParameterLayout, method: Method) -> _Found:
    """Find the base parameters by closed form or minimal combinations, in modified DH frames."""
    chain, to_dh = chain_in_dh_frames(robot, method)
    remark = f", axes taken as parallel within {chain.deviation:.0e}" if chain.deviation > SAME else ""
    if method == "minimal-combinations":
        minimal = minimal_combinations(robot, layout, chain, to_dh)
        space = row_space(minimal.grouping)
        if not explains_torques(robot, space):
            return _Found(space=structural_row_space(robot), remark=", by the structural method: rounding spoils it")
        return _Found(space=space, remark=remark, minimal=minimal)
    columns, combinations, symbols = closed_form(chain, layout)
    grouping = _coefficients(layout, combinations, symbols)
    space = row_space(grouping if to_dh is None else grouping @ to_dh)
    if not explains_torques(robot, space):  # lengths of very different sizes, for example: never answer wrongly
        return _Found(space=structural_row_space(robot), remark=", by the structural method: rounding spoils it")
    if to_dh is None:
        return _Found(columns=columns, combinations=combinations, symbols=symbols)
    return _Found(space=space, remark=remark)


def _coefficients(layout: ParameterLayout, combinations: Sequence[Combination], symbols: Mapping[str, float]) -> Floats:
    """Coefficients of the combinations as numbers (b, p)."""
    matrix = np.zeros((len(combinations), len(layout)))
    for row, combination in zip(matrix, combinations, strict=True):
        for term in combination.terms:
            row[layout.index(term.parameter)] = term.coefficient.value(symbols)
    return matrix


def _unmoved_positions(robot: Robot, unmoved: str | Sequence[str] | Mapping[str, float]) -> dict[int, float]:
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
