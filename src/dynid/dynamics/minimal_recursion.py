"""Inverse dynamics in minimal linear combinations: the recursive Newton-Euler method of [Lin1995] section III.

`minimal_newton_euler` is the entry, which `dynid.compiled` compiles. Instead of the ten parameters of each link it uses
the members of the set S: the fewest linear combinations of them that give the torques (`minimal_set`), so it needs
fewer operations. A member belongs to a composite body, that is a link with all links beyond it.

The joints fall into three groups. Those before r, the first revolute joint, only slide. From r on, all links turn about
the one direction of axis r. From s on, the first revolute joint whose axis is not parallel to that of r, they turn
freely. Before s, velocities and moments are numbers along axis r; from s on they are vectors. `run_recursion` computes
motions outwards (`_move`), then forces and moments inwards (`_backward`).

Symbols of the paper: ``m^``, ``k`` and ``U`` are mass, first moment and tensor of a composite body in its constant
parts, and ``D`` is U with what the joints beyond leave to it; ``p`` is the force and ``zeta`` the moment that a joint
transmits; ``h`` is the acceleration of a prismatic joint's link relative to the link before; ``Omega`` is
``[dw x] + [w x]^2``; ``d`` is the length of a lever along its joint's axis and ``b`` its length across. A *slide* is a
prismatic joint or its link. sigma of a DH row is 1 for a slide.

The scan of eqs. (32) to (90) is damaged, so the formulas at the lines were derived again: the force of composite body i
is ``m^ a + Omega k`` plus what the joints beyond add, and the moment follows with levers about the origins. The torques
equal those of the plain recursion; two thirds of the costs that can be read in Table II are met, most others are lower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynid.array_types import Floats
from dynid.dynamics.chain import Chain, find_chain
from dynid.dynamics.inertia_matrix import change_frame
from dynid.dynamics.inverse_dynamics import term_torque
from dynid.dynamics.kinematics import spin
from dynid.dynamics.minimal_constants import members_of, minimal_set
from dynid.dynamics.wrench import euler_moment
from dynid.errors import ArgumentError
from dynid.robot.formats.dh import DH
from dynid.robot.model import Robot
from dynid.spatial import EXACT, ROUNDING, Array, cross, inverse_transform, rotation_about, skew, snap


def minimal_newton_euler(robot: Robot, theta: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of every joint (n,) [N m or N] in minimal linear combinations; see `newton_euler` for the arguments.

    Raises:
        ArgumentError: The robot is no chain, or its axes are only nearly parallel.
    """
    chain = find_exact_chain(robot)
    links = minimal_torque(chain, minimal_values(chain, theta), q, dq, ddq)
    return links + term_torque(robot, theta, q, dq, ddq)


def find_exact_chain(robot: Robot) -> Chain:
    """Find the chain of modified DH frames of a robot, without any deviation from its axes.

    Raises:
        ArgumentError: The robot is no chain, or its axes are only nearly parallel.
    """
    if any(body.parent != j - 1 for j, body in enumerate(robot.bodies)):
        raise ArgumentError(
            f"robot '{robot.name}' branches; minimal linear combinations describe chains",
            remedy="Use form='standard', or hold the joints of the other branches.",
        )
    chain = find_chain(robot)
    if chain.deviation > EXACT:
        raise ArgumentError(
            f"axes of robot '{robot.name}' are nearly parallel; modified DH frames miss them by {chain.deviation:.0e}",
            remedy="Use form='standard', or write the right angles of the description in full.",
        )
    return chain


def minimal_values(chain: Chain, theta: Array) -> Array:
    """Values of the set S (b,), in the order of `minimal_set`, from the parameters (p,) of a robot."""
    count = len(chain.rows)
    links = theta[: 10 * count]
    if chain.T_body_frame is not None:  # the frames of the chain are not the robot's: transform each link's parameters
        poses = [inverse_transform(T) for T in chain.T_body_frame]
        links = np.concatenate([change_frame(T, links[10 * j : 10 * j + 10]) for j, T in enumerate(poses)])
    rows = np.array(list(minimal_set(chain).values()))  # (b, 10 n)
    values = rows @ links
    if values.dtype != float:  # recorded scalars, which cannot be compared
        return values
    return np.where(np.abs(values) <= ROUNDING * (np.abs(rows) @ np.abs(links)), 0.0, values)


