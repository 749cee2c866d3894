"""A robot's inverse dynamics, regressor, inertia matrix and so on, compiled to machine code.

`dynid.dynamics` has the equations in plain NumPy. Here they run once on symbolic numbers; every operation is recorded
in a list without branches, the *tape*, which `dynid.tape` compiles. The compiled tape is called a *kernel*.

Users call the functions named like a quantity, such as `inverse_dynamics` and `regressor`; `link_pose` and others give
quantities of one link. Other modules of dynid call `kernel` and `record_quantity` by the quantity's name.

Each function here takes one state, arrays (n,) for n joints, or N states, arrays (N, n), and returns one result or N of
them. The first call on a robot records its equations and compiles them in some milliseconds; later calls on the same
robot, or on an equal one, reuse the kernel.

NaN and infinity in a state are not refused: as in NumPy and Pinocchio, they give NaN in every number that depends on
them, and the other states of a batch keep their results. A check would cost as much as the call for one state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.array_types import Floats
from dynid.checks import as_columns
from dynid.decompositions import eigvalsh
from dynid.dynamics import christoffel, energy, minimal_inertia, minimal_recursion
from dynid.dynamics import forward_dynamics as forward
from dynid.dynamics import inertia_matrix as composites
from dynid.dynamics import inverse_dynamics as newton
from dynid.dynamics import regressor as rows
from dynid.dynamics.jacobian import geometric_jacobian, link_frame
from dynid.dynamics.wrench import sensor_wrench_regressor
from dynid.errors import ArgumentError
from dynid.robot.model import Robot, RobotKey, require_robot
from dynid.spatial import ROUNDING, SAME
from dynid.tape import Tape, record
from dynid.tape.kernel import Kernel
from dynid.tape.program import real_array
from dynid.terms.base import Dependence

__all__ = ["christoffel_coefficients", "function", "kernel", "link_jacobian", "link_pose", "wrench_regressor"]


@dataclass(frozen=True, slots=True)
class _Quantity:
    """The equations of a quantity, and their arguments."""

    function: Callable[..., Any]
    """Function of `dynid.dynamics` with the arguments (robot, parameter values (p,), states...), or (robot, states...)
    where the quantity has no parameters."""
    states: tuple[str, ...]
    """Names of its states, each an array (n,), in the order of the function's arguments."""
    has_parameters: bool = True
    """Whether it depends on the parameter values; a regressor does not."""


_QUANTITIES: dict[str, _Quantity] = {
    "regressor": _Quantity(rows.torque_regressor, ("q", "dq", "ddq"), has_parameters=False),
    "momentum_regressor": _Quantity(rows.momentum_regressor, ("q", "dq"), has_parameters=False),
    "energy_regressor": _Quantity(energy.energy_rows, ("q", "dq"), has_parameters=False),
    "inverse_dynamics": _Quantity(newton.newton_euler, ("q", "dq", "ddq")),
    "inertia_matrix": _Quantity(composites.composite_inertia_matrix, ("q",)),
    "gravity_torque": _Quantity(composites.gravity_torque, ("q",)),
    "velocity_torque": _Quantity(composites.velocity_torque, ("q", "dq")),
    "christoffel_coefficients": _Quantity(christoffel.christoffel_coefficients, ("q",)),
    "inertia_and_bias": _Quantity(forward.inertia_and_bias, ("q", "dq")),
    "forward_dynamics": _Quantity(forward.forward_dynamics, ("q", "dq", "tau")),
    "momentum_balance": _Quantity(energy.momentum_balance, ("q", "dq")),
    "energy": _Quantity(energy.total_energy, ("q", "dq")),
    "minimal_inverse_dynamics": _Quantity(minimal_recursion.minimal_newton_euler, ("q", "dq", "ddq")),
    "minimal_inertia_and_bias": _Quantity(minimal_inertia.minimal_inertia_and_bias, ("q", "dq")),
}
"""Name of a quantity -> its equations."""

Form = Literal["standard", "minimal"]
"""Form of the equations: in the parameters of the links, or in the fewest linear combinations of them that give the
same torques."""
_PREFIX: dict[str, str] = {"standard": "", "minimal": "minimal_"}
"""Form of the equations -> prefix of the names of its quantities."""


