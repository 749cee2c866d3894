"""What is known of the bodies beforehand: masses, where their mass can lie, symmetries, bodies that are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Floats
from dynid.errors import ArgumentError
from dynid.parameters.layout import parameter_layout
from dynid.robot.model import Robot

_PRODUCTS = {frozenset("xy"): 1, frozenset("xz"): 2, frozenset("yz"): 4}
"""Places of XY, XZ, YZ among a body's ten parameters."""
_SQUARES = {"x": 0, "y": 3, "z": 5}
_MOMENTS = {"x": 6, "y": 7, "z": 8}
_MASS = 9
"""Place of the mass among the ten parameters of a link."""
ON_EDGE = 1e-5
"""Distance from a bound, relative to its terms, at which it is met."""


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """One named condition on standard parameters theta (p,)."""

    name: str
    kind: Literal["at most", "equal", "cone"]
    """``rows @ theta <= side``, ``rows @ theta == side``, or ``(rows @ theta)[0] >= |(rows @ theta)[1:]|``."""
    rows: Floats
    """(k, p)"""
    side: Floats
    """(k,)"""

    def is_active(self, theta: Floats) -> bool:
        """Whether parameters (p,) lie on the edge of an inequality, so that it may hold them there."""
        values = self.rows @ theta
        if self.kind == "cone":
            return bool(values[0] - np.linalg.norm(values[1:]) <= ON_EDGE * abs(values[0]))
        size = np.abs(self.rows) @ np.abs(theta) + np.abs(self.side)
        return self.kind == "at most" and bool(np.any(self.side - values <= ON_EDGE * size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Constraints on the standard parameters, by the name of the moving link; all places in that link's frame [m]."""

    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Link -> lowest and highest mass of its body [kg]; infinite where there is none, here and below."""
    total_mass: tuple[float, float] | None = None
    """Lowest and highest mass of all moving bodies together [kg]."""
    com_box: Mapping[str, tuple[ArrayLike, ArrayLike]] = field(default_factory=dict)
    """Link -> lower and upper corner (3,), (3,) of a box that holds the centre of mass."""
    com_ellipsoid: Mapping[str, tuple[ArrayLike, ArrayLike]] = field(default_factory=dict)
    """Link -> centre (3,) and semi-axes (3,), or columns (3, 3), of an ellipsoid that holds the centre of mass."""
    com_hull: Mapping[str, ArrayLike] = field(default_factory=dict)
    """Link -> points (k, 3), the vertices of its mesh say, whose convex hull holds the centre of mass."""
    mass_ellipsoid: Mapping[str, tuple[ArrayLike, ArrayLike]] = field(default_factory=dict)
    """As `com_ellipsoid`, but all of the body's mass lies in it, which bounds its inertia too ([Wensing2018])."""
    mirror: Mapping[str, str] = field(default_factory=dict)
    """Link -> axes, as ``"y"`` or ``"xy"``: the body is its own mirror image across the planes normal to them."""
    revolved: Mapping[str, Literal["x", "y", "z"]] = field(default_factory=dict)
    """Link -> axis about which the body is a solid of revolution."""
    known: tuple[str, ...] = ()
    """Links whose bodies keep the prior's parameters."""
    absent: tuple[str, ...] = ()
    """Names of the robot's parameters that are zero, such as those of a term that a file cannot hold."""

    def constraints(self, robot: Robot) -> list[Constraint]:
        """All of them, each under the name that errors give it.

        Args:
            robot: The robot; its parameters are those of known links.

        Raises:
            ArgumentError: A link is not of the robot, or a shape is none.
        """
        found = [self._mass(robot, link, *limits) for link, limits in self.mass.items()]
        if self.total_mass is not None:
            row = np.sum([_unit(robot, j, _MASS) for j in range(robot.dof)], axis=0)
            found.append(_between(f"total mass in {_span(self.total_mass)} kg", row, *self.total_mass))
        makers: list[tuple[Mapping[str, object], Callable[..., Constraint]]] = [
            (self.com_box, _box),
            (self.com_ellipsoid, _ellipsoid),
            (self.com_hull, _hull),
            (self.mass_ellipsoid, _mass_ellipsoid),
            (self.mirror, _mirror),
            (self.revolved, _revolved),
        ]
        found += [make(robot, link, value) for table, make in makers for link, value in table.items()]
        for link in self.known:
            places = [10 * _body(robot, link) + k for k in range(10)]
            values = robot.parameter_vector[places]
            found.append(Constraint(f"known {link}", "equal", np.eye(robot.parameter_vector.size)[places], values))
        if self.absent:
            found.append(_absent(robot, self.absent))
        return found

    @staticmethod
    def _mass(robot: Robot, link: str, low: float, high: float) -> Constraint:
        return _between(
            f"mass of {link} in {_span((low, high))} kg", _unit(robot, _body(robot, link), _MASS), low, high
        )


def _absent(robot: Robot, names: tuple[str, ...]) -> Constraint:
    layout = parameter_layout(robot)
    rows = np.eye(len(layout))[[layout.index(name) for name in names]]
    return Constraint(f"{', '.join(names)} absent", "equal", rows, np.zeros(len(names)))


def _between(name: str, row: Floats, low: float, high: float) -> Constraint:
    """``low <= row @ theta <= high``; an infinite side bounds nothing."""
    if not (low < np.inf and high > -np.inf):
        raise ArgumentError(f"the bound '{name}' holds nothing", remedy="Give the lowest value first; inf for none.")
    side = np.array([high, -low], dtype=float)
    bounded = np.isfinite(side)
    return Constraint(name, "at most", np.array([row, -row])[bounded], side[bounded])


def _box(robot: Robot, link: str, corners: tuple[ArrayLike, ArrayLike]) -> Constraint:
    lower, upper = (_point(link, corner, infinite=True) for corner in corners)
    wrong = [axis for axis, low, high in zip("xyz", lower, upper, strict=True) if not low <= high]
    if wrong:
        raise ArgumentError(
            f"the box of {link} ends before it begins along {', '.join(wrong)}: from {lower} to {upper}",
            remedy="Give the corner with the lowest coordinates first; inf for none.",
        )
    moments, mass = _moments(robot, link)
    above, below = np.isfinite(upper), np.isfinite(lower)  # an infinite side bounds nothing
    rows = np.concatenate(
        [(moments[above] - np.outer(upper[above], mass)), (np.outer(lower[below], mass) - moments[below])]
    )
    return Constraint(f"centre of mass of {link} in its box", "at most", rows, np.zeros(len(rows)))


def _hull(robot: Robot, link: str, points: ArrayLike) -> Constraint:
    from scipy.spatial import ConvexHull, QhullError

    vertices = np.asarray(points, dtype=float)
    try:
        faces = np.unique(ConvexHull(vertices).equations.round(12), axis=0)
    except (QhullError, ValueError) as error:
        raise ArgumentError(
            f"the points given for {link} have no hull with a volume",
            remedy="Give four points or more, shaped (k, 3), not all in one plane.",
        ) from error
    moments, mass = _moments(robot, link)
    rows = faces[:, :3] @ moments + np.outer(faces[:, 3], mass)  # n c + d <= 0, times the mass
    return Constraint(f"centre of mass of {link} in its hull", "at most", rows, np.zeros(len(rows)))


def _ellipsoid(robot: Robot, link: str, shape: tuple[ArrayLike, ArrayLike]) -> Constraint:
    centre, inverse = _ball_coordinates(link, shape)
    moments, mass = _moments(robot, link)
    rows = np.vstack([mass, inverse @ (moments - np.outer(centre, mass))])
    return Constraint(f"centre of mass of {link} in its ellipsoid", "cone", rows, np.zeros(4))


def _mass_ellipsoid(robot: Robot, link: str, shape: tuple[ArrayLike, ArrayLike]) -> Constraint:
    """Mass where ``1 - |B (x - c)|^2 >= 0`` has a non-negative integral of that ([Wensing2018])."""
    centre, inverse = _ball_coordinates(link, shape)
    A = inverse.T @ inverse
    row = np.zeros(10)
    # integral of x x^T is tr(I) / 2 - I, of x the moments, of one the mass
    half = 0.5 * np.trace(A)
    for axis, place in _SQUARES.items():
        row[place] = half - A["xyz".index(axis), "xyz".index(axis)]
    for pair, place in _PRODUCTS.items():
        i, j = ("xyz".index(axis) for axis in sorted(pair))
        row[place] = -2.0 * A[i, j]
    row[6:9] = -2.0 * A @ centre
    row[_MASS] = centre @ A @ centre - 1.0
    whole = np.zeros(robot.parameter_vector.size)
    whole[10 * _body(robot, link) : 10 * _body(robot, link) + 10] = row
    return Constraint(f"mass of {link} within its ellipsoid", "at most", whole[None], np.zeros(1))


def _mirror(robot: Robot, link: str, axes: str) -> Constraint:
    places = {_MOMENTS[_axis(link, axis)] for axis in axes}
    places |= {place for pair, place in _PRODUCTS.items() if pair & set(axes)}
    rows = np.array([_unit(robot, _body(robot, link), place) for place in sorted(places)])
    return Constraint(f"{link} its own mirror image across {', '.join(axes)}", "equal", rows, np.zeros(len(rows)))


def _revolved(robot: Robot, link: str, axis: str) -> Constraint:
    others = "xyz".replace(_axis(link, axis), "")
    body = _body(robot, link)
    places = [_MOMENTS[others[0]], _MOMENTS[others[1]], *_PRODUCTS.values()]
    equal = _unit(robot, body, _SQUARES[others[0]]) - _unit(robot, body, _SQUARES[others[1]])
    rows = np.array([*(_unit(robot, body, place) for place in places), equal])
    return Constraint(f"{link} revolved about {axis}", "equal", rows, np.zeros(len(rows)))


def _axis(link: str, axis: str) -> str:
    if axis not in _MOMENTS:
        raise ArgumentError(f"symmetry of {link} about '{axis}'", remedy="Axes are x, y and z of the link's frame.")
    return axis


def _ball_coordinates(link: str, shape: tuple[ArrayLike, ArrayLike]) -> tuple[Floats, Floats]:
    """Centre (3,) and the matrix (3, 3) that maps the ellipsoid to the unit ball."""
    axes = np.asarray(shape[1], dtype=float)
    columns = np.diag(axes) if axes.shape == (3,) else axes
    if columns.shape != (3, 3) or not np.isfinite(columns).all() or abs(np.linalg.det(columns)) < 1e-15:
        raise ArgumentError(f"the ellipsoid of {link} has no volume", remedy="Give three positive semi-axes [m].")
    return _point(link, shape[0]), np.linalg.inv(columns)


def _point(link: str, values: ArrayLike, *, infinite: bool = False) -> Floats:
    point = np.asarray(values, dtype=float)
    if point.shape != (3,) or np.isnan(point).any() or not (infinite or np.isfinite(point).all()):
        raise ArgumentError(f"{values!r} is no place in {link}", remedy="Give x, y, z in its frame [m].")
    return point


def _moments(robot: Robot, link: str) -> tuple[Floats, Floats]:
    """Rows (3, p) of a link's first moments and (p,) of its mass."""
    j = _body(robot, link)
    return np.array([_unit(robot, j, 6 + k) for k in range(3)]), _unit(robot, j, _MASS)


def _span(limits: tuple[float, float]) -> str:
    return f"[{limits[0]:g}, {limits[1]:g}]"


def _unit(robot: Robot, body: int, offset: int) -> Floats:
    row = np.zeros(robot.parameter_vector.size)
    row[10 * body + offset] = 1.0
    return row


def _body(robot: Robot, link: str) -> int:
    for index, body in enumerate(robot.bodies):
        if body.joint.child == link:
            return index
    known = ", ".join(body.joint.child for body in robot.bodies)
    raise ArgumentError(f"no joint moves a link '{link}'", remedy=f"Moving links are: {known}.")