class _Joint(NamedTuple):
    """One joint and its constants."""

    row: DH
    axis: Floats
    """(3,) axis of joint r in this frame, for r <= i < s."""
    members: dict[str, Any]
    """Symbol of a member of the set S that belongs to this joint -> its value."""
    tensor: Array
    """(3, 3) constant part of D, [Lin1995] eqs. (38), (42); of joints before s only the entry [2, 2] is used."""
    slides: tuple[tuple[int, Array], ...]
    """Pairs (index, change): the slides between this joint and the next revolute one beyond it, and the change (3, 3)
    of D per unit of their length."""

    def get(self, symbol: str) -> Any:
        """A member's value, 0 where the joint has no such member."""
        return self.members.get(symbol, 0.0)

    @property
    def k(self) -> Array:
        """(3,) first moment; of a revolute joint the part across its axis."""
        return np.array([self.get("KX"), self.get("KY"), self.get("KZ")])


class _State(NamedTuple):
    """Motion of one link, in its frame. Before joint s, `w` and `dw` are `axis` times `rate` and `drate`."""

    place: Array
    """(3, 3) rotation by the twist alpha about the x axis of the frame before."""
    turn: Array
    """(3, 3) rotation about the joint's own axis z."""
    length: Any
    """Lever d along the joint's axis [m]; of a slide it contains q."""
    w: Array
    """(3,) angular velocity [rad/s]."""
    dw: Array
    """(3,) angular acceleration [rad/s^2]."""
    spin: Array
    """(3, 3) Omega, [Lin1995] eq. (59)."""
    carried: Array
    """(3,) acceleration of the origin less gravity, without a slide's own part h [m/s^2]."""
    h: Array
    """(3,) [Lin1995] eq. (61); zero for revolute joints."""
    rate: Any
    """Turning rate about axis r [rad/s], before joint s."""
    drate: Any
    """Its derivative [rad/s^2]."""
    axis: Array
    """(3,) axis of joint r in this frame, up to joint s; zeros before r."""
    is_free: bool
    """Whether the link turns about more directions than that axis: from joint s on."""

    @property
    def a(self) -> Array:
        """(3,) acceleration of the origin less gravity [m/s^2], [Lin1995] eq. (71)."""
        return self.carried + self.h


Reaction = dict[int, Any]
"""Forces and moments of one composite body, in its joint's frame: number of the paper's equation -> value.

63: the force along a slide, without that of the joints beyond. 64: the own part of the force (3,), without what the
joints beyond add; 65: that of the moment, (3,) or before s a number, its part along axis r. 66: the whole force p (3,).
67: the whole moment zeta, of the form of 65. 68: the joint torque. 91: D (3, 3) of a revolute joint, also eq. (93).
papers/lin1995_dynamics.py compares them with the paper."""


def minimal_torque(chain: Chain, values: Array, q: Array, dq: Array, ddq: Array) -> Array:
    """Torque of the links (n,) from the members of the set S alone.

    Args:
        chain: The serial robot in modified DH frames.
        values: (b,) members, in the order of `minimal_set`.
        q: (n,) joint positions [rad or m].
        dq: (n,) joint velocities.
        ddq: (n,) joint accelerations.
    """
    _, reactions = run_recursion(chain, values, q, dq, ddq)
    return np.array([reaction[68] for reaction in reactions])


def run_recursion(chain: Chain, values: Array, q: Array, dq: Array, ddq: Array) -> tuple[list[_State], list[Reaction]]:
    """Motion, and forces and moments, of every joint in order; arguments as `minimal_torque`."""
    joints = _joints(chain, members_of(chain, values))
    states: list[_State] = []
    rest = np.zeros(3)
    # the base, at rest under gravity: [Lin1995] eq. (76)
    before = _State(
        np.eye(3), np.eye(3), 0.0, rest, rest, np.zeros((3, 3)), -chain.gravity, rest, 0.0, 0.0, rest, False
    )
    for i, joint in enumerate(joints):
        before = _move(joint, before, i >= chain.s, q[i], dq[i], ddq[i])
        states.append(before)
    return states, _backward(joints, states, dq, ddq)