def kernel(
    robot: Robot, quantity: str, *, columns: Sequence[int] | None = None, symbolic_parameters: bool = False
) -> Kernel:
    """Compile a quantity of a robot; an equal robot's kernel is reused.

    Args:
        robot: The robot.
        quantity: ``regressor``, ``momentum_regressor``, ``energy_regressor``, ``inverse_dynamics``, ``inertia_matrix``,
            ``gravity_torque``, ``velocity_torque``, ``christoffel_coefficients``, ``inertia_and_bias``, ``energy`` or
            ``momentum_balance`` (``M dq``, and ``C^T dq`` less gravity); of serial robots also
            ``minimal_inverse_dynamics`` and ``minimal_inertia_and_bias``, the same in minimal linear combinations.
        columns: Columns of a regressor to compute, for example those of the base parameters; all by default.
        symbolic_parameters: Keep the parameters (p,) as the kernel's last input instead of folding in their values.

    Example:
        >>> dynid.compiled.kernel(robot, "gravity_torque").count.multiplications > 0
        True
    """
    require_robot(robot)
    if quantity not in _QUANTITIES:
        raise ArgumentError(f"there is no kernel '{quantity}'", remedy=f"Choose one of {', '.join(_QUANTITIES)}.")
    if robot.dof == 0:
        raise ArgumentError(f"robot '{robot.name}' has no moving joint", remedy="Give it a joint that is not fixed.")
    # parameter values that become constants of the machine code are part of the key of the cache
    is_constant = _QUANTITIES[quantity].has_parameters and not symbolic_parameters
    values = robot.parameter_vector.tobytes() if is_constant else b""
    indices = None if columns is None else as_columns(columns, _column_count(robot, quantity))
    return _cached_kernel(RobotKey(robot, (quantity, values, indices, symbolic_parameters)))


def _column_count(robot: Robot, quantity: str) -> int:
    """Count the columns of a regressor.

    The torque regressor has ten per body and one per friction or motor term; those of momentum and energy have no
    columns for terms.
    """
    if _QUANTITIES[quantity].has_parameters:
        raise ArgumentError(f"'{quantity}' has no columns to choose", remedy="Leave 'columns' out.")
    return robot.parameter_vector.size if quantity == "regressor" else 10 * robot.dof


_Choice = tuple[str, bytes, tuple[int, ...] | None, bool]
"""Which kernel of a robot: its quantity, the bytes of the parameter values that are constants of the code (empty where
none are), the indices of the columns (None for all), and whether the parameters are an input."""


@lru_cache(maxsize=256)
def _cached_kernel(key: RobotKey[_Choice]) -> Kernel:
    """Compile the kernel of a robot and a choice.

    Robots with the same equations have equal keys, so that they share the kernel.
    """
    quantity, _, columns, is_symbolic = key.fields
    tape = record_quantity(key.robot, quantity, symbolic_parameters=is_symbolic)
    if columns is not None:
        tape = tape.select({"output": np.s_[..., list(columns)]})
    return Kernel(quantity, tape)


def record_quantity(robot: Robot, quantity: str, *, symbolic_parameters: bool = False) -> Tape:
    """Record a quantity's equations for a robot as a tape, without compiling it; arguments as `kernel`."""
    entry = _QUANTITIES[quantity]
    shapes: dict[str, tuple[int, ...]] = {state: (robot.dof,) for state in entry.states}
    if symbolic_parameters and entry.has_parameters:
        shapes["theta"] = robot.parameter_vector.shape

    # `record` gives symbolic arrays by name, in the order of `shapes`; without a symbolic theta the numbers are used
    def compute(theta: Any = robot.parameter_vector, **given: Any) -> Any:
        parameters = (theta,) if entry.has_parameters else ()
        return entry.function(robot, *parameters, *given.values())

    return record(compute, **shapes)


def inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    *,
    form: Form = "standard",
    out: Floats | None = None,
) -> Floats:
    """Joint torques (N, n) or (n,) [N m or N] of a motion, with friction, motors and the robot's other terms.

    Args:
        robot: The robot with its parameter values.
        q: (N, n) or (n,) joint positions [rad or m]; NaN and infinity give NaN.
        dq: (N, n) or (n,) joint velocities.
        ddq: (N, n) or (n,) joint accelerations.
        form: ``"standard"`` computes with the parameters of the links, ``"minimal"`` with the minimal linear
            combinations of a serial robot ([Lin1995] section III); the torques are the same.
        out: Array of the result's shape that the result is written to.

    Raises:
        ArgumentError: The minimal form does not describe this robot.

    Example:
        >>> dynid.inverse_dynamics(robot, q, dq, ddq).shape
        (3,)
    """
    evaluate = _single(robot, "inverse_dynamics" if form == "standard" else f"{_prefix(form)}inverse_dynamics")
    return evaluate(q, dq, ddq) if out is None else evaluate(q, dq, ddq, out=out)


