"""`Robot`: links joined into a tree, with geometry, mass properties, limits and terms.

A *term* is any other contribution to the joint torques (friction, rotor inertia, offset, spring, ...) with one
parameter. The readers of `dynid.robot.formats` make robots; nearly every other module takes one.

Links that are fixed to one another move as one *body*. There is one body per moving joint, in the same order: the child
link of the joint with all links fixed to it. Its frame is the frame of the child link; its ten inertial parameters are
those of all its links together. The links keep their frames and inertias.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats, ReadOnly
from dynid.errors import ArgumentError, DescriptionError
from dynid.lazy import cached_property
from dynid.robot.inertia import Inertia
from dynid.robot.parts import Joint, JointLimits, Link, PlacedTerm, freeze_array, is_rotation
from dynid.spatial import inverse_transform, snap
from dynid.terms.base import StateTerm
from dynid.terms.coupling import Coupling

Fields = TypeVar("Fields", bound=Hashable)

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Acceleration of free fall for an upright base [m/s^2]."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Body:
    """The links that one moving joint moves directly: its child link and all links fixed to that."""

    joint: Joint
    """The joint."""
    parent: int
    """Index of the body that the joint is placed on; -1 for the base."""
    R_parent_joint: Floats
    """(3, 3) orientation of the joint in the parent body's frame at position zero."""
    p_parent_joint: Floats
    """(3,) origin of the joint in the parent body's frame [m]."""
    members: tuple[tuple[str, Floats], ...]
    """Every link of the body with its pose ``T_body_link`` (4, 4)."""
    inertia: Inertia
    """Inertia of all members together, in the body frame."""

    @property
    def axis(self) -> Floats:
        """(3,) unit joint axis, body frame (and joint frame)."""
        return self.joint.axis

    @property
    def is_prismatic(self) -> bool:
        """Whether the joint slides instead of turning."""
        return self.joint.kind == "prismatic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """The text a robot was read from, so that it can be written back with nothing else changed."""

    path: str
    """The file, or a name for messages."""
    format: Literal["urdf", "mjcf"]
    """Format of the text."""
    text: str
    """The whole text."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Robot(ReadOnly):
    """A tree of links and joints under gravity."""

    name: str
    """Name of the robot."""
    links: tuple[Link, ...]
    """All links, the base included."""
    joints: tuple[Joint, ...]
    """All joints, fixed ones included; given in any order, stored with parents before children."""
    gravity: Floats = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    """(3,) acceleration of free fall in the root link's frame [m/s^2]."""
    couplings: tuple[Coupling, ...] = ()
    """Motors that turn with several joints: their rotor inertia and friction couple these joints."""
    source: ModelFile | None = None
    """The description file it came from, if any."""

    def __post_init__(self) -> None:
        """Check that the links form one tree and order the joints from the root outwards."""
        object.__setattr__(self, "gravity", freeze_array(self.gravity, (3,)))
        object.__setattr__(self, "links", tuple(self.links))
        _check_names(self.name, [link.name for link in self.links], [joint.name for joint in self.joints])
        object.__setattr__(self, "joints", _order_from_root(self.links, tuple(self.joints)))
        for coupling in self.couplings:
            for name in coupling.ratios:
                self._coordinate(name)  # refuses joints that do not exist or do not move

    # --- names and sizes -------------------------------------------------------------------------------------------

    @property
    def dof(self) -> int:
        """Number of moving joints n."""
        return len(self.moving_joints)

    @cached_property
    def moving_joints(self) -> tuple[Joint, ...]:
        """The joints that are not fixed, in the order of q."""
        return tuple(joint for joint in self.joints if joint.moves)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the moving joints, in the order of q."""
        return tuple(joint.name for joint in self.moving_joints)

    @property
    def position_units(self) -> tuple[str, ...]:
        """Units of the joint positions, ``rad`` or ``m``, in the order of q."""
        return tuple("m" if body.is_prismatic else "rad" for body in self.bodies)

    @cached_property
    def root(self) -> str:
        """Name of the link that does not move."""
        children = {joint.child for joint in self.joints}
        return next(link.name for link in self.links if link.name not in children)

    def link(self, name: str) -> Link:
        """The link of that name."""
        if name not in self._link_by_name:
            known = ", ".join(self._link_by_name)
            raise ArgumentError(f"robot '{self.name}' has no link '{name}'", remedy=f"Its links are: {known}.")
        return self._link_by_name[name]

    @cached_property
    def _link_by_name(self) -> dict[str, Link]:
        """Name of a link -> the link."""
        return {link.name: link for link in self.links}

    def _coordinate(self, joint_name: str) -> int:
        """Index of a moving joint in q, by its name."""
        if joint_name not in self.joint_names:
            known = ", ".join(self.joint_names)
            raise ArgumentError(
                f"robot '{self.name}' has no moving joint '{joint_name}'", remedy=f"Its moving joints are: {known}."
            )
        return self.joint_names.index(joint_name)

    # --- structure -------------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> dict[str, tuple[int, Floats]]:
        """Name of a link -> index of its body (-1 for the base), and its pose in the body (4, 4)."""
        found = {self.root: (-1, np.eye(4))}
        bodies = 0
        for joint in self.joints:
            if joint.moves:
                found[joint.child] = (bodies, np.eye(4))
                bodies += 1
            else:
                body, T_body_parent = found[joint.parent]
                found[joint.child] = (body, T_body_parent @ joint.T_parent_joint)
        return found

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        """One body per moving joint, in the order of q; parents come before children."""
        members: list[list[tuple[str, Floats]]] = [[] for _ in self.moving_joints]
        for name, (body, T) in self._places.items():
            if body >= 0:
                members[body].append((name, T))
        found = []
        for joint, parts in zip(self.moving_joints, members, strict=True):
            parent, T_body_parent = self._places[joint.parent]
            T = T_body_parent @ joint.T_parent_joint
            inertia = sum((self.link(name).inertia.in_frame(T_) for name, T_ in parts), Inertia.zero())
            R = snap(T[:3, :3])
            p = T[:3, 3].copy()
            found.append(
                Body(
                    joint=joint, parent=parent, R_parent_joint=R, p_parent_joint=p, members=tuple(parts),
                    inertia=inertia,
                )
            )  # fmt: skip
        return tuple(found)

    def link_body(self, link: str) -> tuple[int, Floats]:
        """Index of the body that a link belongs to (-1 for the base), and its pose there, ``T_body_link`` (4, 4)."""
        return self._places[self.link(link).name]

    @cached_property
    def compiled(self) -> dict[Hashable, Callable[..., Floats]]:
        """Functions compiled for this robot; `dynid.compiled` stores them here, so that they are freed with it."""
        return {}

    # --- parameters ------------------------------------------------------------------------------------------------

    @cached_property
    def inertial_vector(self) -> Floats:
        """(10 n,) ``XX XY XZ YY YZ ZZ MX MY MZ M`` of the first body, then of the second, ..."""
        return np.concatenate([body.inertia.vector for body in self.bodies] or [np.zeros(0)])

    @cached_property
    def parameter_vector(self) -> Floats:
        """(p,) all parameters in the order of the regressor's columns: bodies, then `terms`."""
        return np.concatenate([self.inertial_vector, [placed.term.value for placed in self.terms]])

    @cached_property
    def terms(self) -> tuple[PlacedTerm, ...]:
        """Every term of the robot, one per parameter: joint after joint, then coupling after coupling."""
        of_joints = [PlacedTerm(t, (j,), joint.name) for j, joint in enumerate(self.moving_joints) for t in joint.terms]
        of_motors = [
            PlacedTerm(term, term.acts_on(self.joint_names), "+".join(coupling.ratios))
            for coupling in self.couplings
            for term in coupling.terms
        ]
        return (*of_joints, *of_motors)

    def with_parameters(self, theta: ArrayLike) -> Self:
        """A copy of the robot with other parameters (p,), in the order of `parameter_vector`.

        The change of a body is put into the child link of its joint; links fixed to that keep their inertias. If this
        would leave the child link with an inertia that no real link has, the body's inertia is divided among all its
        links in proportion to their masses.
        """
        values = np.asarray(theta, dtype=float)
        if values.shape != self.parameter_vector.shape:
            remedy = f"Give {self.parameter_vector.size} numbers, in the order of dynid.parameter_layout(robot).names."
            raise ArgumentError(f"the parameters have the shape {values.shape}", remedy=remedy)
        inertias: dict[str, Inertia] = {}
        for j, body in enumerate(self.bodies):
            inertias |= self._divide_inertia(body, Inertia.from_vector(values[10 * j : 10 * j + 10]))
        term_values = iter(values[10 * self.dof :].tolist())
        joints = {  # name of a joint -> its terms with their new values
            joint.name: tuple(term.with_value(next(term_values)) for term in joint.terms)
            for joint in self.moving_joints
        }
        couplings = tuple(
            coupling.with_values([next(term_values) for _ in coupling.terms]) for coupling in self.couplings
        )
        changed = replace(
            self,
            links=tuple(Link(name=link.name, inertia=inertias.get(link.name, link.inertia)) for link in self.links),
            joints=tuple(j.with_terms(joints[j.name]) if j.terms and j.moves else j for j in self.joints),
            couplings=couplings,
        )
        changed.__dict__["fingerprint"] = self.fingerprint  # it does not depend on the values
        return changed

    def _divide_inertia(self, body: Body, whole: Inertia) -> dict[str, Inertia]:
        """Divide the inertia of a body, given in the body frame, among its links; see `with_parameters`.

        Returns:
            Name of each changed link -> its new inertia in its own frame.
        """
        (child, _), *others = body.members
        fixed_links = [(name, T, self.link(name).inertia) for name, T in others]
        rest = whole - sum((inertia.in_frame(T) for _, T, inertia in fixed_links), Inertia.zero())
        masses = [self.link(child).inertia.mass, *(inertia.mass for _, _, inertia in fixed_links)]
        if not any(masses[1:]) or min(masses) < 0.0 or rest.is_physical_in(whole) or not whole.is_physical:
            return {child: rest}
        shares = {child: Inertia.from_vector(masses[0] / sum(masses) * whole.vector)}
        for name, T, inertia in fixed_links:
            shares[name] = Inertia.from_vector(inertia.mass / sum(masses) * whole.vector).in_frame(inverse_transform(T))
        return shares

    # --- variations ------------------------------------------------------------------------------------------------

    def with_gravity(self, gravity: ArrayLike) -> Self:
        """A copy of the robot under another gravity (3,) [m/s^2], in the root link's frame."""
        return replace(self, gravity=np.asarray(gravity, dtype=float))

    def with_base_orientation(self, R_world_base: ArrayLike) -> Self:
        """A copy of the robot on a rotated base: gravity points along the world's -z with its present magnitude."""
        R = np.asarray(R_world_base, dtype=float)
        if R.shape != (3, 3) or not is_rotation(R):
            raise ArgumentError(
                f"not a rotation (3, 3): {R.tolist()}",
                remedy="Give an orthogonal matrix of determinant 1, such as dynid.spatial.rotation_about(axis, angle).",
            )
        return self.with_gravity(R.T @ np.array([0.0, 0.0, -float(np.linalg.norm(self.gravity))]))

    def with_terms(
        self, *terms: StateTerm | Coupling, joints: str | Sequence[str] | None = None, keep: bool = False
    ) -> Self:
        """A copy of the robot with these terms on every moving joint (or on the named ones).

        A term with a joint of its own (``Viscous(0.1, joint=2)``) goes to that joint only. Couplings name their joints;
        if at least one is given, they replace those of the robot, see `with_couplings`.

        Args:
            terms: The terms; terms with memory and those that depend on the links' torques cannot be attached.
            joints: Names of the joints; all moving joints by default.
            keep: Whether the joints keep the terms that they have; otherwise the new ones replace them.
        """
        for term in terms:
            if not isinstance(term, StateTerm | Coupling):
                raise ArgumentError(
                    f"{term!r} is no term of a joint's present state; a robot can carry no other terms",
                    remedy="Give an object, such as Viscous(); Identification.torque runs terms with memory.",
                )
            if isinstance(term, StateTerm) and term.joint is not None and term.joint not in range(self.dof):
                raise ArgumentError(
                    f"{term!r} names no joint of '{self.name}'",
                    remedy=f"Give the number of a moving joint, 0 to {self.dof - 1}, or its name with joints=.",
                )
        self._refuse_negative(terms)
        named = (joints,) if isinstance(joints, str) else joints
        chosen = set(self.joint_names if named is None else named)
        for name in chosen:
            self._coordinate(name)
        couplings = tuple(term for term in terms if isinstance(term, Coupling))
        local = {  # name of a joint -> its new terms
            name: tuple(t.at(None) for t in terms if isinstance(t, StateTerm) and t.joint in (None, place))
            for place, name in enumerate(self.joint_names)
            if name in chosen
        }
        return replace(
            self,
            joints=tuple(
                j.with_terms((*(j.terms if keep else ()), *local[j.name])) if j.name in local else j
                for j in self.joints
            ),
            couplings=couplings or self.couplings,
        )

    def _refuse_negative(self, terms: Sequence[object]) -> None:
        """Refuse negative friction and rotor inertias, unless the robot has them already (from a file, an estimate)."""
        present = {term for joint in self.joints for term in joint.terms}
        for term in terms:
            is_negative = isinstance(term, StateTerm) and term.is_non_negative and term.value < 0.0
            if isinstance(term, StateTerm) and is_negative and term.at(None) not in present:
                raise ArgumentError(
                    f"{term.value:g} is the value of {type(term).__name__}, and no joint has less than zero of it",
                    remedy=f"Give zero or more: {type(term).__name__}({-term.value:g}) acts against the motion.",
                )

    def with_couplings(self, *couplings: Coupling) -> Self:
        """A copy of the robot with these couplings and no others."""
        return replace(self, couplings=couplings)

    def with_limits(self, limits: Mapping[str, JointLimits]) -> Self:
        """A copy of the robot with other limits on the named joints."""
        for name in limits:
            self._coordinate(name)
        return replace(self, joints=tuple(replace(j, limits=limits.get(j.name, j.limits)) for j in self.joints))

    def with_body(self, name: str, *, parent: str, inertia: Inertia, T_parent_body: ArrayLike | None = None) -> Self:
        """A copy of the robot with one more link fixed to link ``parent``: a tool or a load.

        Args:
            name: Name of the new link.
            parent: Name of the link that carries it.
            inertia: Mass properties of the new link, in its frame.
            T_parent_body: (4, 4) pose of the new link in the parent link's frame; the same frame by default.
        """
        T = np.eye(4) if T_parent_body is None else np.asarray(T_parent_body, dtype=float)
        joint = Joint(name=f"{name}_fixed", kind="fixed", parent=self.link(parent).name, child=name, T_parent_joint=T)
        return replace(
            self, links=(*self.links, Link(name=name, inertia=inertia)), joints=(*self.joints, joint), source=None
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that determines the equations of motion, apart from the values of parameters."""
        parts: list[object] = [self.gravity.tolist()]
        for body in self.bodies:
            geometry = (body.R_parent_joint, body.p_parent_joint, body.axis)
            parts.append((body.parent, body.is_prismatic, [array.tolist() for array in geometry]))
            parts.append([_distinguish_term(term) for term in body.joint.terms])
        parts.extend([(self._coordinate(name), ratio) for name, ratio in c.ratios.items()] for c in self.couplings)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def __repr__(self) -> str:
        """Name, size and gravity in one line."""
        g = ", ".join(f"{value:g}" for value in self.gravity)
        kinds = "".join("P" if body.is_prismatic else "R" for body in self.bodies)
        return f"Robot('{self.name}', {self.dof} joints {kinds}, {len(self.links)} links, gravity ({g}) m/s^2)"


def _check_names(robot: str, links: Sequence[str], joints: Sequence[str]) -> None:
    """Refuse two links or joints of one name, and names of several lines, which would look like lines of dynid's own.

    Raises:
        DescriptionError: There is such a name.
    """
    for part, names in (("robot", [robot]), ("link", links), ("joint", joints)):
        for name, count in Counter(names).items():
            if count > 1 or "\n" in name:
                reason = f"{count} {part}s have the name '{name}'" if count > 1 else "the name has several lines"
                raise DescriptionError(reason, place=f"{part} '{name}'", remedy="Rename it.")


def _order_from_root(links: tuple[Link, ...], joints: tuple[Joint, ...]) -> tuple[Joint, ...]:
    """Order joints with parents before children, otherwise as given.

    Raises:
        DescriptionError: The links do not form one tree.
    """
    known = {link.name for link in links}
    children: set[str] = set()
    for joint in joints:
        place = f"joint '{joint.name}'"
        for name in {joint.parent, joint.child} - known:
            remedy = "Add the link or mend its name."
            raise DescriptionError(f"link '{name}' does not exist", place=place, remedy=remedy)
        if joint.child in children or joint.child == joint.parent:
            raise DescriptionError(
                f"link '{joint.child}' hangs on two joints or on itself: a kinematic loop",
                place=place,
                remedy="Cut the loop: dynid handles serial chains and trees.",
            )
        children.add(joint.child)
    roots = [link.name for link in links if link.name not in children]
    if len(roots) != 1:
        found = "every link has a parent" if not roots else f"{len(roots)} links have no parent: {', '.join(roots[:5])}"
        raise DescriptionError(
            f"the links do not form one tree: {found}", remedy="Exactly one link, the base, may have no parent joint."
        )
    outgoing: dict[str, list[int]] = defaultdict(list)  # link -> indices of the joints that it carries
    for index, joint in enumerate(joints):
        outgoing[joint.parent].append(index)
    # topological order: of the joints whose parent link is reached already, the one that was given first comes next
    ready = list(outgoing[roots[0]])
    heapq.heapify(ready)
    ordered: list[Joint] = []
    while ready:
        joint = joints[heapq.heappop(ready)]
        ordered.append(joint)
        for index in outgoing[joint.child]:
            heapq.heappush(ready, index)
    if len(ordered) < len(joints):
        stuck = next(joint for joint in joints if joint not in ordered)
        raise DescriptionError("the joints form a cycle", place=f"joint '{stuck.name}'", remedy="Cut the loop.")
    return tuple(ordered)


def _distinguish_term(term: StateTerm) -> object:
    """Make a value that differs between terms with different equations, whatever their parameter values are.

    Terms of dynid differ in their ``repr``. A class of a user may be redefined under the same name, or inherit the
    ``repr`` of another; so its torques at some states are added.
    """
    blank = term.with_value(0.0)
    kind = type(term)
    if kind.__module__.startswith("dynid."):
        return repr(blank)
    with np.errstate(all="ignore"):  # torques per unit of the parameter, at (q, dq, ddq) of three successive probes
        columns = [term.formula(*map(np.float64, _PROBES[k : k + 3])) for k in range(len(_PROBES) - 2)]
    shown = [f"{float(value):.9g}" for value in columns]  # the last digits depend on the machine
    return kind.__module__, kind.__qualname__, term.prefix, repr(blank), shown


_PROBES = tuple(sign * size for size in (3e-5, 0.0021, 0.017, 0.13, 0.71, 1.9, 8.3, 57.0) for sign in (1.0, -1.0))
"""Positions, velocities and accelerations at which a user's term is evaluated to tell it from others (convention)."""


class RobotKey(Generic[Fields]):
    """Cache key for something that is made from a robot's equations: equal for robots with the same equations.

    Functions with `functools.lru_cache` take such a key and find the robot in it.
    """

    __slots__ = ("_all", "fields", "robot")

    def __init__(self, robot: Robot, fields: Fields) -> None:
        """Build a key.

        Args:
            robot: The robot; only its fingerprint counts.
            fields: Further hashable values on which the cached value depends.
        """
        self.robot = robot
        self.fields = fields
        self._all = (robot.fingerprint, fields)

    def __hash__(self) -> int:
        return hash(self._all)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RobotKey) and self._all == other._all


def require_robot(value: object) -> None:
    """Refuse values that are not a robot, such as names of robots, which only the command line accepts."""
    if not isinstance(value, Robot):
        raise ArgumentError(
            f"expected a Robot, not {type(value).__name__} {value!r:.60}",
            remedy="Read one, dynid.read_urdf(path), or take a built-in one, dynid.robots.get(name).",
        )