def _joints(chain: Chain, tables: Sequence[dict[str, Any]]) -> list[_Joint]:
    """Collect the constants of every joint, from the last joint to the first.

    Args:
        chain: The serial robot.
        tables: For each joint: symbol of a member of the set S -> its value.
    """
    joints: list[_Joint] = []
    # U' - U of [Lin1995] eq. (39): the revolute joint beyond has taken this part of the tensor into its own D
    G: Array = np.zeros((3, 3))
    slides: list[tuple[int, Array]] = []  # as `_Joint.slides`, in the present frame
    for i in reversed(range(len(chain.rows))):
        row = chain.rows[i]
        members = tables[i]
        R = snap(row.T_previous_joint[:3, :3])
        joint = _Joint(row, snap(chain.axis_of_r[i]), members, own_tensor(members) + G, tuple(slides))
        if row.sigma:
            slides.append((i, _slide_change(joint, i < chain.s)))
            slides = [(k, W if i < chain.s else _turn_tensor(R, W)) for k, W in slides]
            G = _turn_tensor(R, G)
        else:
            D, passed = _split_tensor(joint.tensor, i >= chain.s and not slides)
            joint = joint._replace(tensor=D)
            z = R[:, 2]  # the joint's axis in the frame before
            slides = []
            G = passed * np.eye(3) - (passed + joint.get("U33")) * np.outer(z, z)  # [Lin1995] eq. (43)
        joints.append(joint)
    return joints[::-1]


def _split_tensor(H: Array, is_constant: bool) -> tuple[Array, Any]:
    """D (3, 3) of a revolute joint, and the moment of inertia x across its axis that is passed on to the link before.

    A part ``x diag(1, 1, 0)`` of the tensor looks the same at every angle of the joint, so it may stay with the joint
    or be passed on. [Lin1995] eq. (42) passes U'22 on. Where D is constant and known, x is chosen so that D is that of
    a flat body, ``D33 = D11 + D22``: then Euler's equations need one product and one sum less, if products of inertia
    need all entries of Omega anyway.

    Args:
        H: (3, 3) U of the joint and what the joints beyond leave to it.
        is_constant: Whether no slide changes D.
    """
    passed = H[1, 1]
    D = H - np.diag([passed, passed, 0.0])
    if is_constant and D.dtype == float and np.all(D[np.triu_indices(3, 1)] != 0.0):
        kept = 0.5 * (D[2, 2] - D[0, 0])
        passed = passed - kept
        D = D + np.diag([kept, kept, 0.0])
        D[2, 2] = D[0, 0] + D[1, 1]
    return D, passed


def own_tensor(members: Mapping[str, Any]) -> Array:
    """U (3, 3) of a revolute joint with U22 set to zero: only the difference U11 - U22 acts."""
    xx, xy, xz, yz, zz = (members.get(symbol, 0.0) for symbol in ("U11-U22", "U12", "U13", "U23", "U33"))
    return np.array([[xx, xy, xz], [xy, 0.0, yz], [xz, yz, zz]])


def _turn_tensor(R: Floats, tensor: Array) -> Array:
    """``R J R'`` (3, 3), symmetric to the last digit."""
    turned = R @ tensor @ R.T
    return np.array([[turned[min(a, b), max(a, b)] for b in range(3)] for a in range(3)])


def _slide_change(joint: _Joint, is_before_s: bool) -> Array:
    """Change of D per unit length of a slide, in the slide's frame: [Lin1995] eq. (92), before s eq. (93)."""
    if is_before_s:
        return np.diag([0.0, 0.0, 2.0 * joint.get("K2")])
    x, y, z = joint.k
    return np.array([[2.0 * z, 0.0, -x], [0.0, 2.0 * z, -y], [-x, -y, 0.0]])