def _prefix(form: str) -> str:
    """Look up the prefix of a form's quantities; refuse an unknown form."""
    if form not in _PREFIX:
        raise ArgumentError(f"there is no form '{form}'", remedy=f"Choose one of {', '.join(_PREFIX)}.")
    return _PREFIX[form]


def regressor(
    robot: Robot,
    q: ArrayLike,
    dq: ArrayLike,
    ddq: ArrayLike,
    *,
    columns: Sequence[int] | None = None,
    out: Floats | None = None,
) -> Floats:
    """Matrix Y (N, n, p) or (n, p) with ``Y @ robot.parameter_vector`` the joint torques; see `inverse_dynamics`.

    Args:
        robot: The robot; only its geometry, gravity and kinds of terms matter.
        q: (N, n) or (n,) joint positions [rad or m].
        dq: (N, n) or (n,) joint velocities.
        ddq: (N, n) or (n,) joint accelerations.
        columns: Which columns to compute; all by default.
        out: Array of the result's shape that the result is written to; for many states, an array that is used again
            saves half of the time, because no new memory is taken.

    Example:
        >>> torque = dynid.regressor(robot, q, dq, ddq) @ robot.parameter_vector
        >>> np.allclose(torque, dynid.inverse_dynamics(robot, q, dq, ddq))
        True
    """
    evaluate = _single(robot, "regressor") if columns is None else kernel(robot, "regressor", columns=columns).single
    return evaluate(q, dq, ddq) if out is None else evaluate(q, dq, ddq, out=out)


def energy_regressor(robot: Robot, q: ArrayLike, dq: ArrayLike) -> Floats:
    """Row (N, 10 n) or (10 n,); ``row @ robot.inertial_vector`` is the links' kinetic plus potential energy [J].

    Example:
        >>> energy = dynid.compiled.energy_regressor(robot, q, dq) @ robot.inertial_vector
    """
    return _single(robot, "energy_regressor")(q, dq)


def momentum_regressor(robot: Robot, q: ArrayLike, dq: ArrayLike) -> Floats:
    """Matrix (N, n, 10 n) or (n, 10 n); ``matrix @ robot.inertial_vector`` is the links' momentum M dq (n,).

    Example:
        >>> dynid.compiled.momentum_regressor(robot, q, dq).shape
        (3, 30)
    """
    return _single(robot, "momentum_regressor")(q, dq)


def inertia_matrix(robot: Robot, q: ArrayLike) -> Floats:
    """Inertia matrix M(q) (N, n, n) or (n, n), rotor inertias included [kg m^2, kg m or kg].

    Example:
        >>> dynid.inertia_matrix(robot, q).shape
        (3, 3)
    """
    return _single(robot, "inertia_matrix")(q)


def gravity_torque(robot: Robot, q: ArrayLike) -> Floats:
    """Torque (N, n) or (n,) that holds the links against gravity [N m or N], without springs and offsets.

    Example:
        >>> dynid.gravity_torque(robot, [q, q, q, q]).shape
        (4, 3)
    """
    return _single(robot, "gravity_torque")(q)


def velocity_torque(robot: Robot, q: ArrayLike, dq: ArrayLike) -> Floats:
    """Coriolis and centrifugal torque (N, n) or (n,) of the links [N m or N]; friction left out.

    Example:
        >>> np.allclose(dynid.compiled.velocity_torque(robot, q, 0 * dq), 0.0)
        True
    """
    return _single(robot, "velocity_torque")(q, dq)


def christoffel_coefficients(robot: Robot, q: ArrayLike) -> Floats:
    """Coefficients D (N, n, n, n) or (n, n, n) of the Coriolis and centrifugal torques ([Izaguirre1992] eq. (1)).

    ``velocity_torque_i = sum_jk D_ijk dq_j dq_k`` with D_ijk = D_ikj: the Christoffel symbols of the first kind of the
    inertia matrix. ``sum_k D_ijk dq_k`` is the Coriolis matrix C with ``dM/dt - 2 C`` skew-symmetric.

    Example:
        >>> D = dynid.compiled.christoffel_coefficients(robot, q)
        >>> np.allclose(D @ dq @ dq, dynid.compiled.velocity_torque(robot, q, dq))
        True
    """
    return _single(robot, "christoffel_coefficients")(q)