def _move(joint: _Joint, before: _State, is_free: bool, q: Any, dq: Any, ddq: Any) -> _State:
    """Motion of a link from that of the link before: [Lin1995] eqs. (57)-(62), (69)-(71).

    Before joint s it turns about the direction u of axis r only, eqs. (77)-(81), and before joint r not at all.
    """
    row = joint.row
    u = joint.axis
    rate = before.rate
    drate = before.drate
    place, turn, length = placement(row, q)

    def bring(vector: Array) -> Array:
        """Turn a vector from the frame before into the link's frame."""
        return np.asarray(turn.T @ (place.T @ vector))

    if not is_free:
        if not row.sigma:
            rate = rate + u[2] * dq  # [Lin1995] eq. (80)
            drate = drate + u[2] * ddq  # [Lin1995] eq. (81)
        w = u * rate
        dw = u * drate
        field = skew(u) * drate + (np.outer(u, u) - np.eye(3)) * (rate * rate)
    else:
        # at joint s, w and dw before are both along the axis of r: one vector is turned, and scaled twice
        u = bring(before.axis)
        w, dw = (bring(before.w), bring(before.dw)) if before.is_free else (u * rate, u * drate)
        if not row.sigma:
            dw = dw + np.array([w[1] * dq, -(w[0] * dq), ddq])  # [Lin1995] eq. (58)
            w = w + np.array([0.0, 0.0, dq])  # [Lin1995] eq. (57)
        field = spin(w, dw)  # Omega
        if not before.is_free and u[2] == 0.0:  # joint s is at right angles to axis r: wx^2 + wy^2 is still rate^2
            field[2, 2] = -(rate * rate)
    carried = bring(before.a + before.spin[:, 0] * row.d)  # [Lin1995] eqs. (69), (70)
    h = np.zeros(3)
    if row.sigma:
        h = field[:, 2] * length + _slide_acceleration(w, dq, ddq)  # [Lin1995] eq. (61)
    elif is_free:  # the lever along the axis is added after the turn, which does not change it: fewer products
        carried = carried + field[:, 2] * length
    return _State(place, turn, length, w, dw, field, carried, h, rate, drate, u, is_free)


def placement(row: DH, q: Any) -> tuple[Array, Array, Any]:
    """Rotation by the twist (3, 3), rotation about the joint's axis z (3, 3), and lever along that axis [m]."""
    place, z = snap(rotation_about([1.0, 0.0, 0.0], row.alpha)), [0.0, 0.0, 1.0]
    if row.sigma:
        return place, snap(rotation_about(z, row.theta)), row.r + q
    return place, rotation_about(z, q + row.theta), row.r


def _slide_acceleration(w: Array, dq: Any, ddq: Any) -> Array:
    """Coriolis acceleration ``2 w x z dq`` and own acceleration ``z ddq`` of a slide (3,)."""
    twice = 2.0 * dq
    return np.array([w[1] * twice, -(w[0] * twice), ddq])


def _backward(joints: list[_Joint], states: list[_State], dq: Array, ddq: Array) -> list[Reaction]:
    """Sum forces and moments from the last joint to the first: [Lin1995] eqs. (63)-(68).

    Args:
        joints: The constants of every joint.
        states: The motion of every link.
        dq: (n,) joint velocities.
        ddq: (n,) joint accelerations.
    """
    reactions: list[Reaction] = []
    p: Array = np.zeros(3)
    zeta: Any = np.zeros(3) if states[-1].is_free else 0.0  # a vector from s on, before s its part along axis r
    for i in reversed(range(len(joints))):
        joint = joints[i]
        state = states[i]
        slide = 0.0
        if reactions:
            p, zeta = _pass_on(joints[i + 1], states[i + 1], state, p, zeta)
        tensor = joint.tensor
        if joint.row.sigma:
            slide = _slide_force(joint, state)
            push = state.h * joint.get("MC")  # [Lin1995] eqs. (64), (79)
            own = _slide_moment(joint, state, dq[i], ddq[i])
            torque = slide + p[2]  # [Lin1995] eq. (68)
            zeta = zeta + own  # [Lin1995] eq. (67)
        else:
            for k, change in joint.slides:
                tensor = tensor + change * states[k].length  # [Lin1995] eqs. (91), (93)
            push = state.spin[:, 0] * joint.get("KX") + state.spin[:, 1] * joint.get("KY")  # [Lin1995] eqs. (64), (84)
            own = _revolute_moment(joint, state, tensor)
            zeta = zeta + own
            torque = zeta[2] if state.is_free else zeta * joint.axis[2]
        p = p + push  # [Lin1995] eq. (66)
        reactions.append({63: slide, 64: push, 91: tensor, 65: own, 66: p, 67: zeta, 68: torque})
    return reactions[::-1]


def _slide_force(joint: _Joint, state: _State) -> Any:
    """Force along a prismatic joint of all that it carries, without what the joints beyond add themselves."""
    weight = joint.get("MC") * state.a[2]
    if not state.is_free:  # [Lin1995] eqs. (78), (83)
        return weight + state.drate * joint.get("K1") - (state.rate * state.rate) * joint.get("K2")
    return weight + state.spin[2] @ joint.k  # [Lin1995] eq. (63)


def _slide_moment(joint: _Joint, state: _State, dq: Any, ddq: Any) -> Any:
    """Moment of a prismatic joint's composite body: [Lin1995] eq. (65), before s its part along axis r, eq. (85)."""
    a = state.carried
    u = joint.axis
    mass = joint.get("MC")
    if not state.is_free:
        sideways = ((u[1] * mass) * a[0] - (u[0] * mass) * a[1]) * state.length
        return joint.get("K1") * ddq + (2.0 * joint.get("K2")) * (state.rate * dq) + sideways
    lever = mass * state.length
    return cross(joint.k, _slide_acceleration(state.w, dq, ddq)) + np.array([-(lever * a[1]), lever * a[0], 0.0])


def _revolute_moment(joint: _Joint, state: _State, D: Array) -> Any:
    """Moment of a revolute joint's composite body: [Lin1995] eq. (65), before s its part along axis r, eq. (85)."""
    a = state.a
    x, y = joint.get("KX"), joint.get("KY")
    if not state.is_free:
        return D[2, 2] * state.drate + (x * a[1] - y * a[0]) * joint.axis[2]
    tensor = (D[0, 0], D[0, 1], D[0, 2], D[1, 1], D[1, 2], D[2, 2])
    differences = [_difference(joint, D, *pair) for pair in ((2, 1), (0, 2), (1, 0))]  # ZZ - YY, XX - ZZ, YY - XX
    moment = euler_moment(tensor, state.w, state.dw, state.spin, differences)
    return moment + cross(np.array([x, y, 0.0]), a)


def _difference(joint: _Joint, D: Array, a: int, b: int) -> Any:
    """``Daa - Dbb``, from the constant part of D where the slides change both entries alike."""
    varies = any(not isinstance(W[a, a] - W[b, b], float) or W[a, a] != W[b, b] for _, W in joint.slides)
    return D[a, a] - D[b, b] if varies else joint.tensor[a, a] - joint.tensor[b, b]


def _pass_on(joint: _Joint, state: _State, before: _State, p: Array, zeta: Any) -> tuple[Array, Any]:
    """Force and moment of a joint, about the origin of the frame before and in its axes.

    The lever between the origins is d along the joint's axis, then b along the x axis of the frame before.

    Args:
        joint: The joint.
        state: Motion of its link.
        before: Motion of the link before.
        p: (3,) its force.
        zeta: (3,) its moment; before s the part along axis r.

    Returns:
        [Lin1995] eqs. (66), (67) in the form of (74), (75); for joints up to s of (88) to (90), which the scan lost.
    """
    d = state.length
    b = joint.row.d
    here = state.axis  # the axis of r in the joint's frame
    axis = before.axis  # the same in the frame before
    force = state.place @ (state.turn @ p)
    moment = np.array([-(p[1] * d), p[0] * d, 0.0])
    if before.is_free:
        turned = state.place @ (state.turn @ (zeta + moment))
        return force, turned + np.array([0.0, -(force[2] * b), force[1] * b])
    along = here @ (zeta + moment) if state.is_free else zeta + (here[1] * p[0] - here[0] * p[1]) * d
    return force, along + (axis[2] * b) * force[1] - (axis[1] * b) * force[2]