def forward_dynamics(robot: Robot, q: ArrayLike, dq: ArrayLike, tau: ArrayLike, *, form: Form = "standard") -> Floats:
    """Accelerations (N, n) or (n,) under joint torques ``tau`` [N m or N]; the inverse of `inverse_dynamics`.

    The minimal form finds the inertia matrix from composite bodies in minimal linear combinations (Renaud's form,
    [Lin1995] section III).

    Raises:
        ArgumentError: The inertia matrix is singular in one of the states.

    Example:
        >>> torque = dynid.inverse_dynamics(robot, q, dq, ddq)
        >>> np.allclose(dynid.forward_dynamics(robot, q, dq, torque), ddq)
        True
    """
    # shortcut for control loops: a function that was compiled before, and arrays that need no check
    ready: Callable[..., Floats] | None = getattr(robot, "compiled", {}).get("forward_dynamics")
    if ready and form == "standard" and type(tau) is np.ndarray and type(q) is np.ndarray and tau.shape == q.shape:
        return ready(q, dq, tau)
    q, dq, tau = (
        real_array(name, state).astype(float, copy=False) for name, state in (("q", q), ("dq", dq), ("tau", tau))
    )
    if tau.shape != np.broadcast_shapes(q.shape, dq.shape):
        raise ArgumentError(f"torques have shape {tau.shape}", remedy=f"Give {q.shape}, the shape of q.")
    if form == "standard" and has_definite_bodies(robot):
        return _single(robot, "forward_dynamics")(q, dq, tau)
    # the inertia matrix of other robots may be singular or indefinite, so its eigenvalues are checked first
    evaluate = kernel(robot, f"{_prefix(form)}inertia_and_bias")
    known_terms = evaluate(q, dq)  # inertia M (..., n, n), and bias (..., n), the torque at zero acceleration
    smallest = eigvalsh(known_terms["inertia"])[..., 0].min(initial=np.inf)
    if smallest <= ROUNDING * float(np.abs(robot.parameter_vector).max()):
        negative = [link.name for link in robot.links if link.inertia.mass < 0.0]
        if negative:
            raise ArgumentError(
                f"the mass of {', '.join(negative[:3])} is negative, so that the inertia matrix of robot "
                f"'{robot.name}' is not positive definite",
                remedy="Correct the masses, or identify them with an estimator of possible bodies ('feasible').",
            )
        raise ArgumentError(
            f"the inertia matrix of robot '{robot.name}' is singular",
            remedy="Give every moving body mass, or its joint a rotor inertia.",
        )
    return np.asarray(np.linalg.solve(known_terms["inertia"], (tau - known_terms["bias"])[..., None])[..., 0])


def has_definite_bodies(robot: Robot) -> bool:
    """Whether every body has a positive definite pseudo-inertia, so that the inertia matrix M is never singular.

    The pseudo-inertia (4, 4) of a body is positive definite where the body has mass and extent in all directions. False
    leaves the question open: so for robots without bodies, and where rotors may make M indefinite, which are robots
    with a negative rotor inertia or with couplings (motors that turn with several joints).
    """
    require_robot(robot)
    if any(placed.term.value < 0.0 for placed in robot.terms if placed.term.dependence is Dependence.ACCELERATION):
        return False
    if robot.couplings or not robot.bodies:
        return False
    values = np.array([eigvalsh(body.inertia.pseudo) for body in robot.bodies])  # (bodies, 4), ascending
    return bool(np.all(values[:, 0] > SAME * values[:, -1]))


def wrench_regressor(robot: Robot, link: str, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Floats:
    """Matrix (N, 6, 10) or (6, 10); times a load's ten inertial parameters it is the wrench that moves the load.

    The load is fixed to the link, and its parameters are those in the link's frame. The wrench is the force [N], then
    the moment about the link's origin [N m], both in the link's axes.

    Example:
        >>> dynid.compiled.wrench_regressor(robot, "link3", q, dq, ddq).shape
        (6, 10)
    """
    return _of_link(robot, link, "wrench")(q, dq, ddq)


def link_pose(robot: Robot, link: str, q: ArrayLike) -> Floats:
    """Pose ``T_base_link`` (N, 4, 4) or (4, 4) of a link in the robot's root frame: the forward kinematics.

    Args:
        robot: The robot.
        link: Name of a link; those fixed to a body, or to the base, are allowed.
        q: (N, n) or (n,) joint positions [rad or m].

    Example:
        >>> dynid.compiled.link_pose(robot, "link3", q).shape
        (4, 4)
    """
    return _of_link(robot, link, "pose")(q)


def link_jacobian(robot: Robot, link: str, q: ArrayLike) -> Floats:
    """Geometric Jacobian J (N, 6, n) or (6, n): ``J dq`` is the velocity of a link's origin, then its angular velocity.

    Both are in the axes of the base. The transpose maps a wrench on the link, force [N] and then moment about its
    origin [N m], to joint torques.

    Args:
        robot: The robot.
        link: Name of a link.
        q: (N, n) or (n,) joint positions [rad or m].

    Example:
        >>> dynid.compiled.link_jacobian(robot, "link3", q).shape
        (6, 3)
    """
    return _of_link(robot, link, "jacobian")(q)


_LINK_QUANTITIES: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "wrench": (sensor_wrench_regressor, ("q", "dq", "ddq")),
    "pose": (link_frame, ("q",)),
    "jacobian": (geometric_jacobian, ("q",)),
}
"""Quantity of a link -> function of (robot, link, states), and the names of these states."""


def _of_link(robot: Robot, link: str, what: str) -> Callable[..., Floats]:
    """Get a quantity of a link as a function of one state or many; it is compiled once and kept in ``robot.compiled``.

    Args:
        robot: The robot.
        link: Name of the link.
        what: Key of `_LINK_QUANTITIES`.
    """
    try:
        return robot.compiled[link, what]
    except (AttributeError, KeyError):  # not a robot, or not compiled yet
        require_robot(robot)
    # the moving body that the link is part of, and the link's pose (4, 4) in it: links fixed to a body do not change
    # the equations of motion, so the robot's key alone would not tell them apart
    index, T_body_link = robot.link_body(link)
    key = RobotKey(robot, (what, link, index, T_body_link.tobytes()))
    found = robot.compiled[link, what] = _link_kernel(key).single
    return found


@lru_cache(maxsize=64)
def _link_kernel(key: RobotKey[tuple[str, str, int, bytes]]) -> Kernel:
    """Compile a quantity of a link; robots with the same equations and the same link share it."""
    robot = key.robot
    what, link, *_ = key.fields  # the others only tell links apart
    function, states = _LINK_QUANTITIES[what]
    shapes = {state: (robot.dof,) for state in states}
    return Kernel(what, record(lambda **given: function(robot, link, *given.values()), **shapes))


def function(robot: Robot, quantity: str) -> Callable[..., Floats]:
    """Get a quantity of a robot as a function of one state, for control loops and simulators.

    A call costs some hundred nanoseconds more than the computation: nothing is looked up, and arguments that are
    C-contiguous float64 arrays (n,) are read in place. Lists, other types and batches work too, more slowly.
    It is safe to call from several threads.

    Args:
        robot: The robot; its parameter values are constants of the function.
        quantity: As for `kernel`: ``inverse_dynamics`` (q, dq, ddq), ``inertia_matrix`` (q), ``gravity_torque`` (q),
            ``velocity_torque`` (q, dq), ``forward_dynamics`` (q, dq, tau; of a robot whose bodies all have mass and
            extent), ``regressor`` (q, dq, ddq), ``energy_regressor`` and ``momentum_regressor`` (q, dq).

    Returns:
        ``f(*states)`` or ``f(*states, out=out)``, an array of the result's shape that is written to.

    Example:
        >>> weight = dynid.compiled.function(robot, "gravity_torque")
        >>> np.allclose(weight(q), dynid.gravity_torque(robot, q))
        True
    """
    return kernel(robot, quantity).single


def _single(robot: Robot, quantity: str) -> Callable[..., Floats]:
    """Get a quantity as a function of one state or many.

    It is kept in ``robot.compiled``: `kernel` hashes the robot's content at every call, which takes longer than most of
    these functions.
    """
    try:
        return robot.compiled[quantity]
    except (AttributeError, KeyError):  # not a robot, which `kernel` refuses, or not compiled yet
        found = kernel(robot, quantity).single
    robot.compiled[quantity] = found
    return found
